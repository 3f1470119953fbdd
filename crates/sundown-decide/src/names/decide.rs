//! The slice of a service, and the table of all names.

use std::sync::Arc;

use serde_json::Value;
use sundown_model::{Action, Cache, Decision, Deed, Facts, Object, ObjectKey, Part, What, node};

use super::reason::Reason;
use super::view::{PodView, ServiceView};
use super::{slice, table};
use crate::actions::{create, patch};
use crate::json::same;
use crate::kinds::{NODE, POD};
use crate::pod::NODE_NAME;

/// Decides on the endpoints of a service.
pub(super) fn service(object: &Object, cache: &Cache) -> Decision<Reason> {
    let service = ServiceView::of(object);
    if object.is_deleting() {
        return Decision::idle(Reason::Gone);
    }
    if service.selector.is_none() || service.is_external {
        return Decision::idle(Reason::NoSelector);
    }
    let resource = POD.resource();
    let pods = cache.of(&resource).filter_map(|pod| PodView::of(pod));
    let pods: Vec<_> = pods.filter(|pod| service.selects(pod.object)).collect();
    let endpoints = pods.len();
    let content = slice::content(&service, &pods);
    let write = match cache.get(&slice::key(&service)) {
        None => create(slice::draft(&service, content)),
        Some(slice) => {
            let stands = |name: &str| {
                let is = slice.field(&format!("/{name}")).unwrap_or(&Value::Null);
                same(is, &content[name])
            };
            if stands("endpoints") && stands("ports") {
                return Decision::idle(Reason::Listed { endpoints });
            }
            patch(slice, Part::Main, content)
        }
    };
    Decision::act(write, Reason::Lists { endpoints })
}

/// Decides whether the node has to be told.
pub(super) fn names(cache: &Cache, facts: &Facts) -> Decision<Reason> {
    if !facts.knows_all_pods() {
        return Decision::idle(Reason::NodeAway);
    }
    let table = table::of(cache);
    let names = table.len();
    if facts.names().is_some_and(|told| **told == table) {
        return Decision::idle(Reason::Announced { names });
    }
    let what = What::Node(node::Call::Names(Arc::new(table)));
    let about = ObjectKey::cluster(&NODE.resource(), NODE_NAME);
    Decision::act(
        Action::Do(Deed { about, what }),
        Reason::Announces { names },
    )
}
