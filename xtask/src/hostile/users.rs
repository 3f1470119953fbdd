//! Another user of the machine: forwards of dashboards, files, sockets, directories that are set out as traps.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::directories::OBJECT;
use super::place::{OTHER, Place, Who, until};
use super::{Test, skip};

pub(super) const TESTS: &[Test] = &[
    (
        "a_forward_serves_its_own_user_and_no_web_page",
        a_forward_serves_its_own_user_and_no_web_page,
    ),
    (
        "other_users_read_nothing_of_ours",
        other_users_read_nothing_of_ours,
    ),
    (
        "a_directory_of_another_user_is_refused",
        a_directory_of_another_user_is_refused,
    ),
];

/// Asks for a forward, tells port and token, and holds it until its input ends.
const HOLDS: &str = r#"
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
ask = {"forward": {"namespace": "default", "service": "web", "port": 8265}}
s.sendall((json.dumps(ask) + "\n").encode())
print(s.makefile().readline().strip(), flush=True)
sys.stdin.read()
"#;

const WEB: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {app: web}}\nspec:\n  terminationGracePeriodSeconds: 0\n  \
    containers:\n  - name: main\n    image: 'python:3'\n    command: [python3, -u, -m, http.server, '8265']\n    \
    readinessProbe: {tcpSocket: {port: 8265}, periodSeconds: 1}\n---\n\
    apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 8265}]}\n";

/// The first line of the answer; empty if there is none.
fn get(port: u16, headers: &[String]) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).context("connect")?;
    stream.set_read_timeout(Some(Duration::from_mins(1)))?;
    let head = format!(
        "GET / HTTP/1.1\r\nConnection: close\r\n{}\r\n\r\n",
        headers.join("\r\n")
    );
    stream.write_all(head.as_bytes())?;
    let mut answer = Vec::new();
    // One that is closed at once has no answer.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}

/// Waits for it with a bound.
fn first_line(from: ChildStdout) -> Result<String> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(from).read_line(&mut line);
        let _ = send.send(read.map(|_| line));
    });
    let line = receive.recv_timeout(Duration::from_mins(3));
    Ok(line.context("waited 3 minutes for an open forward")??)
}

fn a_forward_serves_its_own_user_and_no_web_page(place: &Place) -> Result<()> {
    let up = place.up(&[])?;
    up.create(WEB)?;
    until("the pod is ready", || {
        let ready = "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
        Ok(up.ask(&["get", "pod", "web", "-o", ready])? == "True")
    })?;
    let socket = place.data().join("state/control.sock");
    let mut holder = Command::new("python3");
    holder.args(["-I", "-c", HOLDS]).arg(socket);
    let mut holder = place.as_owner(holder);
    let mut holder = holder
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let line = first_line(holder.stdout.take().context("stdout is piped")?);
    if line.is_err() {
        holder.kill().context("stop the holder")?;
    }
    let line = line?;
    let told: Value = serde_json::from_str(&line).with_context(|| format!("read {line:?}"))?;
    let port = u16::try_from(told["forwarded"]["port"].as_u64().context("a port")?)?;
    let token = told["forwarded"]["token"].as_str().context("a token")?;
    let judged = judge(place, port, token);
    drop(holder.stdin.take());
    holder.wait().context("await the holder")?;
    judged
}

fn judge(place: &Place, port: u16, token: &str) -> Result<()> {
    let host = format!("Host: 127.0.0.1:{port}");
    let bearer = format!("Authorization: Bearer {token}");
    // This process is root's, or the owner's own.
    let cases = [
        (vec![host.clone(), bearer.clone()], "200"),
        (vec![host.clone()], "403"),
        (vec!["Host: evil.example".to_owned(), bearer.clone()], "403"),
        (
            vec![
                host.clone(),
                bearer.clone(),
                "Origin: https://evil.example".to_owned(),
            ],
            "403",
        ),
        (
            vec![
                host.clone(),
                bearer.clone(),
                "Sec-Fetch-Site: cross-site".to_owned(),
            ],
            "403",
        ),
        (vec![host, format!("Authorization: Bearer x{token}")], "403"),
    ];
    for (headers, code) in cases {
        let first = get(port, &headers)?;
        ensure!(first.contains(code), "{headers:?}: {first:?}, not {code}");
    }
    if place.who == Who::Caller {
        println!("  not tried: another user at the forward, who needs root");
        return Ok(());
    }
    let script = format!(
        "import socket\ns = socket.create_connection(('127.0.0.1', {port}))\n\
         s.sendall(b'GET / HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\n{bearer}\\r\\nConnection: close\\r\\n\\r\\n')\n\
         try: print(len(s.recv(100)))\nexcept OSError: print(0)\n"
    );
    let mut other = Command::new("python3");
    other
        .args(["-I", "-c", &script])
        .uid(OTHER)
        .gid(OTHER)
        .current_dir("/");
    let done = place.end(&mut other)?;
    ensure!(done.said.trim() == "0", "another user got {}", done.said);
    Ok(())
}

