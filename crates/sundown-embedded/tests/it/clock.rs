//! Time that a test moves.

use std::time::Duration;

use anyhow::Result;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;
use sundown_embedded::controllers::Selection;

use crate::world::{NOW, a_world, create_finished_job, identities, identity, jobs};
use sundown_testing::{BOUND, TestBound, within};

const DAY: Duration = Duration::from_hours(24);
const TTL_SECONDS: i32 = 30 * 24 * 3600;

#[tokio::test]
async fn a_finished_job_goes_after_thirty_days_and_not_before() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let embedded = a_world().start().await?;
    let api = jobs(embedded.client());
    let job = create_finished_job(&api, "done", TTL_SECONDS).await?;
    let longer = create_finished_job(&api, "kept", TTL_SECONDS + 1).await?;

    let almost = Duration::from_secs(24 * 3600 * 29 - 1);
    for step in [Duration::ZERO, DAY, almost] {
        embedded.advance(step);
        embedded.until_at_rest(BOUND).await?;
        let both = [identity(&job)?, identity(&longer)?];
        assert_eq!(identities(&api).await?, both, "at {}", embedded.now());
    }
    embedded.advance(Duration::from_secs(1));
    embedded.until_at_rest(BOUND).await?;
    assert_eq!(identities(&api).await?, [identity(&longer)?]);
    embedded.stop().await?;
    Ok(())
}

/// They were kept for ever. Watchers see them go; one that happens again stays for another hour.
#[tokio::test]
async fn an_event_goes_after_an_hour_under_both_of_its_names() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let embedded = a_world().start().await?;
    let api: Api<Event> = Api::default_namespaced(embedded.client());
    let event = |name: &str| -> Result<Event> {
        let about =
            json!({ "apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "default" });
        let event = json!({
            "metadata": { "name": name }, "involvedObject": about, "reason": "Said",
            "message": "m", "type": "Normal", "lastTimestamp": NOW.to_string(),
        });
        Ok(serde_json::from_value(event)?)
    };
    let once = api.create(&PostParams::default(), &event("once")?).await?;
    let often = api.create(&PostParams::default(), &event("often")?).await?;

    embedded.advance(Duration::from_secs(3599));
    embedded.until_at_rest(BOUND).await?;
    assert_eq!(
        identities(&api).await?,
        [identity(&often)?, identity(&once)?]
    );
    let again = json!({ "count": 2, "lastTimestamp": embedded.now().to_string() });
    api.patch("often", &PatchParams::default(), &Patch::Merge(again))
        .await?;
    // Opened late: a watch ends after some minutes.
    let version = api.list(&ListParams::default()).await?.metadata;
    let version = version.resource_version.unwrap_or_default();
    let watch = api.watch(&WatchParams::default(), &version).await?;
    let mut watch = watch.boxed();
    embedded.advance(Duration::from_secs(1));
    embedded.until_at_rest(BOUND).await?;
    assert_eq!(identities(&api).await?, [identity(&often)?]);
    let seen = async {
        while let Some(event) = watch.next().await {
            if let WatchEvent::Deleted(gone) = event? {
                return identity(&gone);
            }
        }
        anyhow::bail!("the watch ended")
    };
    assert_eq!(
        within("the end of an Event", seen).await??,
        identity(&once)?
    );
    let counts = embedded.counts();
    embedded.advance(Duration::from_secs(3598));
    embedded.until_at_rest(BOUND).await?;
    assert_eq!(embedded.counts().delete, counts.delete);
    embedded.advance(Duration::from_secs(1));
    embedded.until_at_rest(BOUND).await?;
    assert_eq!(identities(&api).await?, []);
    let new: Api<k8s_openapi::api::events::v1::Event> = Api::default_namespaced(embedded.client());
    assert_eq!(identities(&new).await?, []);
    assert_eq!(
        embedded.counts().delete,
        counts.delete + 1,
        "one request each"
    );
    embedded.stop().await?;
    Ok(())
}

#[tokio::test]
async fn without_the_controller_jobs_are_left_alone() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let controllers: Selection = "-ttl".parse()?;
    let embedded = a_world().controllers(controllers).start().await?;
    let api = jobs(embedded.client());
    let job = create_finished_job(&api, "done", 60).await?;
    embedded.advance(DAY);
    embedded.until_at_rest(BOUND).await?;
    assert_eq!(identities(&api).await?, [identity(&job)?]);
    embedded.stop().await?;
    Ok(())
}
