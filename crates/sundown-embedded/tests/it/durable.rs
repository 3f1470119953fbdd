//! A control plane on a data directory, over restarts: what clients had stays theirs.

use std::path::Path;

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenReview, TokenReviewSpec};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::{Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use sundown_embedded::{Data, Embedded, Listen, StartError};

use crate::world::{config_maps, create, identities};
use sundown_testing::{TestBound, within};

async fn start(data: &Data) -> Result<Embedded, StartError> {
    let builder = Embedded::builder().listen(Listen::default());
    builder.data(data.clone()).start().await
}

/// A client that knows a kubeconfig only.
async fn connect(kubeconfig: &str) -> Result<Client> {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
    let options = KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    // Whatever proxy the machine has, it does not lead to us.
    config.proxy_url = None;
    Ok(Client::try_from(config)?)
}

fn in_directory(home: &Path) -> Data {
    Data::in_directory(home.join("data"))
}

#[tokio::test]
async fn an_old_kubeconfig_finds_the_same_objects_after_a_restart() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let home = tempfile::tempdir()?;
    let data = in_directory(home.path());
    let embedded = start(&data).await?;
    let kubeconfig = embedded.kubeconfig().context("it listens")?.to_owned();
    let api = config_maps(connect(&kubeconfig).await?);
    create(&api, "a", &[]).await?;
    create(&api, "b", &[]).await?;
    let before = identities(&api).await?;
    embedded.stop().await?;

    let embedded = start(&data).await?;
    let api = config_maps(connect(&kubeconfig).await?);
    assert_eq!(identities(&api).await?, before);
    assert_eq!(embedded.kubeconfig(), Some(kubeconfig.as_str()));
    embedded.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_watch_resumes_over_a_restart_from_where_it_was() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let home = tempfile::tempdir()?;
    let data = in_directory(home.path());
    let embedded = start(&data).await?;
    let kubeconfig = embedded.kubeconfig().context("it listens")?.to_owned();
    let api = config_maps(connect(&kubeconfig).await?);
    let seen = create(&api, "seen", &[]).await?;
    let seen = seen.resource_version().context("no revision")?;
    create(&api, "missed", &[]).await?;
    let patch = Patch::Merge(json!({ "data": { "key": "value" } }));
    api.patch("seen", &PatchParams::default(), &patch).await?;
    api.delete("missed", &kube::api::DeleteParams::default())
        .await?;
    embedded.stop().await?;

    let embedded = start(&data).await?;
    let api = config_maps(connect(&kubeconfig).await?);
    create(&api, "later", &[]).await?;
    let params = WatchParams::default().timeout(290).disable_bookmarks();
    let events = api.watch(&params, &seen).await?.boxed();
    let events = events.take(4).try_collect::<Vec<_>>();
    let events = within("four events", events).await??;
    let told: Vec<String> = events.iter().map(tell).collect();
    let expect = [
        "ADDED missed",
        "MODIFIED seen",
        "DELETED missed",
        "ADDED later",
    ];
    assert_eq!(told, expect);
    embedded.stop().await?;
    Ok(())
}

fn tell(event: &WatchEvent<ConfigMap>) -> String {
    match event {
        WatchEvent::Added(object) => format!("ADDED {}", object.name_any()),
        WatchEvent::Modified(object) => format!("MODIFIED {}", object.name_any()),
        WatchEvent::Deleted(object) => format!("DELETED {}", object.name_any()),
        WatchEvent::Bookmark(_) => "BOOKMARK".to_owned(),
        WatchEvent::Error(status) => format!("ERROR {}", status.code),
    }
}

#[tokio::test]
async fn the_token_of_a_service_account_is_good_after_a_restart() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let home = tempfile::tempdir()?;
    let data = in_directory(home.path());
    let embedded = start(&data).await?;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(embedded.client());
    let account = serde_json::from_value(json!({ "metadata": { "name": "bob" } }))?;
    accounts.create(&PostParams::default(), &account).await?;
    let (params, request) = (PostParams::default(), TokenRequest::default());
    let answer = accounts.create_token_request("bob", &params, &request);
    let status = answer.await?.status.context("no status")?;
    let token = status.token.context("no token")?;
    drop(accounts);
    embedded.stop().await?;

    let embedded = start(&data).await?;
    let reviews: Api<TokenReview> = Api::all(embedded.client());
    let review = TokenReview {
        spec: TokenReviewSpec {
            token,
            ..TokenReviewSpec::default()
        },
        ..TokenReview::default()
    };
    let review = reviews.create(&PostParams::default(), &review).await?;
    let user = review.status.context("no status")?.user.context("nobody")?;
    assert_eq!(
        user.username.as_deref(),
        Some("system:serviceaccount:default:bob")
    );
    Ok(())
}

#[tokio::test]
async fn a_lost_identity_is_refused_until_a_new_one_is_wanted() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let home = tempfile::tempdir()?;
    let data = in_directory(home.path());
    let embedded = start(&data).await?;
    let kubeconfig = embedded.kubeconfig().context("it listens")?.to_owned();
    embedded.stop().await?;
    let path = data.directory.join("state/identity.json");
    let kept = std::fs::read(&path)?;

    std::fs::remove_file(&path)?;
    let refused = start(&data).await.err();
    assert!(
        matches!(refused, Some(StartError::IdentityGone { .. })),
        "{refused:?}"
    );
    let mut damaged = kept.clone();
    damaged[kept.len() / 2] ^= 0x01;
    std::fs::write(&path, damaged)?;
    let refused = start(&data).await.err();
    assert!(
        matches!(refused, Some(StartError::Identity(_))),
        "{refused:?}"
    );
    std::fs::write(&path, kept)?;
    start(&data).await?.stop().await?;

    let renewed = Data {
        new_identity: true,
        ..data.clone()
    };
    let embedded = start(&renewed).await?;
    let api = config_maps(connect(&kubeconfig).await?);
    assert!(identities(&api).await.is_err(), "the old one is out");
    embedded.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_second_control_plane_is_refused() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let home = tempfile::tempdir()?;
    let data = in_directory(home.path());
    let embedded = start(&data).await?;
    let refused = start(&data).await.err().context("two at once")?;
    let said = refused.to_string();
    assert!(
        said.contains("in use by another control plane, process"),
        "{said}"
    );
    embedded.stop().await?;
    start(&data).await?.stop().await?;
    Ok(())
}
