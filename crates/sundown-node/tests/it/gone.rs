//! What a node does when its directory is taken away, as by `rm -rf` or by the clean-up of a test that was killed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use sundown_testing::eventually;

use crate::world::{World, a_container, a_pod, block_on, connect, node_process, processes_with};

/// A world whose one pod runs, the command line of that, and the node's process.
async fn with_a_pod(number: u8) -> Result<(World, String, u32)> {
    let world = World::new().await?;
    let seconds = format!("{number}{}", std::process::id());
    let mark = format!("sleep\0{seconds}");
    let container = a_container(&["sleep", &seconds]);
    world.run(a_pod("runs"), container).await?;
    // A process that has just been executed has no command line for a moment.
    eventually("the process of a pod", || !processes_with(&mark).is_empty()).await?;
    let process = node_process(world.path()).context("the node has a process")?;
    Ok((world, mark, process))
}

async fn until_ended(mark: &str, node: u32) -> Result<()> {
    let is_over = || !Path::new(&format!("/proc/{node}")).exists();
    eventually("the end of a node without its directory", is_over).await?;
    // The node is the first process of its pid namespace: it ends after all others.
    ensure!(processes_with(mark).is_empty(), "its pod goes on");
    Ok(())
}

fn remove(directory: &Path) -> Result<()> {
    let name = directory.file_name().context("it has a name")?;
    let above = directory.parent().context("it is in a directory")?;
    sundown_files::remove(above, name)?;
    Ok(())
}

pub(crate) fn a_node_whose_directory_is_removed_ends_with_its_pods() -> Result<()> {
    block_on(async {
        let (world, mark, node) = with_a_pod(81).await?;
        remove(world.path())?;
        until_ended(&mark, node).await?;
        ensure!(!world.path().exists(), "the directory was made again");
        Ok(())
    })
}

pub(crate) fn a_node_whose_directory_is_moved_ends_with_its_pods() -> Result<()> {
    block_on(async {
        let (world, mark, node) = with_a_pod(82).await?;
        let elsewhere = tempfile::tempdir()?;
        let moved = elsewhere.path().join("moved");
        fs::rename(world.path(), &moved)?;
        until_ended(&mark, node).await?;
        let said = fs::read_to_string(moved.join("node/node.log"))?;
        ensure!(said.contains("was moved away"), "{said}");
        ensure!(moved.join("node/pods/runs/pod.json").exists());
        ensure!(!world.path().exists(), "the directory was made again");
        Ok(())
    })
}

/// The next node of the same path is none of its business.
pub(crate) fn a_node_whose_directory_is_replaced_touches_nothing_of_the_next() -> Result<()> {
    block_on(async {
        let (world, mark, node) = with_a_pod(83).await?;
        remove(world.path())?;
        let next = connect(world.path()).await?;
        until_ended(&mark, node).await?;
        next.create_pod(a_pod("next")).await?;
        let pods = next.snapshot().await?;
        ensure!(pods.len() == 1 && pods[0].lost.is_none(), "{pods:?}");
        next.remove_pod("next").await?;
        next.end().await?;
        crate::world::nothing_left(world.path()).await
    })
}

pub(crate) fn a_node_goes_on_while_files_in_its_directory_come_and_go() -> Result<()> {
    block_on(async {
        let (world, mark, node) = with_a_pod(84).await?;
        fs::remove_file(world.node.pod_paths("runs").log("main", 0))?;
        for name in ["some", "other"] {
            // The node hears of these, and looks.
            fs::write(world.path().join(name), "")?;
            fs::remove_file(world.path().join(name))?;
            let limit = Duration::from_secs(10);
            let argv = vec!["true".to_owned()];
            let ran = world.node.exec("runs", "main", argv, limit, 100).await?;
            ensure!(ran.code == Some(0), "{ran:?}");
        }
        ensure!(node_process(world.path()) == Some(node), "another node");
        ensure!(!processes_with(&mark).is_empty(), "the pod has ended");
        world.close().await
    })
}
