//! Pods of the shipped binary: what they write can be read, and they reach the API server by its name,
//! over restarts of everything.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use sundown_testing::{eventually, within};

use crate::plane::{BINDINGS, PODS, Plane, a_pod};

/// Lists the pods of its namespace as any client in a cluster does, until it is told to stop.
const ASKS: &str = r#"
import json, os, ssl, time, urllib.error, urllib.request
base = "/var/run/secrets/kubernetes.io/serviceaccount/"
trust = ssl.create_default_context(cafile=base + "ca.crt")
def ask(host, path, body=None):
    headers = {"Authorization": "Bearer " + open(base + "token").read(), "Content-Type": "application/json"}
    request = urllib.request.Request(f"https://{host}{path}", body, headers)
    return json.load(urllib.request.urlopen(request, context=trust, timeout=5))
own = open(base + "namespace").read()
given = os.environ["KUBERNETES_SERVICE_HOST"] + ":" + os.environ["KUBERNETES_SERVICE_PORT"]
seen = set()
while True:
    for host in [given, "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"]:
        try:
            who = ask(host, "/apis/authentication.k8s.io/v1/selfsubjectreviews", b'{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}')
            try:
                names = [it["metadata"]["name"] for it in ask(host, f"/api/v1/namespaces/{own}/pods")["items"]]
            except urllib.error.HTTPError as refused:
                names = refused.code
            line = f"{host} {who['status']['userInfo']['username']} {names}"
        except Exception as error:
            line = f"{host} failed"
        if line not in seen:
            print(line, flush=True)
            seen = {it for it in seen if not it.startswith(host + " ")} | {line}
    time.sleep(0.1)
"#;

/// What these tests ask of a control plane beside what all do.
impl Plane {
    async fn begin(&self, name: &str, image: &str, command: &[&str]) -> Result<()> {
        let pod = a_pod(name, image, command);
        self.send("POST", PODS, &pod).await.map(drop)
    }

    async fn log(&self, name: &str, query: &str) -> Result<String> {
        let path = format!("{PODS}/{name}/log?{query}");
        self.send("GET", &path, &Value::Null).await
    }

