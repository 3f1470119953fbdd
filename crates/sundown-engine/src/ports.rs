//! Questions and deeds beyond the API server: asked once for all who want to know, and remembered as
//! facts. What nobody answered, and what was refused, is a fact as well.

use std::sync::Arc;

use jiff::Timestamp;
use sundown_model::{Deed, DeedFact, DeedOutcome, Port, Question, Reply, ReplyFact, Why};

use crate::effect::{Effect, EffectId};
use crate::engine::{Engine, Flight};
use crate::queue::Resolved;

impl Engine {
    /// Asks, or joins those who have asked already.
    pub(crate) fn question(&mut self, question: &Question) -> EffectId {
        let is_same = |flight: &Flight| matches!(flight, Flight::Ask { question: other, .. } if other == question);
        let mut flights = self.state.flights.iter();
        if let Some((id, _)) = flights.find(|(_, flight)| is_same(flight)) {
            return *id;
        }
        let id = self.new_id();
        let asked = None;
        let flight = Flight::Ask {
            question: question.clone(),
            asked,
        };
        self.state.flights.insert(id, flight);
        self.state.asks.wait(question.port(), id);
        self.ask_next(question.port());
        id
    }

    /// Lets the questions of a port leave that have waited longest, as far as there is room.
    fn ask_next(&mut self, port: Port) {
        let max = self.config.asks_max;
        while let Some(id) = self.state.asks.next(port, max) {
            match self.state.flights.get(&id) {
                Some(Flight::Ask { question, .. }) => {
                    let question = question.clone();
                    self.state.outbox.push_back(Effect::Ask { id, question });
                }
                _ => self.state.asks.end(port),
            }
        }
    }

    /// Sends a deed that has passed the exit.
    pub(crate) fn carry_out(&mut self, index: usize, deed: Deed, why: Arc<Why>) {
        let id = self.new_id();
        let by = self.slots[index].name().to_owned();
        let (what, asked) = (deed.what.clone(), self.state.step);
        self.state.flights.insert(id, Flight::Do { what, asked });
        self.state
            .outbox
            .push_back(Effect::Do { id, by, why, deed });
        self.slots[index].wait(id);
    }

    /// Takes an answer; gives the question that it answers.
    pub(crate) fn answered(
        &mut self,
        id: EffectId,
        reply: Reply,
        now: Timestamp,
    ) -> Option<Question> {
        // Only what was asked can be answered; what waits for its turn goes on waiting.
        let Some(Flight::Ask {
            asked: Some(asked), ..
        }) = self.state.flights.get(&id)
        else {
            return None;
        };
        let asked = *asked;
        let Some(Flight::Ask { question, .. }) = self.state.flights.remove(&id) else {
            return None;
        };
        self.state.asks.end(question.port());
        let answered_at = now;
        let fact = ReplyFact {
            asked,
            answered_at,
            reply,
        };
        self.state.facts.set_reply(question.clone(), fact);
        self.resolve(id, Resolved::Known, now);
        self.ask_next(question.port());
        Some(question)
    }

    /// Takes the outcome of a deed. What was not done for certain is tried again after a while, if it
    /// is still wanted then.
    pub(crate) fn done(&mut self, id: EffectId, outcome: DeedOutcome, now: Timestamp) {
        let Some(Flight::Do { what, asked }) = self.state.flights.remove(&id) else {
            return;
        };
        let how = match &outcome {
            DeedOutcome::Done => Resolved::Done,
            // A pause would keep the key from seeing that what is missing came.
            DeedOutcome::Refused(refusal) if refusal.missing.is_some() => Resolved::Known,
            DeedOutcome::Refused(_) | DeedOutcome::Unknown { .. }
                if what.is_paced_by_decision() =>
            {
                Resolved::Known
            }
            DeedOutcome::Refused(_) | DeedOutcome::Unknown { .. } => Resolved::Badly {
                retry_after_seconds: None,
            },
        };
        let ended_at = now;
        let fact = DeedFact {
            asked,
            ended_at,
            outcome,
            failures: 0,
        };
        self.state.facts.set_deed(&what, fact);
        self.resolve(id, how, now);
    }
}
