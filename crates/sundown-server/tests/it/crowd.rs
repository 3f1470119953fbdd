//! Clients that show no credential do not keep out those that do: once, a thousand silent connections
//! took every descriptor of the server.

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use sundown_testing::BOUND;

use crate::world::{World, a_config_map, config_maps};

const PLACES: usize = 8;
const CROWD: usize = 100;

#[tokio::test]
async fn a_crowd_without_credentials_keeps_nobody_out_who_has_one() -> Result<()> {
    let mut world = World::new()?;
    let (address, client) = world.with_places(PLACES).await?;
    let api = config_maps(client);
    let params = WatchParams::default().disable_bookmarks();
    let mut before = Box::pin(timeout(BOUND, api.watch(&params, "0")).await??);
    api.create(&PostParams::default(), &a_config_map("first"))
        .await?;
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        crowd.push(TcpStream::connect(address).await?);
        // A new connection each time: those of the client may be in use.
        if crowd.len() % 20 == 0 {
            let listed = timeout(BOUND, api.list(&ListParams::default())).await;
            listed.context("the list waits")??;
        }
    }
    let mut byte = [0];
    let first = timeout(BOUND, crowd[0].read(&mut byte)).await;
    let is_closed = !matches!(first.context("the first stays")?, Ok(1..));
    assert!(
        is_closed,
        "who has waited longest without a credential goes"
    );
    api.create(&PostParams::default(), &a_config_map("second"))
        .await?;
    for expect in ["first", "second"] {
        let event = timeout(BOUND, before.next()).await;
        match event.context("the watch is silent")? {
            Some(Ok(WatchEvent::Added(it))) => {
                assert_eq!(it.metadata.name.as_deref(), Some(expect));
            }
            other => bail!("the watch says {other:?}"),
        }
    }
    Ok(())
}
