//! A node of another version: ended if it is proven to be one, else left alone. The node is played by a
//! process in namespaces of its own that answers as one of protocol 2 did.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, ensure};
use rustix::mount::{MountFlags, mount};
use sundown_node::{Node, NodeError};
use sundown_testing::eventually;

use crate::world::{block_on, connect, node_process, nothing_left, processes_with};

/// The argument by which the test binary plays a node; a data directory, the name of its mounts or `-`, and
/// a number for its pod follow.
const PLAYS: &str = "__plays-an-older-node";

const HELLO: &str = r#"{"Ok":{"Hello":{"protocol":2,"isolation":{"rootless":true,"reason":"x"},"bridge":"10.0.0.1"}}}"#;

/// The process that plays an older node.
pub(crate) fn role() -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [PLAYS, directory, marker, pod] =
        &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..]
    else {
        return None;
    };
    play(Path::new(directory), marker, pod).unwrap();
    Some(ExitCode::SUCCESS)
}

fn play(directory: &Path, marker: &str, pod: &str) -> Result<()> {
    if marker != "-" {
        mount(
            marker,
            directory.join("node"),
            "tmpfs",
            MountFlags::empty(),
            None,
        )?;
    }
    Command::new("sleep").arg(pod).spawn()?;
    let listener = UnixListener::bind(directory.join("node.sock"))?;
    let mut clients = Vec::new();
    for client in listener.incoming() {
        let mut client = client?;
        let asked = BufReader::new(client.try_clone()?).read_line(&mut String::new())?;
        // One that only looked whether it is there has gone.
        if asked > 0 {
            client.write_all(format!("{HELLO}\n").as_bytes())?;
            clients.push(client);
        }
    }
    Ok(())
}

fn start(directory: &Path, marker: &str, pod: &str) -> Result<Child> {
    let child = Command::new("unshare")
        .args([
            "--map-root-user",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
        ])
        .arg(std::env::current_exe()?)
        .args([PLAYS, directory.to_str().unwrap(), marker, pod])
        .stderr(Stdio::null())
        .spawn();
    child.context("unshare")
}

/// The name of all mounts of a directory's node, from the table of a real one.
async fn marker(directory: &Path) -> Result<String> {
    let node = connect(directory).await?;
    let process = node_process(directory).context("no node")?;
    let table = std::fs::read_to_string(format!("/proc/{process}/mountinfo"))?;
    let mut words = table.split_whitespace();
    let is_marker = |it: &&str| it.starts_with("sundown-") && it.len() == 24;
    let marker = words.find(is_marker).context("no mount of the node")?;
    node.end().await?;
    nothing_left(directory).await?;
    Ok(marker.to_owned())
}

pub(crate) fn a_node_of_another_version_is_ended_with_its_pods() -> Result<()> {
    block_on(async {
        let directory = tempfile::tempdir()?;
        let here = directory.path();
        let marker = marker(here).await?;
        let socket = here.join("node.sock");
        let pod = format!("8{}", std::process::id());
        let runs = || !processes_with(&format!("sleep\0{pod}")).is_empty();
        for (marker, is_ended) in [("-", false), (&*marker, true)] {
            let mut played = start(here, marker, &pod)?;
            // The socket is there before it listens.
            eventually("a node that listens, or its end", || {
                UnixStream::connect(&socket).is_ok()
                    || played.try_wait().is_ok_and(|it| it.is_some())
            })
            .await?;
            ensure!(played.try_wait()?.is_none(), "no node can be played here");
            let found = Node::connect(here).await;
            let is_named = matches!(found, Err(NodeError::Version { theirs: 2, .. }));
            ensure!(is_named, "{found:?}");
            let ended = Node::end_other_version(here).await;
            if is_ended {
                ended?;
            } else {
                let doubt = ended.err().map_or(String::new(), |it| it.to_string());
                ensure!(doubt.contains("none of the mounts"), "{doubt}");
                ensure!(
                    runs() && played.try_wait()?.is_none(),
                    "it was not left alone"
                );
                played.kill()?;
            }
            sundown_testing::end(&mut played, "the end of the node")?;
            eventually("the end of its pod", || !runs()).await?;
            std::fs::remove_file(&socket)?;
        }
        Ok(())
    })
}
