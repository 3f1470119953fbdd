//! Watches follow the clock they were given, not the one on the wall.

use std::time::Duration;

use anyhow::Result;

use crate::world::{World, config_maps, next, watch};

#[tokio::test]
async fn ends_a_watch_when_the_clock_passes_its_timeout() -> Result<()> {
    let world = World::new()?;
    let mut events = watch(&config_maps(world.in_process())).await?;
    // Joined in this order, the stream is asleep when the clock moves.
    let (event, ()) = tokio::join!(biased; next(&mut events), async {
        world.clock.advance(Duration::from_secs(289));
        world.clock.advance(Duration::from_secs(1));
    });
    assert_eq!(event?, "END");
    Ok(())
}

#[tokio::test]
async fn ends_a_watch_over_https_when_the_clock_jumps_thirty_days() -> Result<()> {
    let mut world = World::new()?;
    let mut events = watch(&config_maps(world.over_https().await?)).await?;
    world.clock.advance(Duration::from_hours(30 * 24));
    assert_eq!(next(&mut events).await?, "END");
    Ok(())
}
