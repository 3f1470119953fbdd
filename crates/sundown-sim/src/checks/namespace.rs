//! N1: the order in which a namespace is emptied.

use sundown_decide::Namespaces;
use sundown_model::{Controller, Resource};

use super::Violation;
use crate::ledger::{Actor, Event, Ledger};

/// Judges one write: while a pod is left, the namespace's own controller takes nothing else.
pub(super) fn judge(event: &Event, before: &Ledger, found: &mut Vec<Violation>) {
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
