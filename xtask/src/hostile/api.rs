//! A pod that uses its token, and floods the doors that it reaches.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::Test;
use super::manifests::{ANSWER_TIME_MAX, processor_time};
use super::place::{Place, until};

pub(super) const TESTS: &[Test] = &[
    (
        "a_default_pod_may_look_at_itself_and_at_nothing_else",
        a_default_pod_may_look_at_itself_and_at_nothing_else,
    ),
    (
        "a_role_binding_lets_exactly_that_through",
        a_role_binding_lets_exactly_that_through,
    ),
    (
        "host_paths_that_hold_too_much_are_refused",
        host_paths_that_hold_too_much_are_refused,
    ),
    (
        "a_flood_of_connections_leaves_others_alone",
        a_flood_of_connections_leaves_others_alone,
    ),
    (
        "a_line_without_end_takes_no_memory",
        a_line_without_end_takes_no_memory,
    ),
];

/// Prints the code of an answer to a request with the pod's own token.
const ASK: &str = r#"
import json, ssl, sys, urllib.error, urllib.request
base = "/var/run/secrets/kubernetes.io/serviceaccount/"
trust = ssl.create_default_context(cafile=base + "ca.crt")
def ask(method, path, body=None):
    headers = {"Authorization": "Bearer " + open(base + "token").read(), "Content-Type": "application/json"}
    body = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request("https://kubernetes.default.svc" + path, body, headers, method=method)
    try: return urllib.request.urlopen(request, context=trust, timeout=20)
    except urllib.error.HTTPError as error: return error
def code(*call): print(*call[:2], ask(*call).status)
"#;

fn python(lines: &str) -> String {
    format!("python3 - <<'END'\n{ASK}{lines}END\n")
}

fn a_default_pod_may_look_at_itself_and_at_nothing_else(place: &Place) -> Result<()> {
    let up = place.up(&[])?;
    let pod =
        r#"{"metadata":{"name":"evil"},"spec":{"containers":[{"name":"c","image":"busybox"}]}}"#;
    let review = r#"{"spec":{"resourceAttributes":{"verb":"list","resource":"secrets"}}}"#;
    let script = python(&format!(
        r#"
code("GET", "/api")
code("GET", "/api/v1/secrets")
code("GET", "/api/v1/namespaces/default/secrets")
code("GET", "/api/v1/namespaces/default/pods")
code("POST", "/api/v1/namespaces/default/pods", {pod})
code("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {{"spec": {{}}}})
answer = ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {review})
print(json.load(answer)["status"]["allowed"])
"#
    ));
    let said = up.script("asks", "python:3", &script)?;
    let expect = "GET /api 200\nGET /api/v1/secrets 403\nGET /api/v1/namespaces/default/secrets 403\n\
        GET /api/v1/namespaces/default/pods 403\nPOST /api/v1/namespaces/default/pods 403\n\
        POST /api/v1/namespaces/default/serviceaccounts/default/token 403\nFalse";
    ensure!(said == expect, "{said}");
    Ok(())
}

fn a_role_binding_lets_exactly_that_through(place: &Place) -> Result<()> {
    let up = place.up(&[])?;
    up.ask(&[
        "create",
        "rolebinding",
        "looks",
        "--clusterrole=view",
        "--serviceaccount=default:default",
    ])?;
    let script = python(
        r#"
code("GET", "/api/v1/namespaces/default/pods")
code("GET", "/api/v1/namespaces/default/secrets")
code("GET", "/api/v1/namespaces/kube-system/pods")
code("DELETE", "/api/v1/namespaces/default/pods/asks")
rules = [{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}]
code("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", {"metadata": {"name": "more"}, "rules": rules})
"#,
    );
    let said = up.script("asks", "python:3", &script)?;
    let expect = "GET /api/v1/namespaces/default/pods 200\nGET /api/v1/namespaces/default/secrets 403\n\
        GET /api/v1/namespaces/kube-system/pods 403\nDELETE /api/v1/namespaces/default/pods/asks 403\n\
        POST /apis/rbac.authorization.k8s.io/v1/namespaces/default/roles 403";
    ensure!(said == expect, "{said}");
    // One who may make roles may not make one with more rights than their own.
    up.ask(&[
        "create",
        "rolebinding",
        "edits",
        "--clusterrole=admin",
        "--user=jane",
    ])?;
    let grants = [
        "create",
        "role",
        "more",
        "--verb=get",
        "--resource=nodes",
        "--as=jane",
    ];
    let refused = up.kubectl(&grants)?;
    ensure!(
        !refused.succeeded
            && refused
                .said
                .contains("attempting to grant RBAC permissions"),
        "{}",
        refused.said
    );
    up.ask(&[
        "create",
        "role",
        "less",
        "--verb=get",
        "--resource=pods",
        "--as=jane",
    ])?;
    let listed = up.kubectl(&["get", "secrets", "-A", "--as=jane"])?;
    ensure!(
        !listed.succeeded && listed.said.contains("Forbidden"),
        "{}",
        listed.said
    );
    Ok(())
}

