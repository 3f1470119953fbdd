//! One controller in the engine, with its queue. The engine sees all controllers through one
//! object-safe trait, because their keys and reasons have different types.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use sundown_model::{
    Actions, Cache, Change, Controller, Decision, Explain, Facts, Grant, Interest, Need, Object,
    Port, Sight, Why,
};

use crate::effect::EffectId;
use crate::explain::Explanation;
use crate::flight::Veil;
use crate::lapse::Patience;
use crate::queue::{Pause, Queue, Resolved};
use crate::tally::Backlog;

/// A decision with its key and the type of its reason taken off, ready for the engine.
#[derive(Debug)]
pub(crate) struct Proposal {
    pub(crate) code: &'static str,
    /// None: nothing is to be done, so that no word of it is needed.
    pub(crate) why: Option<Arc<Why>>,
    pub(crate) needs: Vec<Need>,
    pub(crate) actions: Actions,
    pub(crate) wake_at: Option<Timestamp>,
}

/// A controller whose types are hidden.
pub(crate) trait Runs: Debug + Send {
    fn name(&self) -> &'static str;
    fn told_by(&self) -> &'static str;
    fn interests(&self) -> &'static [Interest];
    fn grants(&self) -> &'static [Grant];
    fn ports(&self) -> &'static [Port];
    fn observe(&mut self, change: &Change, cache: &Cache);
    /// Decides the next ready key, which stays current until `settle`.
    fn decide_next(&mut self, sight: Sight<'_>) -> Option<Proposal>;
    fn wait(&mut self, id: EffectId);
    fn settle(&mut self, wake_at: Option<Timestamp>, parked: bool);
    fn resolve(&mut self, id: EffectId, how: Resolved, now: Timestamp);
    /// Counts a failure for those who wait for this effect, and lets them wait on.
    fn pause(&mut self, id: EffectId, how: Pause, now: Timestamp);
    /// Notes that this effect did what it was to do, and lets those who wait for it wait on.
    fn note_done(&mut self, id: EffectId);
    fn transfer(&mut self, from: EffectId, to: EffectId);
    fn waits_for(&self, id: EffectId) -> bool;
    fn fire(&mut self, now: Timestamp);
    fn unpark(&mut self);
    fn is_ready(&self) -> bool;
    fn backlog(&self) -> Backlog;
    fn wake_at(&self) -> Option<Timestamp>;
    fn mends_at(&self) -> Option<Timestamp>;
    fn explain(&self, object: &Object, sight: Sight<'_>) -> Vec<Explanation>;
    fn audit(&self, cache: &Cache) -> Result<(), String>;
    fn clone_box(&self) -> Box<dyn Runs>;
    /// The queue, behind the veil of a record if there is one.
    fn save(&self, veil: Option<&Veil>) -> Value;
    /// Takes a saved queue; the controller's own state is rebuilt from the cache and from what the ports
    /// reported.
    fn load(
        &mut self,
        saved: &Value,
        cache: &Cache,
        facts: &Facts,
    ) -> Result<(), serde_json::Error>;
}

impl Clone for Box<dyn Runs> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}

/// The only implementation.
#[derive(Debug, Clone)]
pub(crate) struct Slot<C: Controller> {
    fresh: C,
    controller: C,
    queue: Queue<C::Key>,
    current: Option<C::Key>,
}

impl<C: Controller> Slot<C> {
    pub(crate) fn new(controller: C, patience: Patience) -> Self {
        Self {
            fresh: controller.clone(),
            controller,
            queue: Queue::new(patience),
            current: None,
        }
    }

    fn current(&self) -> C::Key {
        self.current
            .clone()
            .expect("between decide_next and settle a key is current")
    }
}

impl<C: Controller> Runs for Slot<C> {
    fn name(&self) -> &'static str {
        C::NAME
    }

