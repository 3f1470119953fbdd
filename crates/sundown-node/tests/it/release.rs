//! What stays of a pod that has ended: its records and its logs, and nothing that it ran in.

use anyhow::{Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use sundown_node::{ContainerState, Node, PodSpec, PodState, VolumeSource};
use sundown_testing::eventually;

use crate::world::{
    World, a_pod, block_on, connect, key, mount, node_process, nothing_left, sh, volume,
};

/// Leaves directories that only root may open, whoever owns them.
const HIDES: &str = "echo said; for at in /tmp /data; do mkdir -p $at/a/b; echo x > $at/a/b/c; \
    chmod 0 $at/a/b $at/a; done; exit 3";

fn hiding(uid: &str) -> PodSpec {
    let on_disk = VolumeSource::EmptyDir {
        in_memory: false,
        bytes_max: None,
    };
    PodSpec {
        volumes: vec![volume("data", on_disk)],
        ..a_pod(uid)
    }
}

async fn hide(world: &World, uid: &str) -> Result<()> {
    let mut container = sh(HIDES);
    container.mounts = vec![mount("data", "/data")];
    world.run(hiding(uid), container).await?;
    ensure!(world.end(uid).await?.code == 3);
    Ok(())
}

/// Whether only records and logs of a pod are there.
fn is_cleared(world: &World, uid: &str) -> bool {
    let pod = world.path().join("node/pods").join(uid);
    let stays = pod.join("containers/main/0/exit.json").exists() && pod.join("pod.json").exists();
    let gone = ["containers/main/0/scratch", "volumes"];
    stays && gone.iter().all(|name| !pod.join(name).exists())
}

async fn links(node: &Node) -> Result<usize> {
    let left = node.leftovers().await?;
    Ok(left.iter().filter(|line| line.starts_with("link")).count())
}

pub(crate) fn a_released_pod_keeps_its_records_and_logs_only() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        world.run(a_pod("runs"), sh("sleep 1000")).await?;
        let refused = world.node.release_pod("runs").await;
        ensure!(refused.is_err(), "something of it runs");
        world.node.signal(key("runs"), 9).await?;
        world.end("runs").await?;
        world.node.release_pod("runs").await?;
        hide(&world, "ended").await?;
        world.node.release_pod("ended").await?;
        world.node.release_pod("ended").await?;
        world.node.release_pod("never-was").await?;
        let left = world.node.leftovers().await?;
        ensure!(
            left.len() == 2 && left.iter().all(|line| line.starts_with("directory")),
            "{left:?}"
        );
        ensure!(is_cleared(&world, "ended"));
        ensure!(world.log("ended")? == "said");
        let ended = world.until("ended", |pod| pod.lost.is_some()).await?;
        let exit = ended.container("main").and_then(ContainerState::exit);
        ensure!(exit.is_some_and(|exit| exit.code == 3), "{ended:?}");
        let again = world.node.start_container("ended", sh("true")).await;
        ensure!(again.is_err(), "there is nothing to run in");
        // Its address is free, and its removal leaves the next owner alone.
        let mut next = a_pod("next");
        next.address = Some(ended.address);
        world.run(next, sh("sleep 1000")).await?;
        ensure!(links(&world.node).await? == 1);
        world.node.remove_pod("ended").await?;
        ensure!(links(&world.node).await? == 1);
        world.close().await
    })
}

pub(crate) fn what_containers_hid_goes_with_their_node() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        hide(&world, "ended").await?;
        world.node.end().await?;
        let is_gone = || node_process(world.path()).is_none();
        eventually("the end of a node", is_gone).await?;
        ensure!(is_cleared(&world, "ended"), "the node ended in peace");
        let node = connect(world.path()).await?;
        node.create_pod(hiding("other")).await?;
        let mut container = sh(HIDES);
        container.mounts = vec![mount("data", "/data")];
        node.start_container("other", container).await?;
        crate::world::until(&node, "other", PodState::has_ended).await?;
        let pid = node_process(world.path()).and_then(|pid| Pid::from_raw(pid.cast_signed()));
        kill_process(pid.expect("a node is there"), Signal::KILL)?;
        let is_gone = || node_process(world.path()).is_none();
        eventually("the end of a node", is_gone).await?;
        let node = connect(world.path()).await?;
        ensure!(is_cleared(&world, "other"), "the next one cleared it");
        for pod in node.snapshot().await? {
            ensure!(pod.lost.is_some(), "{pod:?}");
            node.remove_pod(&pod.uid).await?;
        }
        node.end().await?;
        nothing_left(world.path()).await
    })
}
