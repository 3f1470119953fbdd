//! Answers that take their time. Dashboards that take a question and never answer it: whoever asked hears so
//! after a while; what they do in between is their business, and J12 judges it. And what is served, told a
//! moment late: whoever decides meanwhile decides without the newest kinds.

use jiff::{SignedDuration, Timestamp};
use sundown_engine::{EffectId, Input};
use sundown_model::{Question, ray};

use crate::mutation::Mutation;
use crate::node::nobody_answers;
use crate::world::World;

/// The dashboards of a job that is called so never answer.
pub(crate) const MUTE: &str = "mute";

/// How long who asks waits.
const HANG: SignedDuration = SignedDuration::from_secs(10);

/// How long it takes to hear what is served.
const DISCOVERY: SignedDuration = SignedDuration::from_secs(1);

impl World {
    /// Holds an answer about what is served back for a moment; the first one, without which nothing begins,
    /// comes at once.
    pub(crate) fn delayed(&mut self, answer: Input) -> Option<Input> {
        let engine = self.operator.as_ref().map(|it| &it.engine);
        if engine.is_none_or(|engine| engine.cache().catalog().iter().next().is_none()) {
            return Some(answer);
        }
        let at = self.now.saturating_add(DISCOVERY).unwrap_or(Timestamp::MAX);
        self.late.push_back((at, answer));
        None
    }

    /// Takes a question to which there is no answer, if it is one.
    pub(crate) fn hangs(&mut self, id: EffectId, question: &Question) -> bool {
        if !is_mute(question) {
            return false;
        }
        let reply = nobody_answers(question);
        let answer = Input::Answered { id, reply };
        let at = self.now.saturating_add(HANG).unwrap_or(Timestamp::MAX);
        if self.mutation == Some(Mutation::DashboardBlocks) {
            // As if there were nobody else to work for.
            self.now = at;
        }
        self.late.push_back((at, answer));
        true
    }

    /// When the next late answer comes.
    pub(crate) fn late_at(&self) -> Option<Timestamp> {
        self.late.front().map(|(at, _)| *at)
    }

    /// Brings a late answer whose time has come; false when there was none.
    pub(crate) fn hear_late(&mut self) -> bool {
        if self.late_at().is_none_or(|at| at > self.now) {
            return false;
        }
        if let Some((_, answer)) = self.late.pop_front() {
            self.take(answer);
        }
        true
    }
}

fn is_mute(question: &Question) -> bool {
    let at = match question {
        Question::Ray(ray::Query::Session { at } | ray::Query::Job { at, .. }) => at,
        Question::Node(_) => return false,
    };
    let after = at.0.strip_prefix(MUTE);
    after.is_some_and(|after| after.starts_with('-'))
}