/// A pod that is told something in confidence, and something else beside it.
const TOLD: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: told}\nstringData: {key: hunter2-of-a-secret}\n---\n\
    apiVersion: v1\nkind: Pod\nmetadata: {name: told}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers:\n  \
    - name: main\n    image: busybox\n    command: [sleep, '7654321']\n    \
    env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: told, key: key}}}, {name: PLAIN, value: hunter2-of-a-variable}]\n    \
    volumeMounts: [{name: told, mountPath: /told}]\n  volumes: [{name: told, secret: {secretName: told}}]\n";

/// Prints what another user reads: files below directories, and the command lines of all processes.
const READS: &str = r#"
import os, sys
for top in sys.argv[1:]:
    for directory, _, names in os.walk(top):
        for path in [directory] + [os.path.join(directory, name) for name in names]:
            if not os.path.islink(path) and os.access(path, os.R_OK): print("reads", path)
for process in filter(str.isdigit, os.listdir("/proc")):
    try: line = open(f"/proc/{process}/cmdline", "rb").read()
    except OSError: continue
    print("line", line.replace(b"\0", b" "))
"#;

fn other_users_read_nothing_of_ours(place: &Place) -> Result<()> {
    if place.who == Who::Caller {
        return skip("a second user needs root");
    }
    let record = place.home().join("flight");
    let up = place.up(&["--flight-record", &record.display().to_string()])?;
    up.script("runs", "busybox", "echo said")?;
    up.create(TOLD)?;
    let places = [
        place.data(),
        record.clone(),
        place.home().join(".cache/sundown"),
    ];
    // The home of a user is open on many machines; ours is made so. What was there before Sundown stays so.
    let above = [".local", ".local/state", ".cache"].map(|it| place.home().join(it));
    for directory in above.iter().chain([&place.home()]).filter(|it| it.exists()) {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
    }
    let look = || -> Result<String> {
        let mut other = Command::new("python3");
        other.args(["-I", "-c", READS]).args(&places);
        other.uid(OTHER).gid(OTHER).current_dir("/");
        let said = place.end(&mut other)?.said;
        let read: Vec<&str> = said.lines().filter(|it| it.starts_with("reads ")).collect();
        ensure!(read.is_empty(), "another user reads {read:?}");
        ensure!(!said.contains("hunter2"), "a command line holds it: {said}");
        Ok(said)
    };
    // From its first moment on: whatever is started for it is looked at.
    until("the pod runs", || {
        look()?;
        Ok(up.ask(&["get", "pod", "told", "-o", "jsonpath={.status.phase}"])? == "Running")
    })?;
    let said = look()?;
    ensure!(said.contains("7654321"), "its own line is not seen: {said}");
    Ok(())
}

fn a_directory_of_another_user_is_refused(place: &Place) -> Result<()> {
    if place.who == Who::Caller {
        return skip("a second user needs root");
    }
    let victim = place.home().join("victim");
    fs::create_dir(&victim)?;
    fs::write(victim.join("text"), "mine")?;
    let object = place.home().join("object.yaml");
    fs::write(&object, OBJECT)?;
    let object = object.display().to_string();
    place.own(&place.home())?;
    let trap = place.scratch().join("trap");
    fs::create_dir_all(trap.join("node"))?;
    let marker = place.scratch().join("marker");
    let rules = serde_json::json!([{ "image": "python*", "prefix": trap }]);
    fs::write(trap.join("images.json"), rules.to_string())?;
    fs::write(trap.join("identity.json"), "{}")?;
    fs::create_dir(trap.join("bin"))?;
    let python = trap.join("bin/python");
    fs::write(&python, format!("#!/bin/sh\ntouch {}\n", marker.display()))?;
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755))?;
    symlink(victim.join("text"), trap.join("lock"))?;
    symlink(&victim, trap.join("node/pods"))?;
    Place::give(&trap, OTHER)?;
    let directory = trap.display().to_string();
    for words in [
        &["up"][..],
        &["run", &object],
        &["status"],
        &["down"],
        &["reset", "--yes"],
    ] {
        let done = place.end(place.command(words).args(["--data-dir", &directory]))?;
        let is_refused = !done.succeeded && done.said.contains(&directory);
        ensure!(is_refused, "{words:?}: {}", done.said);
    }
    let mut rules = place.command(&["env"]);
    let done = place.end(rules.env("SUNDOWN_IMAGE_RULES", trap.join("images.json")))?;
    ensure!(
        !done.succeeded && done.said.contains("cannot be trusted"),
        "{}",
        done.said
    );
    let mut homeless = place.command(&["up"]);
    let done = place.end(homeless.env_remove("HOME").env_remove("XDG_STATE_HOME"))?;
    ensure!(
        !done.succeeded && done.said.contains("HOME is not set"),
        "{}",
        done.said
    );
    ensure!(
        fs::read_to_string(victim.join("text"))? == "mine",
        "the victim was changed"
    );
    ensure!(!marker.exists(), "a program of another user was run");
    Ok(())
}
