//! What the API server does not let be made is told with its cause, and made as soon as it may be.
//!
//! A head that mounted a volume which the template does not have was once told as created, and its
//! cluster as being provisioned, for ever.

use serde_json::{Value, json};
use sundown_model::{Action, RefusalReason, Write};

use super::super::{RayClusters, Reason};
use super::{a_cluster, demo, make_ready, pods, ready, stage, status};
use crate::testing::ray::Stage;

fn refusing(plural: &'static str) -> Stage<RayClusters> {
    let mut stage = stage(a_cluster());
    stage.refuses = Some((plural, RefusalReason::Invalid));
    stage.step(&demo());
    assert!(!stage.said().iter().any(|it| it.starts_with("Failed")));
    stage.step(&demo());
    stage
}

fn failure(stage: &Stage<RayClusters>) -> Option<&Value> {
    let mut conditions = status(stage)["conditions"].as_array()?.iter();
    conditions.find(|it| it["type"] == "ReplicaFailure")
}

fn events<'a>(stage: &'a Stage<RayClusters>, reason: &str) -> Vec<&'a str> {
    let notes = stage.notes.iter().filter(|it| &*it.reason == reason);
    notes.map(|it| it.message.as_str()).collect()
}

#[test]
fn a_head_that_is_refused_is_told_with_its_cause_and_never_as_created() {
    let stage = refusing("pods");
    let told = events(&stage, "FailedToCreateHeadPod");
    assert!(told[0].starts_with("Failed to create head Pod here/demo-head-"));
    assert!(told[0].ends_with(", no room"), "{told:?}");
    assert!(stage.notes.iter().any(|it| it.warning));
    assert!(events(&stage, "CreatedHeadPod").is_empty());
    let failure = failure(&stage).expect("a condition");
    assert_eq!(failure["status"], "True");
    assert_eq!(failure["reason"], "FailedCreateHeadPod");
    assert_eq!(failure["message"], told[0]);
    assert_eq!(status(&stage)["reason"], told[0]);
    let why = told[0].to_owned();
    assert_eq!(stage.decide(&demo()).reason, Reason::Refused { why });
}

#[test]
fn a_worker_that_is_refused_is_told_once_for_all_of_them() {
    let mut stage = stage(a_cluster());
    while pods(&stage, "head").is_empty() {
        stage.step(&demo());
    }
    for worker in pods(&stage, "worker") {
        stage.remove(&worker);
    }
    stage.refuses = Some(("pods", RefusalReason::Forbidden));
    stage.step(&demo());
    stage.step(&demo());
    let told = events(&stage, "FailedToCreateWorkerPod");
    assert_eq!(
        told,
        ["Failed to create worker Pod for the cluster here/demo, no room"]
    );
    assert_eq!(failure(&stage).unwrap()["reason"], "FailedCreateWorkerPod");
}

#[test]
fn a_service_that_is_refused_is_told_and_is_no_failure_of_replicas() {
    let stage = refusing("services");
    let expect = "Failed creating service here/demo-head-svc, no room";
    assert_eq!(events(&stage, "FailedToCreateService"), [expect]);
    assert!(events(&stage, "CreatedService").is_empty());
    assert_eq!(status(&stage)["reason"], expect);
    assert!(failure(&stage).is_none());
}

#[test]
fn what_was_refused_is_tried_again_and_forgotten_once_it_is_there() {
    let mut stage = refusing("pods");
    let tries = |stage: &Stage<RayClusters>| {
        let creates = stage.writes.iter();
        let creates = creates.filter(|it| matches!(it, Write::Create(_)));
        creates.count()
    };
    let before = tries(&stage);
    stage.step(&demo());
    assert!(tries(&stage) > before);
    stage.refuses = None;
    stage.settle(&demo());
    make_ready(&mut stage);
    assert_eq!(stage.settle(&demo()).reason, Reason::Ready);
    assert!(failure(&stage).is_none());
    assert_eq!(status(&stage)["reason"], Value::Null);
    assert_eq!(events(&stage, "CreatedHeadPod").len(), 1);
}

#[test]
fn an_edit_is_not_blamed_for_what_was_refused_before_it() {
    let mut stage = refusing("pods");
    stage.edit(&demo(), "/metadata/generation", json!(2));
    stage.refuses = None;
    assert!(matches!(stage.step(&demo()).reason, Reason::Changes { .. }));
    assert!(failure(&stage).is_none());
}

fn refusal(stage: &Stage<RayClusters>) -> Option<&Value> {
    let mut conditions = status(stage)["conditions"].as_array()?.iter();
    conditions.find(|it| it["type"] == "sundown.dev/Refused")
}

/// Nothing in its status told a refused change of a cluster that runs from one that was made.
#[test]
fn a_change_of_a_running_cluster_that_is_refused_is_marked_until_it_is_taken_back() {
    let mut stage = ready();
    assert_eq!(refusal(&stage), None);
    stage.edit(&demo(), "/spec/workerGroupSpecs/0/numOfHosts", json!(65));
    stage.edit(&demo(), "/metadata/generation", json!(2));
    stage.settle(&demo());
    assert_eq!(status(&stage)["state"], "ready", "what runs goes on");
    let told = refusal(&stage).expect("a condition");
    assert_eq!(
        (&told["status"], &told["observedGeneration"]),
        (&json!("True"), &json!(2))
    );
    assert_eq!(told["message"], status(&stage)["reason"]);
    assert_eq!(pods(&stage, "worker").len(), 2);
    let again = stage.decide(&demo());
    assert!(!again.actions.iter().any(|it| matches!(it, Action::Api(_))));
    stage.edit(&demo(), "/spec/workerGroupSpecs/0/numOfHosts", json!(1));
    stage.edit(&demo(), "/metadata/generation", json!(3));
    assert_eq!(stage.settle(&demo()).reason, Reason::Ready);
    assert_eq!(
        (refusal(&stage), status(&stage).get("reason")),
        (None, None)
    );
}
