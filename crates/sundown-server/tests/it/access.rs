//! Who gets in over HTTPS, and the file that lets one in.

use std::os::unix::fs::PermissionsExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anyhow::{Context as _, Result};
use k8s_openapi::api::authentication::v1::{
    TokenRequest, TokenReview, TokenReviewSpec, TokenReviewStatus,
};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use serde_json::json;
use sundown_api::{Authorization, User};
use sundown_server::{ApiService, Credential, write_private};
use sundown_testing::BOUND;
use tower::ServiceExt;

use crate::world::{World, a_config_map, config_maps, connect};

async fn refusal(client: Client) -> Result<(u16, String, String)> {
    let error = config_maps(client).list(&ListParams::default()).await;
    let kube::Error::Api(status) = error.err().context("was let in")? else {
        anyhow::bail!("not a Status");
    };
    Ok((status.code, status.reason.clone(), status.message.clone()))
}

#[tokio::test]
async fn refuses_a_wrong_token() -> Result<()> {
    let mut world = World::new()?;
    let (_, url) = world.listen().await?;
    let kubeconfig = world.identity.kubeconfig(&url, Credential::Token);
    let wrong = "0".repeat(world.identity.token().len());
    let client = connect(&kubeconfig.replace(world.identity.token(), &wrong)).await?;
    let expect = (401, "Unauthorized".to_owned(), "Unauthorized".to_owned());
    assert_eq!(refusal(client).await?, expect);
    Ok(())
}

/// A client that takes nothing but protobuf was told in JSON why nobody listened to it.
#[tokio::test]
async fn refuses_in_the_form_that_the_client_takes() -> Result<()> {
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
    let mut world = World::new()?;
    let (_, url) = world.listen().await?;
    let kubeconfig = world.identity.kubeconfig(&url, Credential::Token);
    let wrong = "0".repeat(world.identity.token().len());
    let stranger = connect(&kubeconfig.replace(world.identity.token(), &wrong)).await?;
    let admin = connect(&kubeconfig).await?;
    let path = "/api/v1/namespaces/default/configmaps";
    let long = vec![b' '; sundown_server::BODY_BYTES_MAX + 1];
    for (client, method, path, body, code) in [
        (&stranger, "GET", path, Vec::new(), 401),
        (&admin, "OPTIONS", path, Vec::new(), 405),
        (&admin, "GET", "/api/%ff", Vec::new(), 400),
        (&admin, "POST", path, long, 413),
    ] {
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header("accept", PROTOBUF).body(body.into())?;
        let answer = client.send(request).await?;
        assert_eq!(answer.status(), code, "{method} {path}");
        assert_eq!(answer.headers()["content-type"], PROTOBUF, "{code}");
    }
    Ok(())
}

#[tokio::test]
async fn refuses_strangers_but_tells_them_its_health() -> Result<()> {
    let mut world = World::new()?;
    let (_, url) = world.listen().await?;
    let kubeconfig = world.identity.kubeconfig(&url, Credential::Token);
    let token = format!("    token: {}\n", world.identity.token());
    let client = connect(&kubeconfig.replace(&token, "    {}\n")).await?;
    let message = "configmaps is forbidden: User \"system:anonymous\" cannot list resource \
                   \"configmaps\" in API group \"\" in the namespace \"default\"";
    let expect = (403, "Forbidden".to_owned(), message.to_owned());
    assert_eq!(refusal(client.clone()).await?, expect);
    let health = client
        .request_text(http::Request::get("/healthz").body(Vec::new())?)
        .await?;
    assert_eq!(health, "ok");
    Ok(())
}

/// Otherwise every user of the machine could do everything: all of them reach the port.
#[tokio::test]
async fn lets_no_stranger_in_where_nothing_is_judged() -> Result<()> {
    let mut world = World::with(sundown_api::Config {
        authorization: Authorization::AlwaysAllow,
        ..sundown_api::Config::default()
    })?;
    let (_, url) = world.listen().await?;
    let kubeconfig = world.identity.kubeconfig(&url, Credential::Token);
    let token = format!("    token: {}\n", world.identity.token());
    let stranger = connect(&kubeconfig.replace(&token, "    {}\n")).await?;
    let expect = (401, "Unauthorized".to_owned(), "Unauthorized".to_owned());
    assert_eq!(refusal(stranger).await?, expect);
    config_maps(connect(&kubeconfig).await?)
        .list(&ListParams::default())
        .await?;
    Ok(())
}

