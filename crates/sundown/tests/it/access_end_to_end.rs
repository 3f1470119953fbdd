//! What a pod may do: its token is good for discovery and for questions about itself, until a binding
//! says more, and no volume of it is the whole machine.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::plane::{BINDINGS, PODS, Plane, a_pod};

/// Tries what a hostile program would, with the token that every pod has, and tells each answer when it
/// changes.
const TRIES: &str = r#"
import json, ssl, time, urllib.error, urllib.request
base = "/var/run/secrets/kubernetes.io/serviceaccount/"
trust = ssl.create_default_context(cafile=base + "ca.crt")
pod = {"metadata": {"name": "more"}, "spec": {"containers": [{"name": "c", "image": "busybox"}],
    "volumes": [{"name": "host", "hostPath": {"path": "/"}}]}}
may = {"spec": {"resourceAttributes": {"namespace": "default", "verb": "get", "resource": "secrets"}}}
tries = {
    "discovery": ("/api", None),
    "secrets": ("/api/v1/namespaces/default/secrets", None),
    "all-secrets": ("/api/v1/secrets", None),
    "pods": ("/api/v1/namespaces/default/pods", None),
    "make-pod": ("/api/v1/namespaces/default/pods", pod),
    "token": ("/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {}}),
    "who": ("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}),
    "may": ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", may),
}
def ask(path, body):
    headers = {"Authorization": "Bearer " + open(base + "token").read(), "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request("https://kubernetes.default.svc" + path, data, headers)
    try:
        with urllib.request.urlopen(request, context=trust, timeout=5) as answer:
            said = json.load(answer)
            return f"{answer.status} {said.get('status', {}).get('allowed', '')}".strip()
    except urllib.error.HTTPError as error:
        return f"{error.code} {json.load(error)['reason']}"
    except Exception:
        return None
seen = {}
while True:
    for name, (path, body) in tries.items():
        said = ask(path, body)
        if said and seen.get(name) != said:
            seen[name] = said
            print(f"{name}: {said}", flush=True)
    time.sleep(0.1)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_has_a_token_and_the_rights_that_a_binding_gives() -> Result<()> {
    let home = tempfile::tempdir()?;
    let plane = Plane::start(home.path()).await?;
    let pod = a_pod("tries", "python:3", &["python3", "-c", TRIES]);
    plane.send("POST", PODS, &pod).await?;
    let log = format!("{PODS}/tries/log");
    let first = [
        "discovery: 200",
        "secrets: 403 Forbidden",
        "all-secrets: 403 Forbidden",
        "pods: 403 Forbidden",
        "make-pod: 403 Forbidden",
        "token: 403 Forbidden",
        "who: 201",
        "may: 201 False",
    ];
    let has_all = |said: &str| first.iter().all(|line| said.contains(line));
    let said = plane.until(&log, "all answers", has_all).await?;
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    let mut expect = first.to_vec();
    expect.sort_unstable();
    assert_eq!(lines, expect);

    let binding = json!({
        "metadata": { "name": "pods-view" },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view",
        },
        "subjects": [{ "kind": "ServiceAccount", "namespace": "default", "name": "default" }],
    });
    plane.send("POST", BINDINGS, &binding).await?;
    let may_list = |said: &str| said.contains("\npods: 200");
    let said = plane.until(&log, "the binding counts", may_list).await?;
    let more: Vec<&str> = said.lines().filter(|line| !expect.contains(line)).collect();
    assert_eq!(more, ["pods: 200"], "and nothing else: no Secret, no pod");
    plane.end().await
}

/// The lines of the metrics that count requests with this answer.
fn counted<'a>(metrics: &'a str, code: &str) -> Vec<&'a str> {
    let named = format!("code=\"{code}\"");
    let lines = metrics.lines();
    lines.filter(|line| line.contains(&named)).collect()
}

