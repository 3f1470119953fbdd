//! How others speak to a running driver: stop it, brake it, ask its engine, wait for a state.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::registry::Registry;
use sundown_engine::{Brake, Engine, Explanation, Input};
use sundown_model::ObjectKey;
use tokio::sync::{mpsc, oneshot, watch};

use crate::Counts;
use crate::counters::Counters;

/// What arrives at the task that owns the engine.
pub(crate) enum Message {
    Input(Input),
    Ask(Question),
    Await(Waiter),
}

pub(crate) type Question = Box<dyn FnOnce(&Engine, Timestamp) + Send>;
pub(crate) type Condition = Box<dyn FnMut(&Engine, Timestamp) -> bool + Send>;

/// Somebody who waits until the engine is in a state.
pub(crate) struct Waiter {
    pub(crate) is_reached: Condition,
    /// Empty once told.
    pub(crate) tell: Option<oneshot::Sender<()>>,
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(input) => input.fmt(f),
            Self::Ask(_) => f.write_str("Ask"),
            Self::Await(_) => f.write_str("Await"),
        }
    }
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waiter")
    }
}

/// The driver has ended, so there is nobody to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the controllers have ended")]
pub struct Ended;

/// Why a state was not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// It was not reached in time.
    #[error("the controllers did not come to the awaited state within {bound:?}")]
    TooLate { bound: Duration },
    /// Nobody works towards it any more.
    #[error(transparent)]
    Ended(#[from] Ended),
}

/// A running driver, as others see it.
#[derive(Debug, Clone)]
pub struct DriverHandle {
    pub(crate) inbox: mpsc::Sender<Message>,
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) counters: Arc<Counters>,
}

impl DriverHandle {
    /// Asks the driver to end. Requests that are under way are answered first.
    pub fn shutdown(&self) {
        self.stop.send_replace(true);
    }

    /// Holds writes back, or lets them go again with [`Brake::default`].
    pub async fn brake(&self, brake: Brake) -> Result<(), Ended> {
        self.send(Message::Input(Input::Brake(brake))).await
    }

    /// What each controller thinks of an object.
    pub async fn explain(&self, key: ObjectKey) -> Result<Vec<Explanation>, Ended> {
        self.ask(move |engine, now| engine.explain(&key, now)).await
    }

    /// Asks the engine between two turns.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Engine, Timestamp) -> T + Send + 'static,
    ) -> Result<T, Ended> {
        let (tell, answer) = oneshot::channel();
        let question: Question = Box::new(move |engine, now| {
            // Whoever asked may have gone; then nobody wants the answer.
            drop(tell.send(question(engine, now)));
        });
        self.send(Message::Ask(question)).await?;
        answer.await.map_err(|_| Ended)
    }

    /// Waits until the engine is in a state, looking after each of its turns.
    pub async fn wait_until(
        &self,
        bound: Duration,
        is_reached: impl FnMut(&Engine, Timestamp) -> bool + Send + 'static,
    ) -> Result<(), WaitError> {
        let (tell, reached) = oneshot::channel();
        let is_reached = Box::new(is_reached);
        let waiter = Waiter {
            is_reached,
            tell: Some(tell),
        };
        self.send(Message::Await(waiter)).await?;
        match tokio::time::timeout(bound, reached).await {
            Ok(reached) => reached.map_err(|_| Ended.into()),
            Err(_) => Err(WaitError::TooLate { bound }),
        }
    }

    /// Waits until nothing is under way and nothing could be decided.
    ///
    /// What the API server has not shown yet is not known here: an embedded server can say more.
    pub async fn wait_until_at_rest(&self, bound: Duration) -> Result<(), WaitError> {
        self.wait_until(bound, Engine::is_at_rest).await
    }

    /// Shows what is counted among the metrics of this process.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.counters.register(registry);
    }

    /// How many requests left so far.
    pub fn counts(&self) -> Counts {
        self.counters.counts()
    }

    async fn send(&self, message: Message) -> Result<(), Ended> {
        self.inbox.send(message).await.map_err(|_| Ended)
    }
}
