//! What is refused before it reaches the core.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use kube::Client;
use kube::api::PostParams;
use sundown_server::{ApiService, BODY_BYTES_MAX};
use tower::ServiceExt;

use crate::world::{World, a_config_map, config_maps};

async fn check_too_large(client: Client) -> Result<()> {
    let api = config_maps(client);
    let mut config_map = a_config_map("a");
    config_map.data = Some(BTreeMap::from([(
        "key".to_owned(),
        "x".repeat(BODY_BYTES_MAX),
    )]));
    let error = api.create(&PostParams::default(), &config_map).await;
    let kube::Error::Api(status) = error.err().context("was taken")? else {
        anyhow::bail!("not a Status");
    };
    assert_eq!(
        (status.code, status.reason.as_str()),
        (413, "RequestEntityTooLarge")
    );
    assert_eq!(status.message, "Request entity too large: limit is 3145728");
    Ok(())
}

#[tokio::test]
async fn refuses_a_body_over_the_limit_in_process() -> Result<()> {
    check_too_large(World::new()?.in_process()).await
}

#[tokio::test]
async fn refuses_a_body_over_the_limit_over_https_and_lives_on() -> Result<()> {
    let mut world = World::new()?;
    let client = world.over_https().await?;
    check_too_large(client.clone()).await?;
    config_maps(client)
        .create(&PostParams::default(), &a_config_map("a"))
        .await?;
    Ok(())
}

async fn answer(method: &str, uri: &str) -> Result<http::Response<Bytes>> {
    let world = World::new()?;
    let service = ApiService::trusted(world.shared, world.tasks.signal());
    let request = http::Request::builder()
        .method(method)
        .uri(uri)
        .body(Empty::<Bytes>::new())?;
    let (head, body) = service.oneshot(request).await?.into_parts();
    Ok(http::Response::from_parts(
        head,
        body.collect().await?.to_bytes(),
    ))
}

#[tokio::test]
async fn refuses_methods_that_the_api_does_not_have() -> Result<()> {
    for method in ["OPTIONS", "BREW"] {
        let answer = answer(method, "/api/v1/namespaces").await?;
        let status: serde_json::Value = serde_json::from_slice(answer.body())?;
        assert_eq!(answer.status(), 405, "{method}");
        assert_eq!(status["reason"], "MethodNotAllowed");
    }
    // The answer to a HEAD has no body: a client of HTTP/2 would take it for a broken protocol.
    let answer = answer("HEAD", "/api/v1/namespaces").await?;
    assert_eq!((answer.status().as_u16(), answer.body().len()), (405, 0));
    Ok(())
}

#[tokio::test]
async fn refuses_a_path_that_is_not_text() -> Result<()> {
    assert_eq!(answer("GET", "/api/%ff").await?.status(), 400);
    Ok(())
}

#[tokio::test]
async fn decodes_paths_and_sets_the_usual_headers() -> Result<()> {
    let answer = answer("GET", "/api/v1/namespaces/kube%2Dsystem").await?;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "application/json");
    assert_eq!(answer.headers()["cache-control"], "no-cache, private");
    assert_eq!(answer.headers()["audit-id"].len(), 36);
    Ok(())
}
