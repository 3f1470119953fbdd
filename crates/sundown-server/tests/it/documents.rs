//! `/openapi/v2` as kubectl asks for it: compressed, and not again.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, ETAG, IF_NONE_MATCH, VARY};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use sundown_server::ApiService;
use sundown_testing::within;
use tower::ServiceExt as _;

use crate::world::World;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

struct Answer {
    head: http::response::Parts,
    body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &http::HeaderName) -> &str {
        let value = self.head.headers.get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    /// The document, whichever way it came.
    fn document(&self) -> Result<Value> {
        if self.header(&CONTENT_ENCODING) != "gzip" {
            return Ok(serde_json::from_slice(&self.body)?);
        }
        let end = self.body.len().checked_sub(8).context("it has an end")?;
        let deflated = self.body.get(10..end).context("it has a head")?;
        let plain = miniz_oxide::inflate::decompress_to_vec(deflated);
        let plain = plain.map_err(|why| anyhow::anyhow!("{why:?}"))?;
        let length = u32::try_from(plain.len())?.to_le_bytes();
        ensure!(self.body.ends_with(&length), "it ends with its length");
        Ok(serde_json::from_slice(&plain)?)
    }
}

async fn ask(world: &World, encoding: &str, tag: &str) -> Result<Answer> {
    let request = http::Request::get("/openapi/v2")
        .header(ACCEPT_ENCODING, encoding)
        .header(IF_NONE_MATCH, tag)
        .body(String::new())?;
    send(world, request).await
}

async fn send(world: &World, request: http::Request<String>) -> Result<Answer> {
    let service = ApiService::trusted(Arc::clone(&world.shared), world.tasks.signal());
    let response = within("an answer", service.oneshot(request)).await??;
    let (head, body) = response.into_parts();
    let body = within("its body", body.collect()).await??;
    let body = body.to_bytes().to_vec();
    Ok(Answer { head, body })
}

#[tokio::test]
async fn comes_compressed_to_those_who_take_it() -> Result<()> {
    let world = World::new()?;
    let plain = ask(&world, "identity", "").await?;
    assert_eq!(plain.header(&CONTENT_ENCODING), "");
    let document = plain.document()?;
    assert_eq!(document["swagger"], "2.0");
    // The first is made, the second was kept.
    for _ in 0..2 {
        let compressed = ask(&world, "gzip", "").await?;
        assert_eq!(compressed.header(&CONTENT_ENCODING), "gzip");
        assert_eq!(compressed.header(&VARY), "Accept, Accept-Encoding");
        assert_eq!(compressed.header(&ETAG), plain.header(&ETAG));
        assert!(compressed.body.len() * 5 < plain.body.len());
        assert_eq!(compressed.document()?, document);
    }
    Ok(())
}

#[tokio::test]
async fn does_not_come_again_to_those_who_have_it() -> Result<()> {
    let world = World::new()?;
    let first = ask(&world, "gzip", "").await?;
    let tag = first.header(&ETAG);
    for encoding in ["gzip", "identity"] {
        let again = ask(&world, encoding, tag).await?;
        assert_eq!((again.head.status.as_u16(), again.body.len()), (304, 0));
        assert_eq!(again.header(&CONTENT_ENCODING), "");
        assert_eq!(again.header(&ETAG), tag);
    }
    Ok(())
}

#[tokio::test]
async fn tells_of_a_definition_as_soon_as_it_is_there() -> Result<()> {
    let world = World::new()?;
    let before = ask(&world, "gzip", "").await?;
    let schema = json!({ "openAPIV3Schema": { "type": "object" } });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.sundown.dev" },
        "spec": {
            "group": "sundown.dev", "scope": "Namespaced",
            "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    });
    let request = http::Request::post(DEFINITIONS).body(definition.to_string())?;
    assert_eq!(send(&world, request).await?.head.status.as_u16(), 201);
    let after = ask(&world, "gzip", before.header(&ETAG)).await?;
    assert_eq!(after.head.status.as_u16(), 200);
    let name = "dev.sundown.v1.Widget";
    assert!(before.document()?["definitions"].get(name).is_none());
    assert!(after.document()?["definitions"].get(name).is_some());
    Ok(())
}
