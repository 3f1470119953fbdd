//! Many short pods. The time is printed and judged by benchmarks, not here.

use std::time::Instant;

use anyhow::{Result, ensure};

use crate::world::{World, a_container, a_pod, block_on};

const POD_COUNT: u32 = 100;
const PARALLEL: u32 = 4;

pub(crate) fn a_hundred_pods_come_and_go() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let begun_at = Instant::now();
        let mut ran = std::time::Duration::ZERO;
        for _ in 0..POD_COUNT / PARALLEL {
            let uids: Vec<String> = (0..PARALLEL).map(|index| format!("pod-{index}")).collect();
            let one = async |uid: &str| {
                world.run(a_pod(uid), a_container(&["true"])).await?;
                let exit = world.end(uid).await?;
                ensure!(exit.code == 0, "{exit:?}");
                anyhow::Ok(())
            };
            let started_at = Instant::now();
            tokio::try_join!(one(&uids[0]), one(&uids[1]), one(&uids[2]), one(&uids[3]))?;
            ran += started_at.elapsed();
            let remove = async |uid: &str| world.node.remove_pod(uid).await;
            tokio::try_join!(
                remove(&uids[0]),
                remove(&uids[1]),
                remove(&uids[2]),
                remove(&uids[3])
            )?;
        }
        println!(
            "{POD_COUNT} pods of true, {PARALLEL} at a time: {:?} a pod, of which {:?} to its exit record",
            begun_at.elapsed() / POD_COUNT,
            ran / POD_COUNT,
        );
        world.close().await
    })
}
