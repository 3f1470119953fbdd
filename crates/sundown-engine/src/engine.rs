//! The engine itself: takes inputs, gives effects. The order of work is fixed and explicit, so that
//! two runs with the same inputs are the same run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sundown_model::{
    Cache, Change, Controller, Facts, Interest, Note, ObjectKey, Question, Sight, Step, Uid, What,
};

use crate::asks::Asks;
use crate::backoff;
use crate::barrier::Barriers;
use crate::effect::{Brake, Effect, EffectId, Input};
use crate::explain::Explanation;
use crate::lapse::{Lapse, Patience};
use crate::queue::Resolved;
use crate::sent::SentWrite;
use crate::slot::{Runs, Slot};
use crate::streams::{CRDS, Sink, Streams};
use crate::tally::{Backlog, Tally};

/// The engine's limits.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Config {
    /// How many reads and writes of controllers may be under way at once. Questions and deeds beyond
    /// the API do not count: each holds up its own key.
    pub in_flight_max: usize,
    /// How many questions to one port may be under way at once; further ones wait for their turn. It is there to
    /// bound descriptors, and far above what dead dashboards and slow probes of one machine take.
    pub asks_max: usize,
    /// How long a key waits after its first failure; doubled for each further one, up to a minute.
    pub retry_first: SignedDuration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            in_flight_max: 64,
            asks_max: 512,
            retry_first: backoff::DELAY_FIRST,
        }
    }
}

/// Runs controllers over a cache, without I/O and without a clock.
#[derive(Debug, Clone)]
pub struct Engine {
    pub(crate) config: Config,
    pub(crate) slots: Vec<Box<dyn Runs>>,
    pub(crate) state: State,
    pub(crate) lapse: Option<Lapse>,
    pub(crate) tally: Tally,
}

/// Everything but the controllers; plain data that can be saved.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) step: Step,
    pub(crate) last_id: u64,
    pub(crate) leading: bool,
    pub(crate) brake: Brake,
    pub(crate) cache: Cache,
    pub(crate) facts: Facts,
    pub(crate) streams: Streams,
    pub(crate) barriers: Barriers,
    pub(crate) flights: BTreeMap<EffectId, Flight>,
    pub(crate) asks: Asks,
    /// Empty between turns, and so in what is saved.
    #[serde(skip)]
    pub(crate) outbox: VecDeque<Effect>,
    /// Marks of the notes that were told.
    pub(crate) told: BTreeSet<u64>,
    /// Whose turn it is to decide.
    pub(crate) turn: usize,
    /// Writes that no grant covered; not one of them left.
    pub(crate) not_granted: u64,
}

/// A read or write that is under way for a controller.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Flight {
    /// Asked is set when the read leaves.
    Get {
        key: ObjectKey,
        asked: Option<Step>,
        /// Births that it may prove.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        births: Vec<Birth>,
    },
    Write(SentWrite),
    Ask {
        question: Question,
        asked: Option<Step>,
    },
    Do {
        what: What,
        asked: Step,
    },
}

/// An object that was asked for, and nobody said whether it was made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Birth {
    /// The controller that asked for it.
    pub(crate) by: String,
    /// Whose it is: an object of the same name that is another's was not made by us.
    pub(crate) owner: Uid,
    /// What is said once it is there.
    pub(crate) told: Note,
}

impl Flight {
    fn is_to_the_api(&self) -> bool {
        match self {
            Self::Get { .. } | Self::Write(_) => true,
            Self::Ask { .. } | Self::Do { .. } => false,
        }
    }
}

impl Engine {
    /// An engine without controllers.
    pub fn new(config: Config) -> Self {
        let state = State {
            step: Step::default(),
            last_id: 0,
            leading: false,
            brake: Brake::default(),
            cache: Cache::default(),
            facts: Facts::default(),
            streams: Streams::new(),
            barriers: Barriers::default(),
            flights: BTreeMap::new(),
            asks: Asks::default(),
            outbox: VecDeque::new(),
            told: BTreeSet::new(),
            turn: 0,
            not_granted: 0,
        };
        Self {
            config,
            slots: Vec::new(),
            state,
            lapse: None,
            tally: Tally::default(),
        }
    }

    /// The same engine with one more controller.
    ///
    /// Assumes: nothing has been taken yet, so that no controller misses a change.
    #[must_use]
    pub fn with<C: Controller>(mut self, controller: C) -> Self {
        let patience = Patience {
            first: self.config.retry_first,
            lapse: self.lapse,
        };
        self.slots.push(Box::new(Slot::new(controller, patience)));
        self
    }