/// The controllers and the node have exactly the rights that they declare; a request that lacks one
/// is counted by the server.
#[tokio::test(flavor = "multi_thread")]
async fn no_request_of_ours_lacks_a_right_over_the_life_of_a_job_and_a_ray_job() -> Result<()> {
    const GOES: &str = "/api/v1/namespaces/goes";
    let home = tempfile::tempdir()?;
    let plane = Plane::start(home.path()).await?;
    let namespace = json!({ "metadata": { "name": "goes" } });
    let namespaces = "/api/v1/namespaces";
    plane.send("POST", namespaces, &namespace).await?;
    let settings = json!({ "metadata": { "name": "settings" }, "data": { "GREETING": "hello" } });
    let maps = format!("{GOES}/configmaps");
    plane.send("POST", &maps, &settings).await?;
    let mut template = a_pod("unused", "busybox", &["sh", "-c", "echo $GREETING"]);
    template["spec"]["containers"][0]["envFrom"] =
        json!([{ "configMapRef": { "name": "settings" } }]);
    let job = json!({
        "metadata": { "name": "job" },
        "spec": { "ttlSecondsAfterFinished": 1, "template": { "spec": template["spec"] } },
    });
    let jobs = "/apis/batch/v1/namespaces/goes/jobs";
    plane.send("POST", jobs, &job).await?;
    let pod = json!({ "spec": { "containers": [{ "name": "head", "image": "busybox" }] } });
    let ray = json!({
        "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": { "name": "ray" },
        "spec": {
            "entrypoint": "true", "submissionMode": "HTTPMode",
            "rayClusterSpec": { "headGroupSpec": { "rayStartParams": {}, "template": pod } },
        },
    });
    let rays = "/apis/ray.io/v1/namespaces/goes/rayjobs";
    plane.send("POST", rays, &ray).await?;
    let is_gone = |said: &str| said.contains("\"items\":[]");
    plane.until(jobs, "the TTL of the job", is_gone).await?;
    let pods = format!("{GOES}/pods");
    let has_head = |said: &str| said.contains("ray.io/node-type");
    plane
        .until(&pods, "the head of the cluster", has_head)
        .await?;
    let has_service = |said: &str| said.contains("head-svc");
    let services = format!("{GOES}/services");
    plane.until(&services, "its service", has_service).await?;
    let ray = format!("{rays}/ray");
    plane.send("DELETE", &ray, &Value::Null).await?;
    for path in ["/apis/ray.io/v1/namespaces/goes/rayclusters", &pods] {
        plane.until(path, "nothing of Ray is left", is_gone).await?;
    }
    let metrics = plane.send("GET", "/metrics", &Value::Null).await?;
    ensure!(
        !counted(&metrics, "200").is_empty(),
        "requests are counted: {metrics}"
    );
    assert_eq!(counted(&metrics, "403"), Vec::<&str>::new());
    let decided = "sundown_decisions_total{controller=\"ray_cluster\",reason=";
    ensure!(
        metrics.contains(decided),
        "decisions are counted: {metrics}"
    );

    plane.send("DELETE", GOES, &Value::Null).await?;
    let is_gone = |said: &str| said.contains("not found");
    plane.until(GOES, "the namespace goes", is_gone).await?;
    let metrics = plane.send("GET", "/metrics", &Value::Null).await?;
    let mut refused = counted(&metrics, "403");
    // An Event on its way into a namespace that goes is refused, too, and for another reason.
    refused.retain(|line| !line.contains("resource=\"events\""));
    assert_eq!(refused, Vec::<&str>::new());
    plane.end().await
}

/// The same paths that a manifest with `hostPath` would name first.
#[tokio::test(flavor = "multi_thread")]
async fn no_volume_of_a_pod_is_the_machine_the_home_or_our_data() -> Result<()> {
    let home = tempfile::tempdir()?;
    let plane = Plane::start(home.path()).await?;
    let own = home.path().canonicalize()?;
    let data = plane.up.started["data"].as_str().unwrap_or_default();
    let data = Path::new(data).canonicalize()?;
    std::fs::create_dir(own.join("project"))?;
    std::os::unix::fs::symlink("/", own.join("link"))?;
    let at = |path: &Path| path.display().to_string();
    let hosted = |name: &str, path: &str| {
        let mut pod = a_pod(name, "busybox", &["sh", "-c", "echo x > /host/written"]);
        pod["spec"]["volumes"] = json!([{ "name": "host", "hostPath": { "path": path } }]);
        pod["spec"]["containers"][0]["volumeMounts"] =
            json!([{ "name": "host", "mountPath": "/host" }]);
        pod
    };
    let parent = data.parent().map(at).unwrap_or_default();
    for (name, path, why) in [
        ("root", "/".to_owned(), "the whole file system"),
        ("home", at(&own), "it is the home directory"),
        ("slashes", format!("/{}/.//", at(&own)), "it is the home"),
        ("data", at(&data), "it is the data directory"),
        ("inside", at(&data.join("db")), "it lies in the data"),
        ("parent", parent, "it contains the data directory"),
    ] {
        plane.send("POST", PODS, &hosted(name, &path)).await?;
        let is_refused = |said: &str| said.contains("CreateContainerConfigError");
        let pod = format!("{PODS}/{name}");
        let said = plane.until(&pod, "a refusal", is_refused).await?;
        ensure!(said.contains(why), "{path}: {said}");
        let events = "/api/v1/namespaces/default/events";
        let events = format!("{events}?fieldSelector=involvedObject.name={name}");
        let is_told = |said: &str| said.contains(why) && said.contains("is refused");
        plane
            .until(&events, "an Event that names it", is_told)
            .await?;
    }
    let link = hosted("link", &at(&own.join("link")));
    plane.send("POST", PODS, &link).await?;
    let events = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=link";
    let is_told = |said: &str| said.contains("leads there");
    plane.until(events, "the link is refused", is_told).await?;
    ensure!(!Path::new("/written").exists());

    let project = hosted("project", &at(&own.join("project")));
    plane.send("POST", PODS, &project).await?;
    let has_ended = |said: &str| said.contains("\"phase\":\"Succeeded\"");
    let pod = format!("{PODS}/project");
    plane
        .until(&pod, "the project is written", has_ended)
        .await?;
    ensure!(own.join("project/written").exists());
    let left = plane.get(PODS).await?;
    let left = left["items"].as_array().map_or(0, Vec::len);
    assert_eq!(left, 8);
    plane.end().await
}
