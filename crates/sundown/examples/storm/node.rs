//! Pods and Ray on this machine, measured: a pod of `true` from its creation to its success, a hundred
//! of them at once, a Ray head beside `ray start` by hand, and how far a status is behind Ray's.

mod head;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use sundown_node::Node;

use crate::server::Server;

const ONE_BY_ONE: usize = 30;
const AT_ONCE: usize = 100;
const ROUNDS: usize = 5;
/// Bounds a hang; nothing is measured by it.
const WAIT_MAX: Duration = Duration::from_mins(5);

/// Measures and prints; the Python is one of an environment with Ray.
pub(crate) async fn run(binary: &Path, python: &Path) -> Result<()> {
    let kept = tempfile::tempdir()?.keep();
    let home = kept.join("data");
    let server = Server::start(binary, &home, true).await?;
    let pods: Api<Pod> = Api::default_namespaced(server.client.clone());
    // The first pod also starts the node.
    let first = one(&pods, "first").await?;
    println!("the first pod, with the start of the node: {first:?}");
    let mut times = Vec::new();
    for index in 0..ONE_BY_ONE {
        times.push(one(&pods, &format!("one-{index}")).await?);
    }
    times.sort();
    println!(
        "a pod of `true`, created to Succeeded, {ONE_BY_ONE} one by one: median {:?}, slowest {:?} (budget 100 ms)",
        times[times.len() / 2],
        times[times.len() - 1]
    );
    let node = node_of(binary, &home).await?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        remove_all(&pods, &node).await?;
        times.push(at_once(&pods).await?);
    }
    println!("{AT_ONCE} of them at once, {ROUNDS} rounds: {times:?}");
    println!(
        "median {:.0} a second (budget 100)",
        f64::from(u32::try_from(AT_ONCE)?) / median(times).as_secs_f64()
    );
    remove_all(&pods, &node).await?;
    let measured = head::measure(&server.client, &node, python).await;
    end(server, &node, &kept).await?;
    measured
}

/// Returns when no pod is left on the node: objects of finished pods go before that.
async fn remove_all(pods: &Api<Pod>, node: &Node) -> Result<()> {
    let all = ListParams::default();
    pods.delete_collection(&DeleteParams::default(), &all)
        .await?;
    let gone = async {
        while !node.snapshot().await?.is_empty() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(WAIT_MAX, gone).await?
}

/// Leaves nothing behind.
async fn end(server: Server, node: &Node, kept: &Path) -> Result<()> {
    server.kill().await?;
    node.end().await?;
    sundown_files::remove(kept, "data").context("remove the data directory")?;
    std::fs::remove_dir(kept).context("remove its directory")
}

fn pod_of_true(name: &str) -> Result<Pod> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": {
            "restartPolicy": "Never",
            "containers": [{ "name": "main", "image": "busybox", "command": ["true"] }],
        },
    });
    Ok(serde_json::from_value(pod)?)
}

async fn one(pods: &Api<Pod>, name: &str) -> Result<Duration> {
    let of_name = format!("metadata.name={name}");
    let watch = WatchParams::default().fields(&of_name);
    let started_at = Instant::now();
    let created = pods
        .create(&PostParams::default(), &pod_of_true(name)?)
        .await?;
    let rv = created.resource_version().context("it has a revision")?;
    let mut events = pods.watch(&watch, &rv).await?.boxed();
    let succeeded = async {
        while let Some(event) = events.next().await {
            if let WatchEvent::Modified(pod) = event?
                && has_succeeded(&pod)?
            {
                return Ok(started_at.elapsed());
            }
        }
        anyhow::bail!("the watch ended")
    };
    tokio::time::timeout(WAIT_MAX, succeeded).await?
}

async fn at_once(pods: &Api<Pod>) -> Result<Duration> {
    let rv = pods.list(&ListParams::default()).await?.metadata;
    let rv = rv.resource_version.context("a list has a revision")?;
    let mut events = pods.watch(&WatchParams::default(), &rv).await?.boxed();
    let started_at = Instant::now();
    let creates = (0..AT_ONCE).map(|index| async move {
        let pod = pod_of_true(&format!("many-{index}"))?;
        pods.create(&PostParams::default(), &pod).await?;
        anyhow::Ok(())
    });
    let creates = futures::stream::iter(creates)
        .buffer_unordered(16)
        .collect::<Vec<_>>();
    let all_succeed = async {
        // By name: what happens to a pod after its success is told, too.
        let mut succeeded = BTreeSet::new();
        while succeeded.len() < AT_ONCE {
            let event = events.next().await.context("the watch ended")??;
            if let WatchEvent::Modified(pod) = event
                && has_succeeded(&pod)?
            {
                succeeded.insert(pod.name_any());
            }
        }
        anyhow::Ok(started_at.elapsed())
    };
    let (answers, time) = futures::join!(creates, tokio::time::timeout(WAIT_MAX, all_succeed));
    answers.into_iter().collect::<Result<Vec<()>>>()?;
    time?
}

/// Errors: it failed, so that nobody waits for its success.
fn has_succeeded(pod: &Pod) -> Result<bool> {
    let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
    ensure!(phase != Some("Failed"), "{} failed", pod.name_any());
    Ok(phase == Some("Succeeded"))
}

/// The median of an odd number of figures.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Where a client of the control plane finds the node behind it.
async fn node_of(binary: &Path, home: &Path) -> Result<Node> {
    let config = sundown_node::Config::new(home.join("state"), binary);
    Ok(Node::connect_or_start(&config).await?)
}

/// The only one of a kind.
type Dynamic = Api<kube::api::DynamicObject>;

fn ray_jobs(client: &Client) -> Dynamic {
    let resource = kube::api::ApiResource {
        group: "ray.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "ray.io/v1".to_owned(),
        kind: "RayJob".to_owned(),
        plural: "rayjobs".to_owned(),
    };
    Api::default_namespaced_with(client.clone(), &resource)
}
