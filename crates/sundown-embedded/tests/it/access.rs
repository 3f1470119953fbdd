//! The controllers act as a user of their own: what they declare is enough, and nothing more is theirs.

use anyhow::{Context, Result, bail};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use sundown_embedded::{Data, Embedded};

use sundown_testing::{BOUND, within};

use crate::world::{a_world, config_maps, create, create_finished_job, delete};

const CONTROLLERS: &str = "system:sundown:controllers";

/// Collection in three ways, a TTL, a namespace with its content: no request lacks a right.
#[tokio::test]
async fn the_controllers_may_do_all_that_a_life_takes() -> Result<()> {
    let embedded = a_world().start().await?;
    let client = embedded.client();
    let api = config_maps(client.clone());
    for (name, how) in [
        ("back", DeleteParams::background()),
        ("fore", DeleteParams::foreground()),
        ("orphan", DeleteParams::orphan()),
    ] {
        let owner = create(&api, name, &[]).await?;
        create(&api, &format!("{name}-child"), &[&owner]).await?;
        delete(&api, name, &how).await?;
    }
    let jobs: Api<Job> = Api::namespaced(client.clone(), "default");
    create_finished_job(&jobs, "short", 60).await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({ "metadata": { "name": "goes" } }))?;
    namespaces
        .create(&PostParams::default(), &namespace)
        .await?;
    let inside: Api<Secret> = Api::namespaced(client.clone(), "goes");
    let secret = serde_json::from_value(json!({ "metadata": { "name": "inside" } }))?;
    inside.create(&PostParams::default(), &secret).await?;
    namespaces.delete("goes", &DeleteParams::default()).await?;
    embedded.until_at_rest(BOUND).await?;
    embedded.advance(std::time::Duration::from_secs(61));
    embedded.until_at_rest(BOUND).await?;

    assert!(jobs.get_opt("short").await?.is_none(), "its time has come");
    assert!(namespaces.get_opt("goes").await?.is_none());
    assert!(api.get_opt("back-child").await?.is_none());
    assert!(api.get_opt("orphan-child").await?.is_some());
    let counts = embedded.controllers().counts();
    assert!(counts.delete > 0, "{counts:?}");
    assert_eq!(counts.forbidden, 0, "{counts:?}");
    embedded.stop().await?;
    Ok(())
}

async fn is_forbidden<T: std::fmt::Debug>(
    asked: impl Future<Output = kube::Result<T>>,
) -> Result<()> {
    match asked.await {
        Err(kube::Error::Api(status)) if status.code == 403 => {
            assert_eq!(status.reason, "Forbidden");
            assert!(status.message.contains(CONTROLLERS), "{}", status.message);
            Ok(())
        }
        other => bail!("not forbidden: {other:?}"),
    }
}

#[tokio::test]
async fn what_no_controller_declares_is_forbidden_to_them() -> Result<()> {
    let embedded = a_world().start().await?;
    let client = embedded.client_as(CONTROLLERS, &["system:sundown"]);
    let params = PostParams::default();
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    let secret = serde_json::from_value(json!({ "metadata": { "name": "made" } }))?;
    is_forbidden(secrets.create(&params, &secret)).await?;
    is_forbidden(secrets.replace("made", &params, &secret)).await?;
    let maps: Api<ConfigMap> = config_maps(client.clone());
    let map = serde_json::from_value(json!({ "metadata": { "name": "made" } }))?;
    is_forbidden(maps.create(&params, &map)).await?;
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    let binding = serde_json::from_value(json!({
        "metadata": { "name": "more" },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin",
        },
        "subjects": [{ "kind": "User", "name": CONTROLLERS,
            "apiGroup": "rbac.authorization.k8s.io" }],
    }))?;
    is_forbidden(bindings.create(&params, &binding)).await?;
    let token = http::Request::post("/api/v1/namespaces/default/serviceaccounts/default/token");
    let token = token.header("content-type", "application/json");
    let token = token.body(b"{}".to_vec())?;
    is_forbidden(client.request::<serde_json::Value>(token)).await?;
    embedded.stop().await?;
    Ok(())
}

async fn role(client: &Client) -> Result<ClusterRole> {
    let roles: Api<ClusterRole> = Api::all(client.clone());
    roles.get_opt(CONTROLLERS).await?.context("no role")
}

/// Without them every request of the controllers was refused until a restart.
#[tokio::test]
async fn what_the_controllers_need_comes_back_when_it_is_deleted_or_changed() -> Result<()> {
    let embedded = a_world().start().await?;
    let client = embedded.client();
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    let first = role(&client).await?;
    roles.delete(CONTROLLERS, &DeleteParams::default()).await?;
    until("the role is back", async || {
        Ok(roles.get_opt(CONTROLLERS).await?.is_some())
    })
    .await?;
    assert_eq!(role(&client).await?.rules, first.rules);
    bindings
        .delete(CONTROLLERS, &DeleteParams::default())
        .await?;
    until("the binding is back", async || {
        Ok(bindings.get_opt(CONTROLLERS).await?.is_some())
    })
    .await?;
    let nothing = Patch::Merge(json!({ "rules": [] }));
    roles
        .patch(CONTROLLERS, &PatchParams::default(), &nothing)
        .await?;
    until("its rules are back", async || {
        Ok(role(&client).await?.rules == first.rules)
    })
    .await?;

    let api = config_maps(client.clone());
    let owner = create(&api, "owner", &[]).await?;
    create(&api, "child", &[&owner]).await?;
    delete(&api, "owner", &DeleteParams::background()).await?;
    // A watch or a write that was refused in between waits before it is tried again.
    embedded.advance(std::time::Duration::from_mins(10));
    until("the child is collected", async || {
        Ok(api.get_opt("child").await?.is_none())
    })
    .await?;
    embedded.stop().await?;
    Ok(())
}

/// Asks again after each answer until it is so.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let asked = async {
        while !is_so().await? {
            tokio::task::yield_now().await;
        }
        anyhow::Ok(())
    };
    within(what, asked).await?
}

/// A start writes what is missing or was changed, and nothing else.
#[tokio::test]
async fn their_role_is_kept_over_restarts() -> Result<()> {
    let home = tempfile::tempdir()?;
    let data = Data::in_directory(home.path().join("data"));
    let start = || Embedded::builder().data(data.clone()).start();
    let embedded = start().await?;
    let first = role(&embedded.client()).await?;
    embedded.stop().await?;

    let embedded = start().await?;
    let second = role(&embedded.client()).await?;
    assert_eq!(second.resource_version(), first.resource_version());
    let roles: Api<ClusterRole> = Api::all(embedded.client());
    roles.delete(CONTROLLERS, &DeleteParams::default()).await?;
    embedded.stop().await?;

    let embedded = start().await?;
    let third = role(&embedded.client()).await?;
    assert_eq!(third.rules, first.rules);
    embedded.stop().await?;
    Ok(())
}
