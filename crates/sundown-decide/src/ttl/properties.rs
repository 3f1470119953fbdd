//! What holds for every job, whatever it looks like: layer 2 of the test ladder.

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sundown_kinds::volcano::JobPhase;
use sundown_model::{Action, Form, Object, Write};

use super::{Reason, Ttl};
use crate::testing::apply::{Became, apply};
use crate::testing::seeds::{any_json, for_seeds, odd_object, one_of, percent};
use crate::testing::{A, Scene, a_job, a_volcano_job, at};

const CASES: u64 = 500;

/// A second on either side of which a job may be due.
const NOW: i64 = 100;

fn some_job(rng: &mut Rng) -> A {
    let mut job = one_of(rng, &[a_job(), a_volcano_job()]).clone();
    job = job.rv(rng.u64(1..1_000));
    if percent(rng, 90) {
        let ttl = *one_of(rng, &[-5, 0, 1, 60, 99, 100, 101, i64::MAX]);
        job = job.ttl(ttl);
    }
    let conditions: Vec<Value> = (0..rng.usize(..4)).map(|_| some_condition(rng)).collect();
    job = job.with("/status/conditions", json!(conditions));
    job = job.with("/status/state", some_state(rng));
    if percent(rng, 10) {
        job = job.deleting(&["example.com/mine"]);
    }
    job
}

fn some_condition(rng: &mut Rng) -> Value {
    let mut condition = json!({
        "type": one_of(rng, &["Complete", "Failed", "Suspended"]),
        "status": one_of(rng, &["True", "True", "False"]),
        "lastTransitionTime": at(rng.i64(-200..200)).to_string(),
    });
    if percent(rng, 10) {
        condition["lastTransitionTime"] = any_json(rng, 1);
    }
    condition
}

fn some_state(rng: &mut Rng) -> Value {
    let phases = JobPhase::ALL.map(JobPhase::as_str);
    let mut state = json!({
        "phase": one_of(rng, &phases),
        "lastTransitionTime": at(rng.i64(-200..200)).to_string(),
    });
    if percent(rng, 10) {
        state["lastTransitionTime"] = any_json(rng, 1);
    }
    state
}

fn writes(actions: &[Action]) -> Vec<&Write> {
    let writes = actions.iter().filter_map(|action| match action {
        Action::Api(write) => Some(write),
        Action::Tell(_) | Action::Do(_) => None,
    });
    writes.collect()
}

#[test]
fn a_decision_that_was_applied_is_not_made_again() {
    for_seeds(CASES, |rng| {
        let job = some_job(rng);
        let scene = Scene::new(Ttl::default()).seeing(&job);
        let decision = scene.decide(&job.key(), NOW);
        for write in writes(&decision.actions) {
            let scene = match apply(write, &job) {
                Became::Changed(after) => scene.clone().seeing(&after),
                Became::Gone => scene.clone().seeing_the_end_of(&job),
            };
            let again = scene.decide(&job.key(), NOW);
            assert!(writes(&again.actions).is_empty(), "{again:?}");
            assert_eq!(again.wake_at, None);
        }
    });
}

#[test]
fn nothing_changes_before_the_instant_that_it_names_and_something_does_at_it() {
    for_seeds(CASES, |rng| {
        let job = some_job(rng);
        let scene = Scene::new(Ttl::default()).seeing(&job);
        let decision = scene.decide(&job.key(), NOW);
        if !writes(&decision.actions).is_empty() {
            return;
        }
        let until = decision.wake_at.unwrap_or(Timestamp::MAX);
        assert!(until > at(NOW), "an instant to wait for is not over");
        let just_before = until - SignedDuration::from_nanos(1);
        let between = at(rng.i64(NOW..10_000)).min(just_before);
        for now in [at(NOW), between, just_before] {
            assert_eq!(scene.decide_at(&job.key(), now), decision, "at {now}");
        }
        if decision.wake_at.is_some() {
            let due = scene.decide_at(&job.key(), until);
            let is_told_of = matches!(decision.reason, Reason::FinishInFuture { .. });
            assert!(due != decision, "{due:?}");
            assert!(is_told_of || writes(&due.actions).len() == 1, "{due:?}");
        }
    });
}

#[test]
fn each_delete_names_the_uid_and_the_revision_that_were_seen() {
    let jobs: &[&str] = &["first", "second", "third"];
    for_seeds(CASES, |rng| {
        let jobs: Vec<A> = jobs
            .iter()
            .map(|name| {
                let (it, uid) = (some_job(rng), format!("uid-{name}"));
                it.with("/metadata/name", json!(name)).uid(&uid)
            })
            .collect();
        let mut order: Vec<&A> = jobs.iter().collect();
        rng.shuffle(&mut order);
        let scene = order
            .into_iter()
            .fold(Scene::new(Ttl::default()), Scene::seeing);
        let alone = |job: &A| {
            Scene::new(Ttl::default())
                .seeing(job)
                .decide(&job.key(), NOW)
        };
        for job in &jobs {
            let decision = scene.decide(&job.key(), NOW);
            assert_eq!(decision, alone(job), "jobs do not matter to each other");
            for write in writes(&decision.actions) {
                let Write::Delete { at, .. } = write else {
                    panic!("a TTL only deletes: {write:?}");
                };
                assert_eq!(at, &job.build().seen());
            }
        }
    });
}

#[test]
fn no_job_is_too_odd_to_decide_on() {
    let mut form = Form::metadata();
    form.add(super::batch::FIELDS);
    form.add(super::volcano::FIELDS);
    let resources = [a_job().resource, a_volcano_job().resource];
    let read = std::cell::Cell::new(0_u64);
    for_seeds(CASES, |rng| {
        let json = odd_object(rng);
        let Ok(job) = Object::read(one_of(rng, &resources), &json, &form) else {
            return;
        };
        read.set(read.get() + 1);
        let scene = Scene::new(Ttl::default()).seeing_as_it_is(job.clone().into());
        for now in [Timestamp::MIN, at(0), Timestamp::MAX] {
            let decision = scene.decide_at(job.key(), now);
            assert!(decision.needs.is_empty());
        }
    });
    assert!(read.get() > CASES / 4, "{} were read", read.get());
}
