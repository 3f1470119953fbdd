//! Many writers at once, on several threads.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use futures::StreamExt;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams, PostParams, WatchEvent};
use sundown_testing::within;
use tokio::task::JoinSet;

use crate::world::{World, a_config_map, config_maps, next, revision, watch};

const CREATE_COUNT: usize = 1000;
const PATCH_COUNT: usize = 300;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keeps_revisions_strictly_increasing_under_a_thousand_creates() -> Result<()> {
    let world = World::new()?;
    let api = config_maps(world.in_process());
    api.create(&PostParams::default(), &a_config_map("before"))
        .await?;
    let mut events = watch(&api).await?;
    // From here on the watch is live; the events of its initial state are in the order of names.
    assert_eq!(next(&mut events).await?, "ADDED before");
    let mut creates = JoinSet::new();
    for number in 0..CREATE_COUNT {
        let api = api.clone();
        creates.spawn(async move {
            let config_map = a_config_map(&format!("cm-{number}"));
            revision(&api.create(&PostParams::default(), &config_map).await?)
        });
    }
    let answered: BTreeSet<u64> = creates
        .join_all()
        .await
        .into_iter()
        .collect::<Result<_>>()?;
    assert_eq!(
        answered.len(),
        CREATE_COUNT,
        "every write has a revision of its own"
    );

    let mut watched = Vec::new();
    while watched.len() < CREATE_COUNT {
        let event = within("an event", events.next())
            .await?
            .context("ended")??;
        let WatchEvent::Added(config_map) = event else {
            anyhow::bail!("unexpected {event:?}");
        };
        watched.push(revision(&config_map)?);
    }
    assert!(watched.is_sorted_by(|earlier, later| earlier < later));
    assert_eq!(watched.into_iter().collect::<BTreeSet<_>>(), answered);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn applies_every_patch_of_one_object_without_a_conflict() -> Result<()> {
    let world = World::new()?;
    let api = config_maps(world.in_process());
    let uid = api
        .create(&PostParams::default(), &a_config_map("a"))
        .await?
        .uid();
    let mut patches = JoinSet::new();
    for number in 0..PATCH_COUNT {
        let api = api.clone();
        patches.spawn(async move {
            let data = serde_json::json!({ "data": { format!("key-{number}"): "value" } });
            api.patch("a", &PatchParams::default(), &Patch::Merge(data))
                .await
        });
    }
    for patched in patches.join_all().await {
        assert_eq!(patched?.uid(), uid);
    }
    let data = api.get("a").await?.data.context("no data")?;
    assert_eq!(data.len(), PATCH_COUNT, "no patch was lost");
    Ok(())
}