fn host_paths_that_hold_too_much_are_refused(place: &Place) -> Result<()> {
    let up = place.up(&[])?;
    let home = place.home();
    let project = home.join("project");
    std::fs::create_dir(&project)?;
    std::fs::write(project.join("file"), "mine")?;
    let link = home.join("link");
    std::os::unix::fs::symlink("/", &link)?;
    let data = place.data();
    let wrong = [
        Path::new("/"),
        &home,
        &data,
        &data.join("kubeconfig"),
        &home.join(".local"),
        &link,
    ];
    for (number, path) in wrong.iter().enumerate() {
        let name = format!("wrong-{number}");
        up.create(&with_host_path(&name, path))?;
        let waiting = "jsonpath={.status.containerStatuses[0].state.waiting}";
        until(&format!("{} is refused", path.display()), || {
            let state = up.ask(&["get", "pod", &name, "-o", waiting])?;
            let about = format!("involvedObject.name={name}");
            let events = up.ask(&["get", "events", "--field-selector", &about, "-o", "wide"])?;
            let told = state + &events;
            Ok(told.contains("hostPath") && told.contains("refused"))
        })?;
    }
    up.create(&with_host_path("right", &project))?;
    until("a project is mounted", || {
        Ok(up.ask(&["logs", "right"]).is_ok_and(|it| it == "mine"))
    })
}

fn with_host_path(name: &str, path: &Path) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  restartPolicy: Never\n  \
         containers:\n  - {{name: main, image: busybox, command: [cat, /in/file], volumeMounts: [{{name: v, mountPath: /in}}]}}\n  \
         volumes: [{{name: v, hostPath: {{path: {:?}}}}}]\n",
        path.display().to_string()
    )
}

/// Prints the name of each door that answers. A door that others keep shut reaches the bound of its socket: how long the
/// others take says how busy the machine is.
const ANSWERS: &str = r#"
import socket
socket.setdefaulttimeout(20)
def answers(door, work):
    work()
    print(door, flush=True)
def name(): assert socket.gethostbyname("kubernetes.default.svc") == "10.88.0.1"
def api(): assert ask("GET", "/api").status == 200
def way_out():
    s = socket.create_connection(("10.88.0.1", 3128), timeout=20)
    s.sendall(b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n")
    assert s.recv(100).startswith(b"HTTP/1.1 ")
answers("names", name)
answers("api", api)
answers("egress", way_out)
"#;

fn a_flood_of_connections_leaves_others_alone(place: &Place) -> Result<()> {
    let up = place.up(&[])?;
    let list = || -> Result<Duration> {
        let before = processor_time(up.id())?;
        up.ask(&["get", "--raw", "/api/v1/namespaces/default/pods"])?;
        Ok(processor_time(up.id())?.saturating_sub(before))
    };
    let usual = list()?;
    // Each holds what it gets, and goes on when it gets no more.
    let script = r#"
import resource, socket, time
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
held = []
for port in (443, 53, 3128):
    for _ in range(5000):
        try:
            s = socket.socket()
            s.settimeout(1)
            s.connect(("10.88.0.1", port))
        except OSError: continue
        held.append(s)
print("flooded", flush=True)
time.sleep(1000)
"#;
    up.create(&format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: floods}}\nspec:\n  terminationGracePeriodSeconds: 0\n  \
         containers:\n  - {{name: main, image: 'python:3', command: [python3, -c, {}]}}\n",
        serde_json::to_string(script)?
    ))?;
    until("a pod has flooded the doors", || {
        let log = up.ask(&["logs", "floods"]);
        Ok(log.is_ok_and(|it| it.contains("flooded")))
    })?;
    // The administrator, and another pod at each of the three doors; a refusal of the last is an answer, too.
    let took = list()?;
    println!("  an answer takes the control plane {took:?} of the processor, {usual:?} before");
    ensure!(took.saturating_sub(usual) < ANSWER_TIME_MAX, "{took:?}");
    let said = up.script("others", "python:3", &python(ANSWERS))?;
    ensure!(said == "names\napi\negress", "{said}");
    let open = descriptor_count(up.id())?;
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", up.id()))?;
    let limit = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .and_then(|it| it.split_whitespace().next()?.parse::<usize>().ok())
        .context("a limit of open files")?;
    println!("  {open} descriptors of {limit}");
    ensure!(open * 10 < limit * 8, "{open} of {limit} descriptors");
    Ok(())
}

fn a_line_without_end_takes_no_memory(place: &Place) -> Result<()> {
    let up = place.up(&[])?;
    up.script("first", "busybox", "true")?;
    let before = resident(up.id())?;
    let script = python(
        r#"
import socket
s = socket.create_connection(("10.88.0.1", 3128))
try:
    for _ in range(64): s.sendall(b"x" * 1048576)
except OSError as error: print("closed")
print("sent")
"#,
    );
    up.script("sends", "python:3", &script)?;
    let after = resident(up.id())?;
    println!("  resident {before} KiB before, {after} KiB after");
    // A pod of its own costs something, too; 64 MiB would be seen.
    ensure!(after < before + 8 * 1024, "{before} KiB, then {after} KiB");
    Ok(())
}

/// How many descriptors a process has open, or has had at most: a control plane is closed to debuggers of
/// its own user, and so is the list of them, but not the size of its table.
fn descriptor_count(process: u32) -> Result<usize> {
    if let Ok(open) = std::fs::read_dir(format!("/proc/{process}/fd")) {
        return Ok(open.count());
    }
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
    Ok(line.context("the size of a table")?.trim().parse()?)
}

/// In KiB.
fn resident(process: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|it| it.split_whitespace().next());
    Ok(number.context("resident memory")?.parse()?)
}
