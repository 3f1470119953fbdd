//! N1: the order in which a namespace is emptied. N3: how often it says what keeps it.

use jiff::SignedDuration;
use sundown_decide::Namespaces;
use sundown_model::{Controller, Resource};

use super::Violation;
use crate::ledger::{Actor, Event, Ledger};

/// Judges one write.
pub(super) fn judge(event: &Event, before: &Ledger, found: &mut Vec<Violation>) {
    order(event, before, found);
    pace(event, before, found);
}

/// Two statuses of one life are a second apart: who starts anew does not know when the last one was.
fn pace(event: &Event, before: &Ledger, found: &mut Vec<Violation>) {
    let is_status = |it: &Event| {
        it.key == event.key && it.path.ends_with("/status") && it.is_by(Namespaces::NAME)
    };
    let is_of_namespace = event.key.resource == Resource::new("", "namespaces");
    if !is_of_namespace || !is_status(event) {
        return;
    }
    let mut earlier = before.events.iter().rev();
    let last = earlier.find(|it| is_status(it) && it.life == event.life);
    let is_soon = |at| event.at.duration_since(at) < SignedDuration::from_secs(1);
    if last.is_some_and(|last| is_soon(last.at)) {
        let text = format!("{} says something twice in a second", event.key);
        found.push(Violation::new("N3", text));
    }
}

/// While a pod is left, the namespace's own controller takes nothing else.
fn order(event: &Event, before: &Ledger, found: &mut Vec<Violation>) {
    let pods = Resource::new("", "pods");
    let is_its_own = event.by == Actor::Controller(Namespaces::NAME.to_owned());
    let Some(namespace) = event.key.namespace.as_ref().filter(|_| is_its_own) else {
        return;
    };
    let mut live = before.live.keys();
    let pod = live.find(|it| it.resource == pods && it.namespace.as_ref() == Some(namespace));
    if let Some(pod) = pod.filter(|_| event.key.resource != pods) {
        let text = format!("{} was deleted while {pod} was there", event.key);
        found.push(Violation::new("N1", text));
    }
}
