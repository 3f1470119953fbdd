//! What stays when a client, a node or an init is killed.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use sundown_node::{ContainerState, Node};
use sundown_testing::{eventually, within};

use crate::world::{
    World, a_container, a_pod, block_on, config, connect, node_process, nothing_left,
    processes_with, sh, until,
};

/// Given to a copy of this binary that is to be killed.
const ROLE: &str = "SUNDOWN_NODE_TEST_CLIENT";

/// The life of a client that makes two pods and waits for its death.
pub(crate) fn role() -> Option<ExitCode> {
    let data_dir = PathBuf::from(std::env::var_os(ROLE)?);
    let done = block_on(async {
        let node = connect(&data_dir).await?;
        node.create_pod(a_pod("stays")).await?;
        node.start_container("stays", sh("sleep 1000")).await?;
        node.create_pod(a_pod("ends")).await?;
        node.start_container(
            "ends",
            sh("while ! [ -e /tmp/go ]; do sleep 0.02; done; exit 5"),
        )
        .await?;
        std::fs::write(data_dir.join("made"), "")?;
        std::future::pending().await
    });
    Some(if done.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn kill(pid: u32) -> Result<()> {
    let pid = Pid::from_raw(i32::try_from(pid)?).expect("a process has a number");
    Ok(kill_process(pid, Signal::KILL)?)
}

fn the_node(data_dir: &Path) -> Result<u32> {
    node_process(data_dir).ok_or_else(|| anyhow::anyhow!("no node of {}", data_dir.display()))
}

pub(crate) fn a_killed_client_finds_its_pods_again() -> Result<()> {
    block_on(async {
        let directory = tempfile::tempdir()?;
        let mut client = Command::new(std::env::current_exe()?)
            .env(ROLE, directory.path())
            .spawn()?;
        let is_made = || {
            let ended = client.try_wait().map_or(true, |it| it.is_some());
            ended || directory.path().join("made").exists()
        };
        eventually("two pods of a client", is_made).await?;
        ensure!(client.try_wait()?.is_none(), "the client ended by itself");
        let node_pid = the_node(directory.path())?;
        client.kill()?;
        sundown_testing::end(&mut client, "the end of a killed client")?;
        // Nobody is there while this container ends.
        let scratch = directory.path().join("node/pods/ends/containers/main/0");
        std::fs::write(scratch.join("scratch/tmp/go"), "")?;
        let is_recorded = || scratch.join("exit.json").exists();
        eventually("the record of an exit", is_recorded).await?;
        let node = connect(directory.path()).await?;
        ensure!(
            the_node(directory.path())? == node_pid,
            "another node was started"
        );
        let pods = node.snapshot().await?;
        ensure!(
            pods.len() == 2 && pods.iter().all(|pod| pod.lost.is_none()),
            "{pods:?}"
        );
        let ended = until(&node, "ends", |pod| {
            pod.container("main").is_some_and(|each| !each.is_running())
        })
        .await?;
        ensure!(
            ended
                .container("main")
                .and_then(ContainerState::exit)
                .is_some_and(|exit| exit.code == 5)
        );
        let stays = until(&node, "stays", |_| true).await?;
        ensure!(
            stays
                .container("main")
                .is_some_and(ContainerState::is_running),
            "{stays:?}"
        );
        finish(&node, directory.path()).await
    })
}

async fn finish(node: &Node, data_dir: &Path) -> Result<()> {
    for pod in node.snapshot().await? {
        node.remove_pod(&pod.uid).await?;
    }
    let left = node.leftovers().await?;
    ensure!(left.is_empty(), "{left:?}");
    node.end().await?;
    nothing_left(data_dir).await
}

pub(crate) fn a_killed_node_leaves_nothing_but_records() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let mark = format!("7{}", std::process::id());
        world
            .run(
                a_pod("runs"),
                sh(&format!("setsid sleep {mark} & sleep {mark}")),
            )
            .await?;
        world.run(a_pod("ended"), sh("exit 9")).await?;
        world.end("ended").await?;
        world.node.create_pod(a_pod("empty")).await?;
        let address = world.until("runs", |_| true).await?.address;
        kill(the_node(world.path())?)?;
        let is_gone = || processes_with(&format!("sleep\0{mark}")).is_empty();
        eventually("the end of a node's processes", is_gone).await?;
        let error = world.node.snapshot().await.unwrap_err().to_string();
        ensure!(error.contains("is gone"), "{error}");
        let node = connect(world.path()).await?;
        let pods = node.snapshot().await?;
        ensure!(
            pods.len() == 3 && pods.iter().all(|pod| pod.lost.is_some()),
            "{pods:?}"
        );
        let runs = pods.iter().find(|pod| pod.uid == "runs").unwrap();
        ensure!(
            matches!(runs.container("main"), Some(ContainerState::Lost { .. })),
            "{runs:?}"
        );
        ensure!(runs.address == address);
        let ended = pods.iter().find(|pod| pod.uid == "ended").unwrap();
        ensure!(
            ended
                .container("main")
                .and_then(ContainerState::exit)
                .is_some_and(|exit| exit.code == 9)
        );
        // What was lost is not run again under the same uid.
        ensure!(node.create_pod(a_pod("runs")).await?.lost.is_some());
        ensure!(node.start_container("runs", sh("true")).await.is_err());
        finish(&node, world.path()).await
    })
}