    /// What has been observed.
    pub fn cache(&self) -> &Cache {
        &self.state.cache
    }

    /// What has been answered.
    pub fn facts(&self) -> &Facts {
        &self.state.facts
    }

    /// The names of the controllers that run.
    pub fn controllers(&self) -> impl Iterator<Item = &'static str> {
        self.slots.iter().map(|slot| slot.name())
    }

    /// Takes what was counted since it was last taken.
    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// What each controller has still to do.
    pub fn backlogs(&self) -> impl Iterator<Item = Backlog> {
        self.slots.iter().map(|slot| slot.backlog())
    }

    /// How many writes were stopped because no grant covers them. Anything but 0 is a defect.
    pub fn not_granted(&self) -> u64 {
        self.state.not_granted
    }

    /// Whether every wanted resource had a first answer, so that decisions are made.
    pub fn is_settled(&self) -> bool {
        self.state.streams.is_settled()
    }

    /// Whether nothing is under way or could be decided now.
    pub fn is_at_rest(&self, now: Timestamp) -> bool {
        self.state.streams.is_settled()
            && self.state.flights.is_empty()
            && self.state.outbox.is_empty()
            && !self.state.barriers.is_waiting()
            && !self.slots.iter().any(|slot| slot.is_ready())
            && self.wake_at().is_none_or(|at| at > now)
    }

    /// When to call [`Engine::next`] again if no input comes before.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let slots = self.slots.iter().filter_map(|slot| slot.wake_at());
        let rest = [self.state.streams.wake_at(), self.state.barriers.wake_at()];
        slots.chain(rest.into_iter().flatten()).min()
    }

    /// When work goes on that rests only because another writer was faster or an answer was lost, if there is
    /// any. Whoever waits for the end of work waits for this, too; a refusal would only come again.
    pub fn mends_at(&self) -> Option<Timestamp> {
        self.slots.iter().filter_map(|slot| slot.mends_at()).min()
    }

    /// Takes one input.
    pub fn take(&mut self, input: Input, now: Timestamp) {
        self.state.step = self.state.step.next();
        let changes = match input {
            Input::Lead(leading) => {
                self.lead(leading, now);
                Vec::new()
            }
            Input::Brake(brake) => {
                self.state.brake = brake;
                self.slots.iter_mut().for_each(|slot| slot.unpark());
                Vec::new()
            }
            Input::Discovered { id, result } => {
                let interests = self.interests();
                let (streams, mut sink) = self.sink(now);
                streams.discovered(id, result, &interests, &mut sink)
            }
            Input::Listed { id, result } => {
                let (streams, mut sink) = self.sink(now);
                streams.listed(id, result, &mut sink)
            }
            Input::Watched { id, event } => {
                let (streams, mut sink) = self.sink(now);
                streams.watched(id, event, &mut sink)
            }
            Input::Positions { id, result } => {
                self.state.barriers.answered(id, result, now);
                Vec::new()
            }
            Input::Got { id, result } => self.got(id, result, now),
            Input::Wrote { id, outcome } => self.wrote(id, outcome, now),
            Input::Answered { id, reply } => {
                let answered = self.answered(id, reply, now);
                answered.map(Change::Answered).into_iter().collect()
            }
            Input::Done { id, outcome } => {
                self.done(id, outcome, now);
                Vec::new()
            }
            Input::Reported(report) => {
                self.state.facts.set_report(report.clone());
                vec![Change::Report(report)]
            }
        };
        self.spread(changes, now);
    }

    /// Gives the next thing to do; None means at rest until `wake_at` or an input.
    pub fn next(&mut self, now: Timestamp) -> Option<Effect> {
        self.slots.iter_mut().for_each(|slot| slot.fire(now));
        loop {
            // What leaves now has seen everything up to here, and is later than all of it.
            self.state.step = self.state.step.next();
            if let Some(effect) = self.state.outbox.pop_front() {
                self.note_departure(&effect);
                return Some(effect);
            }
            let id = EffectId(self.state.last_id + 1);
            let State {
                streams,
                barriers,
                cache,
                facts,
                step,
                ..
            } = &mut self.state;
            let effect = streams
                .next(id, cache, *step, now)
                .or_else(|| barriers.next(id, cache, facts, *step, now));
            if let Some(effect) = effect {
                self.state.last_id += 1;
                return Some(effect);
            }
            if !self.decide_one(now) {
                return None;
            }
        }
    }

    /// What each controller thinks of an object, by the decisions that it would make now.
    pub fn explain(&self, key: &ObjectKey, now: Timestamp) -> Vec<Explanation> {
        let Some(object) = self.state.cache.get(key) else {
            return Vec::new();
        };
        let sight = Sight {
            cache: &self.state.cache,
            facts: &self.state.facts,
            now,
        };
        self.slots
            .iter()
            .flat_map(|slot| slot.explain(object, sight))
            .collect()
    }

    /// What controllers have followed wrongly, if anything: each says so in its own words.
    pub fn audit(&self) -> Vec<String> {
        let audits = self.slots.iter().map(|slot| slot.audit(&self.state.cache));
        audits.filter_map(Result::err).collect()
    }

    fn interests(&self) -> Vec<Interest> {
        self.slots
            .iter()
            .flat_map(|slot| slot.interests())
            .copied()
            .collect()
    }

    fn sink(&mut self, now: Timestamp) -> (&mut Streams, Sink<'_>) {
        let State {
            streams,
            cache,
            facts,
            step,
            ..
        } = &mut self.state;
        (
            streams,
            Sink {
                cache,
                facts,
                step: *step,
                now,
            },
        )
    }

    /// Tells the controllers what changed, and whoever waited for freshness that it is there.
    pub(crate) fn spread(&mut self, mut changes: Vec<Change>, now: Timestamp) {
        self.state.streams.heed(&changes, now);
        let State {
            cache,
            facts,
            barriers,
            streams,
            ..
        } = &mut self.state;
        changes.extend(
            barriers
                .pass(cache, facts)
                .into_iter()
                .map(Change::Freshness),
        );
        if streams.follows_all_definitions()
            && let Some(step) = facts.fresh_since(&CRDS.resource())
        {
            facts.set_served(step);
        }
        for change in &changes {
            forget_refusals(change, facts);
            self.slots
                .iter_mut()
                .for_each(|slot| slot.observe(change, cache));
        }
        for id in barriers.resolved(cache, facts) {
            self.slots
                .iter_mut()
                .for_each(|slot| slot.resolve(id, Resolved::Known, now));
        }
    }

    fn lead(&mut self, leading: bool, now: Timestamp) {
        self.state.leading = leading;
        if leading {
            return;
        }
        // What has not left yet must not leave any more; its keys are decided again under a lead.
        let unsent = std::mem::take(&mut self.state.outbox);
        for effect in &unsent {
            if let Effect::Ask { question, .. } = effect {
                self.state.asks.end(question.port());
            }
        }
        let unasked = self.state.asks.take_waiting();
        let unsent = unsent.iter().map(Effect::id);
        for id in unsent.chain(unasked) {
            self.state.flights.remove(&id);
            self.resolve(id, Resolved::Known, now);
        }
    }

    fn note_departure(&mut self, effect: &Effect) {
        if let Some(Flight::Get { asked, .. } | Flight::Ask { asked, .. }) =
            self.state.flights.get_mut(&effect.id())
        {
            *asked = Some(self.state.step);
        }
    }

    /// Lets one controller decide one key; false when there is nothing to decide.
    fn decide_one(&mut self, now: Timestamp) -> bool {
        let flights = self.state.flights.values();
        let busy = flights.filter(|it| it.is_to_the_api()).count() >= self.config.in_flight_max;
        if !self.state.leading || busy || !self.state.streams.is_settled() {
            return false;
        }
        let count = self.slots.len();
        for index in (0..count).map(|offset| (self.state.turn + offset) % count) {
            let sight = Sight {
                cache: &self.state.cache,
                facts: &self.state.facts,
                now,
            };
            if let Some(proposal) = self.slots[index].decide_next(sight) {
                self.state.turn = index + 1;
                self.propose(index, proposal, now);
                return true;
            }
        }
        false
    }

    pub(crate) fn new_id(&mut self) -> EffectId {
        self.state.last_id += 1;
        EffectId(self.state.last_id)
    }
}

/// Forgets refusals that an object has left behind: it came, is on its way or went, by any client.
fn forget_refusals(change: &Change, facts: &mut Facts) {
    match change {
        Change::Added(object) => {
            facts.clear_refusal(object.key());
            if object.is_deleting() {
                facts.clear_refused_delete(object.key());
            }
        }
        Change::Updated { new, .. } if new.is_deleting() => facts.clear_refused_delete(new.key()),
        Change::Deleted(object) | Change::Forgotten(object) => {
            facts.clear_refusal(object.key());
            facts.clear_refused_delete(object.key());
        }
        Change::Updated { .. }
        | Change::Read(_)
        | Change::Refused(_)
        | Change::Freshness(_)
        | Change::Catalog
        | Change::Report(_)
        | Change::Answered(_) => {}
    }
}
