//! Many pods at once. No story: a fault at each of their effects would be tried.

use serde_json::{Value, json};
use sundown_api::Method;

use super::{node, spec, welcoming};
use crate::op::Op;
use crate::scenario::Scenario;
use crate::world::World;

/// How many are made at once: more than one round of the scheduler binds.
const PODS: usize = 100;

fn roomy() -> Op {
    let body =
        json!({ "status": { "allocatable": { "cpu": "2", "memory": "4Gi", "pods": "110" } } });
    let path = "/api/v1/nodes/sundown/status".to_owned();
    Op::new(Method::Patch, path, Some(&body), "size the node".to_owned())
}

fn pod(index: usize) -> Op {
    let body = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": format!("p-{index}") },
        "spec": spec("Never", &["exit", "0", "1"]),
    });
    let path = "/api/v1/namespaces/default/pods".to_owned();
    Op::new(Method::Post, path, Some(&body), format!("create {index}"))
}

/// The scheduler binds all pods under one key. Each of its rounds once counted as a failure, after which the
/// next one had to wait twice as long.
#[test]
fn pods_that_are_made_at_once_are_bound_in_the_same_instant() {
    let crowd = Scenario::new("crowd")
        .with_node()
        .does(node())
        .does(roomy())
        .does(welcoming());
    let crowd = (0..PODS).fold(crowd, |crowd, index| crowd.does(pod(index)));
    let mut world = World::new(&crowd.start().settle(), None);
    world.run(&mut |_, _| {});
    assert_eq!(world.violations, []);
    let bound = |json: &Value| json.pointer("/spec/nodeName").is_some();
    let events = world.ledger.events.iter();
    let bindings = events.filter(|event| {
        let is_bound = event.new.as_ref().is_some_and(|new| bound(&new.json));
        is_bound && event.prev.as_ref().is_some_and(|prev| !bound(&prev.json))
    });
    let bound_at: Vec<_> = bindings.map(|event| event.at).collect();
    assert_eq!(bound_at, vec![World::birth(); PODS]);
}
