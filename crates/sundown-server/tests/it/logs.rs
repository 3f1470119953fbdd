//! What pods wrote, over HTTPS: a stream that somebody else gives, and clear words where nobody does.

use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, LogParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sundown_api::Log;
use sundown_server::PodLogs;

use crate::world::World;
use sundown_testing::within;

/// Tells what it was asked for, and then nothing more if it is to follow.
#[derive(Debug)]
struct Echo;

impl PodLogs for Echo {
    fn open(&self, log: Log) -> BoxFuture<'_, Result<BoxStream<'static, Bytes>, String>> {
        Box::pin(async move {
            if log.container_id == "x://broken" {
                return Err("the disk is gone".to_owned());
            }
            let text = format!("{} {:?}\n", log.container_id, log.tail_lines);
            let first = stream::iter([Bytes::from(text)]);
            Ok(if log.follow {
                first.chain(stream::pending()).boxed()
            } else {
                first.boxed()
            })
        })
    }
}

async fn with_pod(world: &World) -> Result<Api<Pod>> {
    let client = world.in_process();
    let read = |json: Value| serde_json::from_value::<Node>(json);
    let node = read(json!({ "metadata": { "name": "here" } }))?;
    let params = PostParams::default();
    Api::<Node>::all(client.clone())
        .create(&params, &node)
        .await?;
    let pods = Api::<Pod>::namespaced(client, "default");
    let pod = json!({
        "metadata": { "name": "p" },
        "spec": { "nodeName": "here", "containers": [{ "name": "c", "image": "x" }] },
    });
    pods.create(&params, &serde_json::from_value(pod)?).await?;
    Ok(pods)
}

async fn runs_as(pods: &Api<Pod>, id: &str) -> Result<()> {
    let status = json!({ "status": { "containerStatuses": [{
        "name": "c", "containerID": id, "image": "x", "imageID": "", "ready": true,
        "restartCount": 0, "state": { "running": {} },
    }] } });
    let patch = Patch::Merge(status);
    pods.patch_status("p", &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

fn refused(answer: Result<String, kube::Error>) -> Result<(u16, String)> {
    match answer.err().context("it is refused")? {
        kube::Error::Api(status) => Ok((status.code, status.message.clone())),
        other => Err(other.into()),
    }
}

#[tokio::test]
async fn a_log_is_passed_on_as_it_comes() -> Result<()> {
    let mut world = World::new()?;
    let shared = Arc::into_inner(world.shared).context("nobody else has it")?;
    world.shared = Arc::new(shared.logging_from(Arc::new(Echo)));
    let pods = with_pod(&world).await?;
    let plain = LogParams::default();
    let waiting = "container \"c\" in pod \"p\" is not available".to_owned();
    assert_eq!(refused(pods.logs("p", &plain).await)?, (400, waiting));
    runs_as(&pods, "x://1").await?;
    let tail = LogParams {
        tail_lines: Some(3),
        ..plain.clone()
    };
    assert_eq!(pods.logs("p", &tail).await?, "x://1 Some(3)\n");
    runs_as(&pods, "x://broken").await?;
    let broken = refused(pods.logs("p", &plain).await)?;
    assert_eq!(broken, (400, "the disk is gone".to_owned()));
    Ok(())
}

#[tokio::test]
async fn a_log_that_is_followed_ends_with_the_server() -> Result<()> {
    let mut world = World::new()?;
    let shared = Arc::into_inner(world.shared).context("nobody else has it")?;
    world.shared = Arc::new(shared.logging_from(Arc::new(Echo)));
    let pods = with_pod(&world).await?;
    runs_as(&pods, "x://1").await?;
    let follow = LogParams {
        follow: true,
        ..LogParams::default()
    };
    let text = pods.log_stream("p", &follow).await?;
    let mut lines = futures::AsyncBufReadExt::lines(text);
    let first = within("the first line of a log", lines.try_next()).await??;
    assert_eq!(first.as_deref(), Some("x://1 None"));
    world.tasks.signal().ask();
    let end = within("the end of a log", lines.try_next()).await??;
    assert_eq!(end, None);
    Ok(())
}

#[tokio::test]
async fn without_a_node_there_are_no_logs() -> Result<()> {
    let world = World::new()?;
    let pods = with_pod(&world).await?;
    runs_as(&pods, "x://1").await?;
    let (code, message) = refused(pods.logs("p", &LogParams::default()).await)?;
    assert_eq!(code, 503);
    assert!(message.contains("no node runs pods here"), "{message}");
    Ok(())
}