pub(crate) fn a_killed_pod_init_is_a_lost_pod() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let mark = format!("6{}", std::process::id());
        world
            .run(a_pod("headless"), a_container(&["sleep", &mark]))
            .await?;
        // A process that has just been executed has no command line for a moment.
        let mut sleeper = None;
        let is_there = || {
            sleeper = processes_with(&format!("sleep\0{mark}")).first().copied();
            sleeper.is_some()
        };
        eventually("a process of a pod", is_there).await?;
        let sleeper = sleeper.expect("it was waited for");
        let parent = |pid: u32| -> Result<u32> {
            let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
            let line = text.lines().find_map(|line| line.strip_prefix("PPid:"));
            Ok(line.unwrap_or_default().trim().parse()?)
        };
        let container_init = parent(sleeper)?;
        kill(parent(container_init)?)?;
        let lost = world.until("headless", |pod| pod.lost.is_some()).await?;
        ensure!(
            lost.lost.as_deref() == Some("the pod's init was killed by signal 9"),
            "{lost:?}"
        );
        ensure!(
            matches!(lost.container("main"), Some(ContainerState::Lost { .. })),
            "{lost:?}"
        );
        ensure!(processes_with(&format!("sleep\0{mark}")).is_empty());
        world.close().await
    })
}

/// Whoever asked it waited for ever, and everybody else behind him.
pub(crate) fn a_node_that_does_not_answer_is_named() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let mut config = config(world.path())?;
        config.answer_timeout = Duration::from_millis(500);
        // On a loaded machine it may be late once.
        let answers = async {
            loop {
                if let Ok(node) = Node::connect_or_start(&config).await {
                    break node;
                }
            }
        };
        let node = within("an answer within half a second", answers).await?;
        let process = the_node(world.path())?;
        let pid = Pid::from_raw(i32::try_from(process)?).expect("a process has a number");
        kill_process(pid, Signal::STOP)?;
        let silent = [
            node.snapshot().await.err(),
            node.set_names(Vec::new()).await.err(),
            Node::connect_or_start(&config).await.err(),
        ];
        for error in silent {
            let error = error.map_or(String::new(), |error| error.to_string());
            ensure!(error.contains(&format!("process {process},")), "{error}");
        }
        kill_process(pid, Signal::CONT)?;
        world.node.snapshot().await?;
        world.close().await
    })
}

pub(crate) fn an_idle_node_ends() -> Result<()> {
    block_on(async {
        let directory = tempfile::tempdir()?;
        let mut config = config(directory.path())?;
        config.settings.idle = Duration::from_millis(200);
        let node = Node::connect_or_start(&config).await?;
        node.create_pod(a_pod("keeps")).await?;
        drop(node);
        let node = Node::connect_or_start(&config).await?;
        ensure!(
            node.snapshot().await?.iter().all(|pod| pod.lost.is_none()),
            "a pod keeps its node"
        );
        ensure!(node.end().await.is_err(), "a node with pods does not end");
        node.remove_pod("keeps").await?;
        drop(node);
        nothing_left(directory.path()).await
    })
}

pub(crate) fn two_clients_share_a_node() -> Result<()> {
    block_on(async {
        // Longer than a socket's address may be.
        let directory = tempfile::tempdir()?;
        let long = directory.path().join("x".repeat(120));
        let (one, two) = tokio::try_join!(connect(&long), connect(&long))?;
        one.create_pod(a_pod("shared")).await?;
        let seen = until(&two, "shared", |_| true).await?;
        ensure!(seen.lost.is_none());
        let (a, b) = tokio::join!(one.remove_pod("shared"), two.remove_pod("shared"));
        a?;
        b?;
        finish(&one, &long).await
    })
}
