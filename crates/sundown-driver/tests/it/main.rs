//! The driver against a server that is nothing but a script: what it needs of any API server.

mod ray;
mod script;

use anyhow::{Context, Result};
use sundown_driver::controllers::Selection;
use sundown_driver::{Driver, DriverHandle};
use sundown_engine::{Brake, Config, Engine};
use sundown_model::{ObjectKey, Resource};

use script::Script;
use sundown_testing::{BOUND, TestBound};

/// Runs a driver with its brakes on while `story` is told.
async fn with_driver<F: Future<Output = Result<()>>>(
    script: &Script,
    story: impl FnOnce(DriverHandle) -> F,
) -> Result<()> {
    let engine = Selection::all().engine(Config::default());
    let driver = Driver::new(engine, script.client()).brake(Brake::everything());
    let handle = driver.handle();
    let told = async {
        let end = story(handle.clone()).await;
        handle.shutdown();
        end
    };
    let ((), told) = tokio::join!(driver.run(), told);
    told
}

fn owner() -> ObjectKey {
    ObjectKey::namespaced(&Resource::new("", "configmaps"), "default", "owner")
}

#[tokio::test]
async fn explains_without_writing_and_writes_when_the_brake_is_off() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let script = Script::new();
    let seen = script.clone();
    with_driver(&script, |handle| async move {
        // The owner comes by a watch whose line is torn into frames of seven bytes.
        let is_seen =
            |engine: &Engine, now| engine.cache().get(&owner()).is_some() && engine.is_at_rest(now);
        handle.wait_until(BOUND, is_seen).await?;
        let explanations = handle.explain(owner()).await?;
        let said = explanations.first().context("the collector says nothing")?;
        assert_eq!(said.code, "Emptied");
        assert_eq!(said.actions, ["patch configmaps/default/owner"]);
        let counts = handle.counts();
        assert_eq!(counts.writes(), 0);
        assert!(counts.barrier > 0, "the barrier asked by lists: {counts:?}");

        handle.brake(Brake::default()).await?;
        let writes = handle.clone();
        handle
            .wait_until(BOUND, move |engine, _| {
                writes.counts().patch == 1 && engine.cache().get(&owner()).is_none()
            })
            .await?;
        Ok(())
    })
    .await?;
    let patches = seen.patches();
    assert_eq!(patches.len(), 1);
    assert_eq!(patches[0]["metadata"]["uid"], "uid-owner");
    assert_eq!(patches[0]["metadata"]["resourceVersion"], "7");
    Ok(())
}

/// Every request panics once: discovery, lists, the barrier, the watch, the write and the read after it.
#[tokio::test]
async fn the_same_comes_about_when_every_request_panics_once() -> Result<()> {
    let script = Script::stumbling();
    let seen = script.clone();
    with_driver(&script, |handle| async move {
        handle.brake(Brake::default()).await?;
        let is_gone = handle.clone();
        handle
            .wait_until(BOUND, move |engine, _| {
                is_gone.counts().patch >= 2 && engine.cache().get(&owner()).is_none()
            })
            .await?;
        let counts = handle.counts();
        assert!(counts.panicked >= 5, "{counts:?}");
        assert_eq!(counts.panicked, seen.panicked() as u64, "each is counted");
        Ok(())
    })
    .await?;
    assert_eq!(script.patches().len(), 1, "the second one is heard");
    Ok(())
}

#[tokio::test]
async fn nobody_answers_after_the_end() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let script = Script::new();
    let mut kept = None;
    with_driver(&script, |handle| {
        kept = Some(handle);
        async { Ok(()) }
    })
    .await?;
    let handle = kept.context("the story was told")?;
    assert!(handle.explain(owner()).await.is_err());
    assert!(handle.wait_until_at_rest(BOUND).await.is_err());
    Ok(())
}