    /// Waits until the log of a pod says something.
    async fn says(&self, name: &str, wanted: impl Fn(&str) -> bool) -> Result<String> {
        let path = format!("{PODS}/{name}/log");
        self.until(&path, &format!("the log of {name}"), wanted)
            .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_pods_write_is_read_and_followed_to_its_end() -> Result<()> {
    let home = tempfile::tempdir()?;
    let plane = Plane::start(home.path()).await?;
    let script = "echo one; echo two; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo three";
    plane
        .begin("talks", "busybox", &["sh", "-c", script])
        .await?;
    plane.says("talks", |log| log.contains("two")).await?;
    assert_eq!(plane.log("talks", "tailLines=1").await?, "two\n");
    assert_eq!(plane.log("talks", "limitBytes=2").await?, "on");
    let times = plane.log("talks", "timestamps=true&tailLines=1").await?;
    assert!(times.ends_with("Z two\n"), "{times}");
    let previous = plane.log("talks", "previous=true").await;
    let previous = previous
        .err()
        .context("there was only one run")?
        .to_string();
    assert!(
        previous.contains("previous terminated container"),
        "{previous}"
    );
    // Followed until it is deleted: the stream ends with the run. It is deleted when the stream has begun.
    let path = format!("{PODS}/talks/log?follow=true");
    let request = http::Request::get(path).body(Vec::new())?;
    let followed = plane.client.request_stream(request);
    let followed = within("a log that is followed", followed).await??;
    let mut lines = followed.lines();
    for expect in ["one", "two"] {
        let line = within(format!("the line {expect}"), lines.try_next()).await??;
        assert_eq!(line.as_deref(), Some(expect));
    }
    plane.remove_pods().await?;
    let end = within("the end of the log", lines.try_next()).await??;
    assert_eq!(end, None);
    assert_eq!(plane.up.terminate()?, Some(0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_reaches_the_api_server_by_its_name_over_restarts() -> Result<()> {
    let home = tempfile::tempdir()?;
    let plane = Plane::start(home.path()).await?;
    plane
        .begin("asks", "python:3", &["python3", "-c", ASKS])
        .await?;
    let account = "system:serviceaccount:default:default";
    let expect = |host: &str, what: &str| format!("{host} {account} {what}");
    let hosts = [
        "kubernetes.default.svc:443",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ];
    let has_all = |log: &str, what: &str| {
        let mut hosts = hosts.iter();
        hosts.all(|host| log.contains(&expect(host, what)))
    };
    // Its account has no rights until a binding gives it some.
    plane.says("asks", |log| has_all(log, "403")).await?;
    let binding = json!({
        "metadata": { "name": "asks" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view" },
        "subjects": [{ "kind": "ServiceAccount", "name": "default" }],
    });
    plane.send("POST", BINDINGS, &binding).await?;
    plane.says("asks", |log| has_all(log, "['asks']")).await?;
    // Killed, so that the node and the pod stay.
    drop(plane);
    let plane = Plane::start(home.path()).await?;
    plane.begin("other", "busybox", &["true"]).await?;
    let again = |log: &str| log.contains("['asks', 'other']");
    plane.says("asks", again).await?;
    plane.end().await
}

/// The way in stays what it was for a directory whose certificate is of earlier times: see the tests of
/// `identity.rs`. Here: the node dies with all its pods, and the next one has the door again.
#[tokio::test(flavor = "multi_thread")]
async fn the_door_comes_back_with_another_node() -> Result<()> {
    let home = tempfile::tempdir()?;
    let plane = Plane::start(home.path()).await?;
    plane
        .begin("first", "python:3", &["python3", "-c", ASKS])
        .await?;
    let account = "system:serviceaccount:default:default";
    plane.says("first", |log| log.contains(account)).await?;
    let data = plane.up.started["data"].as_str().context("a directory")?;
    kill_node(Path::new(data))?;
    plane
        .begin("second", "python:3", &["python3", "-c", ASKS])
        .await?;
    plane.says("second", |log| log.contains(account)).await?;
    plane.end().await
}

/// Kills the one process that was started as the node of this very directory.
fn kill_node(data: &Path) -> Result<()> {
    let named = data.canonicalize()?.display().to_string();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Ok(line) = std::fs::read(entry.path().join("cmdline")) else {
            continue;
        };
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains("__node") && line.contains(&named) {
            let id = entry.file_name().to_string_lossy().into_owned();
            Command::new("kill").args(["-9", &id]).status()?;
        }
    }
    Ok(())
}

/// The pods of a removed directory went on for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_removed_data_directory_ends_its_control_plane_and_its_pods() -> Result<()> {
    let home = tempfile::tempdir()?;
    let plane = Plane::start(home.path()).await?;
    let seconds = format!("9{}", std::process::id());
    plane
        .begin("stays", "busybox", &["sleep", &seconds])
        .await?;
    let is_running = |pod: &Value| pod["status"]["phase"] == "Running";
    let path = format!("{PODS}/stays");
    plane
        .until_object(&path, "a running pod", is_running)
        .await?;
    let data = home.path().join(".local/state/sundown");
    sundown_files::remove(home.path(), ".local/state/sundown")?;
    assert_eq!(plane.up.end()?, Some(1));
    let is_over = || processes_with(&format!("sleep\0{seconds}")).is_empty();
    eventually("the end of a pod without its directory", is_over).await?;
    assert!(!data.exists(), "a part of it was made again");
    Ok(())
}

/// The processes of this machine whose command line holds a word.
fn processes_with(word: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let line = |it: &std::fs::DirEntry| std::fs::read(it.path().join("cmdline"));
    let lines = all.filter_map(|it| line(&it).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    lines.filter(|line| line.contains(word)).collect()
}
