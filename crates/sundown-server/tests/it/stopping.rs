//! What is open when the server is asked to stop.

use anyhow::{Context, Result};
use kube::api::{ListParams, PostParams};

use crate::world::{World, a_config_map, config_maps, next, watch};
use sundown_testing::BOUND;

#[tokio::test]
async fn ends_open_watches_and_stops_in_time() -> Result<()> {
    let mut world = World::new()?;
    let remote = config_maps(world.over_https().await?);
    let local = config_maps(world.in_process());
    remote
        .create(&PostParams::default(), &a_config_map("a"))
        .await?;
    let (mut far, mut near) = (watch(&remote).await?, watch(&local).await?);
    assert_eq!(next(&mut far).await?, "ADDED a");
    assert_eq!(next(&mut near).await?, "ADDED a");

    let stopping = world.tasks.stop(BOUND);
    let (stopped, far, near) = tokio::join!(stopping, next(&mut far), next(&mut near));
    stopped?;
    assert_eq!((far?.as_str(), near?.as_str()), ("END", "END"));
    let refused = remote.list(&ListParams::default()).await;
    refused.err().context("still listening")?;
    Ok(())
}

#[tokio::test]
async fn stops_although_connections_are_idle() -> Result<()> {
    let mut world = World::new()?;
    let (address, _) = world.listen().await?;
    let client = config_maps(world.over_https().await?);
    client.list(&ListParams::default()).await?;
    let _silent = tokio::net::TcpStream::connect(address).await?;
    world.tasks.stop(BOUND).await?;
    Ok(())
}
