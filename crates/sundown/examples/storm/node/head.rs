//! A Ray head in a pod beside `ray start` by hand, and the status of a job beside Ray's own.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{
    DeleteParams, DynamicObject, ListParams, PostParams, PropagationPolicy, WatchEvent, WatchParams,
};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use sundown_node::Node;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;

use super::{ROUNDS, WAIT_MAX, median, ray_jobs};

const DASHBOARD_PORT: u16 = 8265;
/// How often an address is tried that does not answer yet. Both sides wait the same way, and seldom
/// enough: to try an address inside the node's network is more work, which a starting head would miss.
const TRY_INTERVAL: Duration = Duration::from_millis(100);
const DIAL_MAX: Duration = Duration::from_secs(2);
/// Off on both sides: what a head reports to the world is not its start.
const USAGE_STATS: &str = "RAY_USAGE_STATS_ENABLED";

/// What one round gave.
struct Round {
    by_hand: Duration,
    in_pod: Duration,
    behind: Duration,
}

/// Rounds of both, in turns; prints medians.
pub(super) async fn measure(client: &Client, node: &Node, python: &Path) -> Result<()> {
    let mut rounds = Vec::new();
    for round in 0..ROUNDS {
        let by_hand = by_hand(python).await.context("ray start by hand")?;
        let (in_pod, behind) = in_pod(client, node, round).await?;
        println!(
            "round {round}: by hand {by_hand:?}, in a pod {in_pod:?}, status behind by {behind:?}"
        );
        rounds.push(Round {
            by_hand,
            in_pod,
            behind,
        });
    }
    let by_hand = median(rounds.iter().map(|it| it.by_hand).collect());
    let in_pod = median(rounds.iter().map(|it| it.in_pod).collect());
    let behind = median(rounds.iter().map(|it| it.behind).collect());
    println!(
        "a Ray head until /api/version answers, medians of {ROUNDS}: by hand {by_hand:?}, from the creation of a \
         RayJob {in_pod:?}: {:.2}x (budget 1.10x)",
        in_pod.as_secs_f64() / by_hand.as_secs_f64()
    );
    println!("from Ray's end of a job to status.jobStatus: {behind:?} (budget 300 ms)");
    Ok(())
}

async fn by_hand(python: &Path) -> Result<Duration> {
    let ray = python.with_file_name("ray");
    let directory = tempfile::tempdir()?;
    let at = SocketAddrV4::new(Ipv4Addr::LOCALHOST, DASHBOARD_PORT);
    ensure!(
        TcpStream::connect(at).await.is_err(),
        "something listens on {at} already"
    );
    let started_at = Instant::now();
    let mut child = Command::new(&ray)
        .args(["start", "--head", "--block", "--dashboard-host=0.0.0.0"])
        .args(["--num-cpus=1", "--memory=2147483648"])
        .args([
            "--metrics-export-port=8080",
            "--dashboard-agent-listen-port=52365",
        ])
        .arg(format!("--temp-dir={}", directory.path().display()))
        .env(USAGE_STATS, "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let answered = until_it_answers(|| async { Ok(TcpStream::connect(at).await?) }).await;
    let time = started_at.elapsed();
    // Asked to end, it ends its children too; killed, it would leave them. Not `ray stop`: that ends
    // every Ray on the machine.
    let id = child.id().context("it runs")?.to_string();
    Command::new("kill").args(["-TERM", &id]).status().await?;
    tokio::time::timeout(WAIT_MAX, child.wait()).await??;
    // Much of what it started ends a second or two later, and works until then: the other side begins
    // when all is quiet, as this one does.
    tokio::time::timeout(WAIT_MAX, until_gone(&id)).await??;
    answered?;
    Ok(time)
}

/// Returns when no process of a group works any more.
async fn until_gone(group: &str) -> Result<()> {
    let is_there = || -> Result<bool> {
        for entry in std::fs::read_dir("/proc")? {
            // A process that has just ended has no such file.
            let stat = std::fs::read_to_string(entry?.path().join("stat")).unwrap_or_default();
            let after_name = stat.rsplit(')').next().unwrap_or_default();
            let mut fields = after_name.split_whitespace();
            let (state, own) = (fields.next(), fields.nth(1));
            if own == Some(group) && state != Some("Z") {
                return Ok(true);
            }
        }
        Ok(false)
    };
    while is_there()? {
        tokio::time::sleep(TRY_INTERVAL).await;
    }
    Ok(())
}

async fn in_pod(client: &Client, node: &Node, round: usize) -> Result<(Duration, Duration)> {
    let jobs = ray_jobs(client);
    let name = format!("head-{round}");
    let job = job(&name)?;
    let started_at = Instant::now();
    let created = jobs.create(&PostParams::default(), &job).await?;
    let rv = created.resource_version().context("it has a revision")?;
    let ended = until_succeeded(&jobs, &name, rv);
    let answered = async {
        let address = head_address(client, &name).await?;
        let at = SocketAddrV4::new(address, DASHBOARD_PORT);
        until_it_answers(|| async { Ok(node.dial(at, DIAL_MAX).await?) }).await?;
        anyhow::Ok((at, started_at.elapsed()))
    };
    let (answered, ended) = futures::try_join!(answered, ended)?;
    let (at, in_pod) = answered;
    let (seen_at, id) = ended;
    let told = get(node.dial(at, DIAL_MAX).await?, &format!("/api/jobs/{id}")).await?;
    let told: Value = serde_json::from_str(&told)?;
    let end = told["end_time"].as_u64().context("the job has ended")?;
    let behind = seen_at.saturating_sub(Duration::from_millis(end));
    let delete = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Foreground),
        ..DeleteParams::default()
    };
    jobs.delete(&name, &delete).await?;
    let gone = async {
        while jobs.get_opt(&name).await?.is_some() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(WAIT_MAX, gone).await??;
    Ok((in_pod, behind))
}

