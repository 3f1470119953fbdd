//! What an answer to a read or a write means: the cache is written through, and what is not certain
//! is read before anything else is decided on it.

use std::sync::Arc;

use jiff::Timestamp;
use sundown_model::{
    Answer, Change, LiveFact, Object, ObjectKey, Outcome, Part, Refusal, RefusalFact,
    RefusalReason, Uid,
};

use crate::effect::{EffectId, Failure};
use crate::engine::{Engine, Flight};
use crate::exit;
use crate::lapse::Lapse;
use crate::queue::{Pause, Resolved};
use crate::sent::SentWrite;
use crate::streams::{Sink, put};

impl Engine {
    /// Takes the answer to a live read.
    pub(crate) fn got(
        &mut self,
        id: EffectId,
        result: Result<Option<Arc<Object>>, Failure>,
        now: Timestamp,
    ) -> Vec<Change> {
        let Some(Flight::Get {
            key,
            asked: Some(asked),
            births,
        }) = self.state.flights.remove(&id)
        else {
            return Vec::new();
        };
        let Ok(found) = result else {
            self.resolve(
                id,
                Resolved::Badly {
                    retry_after_seconds: None,
                },
                now,
            );
            return Vec::new();
        };
        let mut changes = match &found {
            Some(object) => {
                self.tell_of_births(births, object, now);
                self.write_through(object.clone(), now)
            }
            None => self.vacant(&key, asked),
        };
        self.state.facts.set_live(
            key.clone(),
            LiveFact {
                asked,
                answered_at: now,
                found,
            },
        );
        changes.push(Change::Read(key));
        self.resolve(id, Resolved::Known, now);
        changes
    }

    /// Takes the outcome of a write.
    pub(crate) fn wrote(&mut self, id: EffectId, outcome: Outcome, now: Timestamp) -> Vec<Change> {
        let Some(Flight::Write(write)) = self.state.flights.remove(&id) else {
            return Vec::new();
        };
        if let SentWrite::Create(draft) = &write
            && exit::is_event(draft)
        {
            return Vec::new();
        }
        self.note_failed(&write, &outcome, now);
        match outcome {
            Outcome::Done(Answer::Object(object)) => {
                self.tell_of(id, &write, now);
                let believes = self.lapse == Some(Lapse::BelievesAnswers);
                let is_changed = !is_as_before(&write, &object);
                self.note_accepted(&write, object.key(), is_changed, now);
                let how = if is_changed || believes {
                    Resolved::Done
                } else {
                    Resolved::Badly {
                        retry_after_seconds: None,
                    }
                };
                let changes = self.write_through(object, now);
                self.resolve(id, how, now);
                changes
            }
            Outcome::Done(Answer::Gone) => self.gone(id, &write, now),
            Outcome::Refused(refusal) => self.refused(id, &write, &refusal, now),
            // The usual answer to a Binding: it was done, and only what came of it is to be read.
            Outcome::Done(Answer::Accepted) => {
                self.slots.iter_mut().for_each(|slot| slot.note_done(id));
                self.read_instead(id, &write, now)
            }
            Outcome::Unknown => {
                // It may have been written: who writes at most once a second counts from here.
                if let SentWrite::Patch { at, part, .. } = &write
                    && *part == Part::Status
                {
                    self.state.facts.set_written(at.key.clone(), now);
                }
                self.read_again(id, &write, Pause::Always, now)
            }
        }
    }

    fn refused(
        &mut self,
        id: EffectId,
        write: &SentWrite,
        refusal: &Refusal,
        now: Timestamp,
    ) -> Vec<Change> {
        let seen_before = !matches!(write, SentWrite::Create(_));
        match refusal.reason {
            RefusalReason::NotFound if seen_before => self.gone(id, write, now),
            RefusalReason::Conflict | RefusalReason::AlreadyExists => {
                self.read_again(id, write, Pause::IfRepeated, now)
            }
            RefusalReason::NotFound
            | RefusalReason::Forbidden
            | RefusalReason::Invalid
            | RefusalReason::Busy => {
                let changes = self.remember(write, refusal, now);
                let retry_after_seconds = refusal.retry_after_seconds;
                self.resolve(
                    id,
                    Resolved::Badly {
                        retry_after_seconds,
                    },
                    now,
                );
                changes
            }
        }
    }

    /// Remembers that a write was done: what kept it from being done before is over. A status that stayed as it was
    /// has not been written: the next try has its pause from that.
    fn note_accepted(
        &mut self,
        write: &SentWrite,
        key: &ObjectKey,
        is_changed: bool,
        now: Timestamp,
    ) {
        let facts = &mut self.state.facts;
        match write {
            SentWrite::Delete { .. } | SentWrite::Finish { .. } => facts.clear_refused_delete(key),
            SentWrite::Patch { part, .. } if *part == Part::Status => {
                if is_changed {
                    facts.set_written(key.clone(), now);
                }
            }
            SentWrite::Patch { .. } | SentWrite::Create(_) => facts.clear_refusal(key),
        }
    }

