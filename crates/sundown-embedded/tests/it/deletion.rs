//! What goes and what stays, by identity, after an owner was deleted.

use anyhow::Result;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use sundown_embedded::Embedded;
use sundown_embedded::controllers::Selection;

use crate::world::{a_world, config_maps, create, delete, identities, identity};
use sundown_testing::{BOUND, TestBound};

/// Two dependents, one of them with a second owner, and a bystander.
#[tokio::test]
async fn background_deletion_takes_what_has_no_owner_left() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let embedded = Embedded::start().await?;
    let api = config_maps(embedded.client());
    let owner = create(&api, "owner", &[]).await?;
    let other = create(&api, "other-owner", &[]).await?;
    let child = create(&api, "child", &[&owner]).await?;
    create(&api, "grandchild", &[&child]).await?;
    let shared = create(&api, "shared", &[&owner, &other]).await?;
    let bystander = create(&api, "bystander", &[]).await?;

    delete(&api, "owner", &DeleteParams::background()).await?;
    embedded.until_at_rest(BOUND).await?;

    let left = [&bystander, &other, &shared].map(identity);
    assert_eq!(
        identities(&api).await?,
        left.into_iter().collect::<Result<Vec<_>>>()?
    );
    let references = api.get("shared").await?.owner_references().to_vec();
    let uids: Vec<_> = references
        .into_iter()
        .map(|reference| reference.uid)
        .collect();
    assert_eq!(
        uids,
        [other.uid().unwrap_or_default()],
        "the dead reference is dropped"
    );
    embedded.stop().await?;
    Ok(())
}

#[tokio::test]
async fn foreground_deletion_keeps_the_owner_until_its_dependents_are_gone() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let embedded = a_world().start().await?;
    let api = config_maps(embedded.client());
    let owner = create(&api, "owner", &[]).await?;
    let held = create(&api, "held", &[&owner]).await?;
    create(&api, "free", &[&owner]).await?;
    let bystander = create(&api, "bystander", &[]).await?;
    let finalizers = |list| Patch::Merge(json!({ "metadata": { "finalizers": list } }));
    let params = PatchParams::default();
    api.patch("held", &params, &finalizers(json!(["example.com/hold"])))
        .await?;

    delete(&api, "owner", &DeleteParams::foreground()).await?;
    embedded.until_at_rest(BOUND).await?;
    let left = [&bystander, &held, &owner].map(identity);
    assert_eq!(
        identities(&api).await?,
        left.into_iter().collect::<Result<Vec<_>>>()?
    );

    api.patch("held", &params, &finalizers(json!(null))).await?;
    embedded.until_at_rest(BOUND).await?;
    assert_eq!(identities(&api).await?, [identity(&bystander)?]);
    embedded.stop().await?;
    Ok(())
}

#[tokio::test]
async fn orphan_deletion_lets_the_dependents_go() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let embedded = a_world().start().await?;
    let api = config_maps(embedded.client());
    let owner = create(&api, "owner", &[]).await?;
    let child = create(&api, "child", &[&owner]).await?;

    delete(&api, "owner", &DeleteParams::orphan()).await?;
    embedded.until_at_rest(BOUND).await?;

    assert_eq!(identities(&api).await?, [identity(&child)?]);
    assert!(api.get("child").await?.owner_references().is_empty());
    embedded.stop().await?;
    Ok(())
}

/// A second object of the owner's name is another owner.
#[tokio::test]
async fn an_owner_of_the_same_name_is_not_the_owner() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let embedded = a_world().start().await?;
    let api = config_maps(embedded.client());
    let owner = create(&api, "owner", &[]).await?;
    let mut impostor = owner.clone();
    impostor.metadata.uid = Some("00000000-0000-4000-8000-000000000000".to_owned());
    create(&api, "child", &[&impostor]).await?;
    embedded.until_at_rest(BOUND).await?;
    assert_eq!(identities(&api).await?, [identity(&owner)?]);
    embedded.stop().await?;
    Ok(())
}

#[tokio::test]
async fn without_a_collector_nothing_waits_for_nobody() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let embedded = a_world().garbage_collector(false).start().await?;
    let api = config_maps(embedded.client());
    let owner = create(&api, "owner", &[]).await?;
    let child = create(&api, "child", &[&owner]).await?;
    delete(&api, "owner", &DeleteParams::foreground()).await?;
    embedded.until_at_rest(BOUND).await?;
    assert_eq!(identities(&api).await?, [identity(&child)?]);
    embedded.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_collector_of_somebody_else_finds_the_finalizer() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let controllers: Selection = "-owner_gc".parse()?;
    let embedded = a_world().controllers(controllers).start().await?;
    let api = config_maps(embedded.client());
    create(&api, "owner", &[]).await?;
    delete(&api, "owner", &DeleteParams::foreground()).await?;
    embedded.until_at_rest(BOUND).await?;
    assert_eq!(api.get("owner").await?.finalizers(), ["foregroundDeletion"]);
    embedded.stop().await?;
    Ok(())
}
