//! Carries out effects, each in a task that is owned here. Nothing is chosen: an effect says all.
//!
//! A task that panics has broken its effect and nothing else: the engine is told so in its place
//! (`sundown_engine::broken`), and waits before it wants that again.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use sundown_engine::{Effect, EffectId, Input, broken, wire};
use sundown_model::ResourceType;
use tokio::sync::mpsc;
use tokio::task::{self, AbortHandle, JoinError, JoinSet};

use crate::counters::Purpose;
use crate::handle::Message;
use crate::requests::Requests;
use crate::{Barrier, Ports, listen, log, watch};

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
    ports: Ports,
    outbox: Outbox,
    running: JoinSet<()>,
    by_task: BTreeMap<task::Id, UnderWay>,
    watches: BTreeMap<EffectId, AbortHandle>,
    /// Ended with this.
    listener: Option<JoinSet<()>>,
}

/// What has to be known of an effect after its end.
#[derive(Debug)]
struct UnderWay {
    id: EffectId,
    name: &'static str,
    /// What the engine is told if it panics.
    broken: Option<Input>,
}

impl Effects {
    pub(crate) fn new(
        requests: Requests,
        barrier: Arc<dyn Barrier>,
        ports: Ports,
        outbox: Outbox,
    ) -> Self {
        Self {
            requests,
            barrier,
            ports,
            outbox,
            running: JoinSet::new(),
            by_task: BTreeMap::new(),
            watches: BTreeMap::new(),
            listener: None,
        }
    }

    /// Begins to carry out an effect.
    pub(crate) fn start(&mut self, effect: Effect) {
        if let Effect::Unwatch { id } = effect {
            if let Some(watch) = self.watches.remove(&id) {
                watch.abort();
            }
            return;
        }
        let under_way = UnderWay {
            id: effect.id(),
            name: effect.name(),
            broken: broken(&effect),
        };
        let is_watch = matches!(effect, Effect::Watch { .. });
        let decided = log::leaves(&effect);
        let work = self.carry_out(effect);
        let outbox = self.outbox.clone();
        let task = self.running.spawn(async move {
            if let Some(last) = work.await {
                if let Some(decided) = decided {
                    decided.answered(&last);
                }
                outbox.put(last).await;
            }
        });
        let id = under_way.id;
        self.by_task.insert(task.id(), under_way);
        if is_watch {
            self.watches.insert(id, task);
        }
    }

    /// Everything up to the last word about an effect, which the engine waits for. What is called here
    /// is called inside the task, where a panic is caught.
    fn carry_out(&self, effect: Effect) -> BoxFuture<'static, Option<Input>> {
        let id = effect.id();
        let requests = self.requests.clone();
        match effect {
            Effect::Unwatch { .. } => futures::future::ready(None).boxed(),
            Effect::Watch { .. } => {
                let outbox = self.outbox.clone();
                async move { Some(watch::run(&effect, &requests, &outbox).await) }.boxed()
            }
            Effect::Discover { .. } => async move { Some(discover(id, &requests).await) }.boxed(),
            Effect::Barrier { types, .. } => {
                let barrier = Arc::clone(&self.barrier);
                async move { Some(ask(id, &types, barrier.as_ref()).await) }.boxed()
            }
            Effect::Ask { question, .. } => {
                let ports = self.ports.clone();
                let reply = async move { ports.ask(question).await };
                reply
                    .map(move |reply| Some(Input::Answered { id, reply }))
                    .boxed()
            }
            Effect::Do { deed, .. } => {
                let ports = self.ports.clone();
                let outcome = async move { ports.carry_out(deed).await };
                outcome
                    .map(move |outcome| Some(Input::Done { id, outcome }))
                    .boxed()
            }
            Effect::List { .. } | Effect::Get { .. } | Effect::Write { .. } => {
                async move { Some(request(&effect, &requests).await) }.boxed()
            }
        }
    }

    /// Begins to listen to what the ports say by themselves.
    pub(crate) fn listen(&mut self) {
        let Some(node) = self.ports.speaking() else {
            return;
        };
        let listener = self.listener.insert(JoinSet::new());
        let (outbox, requests) = (self.outbox.clone(), self.requests.clone());
        listener.spawn(listen::run(node, outbox, requests));
    }

    /// Waits until an effect has broken; gives what the engine is to be told in its place. Cancel-safe.
    pub(crate) async fn broken(&mut self) -> Input {
        loop {
            let Some(end) = self.running.join_next_with_id().await else {
                return std::future::pending().await;
            };
            if let Some(input) = self.ended(end) {
                return input;
            }
        }
    }

    /// Ends the watches and waits until every request has its answer.
    pub(crate) async fn drain(&mut self) {
        self.watches.values().for_each(AbortHandle::abort);
        while let Some(end) = self.running.join_next_with_id().await {
            self.ended(end);
        }
    }

    fn ended(&mut self, end: Result<(task::Id, ()), JoinError>) -> Option<Input> {
        let (task, error) = match end {
            Ok((task, ())) => (task, None),
            Err(error) => (error.id(), Some(error)),
        };
        let it = self.by_task.remove(&task)?;
        self.watches.remove(&it.id);
        let panicked = error.filter(JoinError::is_panic)?;
        self.requests.counters().panicked();
        tracing::error!(id = ?it.id, what = it.name, error = %panicked, "an effect panicked");
        it.broken
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

#[cfg(test)]
mod tests;
