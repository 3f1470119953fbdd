//! Who uses a server: a control plane that was started for a run ends when nobody does, and kubectl counts.

use anyhow::Result;
use kube::api::{ListParams, PostParams};
use sundown_testing::eventually;

use crate::world::{World, a_config_map, config_maps, next, watch};

#[tokio::test]
async fn clients_over_https_count_and_those_in_the_process_do_not() -> Result<()> {
    let mut world = World::new()?;
    let all = ListParams::default();
    let inside = config_maps(world.in_process());
    inside.list(&all).await?;
    assert_eq!(world.shared.usage().requests, 0);
    let outside = config_maps(world.over_https().await?);
    outside.list(&all).await?;
    assert_eq!(world.shared.usage().requests, 1);
    assert!(!world.shared.usage().is_followed);
    let mut events = watch(&outside).await?;
    assert!(world.shared.usage().is_followed);
    inside
        .create(&PostParams::default(), &a_config_map("a"))
        .await?;
    assert_eq!(next(&mut events).await?, "ADDED a");
    drop(events);
    drop(outside);
    let shared = std::sync::Arc::clone(&world.shared);
    eventually("the end of the watch", || !shared.usage().is_followed).await
}
