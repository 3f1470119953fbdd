//! At rest the controllers ask for nothing, but for watches that end and are opened again.

use std::time::Duration;

use anyhow::Result;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use sundown_embedded::Embedded;

use crate::world::{a_world, config_maps, create, create_finished_job, delete, jobs};
use sundown_testing::{BOUND, TestBound, within};

#[tokio::test]
async fn makes_no_request_in_an_hour_of_rest() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let embedded = a_world().start().await?;
    let api = config_maps(embedded.client());
    let owner = create(&api, "owner", &[]).await?;
    create(&api, "child", &[&owner]).await?;
    create_finished_job(&jobs(embedded.client()), "done", 7200).await?;
    embedded.until_at_rest(BOUND).await?;
    let before = embedded.counts();

    // In steps, so that bookmarks come as they would and watches end and are opened again.
    for _ in 0..70 {
        embedded.advance(Duration::from_mins(1));
        embedded.until_at_rest(BOUND).await?;
    }
    let reopened = async {
        while embedded.counts().watch == before.watch {
            tokio::task::yield_now().await;
        }
    };
    within("watches that are opened again", reopened).await?;
    let after = embedded.counts();
    assert_eq!(after.requests(), before.requests(), "{after:?}");
    embedded.stop().await?;
    Ok(())
}

#[tokio::test]
async fn collects_a_dependent_with_one_request() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let embedded = a_world().start().await?;
    let api = config_maps(embedded.client());
    let owner = create(&api, "owner", &[]).await?;
    for number in 0..50 {
        create(&api, &format!("child-{number}"), &[&owner]).await?;
    }
    embedded.until_at_rest(BOUND).await?;
    let before = embedded.counts();
    crate::world::delete(&api, "owner", &kube::api::DeleteParams::background()).await?;
    embedded.until_at_rest(BOUND).await?;
    let after = embedded.counts();
    assert_eq!(after.delete - before.delete, 50);
    assert_eq!(after.requests() - before.requests(), 50, "{after:?}");
    embedded.stop().await?;
    Ok(())
}

/// A `down` that failed half-way left a control plane that did nothing any more.
#[tokio::test]
async fn controllers_that_were_held_go_on_when_they_are_let() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let embedded = a_world().start().await?;
    let api = config_maps(embedded.client());
    let owner = create(&api, "owner", &[]).await?;
    create(&api, "child", &[&owner]).await?;
    embedded.until_at_rest(BOUND).await?;
    embedded.local().hold_controllers().await?;
    crate::world::delete(&api, "owner", &kube::api::DeleteParams::background()).await?;
    embedded.until_at_rest(BOUND).await?;
    assert_eq!(crate::world::identities(&api).await?.len(), 1);
    embedded.local().release_controllers().await?;
    embedded.until_at_rest(BOUND).await?;
    assert_eq!(crate::world::identities(&api).await?, []);
    embedded.stop().await?;
    Ok(())
}

#[tokio::test]
async fn starts_and_stops_with_nothing_to_do() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let embedded = Embedded::start().await?;
    assert!(embedded.start_time() > Duration::ZERO);
    assert_eq!(embedded.url(), None);
    embedded.until_at_rest(BOUND).await?;
    assert_eq!(embedded.counts().writes(), 0);
    embedded.stop().await?;
    Ok(())
}

/// The collector loses to whoever patches the object all the time, and waits a moment. The clock stands still here: the
/// moment never ended, and that counted as rest.
#[tokio::test]
async fn what_was_put_off_by_another_writer_is_done_at_rest() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let embedded = a_world().start().await?;
    let api = config_maps(embedded.client());
    for _ in 0..20 {
        let owner = create(&api, "owner", &[]).await?;
        create(&api, "child", &[&owner]).await?;
        delete(&api, "owner", &DeleteParams::orphan()).await?;
        for number in 0..20 {
            let patch = json!({ "metadata": { "labels": { "number": number.to_string() } } });
            let params = PatchParams::default();
            api.patch("child", &params, &Patch::Merge(patch)).await?;
        }
        embedded.until_at_rest(BOUND).await?;
        assert!(api.get_opt("owner").await?.is_none());
        assert_eq!(api.get("child").await?.owner_references(), []);
        delete(&api, "child", &DeleteParams::background()).await?;
    }
    embedded.stop().await?;
    Ok(())
}
