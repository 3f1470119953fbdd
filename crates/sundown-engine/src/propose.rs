//! From a decision to effects: what has to be known is asked, what is allowed leaves, and what was done
//! is told.

use std::sync::Arc;

use jiff::Timestamp;
use sundown_model::{Action, Need, Note, Object, ObjectKey, Question, Why, Write};

use crate::effect::{Effect, EffectId};
use crate::engine::{Birth, Engine, Flight};
use crate::exit::{self, Pass};
use crate::explain::action_in_words;
use crate::sent::SentWrite;
use crate::slot::Proposal;

/// How many notes are remembered as told; beyond it all are forgotten, and told once more at most.
const TOLD_MAX: usize = 10_000;

impl Engine {
    /// Sends what a decision asks for; needs first, actions only when nothing has to be known.
    pub(crate) fn propose(&mut self, index: usize, proposal: Proposal, now: Timestamp) {
        self.tally.decided(self.slots[index].name(), proposal.code);
        let mut parked = false;
        if proposal.needs.is_empty() {
            // What was done is told after it left.
            let (notes, deeds): (Vec<_>, Vec<_>) = proposal
                .actions
                .into_iter()
                .partition(|action| matches!(action, Action::Tell(_)));
            for action in deeds.into_iter().chain(notes) {
                let Some(why) = &proposal.why else { break };
                parked |= self.act(index, action, why, now);
            }
        } else {
            for need in proposal.needs {
                if let Some(id) = self.ask(need) {
                    self.slots[index].wait(id);
                }
            }
        }
        self.slots[index].settle(proposal.wake_at, parked);
    }

    fn ask(&mut self, need: Need) -> Option<EffectId> {
        match need {
            Need::Live(key) => self.read(&key),
            Need::Barrier(mut resources) => {
                // What is not served has no objects to be missed; nobody would ever end the wait.
                resources.retain(|resource| self.state.cache.catalog().get(resource).is_some());
                if resources.is_empty() {
                    return None;
                }
                let id = self.new_id();
                self.state.barriers.want(id, resources, self.state.step);
                Some(id)
            }
            Need::Ray(query) => Some(self.question(&Question::Ray(query))),
            Need::Node(query) => Some(self.question(&Question::Node(query))),
        }
    }

    /// Reads a key, or joins a read that is under way. None: it cannot be reached any more.
    pub(crate) fn read(&mut self, key: &ObjectKey) -> Option<EffectId> {
        let under_way =
            self.state.flights.iter().find(
                |(_, flight)| matches!(flight, Flight::Get { key: other, .. } if other == key),
            );
        if let Some((id, _)) = under_way {
            return Some(*id);
        }
        let ty = self.state.cache.catalog().get(&key.resource)?.clone();
        let id = self.new_id();
        let form = self.state.streams.form(&key.resource);
        self.state.flights.insert(
            id,
            Flight::Get {
                key: key.clone(),
                asked: None,
                births: Vec::new(),
            },
        );
        self.state.outbox.push_back(Effect::Get {
            id,
            ty,
            form,
            key: key.clone(),
        });
        Some(id)
    }

    /// Sends one action through the exit; true when it is held back.
    fn act(&mut self, index: usize, action: Action, why: &Arc<Why>, now: Timestamp) -> bool {
        let brake = &self.state.brake;
        match action {
            Action::Tell(note) if brake.holds(&note.about) => true,
            Action::Tell(note) => {
                self.tell(index, &note, now);
                false
            }
            Action::Do(deed) => match exit::check_deed(&deed, self.slots[index].ports(), brake) {
                Pass::Free => {
                    self.carry_out(index, deed, Arc::clone(why));
                    false
                }
                Pass::Braked => true,
                Pass::NotGranted => {
                    let what = Action::Do(deed);
                    self.note_ungranted(index, &what);
                    true
                }
            },
            Action::Api(write) => match exit::check(&write, self.slots[index].grants(), brake) {
                Pass::Free => {
                    let sent = self.send(index, write, Arc::clone(why));
                    sent.map(|id| self.slots[index].wait(id)).is_none()
                }
                Pass::Braked => true,
                Pass::NotGranted => {
                    let what = Action::Api(write);
                    self.note_ungranted(index, &what);
                    true
                }
            },
        }
    }

