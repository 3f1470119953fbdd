//! Trouble that stays: from one step of a story to another, writes of the operator end alike. It must not ask faster
//! and faster meanwhile (H1), must do what it can (N2), and must go on by itself soon afterwards (H3).

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use sundown_decide::kinds::{CRD, SERVICE};
use sundown_engine::{Effect, wire};
use sundown_model::{ObjectKey, Part, Resource, Write};

use crate::checks::{self, Violation};
use crate::ledger::{Ledger, Version};
use crate::perform::written;
use crate::world::World;

/// How many reads and writes of one object are fine in ten minutes: a few controllers that each try about twenty
/// times, and that begin anew once.
const REQUESTS_MAX: u32 = 200;

/// How much longer than the trouble the pause after it may be. Pauses double, so that the last one is about as long
/// as all before it.
const RECOVERY_MAX: SignedDuration = SignedDuration::from_secs(2);

/// What may not be deleted is called so.
pub(crate) const KEPT: &str = "kept";

/// How writes end.
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
    /// Changes are accepted and answered with the object as it was.
    Ignored,
    /// What is called `kept` may not be deleted; all else is as usual.
    Kept,
}

/// Trouble that goes on, and what was asked since it began.
#[derive(Debug, Clone)]
pub(crate) struct Ongoing {
    trouble: Trouble,
    since: Timestamp,
    requests: BTreeMap<ObjectKey, u32>,
    failed: BTreeSet<ObjectKey>,
}

/// What was not written in a trouble that is over, and until when it has to be tried again.
#[derive(Debug, Clone)]
pub(crate) struct Recovery {
    until: Timestamp,
    failed: BTreeSet<ObjectKey>,
}

impl Trouble {
    /// What a write of a controller is answered with; None: it is carried out.
    fn reply(self, by: &str, write: &Write, live: Option<&Version>) -> Option<wire::Reply> {
        let (code, reason) = match self {
            Self::Lost => return Some(wire::Reply::Lost("timeout".to_owned())),
            Self::Full => (507, "InsufficientStorage"),
            Self::Forbidden => (403, "Forbidden"),
            Self::Conflict => (409, "Conflict"),
            Self::NoServices if is_service_of_job(by, write) => (500, "InternalError"),
            Self::Ignored => return live.filter(|_| is_change(write)).map(unchanged),
            Self::Kept if is_deletion_of_kept(write) => (403, "Forbidden"),
            Self::NoServices | Self::Kept => return None,
        };
        let body = json!({ "kind": "Status", "reason": reason, "message": "trouble" });
        let body = body.to_string().into_bytes();
        Some(wire::Reply::Answered { code, body })
    }
}

fn is_change(write: &Write) -> bool {
    matches!(write, Write::Patch { part, .. } if *part != Part::Binding)
}

fn is_service_of_job(by: &str, write: &Write) -> bool {
    by == "ray_job" && written(write).resource.is(&SERVICE)
}

fn is_deletion_of_kept(write: &Write) -> bool {
    matches!(write, Write::Delete { at, .. } if &*at.key().name == KEPT)
}

fn unchanged(live: &Version) -> wire::Reply {
    let body = live.json.to_string().into_bytes();
    wire::Reply::Answered { code: 200, body }
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
            failed: BTreeSet::new(),
        });
        let Some(ended) = ended else { return };
        let late = checks::late(&self.ledger, self.node.as_ref(), self.now);
        self.violations.extend(late);
        let lasted = self.now.duration_since(ended.since);
        let hot = ended
            .requests
            .iter()
            .filter(|(_, count)| **count > REQUESTS_MAX);
        for (key, count) in hot {
            let text = format!(
                "{count} requests for {key} in {lasted:#} of {:?}",
                ended.trouble
            );
            self.violations.push(Violation::new("H1", text));
        }
        if ended.trouble == Trouble::Kept {
            self.violations.extend(held_up(&self.ledger));
        }
        let until = self.now.saturating_add(lasted.saturating_add(RECOVERY_MAX));
        self.recovery = Some(Recovery {
            until: until.unwrap_or(Timestamp::MAX),
            failed: ended.failed,
        });
    }

    /// What becomes of a request while there is trouble.
    pub(crate) fn troubled(&mut self, effect: &Effect) -> Option<wire::Reply> {
        self.judge_recovery(effect);
        let ongoing = self.trouble.as_mut()?;
        let (key, reply) = match effect {
            Effect::Write { by, write, .. } => {
                let key = written(write);
                let live = self.ledger.live.get(key);
                let reply = ongoing.trouble.reply(by, write, live.map(|it| &**it));
                (key, reply)
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
        if reply.is_some() {
            ongoing.failed.insert(key.clone());
        }
        reply
    }

    /// H3: what failed in a short trouble is tried again soon after it.
    fn judge_recovery(&mut self, effect: &Effect) {
        let (Some(recovery), Effect::Write { write, .. }) = (&mut self.recovery, effect) else {
            return;
        };
        let key = written(write);
        if recovery.failed.remove(key) && self.now > recovery.until {
            let text = format!("{key} is written again at {}", self.now);
            self.violations.push(Violation::new("H3", text));
        }
    }
}

/// N2: what goes with a namespace or a definition, and is still untouched.
fn held_up(ledger: &Ledger) -> Vec<Violation> {
    let is_going = |key: &ObjectKey| {
        let around = ledger.live.get(key);
        around.is_some_and(|it| it.deleted_at().is_some())
    };
    let namespaces = Resource::new("", "namespaces");
    let goes_along = |key: &ObjectKey| {
        let namespace = key.namespace.as_ref();
        let namespace = namespace.map(|it| ObjectKey::cluster(&namespaces, it.as_str()));
        let kind = format!("{}.{}", key.resource.plural(), key.resource.group());
        let definition = ObjectKey::cluster(&CRD.resource(), kind.as_str());
        namespace.is_some_and(|it| is_going(&it)) || is_going(&definition)
    };
    let live = ledger.live.iter();
    live.filter(|(key, it)| &*key.name != KEPT && it.deleted_at().is_none() && goes_along(key))
        .map(|(key, _)| Violation::new("N2", format!("{key} was not deleted")))
        .collect()
}