    /// Remembers why an object could not be made, changed or deleted. That the server is busy says nothing about
    /// it.
    fn remember(&mut self, write: &SentWrite, refusal: &Refusal, now: Timestamp) -> Vec<Change> {
        if refusal.reason == RefusalReason::Busy {
            return Vec::new();
        }
        let fact = RefusalFact {
            refused_at: now,
            reason: refusal.reason,
            message: refusal.message.clone(),
        };
        let facts = &mut self.state.facts;
        match write {
            SentWrite::Create(draft) => {
                facts.set_refusal(draft.key.clone(), fact);
                Vec::new()
            }
            SentWrite::Delete { at, .. } => {
                facts.set_refused_delete(at.key.clone(), at.uid.clone(), fact);
                vec![Change::Refused(at.key.clone())]
            }
            SentWrite::Patch { at, part, .. } if *part == Part::Main => {
                facts.set_refusal(at.key.clone(), fact);
                Vec::new()
            }
            SentWrite::Patch { .. } | SentWrite::Finish { .. } => Vec::new(),
        }
    }

    /// The incarnation that a write addressed is no more.
    fn gone(&mut self, id: EffectId, write: &SentWrite, now: Timestamp) -> Vec<Change> {
        let changes = match write {
            SentWrite::Create(_) => Vec::new(),
            SentWrite::Patch { at, .. }
            | SentWrite::Delete { at, .. }
            | SentWrite::Finish { at } => {
                self.state.facts.clear_refused_delete(&at.key);
                self.removed(&at.key, &at.uid)
            }
        };
        self.resolve(id, Resolved::Done, now);
        changes
    }

    /// Counts a failure, and has the target read before anything else is decided on it. After the read comes
    /// a pause: a write that ends like this each time would else be sent again as fast as reads come back.
    fn read_again(
        &mut self,
        id: EffectId,
        write: &SentWrite,
        pause: Pause,
        now: Timestamp,
    ) -> Vec<Change> {
        self.slots
            .iter_mut()
            .for_each(|slot| slot.pause(id, pause, now));
        self.read_instead(id, write, now)
    }

    /// Lets whoever waits for a write wait for a read of its target instead.
    fn read_instead(&mut self, id: EffectId, write: &SentWrite, now: Timestamp) -> Vec<Change> {
        let key = write.key().clone();
        match self.read(&key) {
            Some(read) => {
                self.prove_by(read, id, write);
                self.slots
                    .iter_mut()
                    .for_each(|slot| slot.transfer(id, read));
            }
            None => self.resolve(
                id,
                Resolved::Badly {
                    retry_after_seconds: None,
                },
                now,
            ),
        }
        Vec::new()
    }

    fn write_through(&mut self, object: Arc<Object>, now: Timestamp) -> Vec<Change> {
        let state = &mut self.state;
        if !state.streams.is_watched(&object.key().resource) {
            // Without a watch it would grow old in the cache; as a fact it has an age.
            return Vec::new();
        }
        let (cache, facts, step) = (&mut state.cache, &mut state.facts, state.step);
        put(
            object,
            &mut Sink {
                cache,
                facts,
                step,
                now,
            },
            false,
        )
    }

    /// A key was vacant when asked; an incarnation seen since then is another matter.
    fn vacant(&mut self, key: &ObjectKey, asked: sundown_model::Step) -> Vec<Change> {
        let seen_before = self
            .state
            .cache
            .seen_step(key)
            .is_some_and(|seen| seen < asked);
        let held = self
            .state
            .cache
            .get(key)
            .filter(|_| seen_before)
            .map(|held| held.uid().clone());
        held.map(|uid| self.removed(key, &uid)).unwrap_or_default()
    }

    fn removed(&mut self, key: &ObjectKey, uid: &Uid) -> Vec<Change> {
        self.state
            .cache
            .remove(key, uid)
            .map(Change::Deleted)
            .into_iter()
            .collect()
    }

    pub(crate) fn resolve(&mut self, id: EffectId, how: Resolved, now: Timestamp) {
        self.slots
            .iter_mut()
            .for_each(|slot| slot.resolve(id, how, now));
    }
}

/// Whether a write left its object as it was: a schema prunes what it says, or a webhook puts back what it takes. The
/// next decision is the same one, so that this counts as a failure: it would else be sent again at once, for
/// ever.
fn is_as_before(write: &SentWrite, object: &Object) -> bool {
    match write {
        SentWrite::Create(_) => false,
        SentWrite::Patch { at, .. } | SentWrite::Delete { at, .. } | SentWrite::Finish { at } => {
            at.is(object)
        }
    }
}