    /// Notes that a controller wanted what no grant covers: a defect of ours.
    fn note_ungranted(&mut self, index: usize, what: &Action) {
        self.state.not_granted += 1;
        let (by, words) = (self.slots[index].name(), action_in_words(what));
        self.tally.ungranted(by, words);
    }

    fn send(&mut self, index: usize, write: Write, why: Arc<Why>) -> Option<EffectId> {
        let (key, _) = exit::target(&write);
        let ty = self.state.cache.catalog().get(&key.resource)?.clone();
        let form = self.state.streams.form(&key.resource);
        let id = self.new_id();
        let by = self.slots[index].name().to_owned();
        self.state
            .flights
            .insert(id, Flight::Write((&write).into()));
        self.state.outbox.push_back(Effect::Write {
            id,
            ty,
            form,
            by,
            why,
            write,
        });
        Some(id)
    }

    /// Tells what was to be told once a write was done, in the name of whoever asked for it.
    ///
    /// Assumes: those who wait for the write do so still.
    pub(crate) fn tell_of(&mut self, id: EffectId, write: &SentWrite, now: Timestamp) {
        let SentWrite::Create(draft) = write else {
            return;
        };
        let asked = self.slots.iter().position(|slot| slot.waits_for(id));
        if let (Some(note), Some(index)) = (&draft.told, asked) {
            self.tell_late(index, note, now);
        }
    }

    /// Lets a read say whether a write was done whose answer did not.
    ///
    /// Assumes: those who wait for the write do so still.
    pub(crate) fn prove_by(&mut self, read: EffectId, id: EffectId, write: &SentWrite) {
        let asked = self.slots.iter().find(|slot| slot.waits_for(id));
        let birth = asked.and_then(|slot| exit::birth(slot.name(), write));
        if let Some(Flight::Get { births, .. }) = self.state.flights.get_mut(&read) {
            births.extend(birth);
        }
    }

    /// Tells of births that a read has proven. An Event is named by what it says, so that one that was
    /// told after all stays the only one.
    pub(crate) fn tell_of_births(&mut self, births: Vec<Birth>, found: &Object, now: Timestamp) {
        for birth in births {
            let asked = self.slots.iter().position(|slot| slot.name() == birth.by);
            let mut owners = found.owners().iter();
            let is_ours = owners.any(|it| it.controller == Some(true) && it.uid == birth.owner);
            if let Some(index) = asked.filter(|_| is_ours) {
                self.tell_late(index, &birth.told, now);
            }
        }
    }

    /// Tells what was decided before: whoever lost the lead or is held by now says nothing.
    fn tell_late(&mut self, index: usize, note: &Note, now: Timestamp) {
        if self.state.leading && !self.state.brake.holds(&note.about) {
            self.tell(index, note, now);
        }
    }

    /// Writes an Event. Nobody waits for it: a key is decided on again whether it was told or not.
    fn tell(&mut self, index: usize, note: &Note, now: Timestamp) {
        let Some(ty) = self
            .state
            .cache
            .catalog()
            .get(&note.about.resource)
            .cloned()
        else {
            return;
        };
        if self.state.told.len() >= TOLD_MAX {
            self.state.told.clear();
        }
        if self.state.told.insert(exit::mark(note)) {
            let by = self.slots[index].told_by();
            let draft = exit::event_of(note, by, &ty.api_version(), &ty.kind, now);
            let why = Why {
                code: note.reason.to_string().into(),
                sentence: "an Event".to_owned(),
            };
            self.send(index, Write::Create(Arc::new(draft)), Arc::new(why));
        }
    }
}
