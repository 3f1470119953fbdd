//! Time that a test moves.

use std::time::Duration;

use anyhow::Result;
use sundown_embedded::controllers::Selection;

use crate::world::{a_world, create_finished_job, identities, identity, jobs};
use sundown_testing::{BOUND, TestBound};

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
