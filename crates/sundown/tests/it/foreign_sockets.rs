//! Both ends of the sockets of a data directory ask who is at the other one. The parts that need a second user
//! run where the tests run as root.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use sundown_testing::Lines;

use crate::other_users::{STRANGER, as_stranger, is_root, socket};
use crate::process::{Up, stderr, sundown};

/// A program of the other user that is ended with the test.
struct Stranger(Child);

impl Stranger {
    /// Starts it and waits for its first line.
    fn start(mut command: Command) -> Result<Self> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let lines = Lines::of(child.stdout.take().context("stdout is piped")?);
        let stranger = Self(child);
        let line = lines.next("the other user's program")?;
        ensure!(
            line.as_deref() == Some("ready"),
            "the other user's program says {line:?}"
        );
        Ok(stranger)
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Passes for a control plane, whose kubeconfig runs a program, and for a node; keeps what it is told. Ends by
/// itself should the test be killed.
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
print("ready", flush=True)
hello = {"version": "0.1.0", "pid": 1, "url": "https://127.0.0.1:1", "kubeconfig": place + "/evil"}
while True:
    for s in select.select(sockets, [], [])[0]:
        c, _ = s.accept()
        try:
            with open(place + "/heard", "ab") as heard:
                heard.write(c.recv(1000))
            c.sendall(json.dumps({"hello": hello}).encode() + b"\n")
        except OSError:
            pass
"#;

/// A kubeconfig whose user is proven by a program that leaves a mark.
fn evil(marker: &Path) -> String {
    let evil = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1",
            "command": "touch", "args": [marker], "interactiveMode": "Never"}}}]});
    evil.to_string()
}

/// The directory is ours and as it should be; only what listens in it is not. It was given to the other
/// user as a whole, and refused for that.
#[test]
fn a_socket_of_another_user_in_our_own_directory_is_not_believed() -> Result<()> {
    if !is_root() {
        return Ok(());
    }
    let home = tempfile::tempdir()?;
    let up = Up::start_durable(home.path(), &[])?;
    let data = PathBuf::from(up.started["data"].as_str().context("a directory")?);
    assert_eq!(up.terminate()?, Some(0));
    let outside = home.path().join("outside");
    fs::create_dir(&outside)?;
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755))?;
    std::os::unix::fs::chown(&outside, Some(STRANGER), Some(STRANGER))?;
    let marker = outside.join("marker");
    fs::write(outside.join("evil"), evil(&marker))?;
    let place = outside.display().to_string();
    let _stranger = Stranger::start(as_stranger("python3", &["-I", "-c", PRETENDS, &place]))?;
    let job = home.path().join("job.yaml");
    fs::write(
        &job,
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
    )?;
    let job = job.display().to_string();
    let state = data.join("state");
    let commands = [&["status"][..], &["down"], &["run", &job]];
    let of_control = format!("{} belongs to user", state.join("control.sock").display());
    let of_node = format!("the node's socket in {} belongs to user", state.display());
    // A ConfigMap needs no node, and none is asked for it.
    for (name, refusal, commands) in [
        ("control.sock", of_control, &commands[..]),
        ("node.sock", of_node, &commands[..2]),
    ] {
        let there = state.join(name);
        fs::rename(outside.join(name), &there)?;
        for words in commands {
            let output = sundown_testing::output(&mut sundown(home.path(), words))?;
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{words:?} {said}");
            let refusal = format!("{refusal} {STRANGER}");
            assert!(said.contains(&refusal), "{name} {words:?} {said}");
        }
        fs::remove_file(there)?;
    }
    let heard = fs::read(outside.join("heard")).unwrap_or_default();
    assert_eq!(String::from_utf8_lossy(&heard), "", "what it was told");
    assert!(!marker.exists(), "a program of its kubeconfig ran");
    Ok(())
}

/// With modes that let others in, as a careless user may set them.
#[test]
fn sockets_answer_their_own_user_only() -> Result<()> {
    if !is_root() {
        return Ok(());
    }
    let home = tempfile::tempdir()?;
    let up = Up::start_durable(home.path(), &[])?;
    let data = PathBuf::from(up.started["data"].as_str().context("a directory")?);
    let socket = socket(&data, "control.sock")?;
    for place in socket
        .ancestors()
        .skip(1)
        .take_while(|it| it.starts_with(home.path()))
    {
        fs::set_permissions(place, fs::Permissions::from_mode(0o755))?;
    }
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666))?;
    let asks = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.settimeout(60)
s.connect(sys.argv[1])
try:
    s.sendall(b'\"status\"\\n')
    print('answer', s.recv(100))
except OSError:
    print('answer', b'')";
    let place = socket.display().to_string();
    let output = sundown_testing::output(&mut as_stranger("python3", &["-c", asks, &place]))?;
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "answer b''\n", "{}", stderr(&output));
    let output = sundown_testing::output(Command::new("python3").args(["-c", asks, &place]))?;
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("runsPods"), "{said}");
    assert_eq!(up.terminate()?, Some(0));
    Ok(())
}
