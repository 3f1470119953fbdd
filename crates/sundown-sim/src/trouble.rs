//! Trouble that stays: from one step of a story to another, every write of the operator ends alike. It must not ask
//! faster and faster meanwhile (H1), and must go on by itself afterwards.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;
use sundown_engine::{Effect, wire};
use sundown_model::ObjectKey;

use crate::checks::{self, Violation};
use crate::perform::written;
use crate::world::World;

/// How many reads and writes of one object are fine in ten minutes: a few controllers that each try about twenty
/// times, and that begin anew once.
const REQUESTS_MAX: u32 = 200;

/// How every write ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The disk of the server is full.
    Full,
    /// The answer is lost, and nothing was done.
    Lost,
    /// The operator may not write.
    Forbidden,
    /// The revision is always another one.
    Conflict,
    /// What checks the services of jobs is broken; all else is well.
    NoServices,
}

/// Trouble that goes on, and what was asked since it began.
#[derive(Debug, Clone)]
pub(crate) struct Ongoing {
    trouble: Trouble,
    since: Timestamp,
    requests: BTreeMap<ObjectKey, u32>,
}

impl Trouble {
    /// Whether a write of a controller ends so.
    fn meets(self, by: &str, key: &ObjectKey) -> bool {
        match self {
            Self::Full | Self::Lost | Self::Forbidden | Self::Conflict => true,
            Self::NoServices => by == "ray_job" && key.resource.plural() == "services",
        }
    }

    fn reply(self) -> wire::Reply {
        let (code, reason) = match self {
            Self::Lost => return wire::Reply::Lost("timeout".to_owned()),
            Self::Full => (507, "InsufficientStorage"),
            Self::Forbidden => (403, "Forbidden"),
            Self::Conflict => (409, "Conflict"),
            Self::NoServices => (500, "InternalError"),
        };
        let body = json!({ "kind": "Status", "reason": reason, "message": "trouble" });
        let body = body.to_string().into_bytes();
        wire::Reply::Answered { code, body }
    }
}

impl World {
    /// Begins or ends it.
    pub(crate) fn trouble(&mut self, trouble: Option<Trouble>) {
        self.note(&format!("trouble: {trouble:?}"));
        let ended = self.trouble.take();
        self.trouble = trouble.map(|trouble| Ongoing {
            trouble,
            since: self.now,
            requests: BTreeMap::new(),
        });
        let Some(ended) = ended else { return };
        let late = checks::late(&self.ledger, self.node.as_ref(), self.now);
        self.violations.extend(late);
        let hot = ended
            .requests
            .iter()
            .filter(|(_, count)| **count > REQUESTS_MAX);
        for (key, count) in hot {
            let lasted = self.now.duration_since(ended.since);
            let text = format!(
                "{count} requests for {key} in {lasted:#} of {:?}",
                ended.trouble
            );
            self.violations.push(Violation::new("H1", text));
        }
    }

    /// What becomes of a request while there is trouble.
    pub(crate) fn troubled(&mut self, effect: &Effect) -> Option<wire::Reply> {
        let ongoing = self.trouble.as_mut()?;
        let (key, reply) = match effect {
            Effect::Write { by, write, .. } => {
                let key = written(write);
                let is_met = ongoing.trouble.meets(by, key);
                (key, is_met.then(|| ongoing.trouble.reply()))
            }
            Effect::Get { key, .. } => (key, None),
            Effect::Discover { .. }
            | Effect::List { .. }
            | Effect::Watch { .. }
            | Effect::Unwatch { .. }
            | Effect::Barrier { .. }
            | Effect::Ask { .. }
            | Effect::Do { .. } => return None,
        };
        *ongoing.requests.entry(key.clone()).or_default() += 1;
        reply
    }
}
