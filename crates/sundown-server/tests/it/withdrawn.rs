//! A write whose caller loses its rights in the same group of commits: both are decided on a state in which
//! the caller may still do it.

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sundown_api::{Caller, Impersonation, Method, Proof, Request, User};
use sundown_server::{Durability, Reply};
use sundown_testing::{eventually, within};
use tokio::task::JoinSet;

use crate::durable::{Step, World, code, create, request};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

/// The code of a request that writes, alone in its group.
async fn alone(world: &World, caller: Caller, request: Request) -> Result<u16> {
    let mut tasks = JoinSet::new();
    world.send_as(&mut tasks, caller, request);
    for _ in 0..2 {
        world.step()?;
        world.go_on()?;
    }
    let codes = within("an answer", tasks.join_all()).await?;
    codes.first().copied().context("one request")
}

/// Commits one request of the administrator.
async fn done(world: &World, request: Request) -> Result<()> {
    let code = alone(world, User::admin().into(), request).await?;
    anyhow::ensure!(code < 300, "{code}");
    Ok(())
}

/// Lets `subject` edit the namespace `default`.
async fn bind(world: &World, subject: Value) -> Result<()> {
    let binding = json!({
        "metadata": { "name": "b" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit" },
        "subjects": [subject],
    });
    let path = format!("{RBAC}/namespaces/default/rolebindings");
    done(world, request(Method::Post, &path, &binding.to_string())).await?;
    Ok(())
}

/// A new account `a` that may edit, and what its token says.
async fn account(world: &World) -> Result<Caller> {
    let account = json!({ "metadata": { "name": "a" } });
    done(world, request(Method::Post, ACCOUNTS, &account.to_string())).await?;
    bind(world, json!({ "kind": "ServiceAccount", "name": "a" })).await?;
    let asked = request(
        Method::Post,
        &format!("{ACCOUNTS}/a/token"),
        r#"{"spec":{}}"#,
    );
    let answer = world.shared.call(User::admin().into(), asked).await;
    let Reply::Response(answer) = answer else {
        anyhow::bail!("not a response");
    };
    let answer: Value = serde_json::from_slice(&answer.body)?;
    let claims = answer["status"]["token"].as_str().context("no token")?;
    Ok(Caller {
        proof: Proof::Claims(URL_SAFE_NO_PAD.decode(claims)?),
        wanted: Impersonation::default(),
    })
}

fn jane() -> User {
    User {
        name: "jane".to_owned(),
        groups: vec!["system:authenticated".to_owned()],
        ..User::anonymous()
    }
}

/// The codes of a withdrawal and of a write of `caller`, which are committed in this order as one group.
async fn in_one_group(world: &World, withdrawal: Request, caller: Caller) -> Result<(u16, u16)> {
    let (mut first, mut writes) = (JoinSet::new(), JoinSet::new());
    world.send(&mut first, create("busy"));
    anyhow::ensure!(matches!(world.step()?, Step::Write(_)));
    world.send(&mut first, withdrawal);
    eventually("the withdrawal is queued", || {
        world.shared.queued_count() == 1
    })
    .await?;
    world.send_as(&mut writes, caller, create("late"));
    eventually("the write is queued", || world.shared.queued_count() == 2).await?;
    world.go_on()?;
    anyhow::ensure!(world.step()? == Step::Sync);
    world.go_on()?;
    let Step::Write(revisions) = world.step()? else {
        anyhow::bail!("no second group");
    };
    anyhow::ensure!(revisions.len() == 1, "the withdrawal alone: {revisions:?}");
    world.go_on()?;
    anyhow::ensure!(world.step()? == Step::Sync);
    world.go_on()?;
    let codes = within("the withdrawal", first.join_all()).await?;
    let withdrawn = codes.into_iter().find(|code| *code != 201);
    let written = within("the write", writes.join_all()).await?;
    Ok((
        withdrawn.context("it is no creation")?,
        *written.first().context("one write")?,
    ))
}

fn delete(path: &str) -> Request {
    request(Method::Delete, path, "")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_after_its_binding_was_withdrawn_in_the_same_group_is_refused() -> Result<()> {
    let world = World::new(Durability::Relaxed)?;
    bind(
        &world,
        json!({ "kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io" }),
    )
    .await?;
    let withdrawal = delete(&format!("{RBAC}/namespaces/default/rolebindings/b"));
    let codes = in_one_group(&world, withdrawal, jane().into()).await?;
    assert_eq!(codes, (200, 403));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_after_its_account_was_deleted_in_the_same_group_is_refused() -> Result<()> {
    let world = World::new(Durability::Relaxed)?;
    let caller = account(&world).await?;
    let withdrawal = delete(&format!("{ACCOUNTS}/a"));
    let codes = in_one_group(&world, withdrawal, caller).await?;
    assert_eq!(codes, (200, 401));
    Ok(())
}

/// Whom a caller acts as is a right of the caller, not of the user that it acts as.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_after_the_right_to_impersonate_was_withdrawn_is_refused() -> Result<()> {
    let world = World::new(Durability::Relaxed)?;
    let role = json!({
        "metadata": { "name": "actor" },
        "rules": [{ "apiGroups": [""], "resources": ["users", "groups"], "verbs": ["impersonate"] }],
    });
    let roles = format!("{RBAC}/clusterroles");
    done(&world, request(Method::Post, &roles, &role.to_string())).await?;
    let binding = json!({
        "metadata": { "name": "actor" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "actor" },
        "subjects": [{ "kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io" }],
    });
    let bindings = format!("{RBAC}/clusterrolebindings");
    done(
        &world,
        request(Method::Post, &bindings, &binding.to_string()),
    )
    .await?;
    let caller = Caller {
        proof: Proof::Known(jane()),
        wanted: Impersonation {
            user: "root".to_owned(),
            groups: vec!["system:masters".to_owned()],
            ..Impersonation::default()
        },
    };
    let withdrawal = delete(&format!("{bindings}/actor"));
    let codes = in_one_group(&world, withdrawal, caller).await?;
    assert_eq!(codes, (200, 403));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_after_its_token_was_withdrawn_is_refused() -> Result<()> {
    let world = World::new(Durability::Relaxed)?;
    let caller = account(&world).await?;
    let early = alone(&world, caller.clone(), create("early")).await?;
    assert_eq!(early, 201);
    done(&world, delete(&format!("{ACCOUNTS}/a"))).await?;
    let refused = world.shared.call(caller, create("late")).await;
    assert_eq!(code(refused), 401);
    Ok(())
}
