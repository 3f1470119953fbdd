//! Carries out effects, each in a task that is owned here. Nothing is chosen: an effect says all.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use sundown_engine::{Effect, EffectId, Input, wire};
use sundown_model::ResourceType;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinError, JoinSet};

use crate::counters::Purpose;
use crate::handle::Message;
use crate::requests::Requests;
use crate::watch;
use crate::{Barrier, Beyond};

/// The way back to the engine.
#[derive(Debug, Clone)]
pub(crate) struct Outbox(mpsc::Sender<Message>);

impl Outbox {
    pub(crate) fn new(inbox: mpsc::Sender<Message>) -> Self {
        Self(inbox)
    }

    /// Waits for room in the engine's inbox. Once the engine has ended nobody wants to know.
    pub(crate) async fn put(&self, input: Input) {
        drop(self.0.send(Message::Input(input)).await);
    }
}

/// The effects that are under way.
#[derive(Debug)]
pub(crate) struct Effects {
    requests: Requests,
    barrier: Arc<dyn Barrier>,
    beyond: Arc<dyn Beyond>,
    outbox: Outbox,
    running: JoinSet<EffectId>,
    watches: BTreeMap<EffectId, AbortHandle>,
    /// Ended with this.
    listener: Option<JoinSet<()>>,
}

impl Effects {
    pub(crate) fn new(
        requests: Requests,
        barrier: Arc<dyn Barrier>,
        beyond: Arc<dyn Beyond>,
        outbox: Outbox,
    ) -> Self {
        Self {
            requests,
            barrier,
            beyond,
            outbox,
            running: JoinSet::new(),
            watches: BTreeMap::new(),
            listener: None,
        }
    }

    /// Begins to carry out an effect.
    pub(crate) fn start(&mut self, effect: Effect) {
        let id = effect.id();
        let (requests, outbox) = (self.requests.clone(), self.outbox.clone());
        match effect {
            Effect::Unwatch { id } => {
                if let Some(watch) = self.watches.remove(&id) {
                    watch.abort();
                }
            }
            Effect::Watch { .. } => {
                let watch = self.running.spawn(async move {
                    watch::run(&effect, &requests, &outbox).await;
                    id
                });
                self.watches.insert(id, watch);
            }
            Effect::Discover { .. } => {
                self.running.spawn(async move {
                    outbox.put(discover(id, &requests).await).await;
                    id
                });
            }
            Effect::Barrier { types, .. } => {
                let barrier = Arc::clone(&self.barrier);
                self.running.spawn(async move {
                    outbox.put(ask(id, &types, barrier.as_ref()).await).await;
                    id
                });
            }
            Effect::Ask { question, .. } => {
                let beyond = Arc::clone(&self.beyond);
                self.running.spawn(async move {
                    let reply = beyond.ask(question).await;
                    outbox.put(Input::Answered { id, reply }).await;
                    id
                });
            }
            Effect::Do { deed, .. } => {
                let beyond = Arc::clone(&self.beyond);
                self.running.spawn(async move {
                    let outcome = beyond.carry_out(deed).await;
                    outbox.put(Input::Done { id, outcome }).await;
                    id
                });
            }
            Effect::List { .. } | Effect::Get { .. } | Effect::Write { .. } => {
                self.running.spawn(async move {
                    outbox.put(request(&effect, &requests).await).await;
                    id
                });
            }
        }
    }

    /// Begins to listen to what the node says by itself.
    pub(crate) fn listen(&mut self) {
        let (mut reports, outbox) = (self.beyond.reports(), self.outbox.clone());
        let listener = self.listener.insert(JoinSet::new());
        listener.spawn(async move {
            while let Some(report) = reports.next().await {
                outbox.put(Input::Reported(report)).await;
            }
        });
    }

    /// Waits for the end of a task.
    ///
    /// Errors: it panicked, which is a bug. Cancel-safe.
    pub(crate) async fn ended(&mut self) -> Result<(), JoinError> {
        match self.running.join_next().await {
            Some(Ok(id)) => {
                self.watches.remove(&id);
                Ok(())
            }
            Some(Err(error)) if error.is_cancelled() => Ok(()),
            Some(Err(error)) => Err(error),
            None => std::future::pending().await,
        }
    }

    /// Ends the watches and waits until every request has its answer.
    pub(crate) async fn drain(&mut self) {
        self.watches.values().for_each(AbortHandle::abort);
        while self.running.join_next().await.is_some() {}
    }
}

async fn request(effect: &Effect, requests: &Requests) -> Input {
    let purpose = Purpose::of(effect).expect("lists, reads and writes are requests");
    let call = wire::call(effect).expect("lists, reads and writes are one request");
    let reply = requests.send(purpose, call).await;
    let input = wire::answered(effect, reply).expect("one request has one answer");
    requests.counters().answered(&input);
    input
}

async fn discover(id: EffectId, requests: &Requests) -> Input {
    let [core, groups] = wire::discovery_calls();
    let replies = futures::join!(
        requests.send(Purpose::Discover, core),
        requests.send(Purpose::Discover, groups)
    );
    let result = wire::discovered(replies.into());
    if let Err(failure) = &result {
        tracing::warn!(%failure, "discovery");
    }
    Input::Discovered { id, result }
}

async fn ask(id: EffectId, types: &[Arc<ResourceType>], barrier: &dyn Barrier) -> Input {
    let result = barrier.positions(types).await;
    Input::Positions { id, result }
}