/// Whoever may not create anything may not make the server read megabytes either.
#[tokio::test]
async fn refuses_before_the_body_is_read() -> Result<()> {
    let world = World::new()?;
    let service = ApiService::acting_as(
        Arc::clone(&world.shared),
        world.tasks.signal(),
        User::service_account("default", "default"),
    );
    let request = http::Request::post("/api/v1/namespaces/default/configmaps");
    let request = request.body(Unread)?;
    let answer = tokio::time::timeout(BOUND, service.oneshot(request));
    let answer = answer.await.context("waited for the answer to a POST")??;
    assert_eq!(answer.status(), 403);
    Ok(())
}

/// In-process clients have the rights of the user they act as, and no others.
#[tokio::test]
async fn a_client_in_process_has_the_rights_of_its_user() -> Result<()> {
    let world = World::new()?;
    let user = User::service_account("default", "default");
    let (shared, stop) = (Arc::clone(&world.shared), world.tasks.signal());
    let robot = Client::new(ApiService::acting_as(shared, stop, user), "default");
    let (code, ..) = refusal(robot.clone()).await?;
    assert_eq!(code, 403);
    let binding = serde_json::json!({
        "metadata": { "name": "robot" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view" },
        "subjects": [{ "kind": "ServiceAccount", "name": "default" }],
    });
    Api::<RoleBinding>::default_namespaced(world.in_process())
        .create(&PostParams::default(), &serde_json::from_value(binding)?)
        .await?;
    config_maps(robot.clone())
        .list(&ListParams::default())
        .await?;
    let made = config_maps(robot)
        .create(&PostParams::default(), &a_config_map("a"))
        .await;
    assert!(made.is_err(), "to view is not to create");
    Ok(())
}

/// `kubectl --as` asks what somebody else would get.
#[tokio::test]
async fn acts_as_another_user_when_asked_to() -> Result<()> {
    let world = World::new()?;
    let code = async |path: &str, headers: &[(&str, &str)]| -> Result<u16> {
        let (shared, stop) = (Arc::clone(&world.shared), world.tasks.signal());
        let service = ApiService::trusted(shared, stop);
        let mut request = http::Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(http_body_util::Empty::<bytes::Bytes>::new())?;
        Ok(service.oneshot(request).await?.status().as_u16())
    };
    let (secrets, jane) = ("/api/v1/secrets", ("Impersonate-User", "jane"));
    assert_eq!(code(secrets, &[]).await?, 200);
    assert_eq!(code(secrets, &[jane]).await?, 403);
    assert_eq!(code("/api", &[jane]).await?, 200);
    let masters = ("Impersonate-Group", "system:masters");
    assert_eq!(code(secrets, &[jane, masters]).await?, 200);
    assert_eq!(code(secrets, &[masters]).await?, 400);
    Ok(())
}

/// A caller without credentials filled the memory of the server with bodies of GETs.
#[tokio::test]
async fn the_body_of_a_get_is_not_read() -> Result<()> {
    let world = World::new()?;
    let service = ApiService::acting_as(world.shared, world.tasks.signal(), User::anonymous());
    let request = http::Request::get("/healthz").body(Unread)?;
    assert_eq!(service.oneshot(request).await?.status(), 200);
    Ok(())
}

/// A body that must not be asked for.
struct Unread;

impl http_body::Body for Unread {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        unreachable!("the body was read");
    }
}

#[tokio::test]
async fn trusts_the_administrators_certificate() -> Result<()> {
    let mut world = World::new()?;
    let (_, url) = world.listen().await?;
    let client = connect(&world.identity.kubeconfig(&url, Credential::Certificate)).await?;
    config_maps(client)
        .create(&PostParams::default(), &a_config_map("a"))
        .await?;
    Ok(())
}

