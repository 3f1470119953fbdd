//! What listens at the sockets of a data directory is asked for its user before it is believed, and asks for
//! that of whoever calls.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::directories::OBJECT;
use super::place::{OTHER, Place, Who, until};
use super::{Test, skip};

pub(super) const TESTS: &[Test] = &[
    (
        "a_socket_of_another_user_is_not_believed",
        a_socket_of_another_user_is_not_believed,
    ),
    (
        "sockets_answer_their_own_user_only",
        sockets_answer_their_own_user_only,
    ),
];

/// Passes for a control plane and for a node, and keeps what it is told. Ends by itself should the lane be killed.
const PRETENDS: &str = r#"
import json, os, select, signal, socket, sys
signal.alarm(600)
place = sys.argv[1]
sockets = []
for name in ("control.sock", "node.sock"):
    s = socket.socket(socket.AF_UNIX)
    s.bind(place + "/" + name)
    os.chmod(place + "/" + name, 0o777)
    s.listen()
    sockets.append(s)
open(place + "/ready", "w").close()
hello = {"version": "0.1.0", "pid": 1, "url": "https://127.0.0.1:1", "kubeconfig": place + "/evil"}
while True:
    for s in select.select(sockets, [], [])[0]:
        c, _ = s.accept()
        try:
            with open(place + "/heard", "ab") as heard: heard.write(c.recv(1000))
            c.sendall(json.dumps({"hello": hello}).encode() + b"\n")
        except OSError: pass
"#;

/// A process that is ended with this value.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn as_other(script: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.args(["-I", "-c", script]).args(arguments);
    command.uid(OTHER).gid(OTHER).current_dir("/");
    command.stdin(Stdio::null());
    command
}

fn a_socket_of_another_user_is_not_believed(place: &Place) -> Result<()> {
    if place.who == Who::Caller {
        return skip("a second user needs root");
    }
    // Once started and ended: the directory is as it should be, and only what listens there is not.
    drop(place.up(&[])?);
    let object = place.home().join("object.yaml");
    fs::write(&object, OBJECT)?;
    place.own(&object)?;
    let object = object.display().to_string();
    let outside = place.scratch().join("outside");
    fs::create_dir(&outside)?;
    Place::give(&outside, OTHER)?;
    let pretends = as_other(PRETENDS, &[&outside.display().to_string()]).spawn()?;
    let _pretends = Ended(pretends);
    until("another user listens", || {
        Ok(outside.join("ready").exists())
    })?;
    let state = place.data().canonicalize()?.join("state");
    let of_control = format!("{} belongs to user", state.join("control.sock").display());
    let of_node = format!("the node's socket in {} belongs to user", state.display());
    let commands = [&["status"][..], &["down"], &["run", &object]];
    // An object that is no pod needs no node, and none is asked for it.
    for (name, refusal, commands) in [
        ("control.sock", of_control, &commands[..]),
        ("node.sock", of_node, &commands[..2]),
    ] {
        let there = state.join(name);
        fs::rename(outside.join(name), &there).context("put the socket there")?;
        for words in commands {
            let done = place.call(words)?;
            let is_refused = !done.succeeded && done.said.contains(&format!("{refusal} {OTHER}"));
            ensure!(is_refused, "{name} {words:?}: {}", done.said);
        }
        fs::remove_file(there)?;
    }
    let heard = fs::read(outside.join("heard")).unwrap_or_default();
    ensure!(heard.is_empty(), "it was told {heard:?}");
    Ok(())
}

/// Says what a socket answers to another user.
const ASKS: &str = r#"
import socket, sys
for path in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(path)
    try:
        s.sendall(b'"status"\n')
        answer = s.recv(100)
    except OSError: answer = b""
    print(answer)
"#;

fn sockets_answer_their_own_user_only(place: &Place) -> Result<()> {
    if place.who == Who::Caller {
        return skip("a second user needs root");
    }
    let up = place.up(&[])?;
    // A node is there once a pod was.
    up.script("runs", "busybox", "true")?;
    let state = place.data().join("state");
    let sockets = ["control.sock", "node.sock"].map(|name| state.join(name));
    // With modes that let others in, as a careless user may set them.
    let open = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .with_context(|| path.display().to_string())
    };
    for directory in state
        .ancestors()
        .take_while(|it| it.starts_with(place.home()))
    {
        open(directory, 0o755)?;
    }
    for socket in &sockets {
        open(socket, 0o666)?;
    }
    let paths = sockets.each_ref().map(|it| it.display().to_string());
    let asked = place.end(&mut as_other(ASKS, &[&paths[0], &paths[1]]))?;
    ensure!(asked.said == "b''\nb''\n", "{}", asked.said);
    let mut own = Command::new("python3");
    own.args(["-I", "-c", ASKS, &paths[0]]);
    let asked = place.end(&mut place.as_owner(own))?;
    ensure!(asked.said.contains("runsPods"), "{}", asked.said);
    Ok(())
}
