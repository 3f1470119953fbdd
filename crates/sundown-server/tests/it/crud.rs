//! The same story told to both transports.

use anyhow::Result;
use kube::Client;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};

use crate::world::{World, a_config_map, config_maps, next, watch};

async fn lives_through(client: Client) -> Result<()> {
    let api = config_maps(client);
    api.create(&PostParams::default(), &a_config_map("before"))
        .await?;
    let mut events = watch(&api).await?;
    assert_eq!(next(&mut events).await?, "ADDED before");

    let created = api
        .create(&PostParams::default(), &a_config_map("a"))
        .await?;
    assert_eq!(next(&mut events).await?, "ADDED a");
    let patch = serde_json::json!({ "data": { "key": "value" } });
    api.patch("a", &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    assert_eq!(next(&mut events).await?, "MODIFIED a");
    assert_eq!(api.get("a").await?.uid(), created.uid());
    api.delete("a", &DeleteParams::default()).await?;
    assert_eq!(next(&mut events).await?, "DELETED a");

    let left = api.list(&ListParams::default()).await?;
    let names: Vec<_> = left.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["before"]);
    Ok(())
}

#[tokio::test]
async fn creates_lists_and_watches_in_process() -> Result<()> {
    lives_through(World::new()?.in_process()).await
}

#[tokio::test]
async fn creates_lists_and_watches_over_https() -> Result<()> {
    let mut world = World::new()?;
    lives_through(world.over_https().await?).await
}

#[tokio::test]
async fn shows_https_clients_what_the_process_wrote() -> Result<()> {
    let mut world = World::new()?;
    let mut events = watch(&config_maps(world.over_https().await?)).await?;
    let local = config_maps(world.in_process());
    local
        .create(&PostParams::default(), &a_config_map("a"))
        .await?;
    assert_eq!(next(&mut events).await?, "ADDED a");
    Ok(())
}