    fn told_by(&self) -> &'static str {
        C::TOLD_BY
    }

    fn interests(&self) -> &'static [Interest] {
        C::INTERESTS
    }

    fn grants(&self) -> &'static [Grant] {
        C::GRANTS
    }

    fn ports(&self) -> &'static [Port] {
        C::PORTS
    }

    fn observe(&mut self, change: &Change, cache: &Cache) {
        let mut touched = BTreeSet::new();
        self.controller.observe(change, cache, &mut touched);
        for key in touched {
            self.queue.touch(key);
        }
    }

    fn decide_next(&mut self, sight: Sight<'_>) -> Option<Proposal> {
        let key = self.queue.pop()?;
        let Decision {
            needs,
            actions,
            wake_at,
            reason,
        } = self.controller.decide(&key, sight);
        self.current = Some(key);
        Some(Proposal {
            code: reason.code(),
            why: (!actions.is_empty()).then(|| Arc::new(Why::of(&reason))),
            needs,
            actions,
            wake_at,
        })
    }

    fn wait(&mut self, id: EffectId) {
        let key = self.current();
        self.queue.wait(&key, id);
    }

    fn settle(&mut self, wake_at: Option<Timestamp>, parked: bool) {
        let key = self.current();
        self.current = None;
        self.queue.settle(&key, wake_at, parked);
    }

    fn resolve(&mut self, id: EffectId, how: Resolved, now: Timestamp) {
        self.queue.resolve(id, how, now);
    }

    fn pause(&mut self, id: EffectId, how: Pause, now: Timestamp) {
        self.queue.pause(id, how, now);
    }

    fn note_done(&mut self, id: EffectId) {
        self.queue.note_done(id);
    }

    fn transfer(&mut self, from: EffectId, to: EffectId) {
        self.queue.transfer(from, to);
    }

    fn waits_for(&self, id: EffectId) -> bool {
        self.queue.waits_for(id)
    }

    fn fire(&mut self, now: Timestamp) {
        self.queue.fire(now);
    }

    fn unpark(&mut self) {
        self.queue.unpark();
    }

    fn is_ready(&self) -> bool {
        self.queue.is_ready()
    }

    fn backlog(&self) -> Backlog {
        Backlog {
            controller: C::NAME,
            ready: self.queue.ready_count(),
            failures: self.queue.failure_count(),
        }
    }

    fn wake_at(&self) -> Option<Timestamp> {
        self.queue.wake_at()
    }

    fn mends_at(&self) -> Option<Timestamp> {
        self.queue.mends_at()
    }

    fn explain(&self, object: &Object, sight: Sight<'_>) -> Vec<Explanation> {
        let keys = self.controller.keys_about(object);
        let explain = |key| {
            let decision = self.controller.decide(&key, sight);
            let Decision {
                needs,
                actions,
                wake_at,
                reason,
            } = decision;
            Explanation {
                controller: C::NAME.into(),
                code: reason.code().into(),
                sentence: reason.sentence(),
                blockers: reason.blockers(),
                needs,
                actions: actions
                    .iter()
                    .map(crate::explain::action_in_words)
                    .collect(),
                wake_at,
            }
        };
        keys.into_iter().map(explain).collect()
    }

    fn audit(&self, cache: &Cache) -> Result<(), String> {
        self.controller.audit(cache)
    }

    fn clone_box(&self) -> Box<dyn Runs> {
        Box::new(self.clone())
    }

    fn save(&self, veil: Option<&Veil>) -> Value {
        match veil {
            Some(veil) => veil.over(&self.queue),
            None => {
                serde_json::to_value(&self.queue).expect("a queue is plain data with text keys")
            }
        }
    }

    fn load(
        &mut self,
        saved: &Value,
        cache: &Cache,
        facts: &Facts,
    ) -> Result<(), serde_json::Error> {
        self.controller = self.fresh.clone();
        let mut touched = BTreeSet::new();
        for object in cache.iter() {
            self.controller
                .observe(&Change::Added(object.clone()), cache, &mut touched);
        }
        for report in facts.reports() {
            self.controller
                .observe(&Change::Report(report), cache, &mut touched);
        }
        let saved: Queue<C::Key> = serde_json::from_value(saved.clone())?;
        self.queue = self.queue.successor(saved);
        Ok(())
    }
}
