//! The judges. Each invariant has a name of `specs/reliability.md`; a violation says it and why.

mod collector;
mod namespace;
mod node;
mod ray;
mod rest;
mod store;
mod ttl;
mod watch;

use serde::Serialize;

pub(crate) use node::{at_rest as node_at_rest, on_call, on_event as on_node_event};
pub(crate) use ray::{at_rest as ray_at_rest, neighbours, on_event as on_ray_event, on_execution};
pub(crate) use rest::{at_rest, end_state};
pub(crate) use watch::WatchCheck;

use crate::ledger::{Event, Ledger};

/// An invariant that did not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    pub invariant: &'static str,
    pub text: String,
}

impl Violation {
    pub(crate) fn new(invariant: &'static str, text: impl Into<String>) -> Self {
        Self {
            invariant,
            text: text.into(),
        }
    }
}

/// Every invariant that is judged, with what it says.
#[expect(clippy::too_many_lines, reason = "a table")]
pub fn invariants() -> &'static [(&'static str, &'static str)] {
    &[
        (
            "S1",
            "revisions increase by one for each write; a no-op writes nothing",
        ),
        ("S2", "a stale revision has no effect"),
        ("S3", "a uid is unique and never changes"),
        ("S4", "a read shows the last write"),
        ("S5", "a watch shows every event once, in order"),
        ("S6", "a list and the watch after it miss nothing"),
        (
            "S7",
            "what is no longer in the history is an error, never a gap",
        ),
        ("S8", "an acknowledged finalizer is never lost"),
        (
            "S9",
            "a deletion is never taken back or put off, and gets no new finalizers",
        ),
        (
            "S10",
            "a terminating object without finalizers does not exist",
        ),
        (
            "S12",
            "status and spec are written apart; generation follows spec",
        ),
        (
            "S13",
            "a terminating namespace takes nothing in and goes only when empty",
        ),
        (
            "N1",
            "a namespace gives up its pods first, and all else when none is left",
        ),
        (
            "N2",
            "what may not be deleted holds up nothing else in its namespace or of its kind",
        ),
        (
            "N3",
            "the status of a namespace is written once a second at most",
        ),
        ("G1", "nothing is collected that an owner holds"),
        ("G2", "no other incarnation is touched"),
        ("G3", "what was orphaned stays, without the reference"),
        ("G4", "a foreground owner goes after those that block it"),
        ("G5", "garbage goes"),
        ("G6", "one owner protects; dead references go"),
        ("G12", "the graph equals one made anew"),
        ("E1", "an Event is gone an hour after it last happened"),
        ("T1", "no job goes before its time"),
        ("T2", "a TTL that is raised or removed in time wins"),
        ("T3", "an overdue job goes"),
        ("T4", "a finished job is not changed"),
        ("T5", "a finish in the future defers, and no more"),
        ("T7", "a job that is not finished any more stays"),
        ("T8", "a successor of the same name is untouched"),
        (
            "P1",
            "nothing of a pod that is gone is on the node, of a finished one only its records",
        ),
        ("P3", "no run is started twice, whoever dies when"),
        ("P4", "an exit code is recorded once, and true"),
        ("P5", "nobody is killed before their grace is over"),
        ("B1", "every success of a job's pods is counted once"),
        ("B2", "no job has more active pods than it wants"),
        ("J1", "a RayJob has one cluster at a time"),
        ("J2", "an attempt runs at most once, whoever dies when"),
        ("J3", "attempts do not overlap"),
        (
            "J4",
            "a RayJob goes only where it may, and tries as often as it may",
        ),
        ("J5", "what a status says fits together"),
        ("J6", "what was to go after a job is gone"),
        ("J7", "nothing goes that was to stay"),
        ("J8", "nothing goes before its time"),
        ("J9", "an attempt that is over runs no more"),
        ("J10", "a job that rests has nothing that runs"),
        (
            "J11",
            "a job is let go when it is stopped, or could not be in time",
        ),
        (
            "J12",
            "a dashboard that does not answer delays only its own job",
        ),
        (
            "J13",
            "a spec that makes no sense keeps nothing that was to go, and can be mended",
        ),
        ("J14", "every job comes to an end"),
        ("J15", "the end of a job is told as it was"),
        ("R8", "no cluster has more pods than it wants"),
        (
            "U1",
            "after a write of unknown fate its target is read first",
        ),
        ("H1", "who fails each time asks more and more seldom"),
        ("H2", "nothing is followed under two names"),
        ("H3", "a short trouble is over soon after it"),
        ("Q1", "the operator comes to rest"),
        ("Q2", "at rest nothing is asked and nothing is written"),
        ("Q3", "after faults the end is the same as without"),
        ("X1", "nothing leaves without a grant"),
        ("D1", "the same run twice is the same run"),
    ]
}

/// Judges one write before it is taken into the ledger.
pub(crate) fn on_event(event: &Event, before: &Ledger) -> Vec<Violation> {
    let mut found = Vec::new();
    store::judge(event, before, &mut found);
    collector::judge(event, before, &mut found);
    namespace::judge(event, before, &mut found);
    ttl::judge(event, &mut found);
    found
}
