//! Stories about pods that run, and jobs made of them.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};
use sundown_api::Method;

use crate::node::Mishap;
use crate::op::{It, Op, it};
use crate::scenario::Scenario;
use crate::trouble::Trouble;

const POD: It = it("Pod", "p");
const JOB: It = it("Job", "work");

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        story("pod-succeeds")
            .does(pod("Never", &["exit", "0", "5"]))
            .settle(),
        story("pod-restarts")
            .does(pod("OnFailure", &["fail-first", "3"]))
            .settle()
            .advance(60)
            .settle(),
        story("pod-deleted-deaf")
            .does(pod("Always", &["deaf"]))
            .settle()
            .does(delete(POD))
            .settle(),
        story("pod-deleted-by-force")
            .does(pod("Always", &["forever"]))
            .settle()
            .does(delete_now(POD))
            .settle(),
        story("node-dies")
            .does(pod("Always", &["forever"]))
            .settle()
            .node(Mishap::Dies)
            .settle()
            .does(delete(POD))
            .settle(),
        story("node-away-while-deleted")
            .does(pod("Never", &["forever"]))
            .settle()
            .node(Mishap::Away)
            .does(delete(POD))
            .settle()
            .node(Mishap::Back)
            .settle(),
        // Its uid makes the names of its pods, so it comes before anything can go wrong.
        Scenario::new("job-of-three")
            .with_node()
            .does(job(3, &["fail-first", "2"]))
            .start()
            .settle()
            .advance(30)
            .settle()
            .advance(30)
            .settle(),
        story("job-deleted")
            .does(job(1, &["forever"]))
            .settle()
            .delete(JOB, "Background")
            .settle(),
        story("scheduled")
            .does(node())
            .does(allocatable())
            .does(welcoming())
            .does(Op::create(
                POD,
                &json!({ "spec": spec("Never", &["exit", "0", "1"]) }),
            ))
            .settle(),
        // None of them fits, and that cannot be said for a moment: one decision with a write for each.
        crowd(
            Scenario::new("crowd-in-a-short-trouble")
                .with_node()
                .does(node())
                .does(allocatable())
                .does(welcoming()),
        )
        .start()
        .troubled_for(1, Trouble::Full)
        .settle(),
    ]
}

/// Pods that are too large for the node.
fn crowd(scenario: Scenario) -> Scenario {
    let names = ["p-1", "p-2", "p-3", "p-4", "p-5", "p-6", "p-7"];
    let mut large = spec("Never", &["exit", "0", "1"]);
    large["containers"][0]["resources"] = json!({ "requests": { "cpu": "100" } });
    let pods = names.map(|name| Op::create(it("Pod", name), &json!({ "spec": large })));
    pods.into_iter().fold(scenario, Scenario::does)
}

fn story(name: &'static str) -> Scenario {
    Scenario::new(name).with_node().start().settle()
}

fn spec(policy: &str, command: &[&str]) -> Value {
    let container = json!({ "name": "main", "image": "none", "command": command });
    json!({ "restartPolicy": policy, "containers": [container] })
}

/// A pod that is bound from the beginning.
fn pod(policy: &str, command: &[&str]) -> Op {
    let mut spec = spec(policy, command);
    spec["nodeName"] = json!("sundown");
    spec["terminationGracePeriodSeconds"] = json!(20);
    Op::create(POD, &json!({ "spec": spec }))
}

fn job(completions: u32, command: &[&str]) -> Op {
    let mut pod = spec("Never", command);
    pod["nodeName"] = json!("sundown");
    let template = json!({ "spec": pod });
    let spec = json!({ "completions": completions, "parallelism": 2, "template": template });
    Op::create(JOB, &json!({ "spec": spec }))
}

/// As `kubectl delete` does it: with the grace period of the pod.
fn delete(it: It) -> Op {
    Op::delete(it, "Background")
}

fn delete_now(it: It) -> Op {
    let options = json!({ "gracePeriodSeconds": 0 });
    let label = format!("delete {it} by force");
    Op::new(Method::Delete, it.path(), Some(&options), label)
}

pub(crate) fn node() -> Op {
    let body = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "sundown" } });
    let path = "/api/v1/nodes".to_owned();
    Op::new(
        Method::Post,
        path,
        Some(&body),
        "create the node".to_owned(),
    )
}

/// A new node repels pods until somebody says that it is ready.
pub(crate) fn welcoming() -> Op {
    let body = json!({ "spec": { "taints": null } });
    let path = "/api/v1/nodes/sundown".to_owned();
    Op::new(Method::Patch, path, Some(&body), "open the node".to_owned())
}

pub(crate) fn allocatable() -> Op {
    let body = json!({ "status": { "allocatable": { "cpu": "2", "memory": "4Gi", "pods": "9" } } });
    let path = "/api/v1/nodes/sundown/status".to_owned();
    Op::new(Method::Patch, path, Some(&body), "size the node".to_owned())
}
