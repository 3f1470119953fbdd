//! The operator of a world: the shipped engine with the shipped controllers, and what it loses when
//! it dies.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use sundown_api::{Server, Watch};
use sundown_engine::{EffectId, Engine, Input, wire};
use sundown_model::{Form, ObjectKey, ResourceType};

use crate::checks::WatchCheck;
use crate::mutation::Mutation;
use crate::scenario::Stage;

/// A running operator. Dropped at a crash: nothing of it survives.
#[derive(Debug, Clone)]
pub(crate) struct Operator {
    pub(crate) engine: Engine,
    pub(crate) watches: BTreeMap<EffectId, OpenWatch>,
    /// Targets of writes whose fate it does not know.
    pub(crate) unsure: BTreeSet<ObjectKey>,
}

/// One open watch, with the lines that are on their way.
#[derive(Debug, Clone)]
pub(crate) struct OpenWatch {
    pub(crate) watch: Watch,
    pub(crate) ty: Arc<ResourceType>,
    pub(crate) form: Form,
    pub(crate) lines: VecDeque<Arc<[u8]>>,
    pub(crate) ended: bool,
    pub(crate) check: WatchCheck,
}

impl Operator {
    pub(crate) fn start(mutation: Option<Mutation>, stage: Stage, now: Timestamp) -> Self {
        let mut engine = Self::fresh(mutation, stage);
        engine.take(Input::Lead(true), now);
        Self {
            engine,
            watches: BTreeMap::new(),
            unsure: BTreeSet::new(),
        }
    }
}

impl Operator {
    /// An engine that has seen nothing.
    pub(crate) fn fresh(mutation: Option<Mutation>, stage: Stage) -> Engine {
        crate::mutation::controllers(crate::mutation::engine(mutation), mutation, stage)
    }
}

impl OpenWatch {
    /// Fetches what the server has to say.
    pub(crate) fn poll(&mut self, server: &Server, now: Timestamp) {
        if !self.ended {
            let polled = self.watch.poll(server, now);
            self.lines.extend(polled.lines);
            self.ended = polled.ended;
        }
    }

    /// Takes the next line; None when there is none.
    pub(crate) fn pop(&mut self, id: EffectId) -> Option<(Arc<[u8]>, Input)> {
        let line = self.lines.pop_front()?;
        let input = wire::line(id, &self.ty, &self.form, &line);
        Some((line, input))
    }
}
