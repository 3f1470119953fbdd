//! Stories about Volcano Jobs. Nothing runs them here: the user writes their status, as Volcano's controllers do.

use jiff::SignedDuration;
use serde_json::{Value, json};
use sundown_kinds::crd;

use crate::op::{It, Op, define, it};
use crate::scenario::Scenario;
use crate::world::World;

const JOB: It = it("Job.batch.volcano.sh", "train");
/// It has the name of the Volcano Job and nothing else in common with it.
const NAMESAKE: It = it("Job", "train");
const POD: It = it("Pod", "train-worker-0");
const GROUP: It = it("PodGroup", "train-group");
const HOUR: i64 = 3_600;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        with_job("volcano-finishes", HOUR)
            .does(ends("Completed", 0))
            .settle()
            .advance(HOUR)
            .settle(),
        with_job("volcano-terminated-and-gone-at-once", 0)
            .does(ends("Terminated", 0))
            .settle(),
        with_job("volcano-ttl-raised", HOUR)
            .does(ends("Failed", 0))
            .settle()
            .advance(HOUR - 10)
            .patch(JOB, &ttl(&json!(3 * HOUR)))
            .settle()
            .advance(2 * HOUR)
            .settle()
            .advance(HOUR)
            .settle(),
        with_job("volcano-successor", HOUR)
            .does(ends("Completed", 0))
            .settle()
            .advance(HOUR)
            .delete(JOB, "Background")
            .create(JOB)
            .settle(),
        // An aborted job waits to be resumed, however long; then it runs, ends, and goes.
        with_job("volcano-aborted-and-resumed", 60)
            .does(ends("Aborted", 0))
            .settle()
            .advance(100 * HOUR)
            .settle()
            .does(ends("Running", 100 * HOUR))
            .settle()
            .does(ends("Completed", 100 * HOUR))
            .settle()
            .advance(HOUR)
            .settle(),
        // A finish time that is missing, then one that is ahead.
        with_job("volcano-wrong-finish-times", 60)
            .does(state(&json!({ "phase": "Completed" })))
            .settle()
            .advance(HOUR)
            .settle()
            .does(ends("Completed", 3 * HOUR))
            .settle()
            .advance(HOUR)
            .settle()
            .advance(2 * HOUR)
            .settle(),
        // The kind comes when the operator is at work, and batch Jobs go before as after.
        with_namesake(Scenario::new("volcano-defined-late").start())
            .settle()
            .does(namesake_ends())
            .settle()
            .does(define(&read(&crd::volcano::job())))
            .does(Op::create(JOB, &ttl(&json!(60))))
            .does(ends("Completed", 0))
            .settle()
            .advance(60)
            .settle(),
    ]
}

/// A Volcano Job with all that Volcano makes for it, beside a batch Job of the same name that runs on.
fn with_job(name: &'static str, ttl_seconds: i64) -> Scenario {
    let owners = vec![(JOB, true)];
    with_namesake(Scenario::new(name).start())
        .does(define(&read(&crd::volcano::job())))
        .does(define(&read(&crd::volcano::pod_group())))
        .does(Op::create(JOB, &ttl(&json!(ttl_seconds))))
        .owning(GROUP, owners, json!({ "spec": { "minMember": 1 } }))
        .own(POD, &[JOB])
        .settle()
}

fn with_namesake(scenario: Scenario) -> Scenario {
    scenario.does(Op::create(NAMESAKE, &ttl(&json!(0))))
}

fn namesake_ends() -> Op {
    let at = World::birth().to_string();
    let done = json!({ "type": "Failed", "status": "True", "lastTransitionTime": at });
    Op::patch_status(NAMESAKE, &json!({ "status": { "conditions": [done] } }))
}

fn read(definition: &str) -> Value {
    serde_json::from_str(definition).expect("a definition is JSON")
}

fn ttl(seconds: &Value) -> Value {
    json!({ "spec": { "ttlSecondsAfterFinished": seconds } })
}

/// The job is in a phase since so many seconds after the beginning of the world.
fn ends(phase: &str, seconds: i64) -> Op {
    let since = World::birth() + SignedDuration::from_secs(seconds);
    state(&json!({ "phase": phase, "lastTransitionTime": since.to_string() }))
}

fn state(state: &Value) -> Op {
    Op::patch_status(JOB, &json!({ "status": { "state": state } }))
}
