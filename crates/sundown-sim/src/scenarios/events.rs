//! Stories about Events, which go by themselves.

use serde_json::json;

use super::namespace;
use crate::op::{It, Op, it};
use crate::scenario::Scenario;

const OLD: It = it("Event", "old");
const NEW: It = it("Event", "new");

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        // An hour after it was made an Event goes; one that is younger stays.
        Scenario::new("event-expires")
            .with_events()
            .start()
            .does(said(OLD))
            .settle()
            .advance(3_000)
            .does(said(NEW))
            .settle()
            .advance(600)
            .settle(),
        // Events are served under two names, and go with their namespace once.
        Scenario::new("events-of-a-namespace")
            .with_events()
            .start()
            .does(namespace::create())
            .does(said(OLD.within("team")))
            .does(said(NEW))
            .settle()
            .does(namespace::delete())
            .settle(),
    ]
}

fn said(it: It) -> Op {
    let about = json!({ "kind": "Pod", "name": "p", "namespace": it.namespace });
    let body =
        json!({ "involvedObject": about, "reason": "Said", "message": "m", "type": "Normal" });
    Op::create(it, &body)
}