fn job(name: &str) -> Result<DynamicObject> {
    let resources = json!({
        "requests": { "cpu": "200m", "memory": "1Gi" }, "limits": { "cpu": "1", "memory": "2Gi" },
    });
    let container = json!({
        "name": "ray-head", "image": "rayproject/ray:2.52.0", "resources": resources,
        "env": [{ "name": USAGE_STATS, "value": "0" }],
    });
    Ok(serde_json::from_value(json!({
        "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": { "name": name },
        "spec": {
            "submissionMode": "HTTPMode",
            "entrypoint": "true",
            "rayClusterSpec": {
                "headGroupSpec": {
                    "rayStartParams": {}, "template": { "spec": { "containers": [container] } },
                },
            },
        },
    }))?)
}

/// When it was seen, counted as Ray counts, and the id of the job.
async fn until_succeeded(
    jobs: &Api<DynamicObject>,
    name: &str,
    rv: String,
) -> Result<(Duration, String)> {
    let of_name = format!("metadata.name={name}");
    let watch = WatchParams::default().fields(&of_name);
    let mut events = jobs.watch(&watch, &rv).await?.boxed();
    let found = async {
        while let Some(event) = events.next().await {
            let WatchEvent::Modified(job) = event? else {
                continue;
            };
            let status = &job.data["status"];
            ensure!(status["jobStatus"] != "FAILED", "the job failed: {status}");
            if status["jobStatus"] == "SUCCEEDED" {
                let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
                let id = status["jobId"].as_str().context("it has an id")?;
                return Ok((now, id.to_owned()));
            }
        }
        anyhow::bail!("the watch ended")
    };
    tokio::time::timeout(WAIT_MAX, found).await?
}

async fn head_address(client: &Client, job: &str) -> Result<Ipv4Addr> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let heads = ListParams::default().labels("ray.io/node-type=head");
    let found = async {
        loop {
            let list = pods.list(&heads).await?;
            let mine = list.items.iter().find(|it| it.name_any().starts_with(job));
            let address = mine.and_then(|it| it.status.as_ref()?.pod_ip.as_ref()?.parse().ok());
            match address {
                Some(address) => return anyhow::Ok(address),
                None => tokio::time::sleep(TRY_INTERVAL).await,
            }
        }
    };
    tokio::time::timeout(WAIT_MAX, found).await?
}

async fn until_it_answers<D>(dial: impl Fn() -> D) -> Result<()>
where
    D: Future<Output = Result<TcpStream>>,
{
    let answered = async {
        loop {
            if let Ok(stream) = dial().await
                && get(stream, "/api/version").await.is_ok()
            {
                return;
            }
            tokio::time::sleep(TRY_INTERVAL).await;
        }
    };
    Ok(tokio::time::timeout(WAIT_MAX, answered).await?)
}

/// One request, by hand: the connection comes from the node.
async fn get(mut stream: TcpStream, path: &str) -> Result<String> {
    let request = format!("GET {path} HTTP/1.0\r\nHost: ray\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer")?;
    ensure!(head.contains(" 200 "), "{head}");
    Ok(body.to_owned())
}
