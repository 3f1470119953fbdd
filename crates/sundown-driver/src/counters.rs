//! How many requests left, by what they were for, and what was decided, by its reasons. Tests ask it whether the
//! engine is silent at rest; metrics show the same numbers.

use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde::Serialize;
use sundown_engine::{Backlog, Effect, Input, Tally};
use sundown_model::{Outcome, RefusalReason, Write};

/// Requests since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub discover: u64,
    pub list: u64,
    pub watch: u64,
    pub get: u64,
    pub barrier: u64,
    pub create: u64,
    pub patch: u64,
    pub delete: u64,
    /// Writes that the server refused because the object had changed.
    pub conflicts: u64,
    /// Writes that the server refused for another reason.
    pub refused: u64,
    /// Writes whose fate is not known.
    pub unknown: u64,
    /// Effects that panicked. Anything but 0 is a bug in Sundown.
    pub panicked: u64,
    /// Requests of any sort for which the server says that rights are missing.
    pub forbidden: u64,
}

impl Counts {
    /// All requests but the opening of watches, which end and begin again at rest.
    pub fn requests(&self) -> u64 {
        self.discover + self.list + self.get + self.barrier + self.writes()
    }

    /// Requests that change something.
    pub fn writes(&self) -> u64 {
        self.create + self.patch + self.delete
    }
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Discover,
    List,
    Watch,
    Get,
    Barrier,
    Create,
    Patch,
    Delete,
}

impl Purpose {
    /// What the request of an effect is for; None where an effect is no request.
    pub(crate) fn of(effect: &Effect) -> Option<Self> {
        match effect {
            Effect::Discover { .. } => Some(Self::Discover),
            Effect::List { .. } => Some(Self::List),
            Effect::Watch { .. } => Some(Self::Watch),
            Effect::Unwatch { .. } | Effect::Ask { .. } | Effect::Do { .. } => None,
            Effect::Get { .. } => Some(Self::Get),
            Effect::Barrier { .. } => Some(Self::Barrier),
            Effect::Write { write, .. } => Some(match write {
                Write::Create(_) => Self::Create,
                Write::Patch { .. } => Self::Patch,
                Write::Delete { .. } | Write::Finish { .. } => Self::Delete,
            }),
        }
    }
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::Discover => "discover",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Get => "get",
            Self::Barrier => "barrier",
            Self::Create => "create",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    counts: Mutex<Counts>,
    decisions: Family<Decided, Counter>,
    requests: Family<For, Counter>,
    refused: Family<Because, Counter>,
    panicked: Counter,
    ready: Family<Of, Gauge>,
    retries: Family<Of, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Decided {
    controller: &'static str,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct For {
    purpose: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Because {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    controller: &'static str,
}

impl Counters {
    pub(crate) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("sundown");
        registry.register(
            "decisions",
            "Decisions of controllers, by the reason that they gave",
            self.decisions.clone(),
        );
        registry.register(
            "requests",
            "Requests of the controllers to the API server, by what they were for",
            self.requests.clone(),
        );
        registry.register(
            "writes_refused",
            "Writes of the controllers that were refused, lacked a grant, or whose fate is not known",
            self.refused.clone(),
        );
        registry.register(
            "effects_panicked",
            "Effects that panicked; anything but 0 is a bug in Sundown",
            self.panicked.clone(),
        );
        registry.register(
            "queue_length",
            "Keys that are ready to be decided on and have to wait",
            self.ready.clone(),
        );
        registry.register(
            "retries",
            "Waits of a key because an effect of its decision failed",
            self.retries.clone(),
        );
    }

    /// What the engine counted in a turn, and what is left to do after it.
    pub(crate) fn turned(&self, tally: &Tally, backlogs: impl Iterator<Item = Backlog>) {
        for ((controller, reason), count) in &tally.decisions {
            let decided = Decided { controller, reason };
            self.decisions.get_or_create(&decided).inc_by(*count);
        }
        for _ in &tally.ungranted {
            let reason = "NotGranted";
            self.refused.get_or_create(&Because { reason }).inc();
        }
        for Backlog {
            controller,
            ready,
            failures,
        } in backlogs
        {
            let of = Of { controller };
            let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
            self.ready.get_or_create(&of).set(number(ready));
            let retries = self.retries.get_or_create(&of);
            retries.inc_by(failures.saturating_sub(retries.get()));
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn sent(&self, purpose: Purpose) {
        let name = purpose.name();
        self.requests.get_or_create(&For { purpose: name }).inc();
        self.add(|counts| match purpose {
            Purpose::Discover => &mut counts.discover,
            Purpose::List => &mut counts.list,
            Purpose::Watch => &mut counts.watch,
            Purpose::Get => &mut counts.get,
            Purpose::Barrier => &mut counts.barrier,
            Purpose::Create => &mut counts.create,
            Purpose::Patch => &mut counts.patch,
            Purpose::Delete => &mut counts.delete,
        });
    }

    pub(crate) fn forbidden(&self) {
        self.add(|counts| &mut counts.forbidden);
    }

    pub(crate) fn answered(&self, input: &Input) {
        let Input::Wrote { outcome, .. } = input else {
            return;
        };
        let reason = match outcome {
            Outcome::Done(_) => return,
            Outcome::Unknown => "Unknown",
            Outcome::Refused(refusal) => match refusal.reason {
                RefusalReason::NotFound => "NotFound",
                RefusalReason::Conflict => "Conflict",
                RefusalReason::AlreadyExists => "AlreadyExists",
                RefusalReason::Forbidden => "Forbidden",
                RefusalReason::Invalid => "Invalid",
                RefusalReason::Busy => "Busy",
            },
        };
        self.refused.get_or_create(&Because { reason }).inc();
        match outcome {
            Outcome::Refused(refusal) if refusal.reason == RefusalReason::Conflict => {
                self.add(|counts| &mut counts.conflicts);
            }
            Outcome::Unknown => self.add(|counts| &mut counts.unknown),
            Outcome::Refused(_) => self.add(|counts| &mut counts.refused),
            Outcome::Done(_) => {}
        }
    }

    pub(crate) fn panicked(&self) {
        self.panicked.inc();
        self.add(|counts| &mut counts.panicked);
    }

    fn add(&self, number: impl FnOnce(&mut Counts) -> &mut u64) {
        // Counting cannot panic, so a poisoned lock still holds whole numbers.
        *number(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner)) += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_shown_by_controller_and_reason() {
        let counters = Counters::default();
        let mut registry = Registry::default();
        counters.register(&mut registry);
        let mut tally = Tally::default();
        tally.decisions.insert(("ttl", "Expired"), 2);
        tally.ungranted.push(("ttl", "delete a".to_owned()));
        let backlog = Backlog {
            controller: "ttl",
            ready: 3,
            failures: 1,
        };
        counters.turned(&tally, [backlog].into_iter());
        counters.sent(Purpose::Delete);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("it is a String");
        for line in [
            "sundown_decisions_total{controller=\"ttl\",reason=\"Expired\"} 2",
            "sundown_requests_total{purpose=\"delete\"} 1",
            "sundown_writes_refused_total{reason=\"NotGranted\"} 1",
            "sundown_queue_length{controller=\"ttl\"} 3",
            "sundown_retries_total{controller=\"ttl\"} 1",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in {text}");
        }
    }
}