#[tokio::test]
async fn refuses_a_certificate_of_another_authority() -> Result<()> {
    let mut world = World::new()?;
    let (_, url) = world.listen().await?;
    let stranger = World::new()?
        .identity
        .kubeconfig(&url, Credential::Certificate);
    let ours = world.identity.kubeconfig(&url, Credential::Token);
    let authority = |kubeconfig: &str| {
        let line = kubeconfig
            .lines()
            .find(|line| line.contains("certificate-authority-data"));
        line.map(str::to_owned).context("no authority")
    };
    // Knows our authority, so that the connection can only fail for the certificate it shows.
    let kubeconfig = stranger.replace(&authority(&stranger)?, &authority(&ours)?);
    let refused = config_maps(connect(&kubeconfig).await?)
        .list(&ListParams::default())
        .await;
    assert!(
        !matches!(refused, Ok(_) | Err(kube::Error::Api(_))),
        "{refused:?}"
    );
    Ok(())
}

async fn review(client: &Client, token: &str, audiences: &[&str]) -> Result<TokenReviewStatus> {
    let audiences: Vec<String> = audiences.iter().map(|it| (*it).to_owned()).collect();
    let review = TokenReview {
        spec: TokenReviewSpec {
            token: token.to_owned(),
            audiences: Some(audiences),
        },
        ..TokenReview::default()
    };
    let reviews: Api<TokenReview> = Api::all(client.clone());
    let review = reviews.create(&PostParams::default(), &review).await?;
    review.status.context("no status")
}

/// A service that asks about a token takes the answer for a login: the administrator's token is meant
/// for this server, not for that service.
#[tokio::test]
async fn reviews_the_administrators_token_for_this_server_only() -> Result<()> {
    let mut world = World::new()?;
    let (_, url) = world.listen().await?;
    let client = connect(&world.identity.kubeconfig(&url, Credential::Token)).await?;
    let token = world.identity.token();
    let foreign = review(&client, token, &["vault"]).await?;
    assert_eq!(foreign.authenticated, None, "{foreign:?}");
    let user = foreign.user.unwrap_or_default();
    assert_eq!(user.username, None, "nobody is named");
    let ours = review(&client, token, &[]).await?;
    assert_eq!(ours.authenticated, Some(true));
    let both = review(&client, token, &["vault", sundown_api::ISSUER]).await?;
    assert_eq!(both.audiences, Some(vec![sundown_api::ISSUER.to_owned()]));
    Ok(())
}

#[tokio::test]
async fn reviews_a_token_for_all_audiences_that_were_asked() -> Result<()> {
    let mut world = World::new()?;
    let (_, url) = world.listen().await?;
    let client = connect(&world.identity.kubeconfig(&url, Credential::Token)).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let account = serde_json::from_value(json!({ "metadata": { "name": "bob" } }))?;
    accounts.create(&PostParams::default(), &account).await?;
    let request: TokenRequest =
        serde_json::from_value(json!({ "spec": { "audiences": ["vault", "mesh"] } }))?;
    let params = PostParams::default();
    let answer = accounts.create_token_request("bob", &params, &request);
    let status = answer.await?.status.context("no status")?;
    let token = status.token.context("no token")?;
    let second = review(&client, &token, &["other", "mesh", "vault"]).await?;
    assert_eq!(second.authenticated, Some(true));
    assert_eq!(
        second.audiences,
        Some(vec!["mesh".to_owned(), "vault".to_owned()])
    );
    let ours = review(&client, &token, &[]).await?;
    assert_eq!(ours.authenticated, None, "{ours:?}");
    Ok(())
}

#[test]
fn writes_kubeconfigs_that_only_the_owner_can_read() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let path = directory.join("kubeconfig");
    std::fs::write(&path, "old, and readable by all")?;
    write_private(&path, "new")?;
    assert_eq!(std::fs::read_to_string(&path)?, "new");
    assert_eq!(
        std::fs::metadata(&path)?.permissions().mode() & 0o777,
        0o600
    );
    let names: Vec<_> = std::fs::read_dir(directory)?.collect::<Result<_, _>>()?;
    assert_eq!(names.len(), 1, "nothing temporary is left: {names:?}");
    write_private(&directory.join("absent/kubeconfig"), "new").expect_err("no such directory");
    Ok(())
}
