//! Controllers of others, written with kube-rs as its documentation shows, work unchanged.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{Event as Finalizing, finalizer};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{Controller, watcher as watch};
use kube::{Api, ResourceExt};
use serde_json::json;
use sundown_embedded::Embedded;

use crate::world::{config_maps, create, delete};
use sundown_testing::{TestBound, within};

#[tokio::test]
async fn a_watcher_sees_what_is_there_and_what_becomes_of_it() -> Result<()> {
    let _bound = TestBound::of_this_test();
    follows_a_life(watcher::Config::default()).await
}

#[tokio::test]
async fn a_watcher_with_streaming_lists_sees_the_same() -> Result<()> {
    let _bound = TestBound::of_this_test();
    follows_a_life(watcher::Config::default().streaming_lists()).await
}

async fn follows_a_life(config: watcher::Config) -> Result<()> {
    let embedded = Embedded::start().await?;
    let api = config_maps(embedded.client());
    create(&api, "before", &[]).await?;
    let mut events = Box::pin(watch(api.clone(), config));
    ensure!(matches!(next(&mut events).await?, Event::Init));
    ensure!(matches!(next(&mut events).await?, Event::InitApply(it) if it.name_any() == "before"));
    ensure!(matches!(next(&mut events).await?, Event::InitDone));
    create(&api, "after", &[]).await?;
    ensure!(matches!(next(&mut events).await?, Event::Apply(it) if it.name_any() == "after"));
    let patch = Patch::Merge(json!({ "data": { "step": "2" } }));
    api.patch("after", &PatchParams::default(), &patch).await?;
    ensure!(matches!(next(&mut events).await?, Event::Apply(it) if it.data.is_some()));
    delete(&api, "after", &DeleteParams::default()).await?;
    ensure!(matches!(next(&mut events).await?, Event::Delete(it) if it.name_any() == "after"));
    Ok(embedded.stop().await?)
}

async fn next(
    events: &mut (impl Stream<Item = watcher::Result<Event<ConfigMap>>> + Unpin),
) -> Result<Event<ConfigMap>> {
    let next = within("an event", events.try_next()).await?;
    next?.context("the watch ended")
}

/// How often a controller has cleaned up.
type Cleaned = Arc<AtomicUsize>;

#[tokio::test]
async fn a_controller_with_a_finalizer_cleans_up_exactly_once() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let embedded = Embedded::start().await?;
    let api = config_maps(embedded.client());
    let cleaned = Cleaned::default();
    let controller = Controller::new(api.clone(), watcher::Config::default())
        .run(
            reconcile,
            |_, _: &finalizer_error::Error, _| again(),
            Arc::new((api.clone(), cleaned.clone())),
        )
        .for_each(|_| async {});
    let story = async {
        create(&api, "mine", &[]).await?;
        let held = |it: Option<&ConfigMap>| it.is_some_and(|it| !it.finalizers().is_empty());
        wait(&api, held).await?;
        delete(&api, "mine", &DeleteParams::default()).await?;
        wait(&api, |it| it.is_none()).await?;
        ensure!(cleaned.load(Ordering::SeqCst) == 1, "cleaned up once");
        Ok(())
    };
    tokio::select! {
        () = controller => anyhow::bail!("the controller ended"),
        told = story => told?,
    }
    Ok(embedded.stop().await?)
}

mod finalizer_error {
    pub(super) type Error = kube::runtime::finalizer::Error<std::convert::Infallible>;
}

async fn reconcile(
    object: Arc<ConfigMap>,
    context: Arc<(Api<ConfigMap>, Cleaned)>,
) -> Result<Action, finalizer_error::Error> {
    let (api, cleaned) = &*context;
    finalizer(api, "example.com/clean", object, |event| async move {
        if let Finalizing::Cleanup(_) = event {
            cleaned.fetch_add(1, Ordering::SeqCst);
        }
        Ok(Action::await_change())
    })
    .await
}

fn again() -> Action {
    Action::requeue(Duration::from_millis(10))
}

/// Waits until the object is as wanted, woken by its own watch.
async fn wait(api: &Api<ConfigMap>, is_there: impl Fn(Option<&ConfigMap>) -> bool) -> Result<()> {
    let mut states = Box::pin(kube::runtime::watcher::watch_object(api.clone(), "mine"));
    let story = async {
        while let Some(state) = states.try_next().await? {
            if is_there(state.as_ref()) {
                return Ok(());
            }
        }
        anyhow::bail!("the watch ended")
    };
    within("an object as wanted", story).await?
}
