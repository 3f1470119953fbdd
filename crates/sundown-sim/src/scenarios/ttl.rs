//! Stories about jobs that finish.

use serde_json::{Value, json};

use crate::op::{It, Op, it};
use crate::scenario::Scenario;

const JOB: It = it("Job", "job");
const POD: It = it("Pod", "job-pod");
const HOUR: i64 = 3_600;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        with_job("ttl", Some(HOUR))
            .does(finish(0))
            .settle()
            .advance(HOUR)
            .settle(),
        with_job("ttl-raised", Some(HOUR))
            .does(finish(0))
            .settle()
            .advance(HOUR - 10)
            .patch(JOB, &ttl(&json!(3 * HOUR)))
            .settle()
            .advance(2 * HOUR)
            .settle()
            .advance(HOUR)
            .settle(),
        with_job("ttl-lowered-and-removed", Some(100 * HOUR))
            .does(finish(0))
            .settle()
            .patch(JOB, &ttl(&Value::Null))
            .settle()
            .advance(200 * HOUR)
            .settle()
            .patch(JOB, &ttl(&json!(0)))
            .settle(),
        with_job("ttl-set-after-the-finish", None)
            .does(finish(0))
            .settle()
            .advance(HOUR)
            .patch(JOB, &ttl(&json!(0)))
            .settle(),
        // A clock that was ahead wrote a finish in the future, and the job begins again before it.
        with_job("ttl-skew-and-restart", Some(60))
            .does(finish(2 * HOUR))
            .settle()
            .advance(HOUR)
            .settle()
            .does(Op::patch_status(
                JOB,
                &json!({ "status": { "conditions": [] } }),
            ))
            .advance(2 * HOUR)
            .settle()
            .does(finish(3 * HOUR))
            .settle()
            .advance(120)
            .settle(),
        // It stays, with one word in all, until the time is set.
        with_job("ttl-without-a-finish-time", Some(0))
            .with_events()
            .does(Op::patch_status(JOB, &ended_at_no_time()))
            .settle()
            .advance(HOUR)
            .settle()
            .does(finish(0))
            .settle(),
        with_job("ttl-of-a-successor", Some(HOUR))
            .does(finish(0))
            .settle()
            .advance(HOUR)
            .delete(JOB, "Background")
            .create(JOB)
            .settle(),
    ]
}

fn ended_at_no_time() -> Value {
    let done = json!({ "type": "Complete", "status": "True", "lastTransitionTime": null });
    json!({ "status": { "conditions": [done] } })
}

fn with_job(name: &'static str, ttl_seconds: Option<i64>) -> Scenario {
    let extra = ttl(&ttl_seconds.map_or(Value::Null, |seconds| json!(seconds)));
    Scenario::new(name)
        .start()
        .does(Op::create(JOB, &extra))
        .own(POD, &[JOB])
        .settle()
}

fn ttl(seconds: &Value) -> Value {
    json!({ "spec": { "ttlSecondsAfterFinished": seconds } })
}

/// The job is done, by its condition, so many seconds after the beginning of the world.
fn finish(seconds: i64) -> Op {
    let at = crate::world::World::birth() + jiff::SignedDuration::from_secs(seconds);
    let done =
        json!({ "type": "Complete", "status": "True", "lastTransitionTime": at.to_string() });
    Op::patch_status(JOB, &json!({ "status": { "conditions": [done] } }))
}
