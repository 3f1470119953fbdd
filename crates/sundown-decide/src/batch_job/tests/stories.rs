//! From the first pod to the last condition.

use serde_json::json;
use sundown_model::{Action, Need, RefusalFact, RefusalReason, Write};

use super::shop::{Shop, a_new_job};
use crate::batch_job::{Key, Reason};
use crate::testing::at;

#[test]
fn a_job_makes_its_pods_counts_them_and_completes() {
    let mut shop = Shop::of(a_new_job(3, 2));
    assert_eq!(shop.settle(0), Reason::Runs);
    let first = shop.active();
    assert_eq!(first.len(), 2);
    assert!(
        first
            .iter()
            .all(|name| name.starts_with("job-") && name.len() == 9)
    );
    assert_eq!(shop.status("/active"), 2);
    assert_eq!(shop.status("/startTime"), "2030-01-01T00:00:00Z");
    shop.phase(&first[0], "Succeeded", 5);
    shop.settle(5);
    assert_eq!(shop.status("/succeeded"), 1);
    assert_eq!(shop.active().len(), 2);
    for name in shop.active() {
        shop.phase(&name, "Succeeded", 6);
    }
    assert_eq!(shop.settle(7), Reason::Finished);
    assert_eq!(shop.status("/succeeded"), 3);
    assert_eq!(shop.made.len(), 3);
    assert_eq!(shop.status("/completionTime"), "2030-01-01T00:00:07Z");
    assert_eq!(
        shop.conditions(),
        [
            "SuccessCriteriaMet/CompletionsReached",
            "Complete/CompletionsReached"
        ]
    );
    let held = |pod: &crate::testing::A| !pod.build().finalizers().is_empty();
    assert!(!shop.pods.values().any(held), "all are let go");
}

#[test]
fn a_pod_of_a_job_is_owned_labelled_and_held() {
    let mut shop = Shop::of(a_new_job(1, 1));
    shop.settle(0);
    let pod = shop.pods.values().next().unwrap().build();
    assert_eq!(pod.owners()[0].uid.as_str(), "uid-job");
    assert_eq!(pod.owners()[0].controller, Some(true));
    assert!(pod.has_finalizer("batch.kubernetes.io/job-tracking"));
    assert_eq!(pod.field("/metadata/labels/app"), Some(&json!("x")));
}

#[test]
fn failures_back_off_from_the_end_of_the_last_one() {
    let mut shop = Shop::of(a_new_job(1, 1));
    shop.settle(0);
    let mut now = 0;
    for delay in [10, 20, 40, 80] {
        now += 5;
        let name = shop.active()[0].clone();
        shop.phase(&name, "Failed", now);
        let until = at(now + delay);
        assert_eq!(shop.settle(now), Reason::BacksOff { until });
        assert_eq!(shop.decide(now).wake_at, Some(until));
        assert!(shop.active().is_empty());
        now += delay;
        shop.settle(now);
        assert_eq!(shop.active().len(), 1);
    }
    assert_eq!(shop.status("/failed"), 4);
    assert_eq!(shop.made.len(), 5, "each failure is one more pod");
}

#[test]
fn a_job_fails_when_its_limit_is_exceeded_and_its_pods_go() {
    let mut shop = Shop::of(a_new_job(2, 2).with("/spec/backoffLimit", json!(0)));
    shop.settle(0);
    let names = shop.active();
    shop.phase(&names[0], "Failed", 1);
    let reason = shop.settle(1);
    assert!(matches!(reason, Reason::Ends { .. }));
    assert_eq!(shop.conditions(), ["FailureTarget/BackoffLimitExceeded"]);
    assert!(shop.active().is_empty(), "the other one is told to go");
    shop.phase(&names[1], "Failed", 2);
    assert_eq!(shop.settle(3), Reason::Finished);
    assert_eq!(
        shop.conditions(),
        [
            "FailureTarget/BackoffLimitExceeded",
            "Failed/BackoffLimitExceeded"
        ]
    );
    assert_eq!(shop.status("/failed"), 2);
    assert_eq!(shop.status("/completionTime"), json!(null));
}

#[test]
fn restarts_in_place_count_against_the_limit() {
    let job = a_new_job(1, 1)
        .with("/spec/backoffLimit", json!(2))
        .with("/spec/template/spec/restartPolicy", json!("OnFailure"));
    let mut shop = Shop::of(job);
    shop.settle(0);
    let name = shop.active()[0].clone();
    shop.phase(&name, "Running", 1);
    let pod = shop.pods.get_mut(&name).unwrap();
    pod.json["status"]["containerStatuses"] = json!([{ "name": "main", "restartCount": 2 }]);
    shop.settle(1);
    assert_eq!(shop.conditions(), ["FailureTarget/BackoffLimitExceeded"]);
}

#[test]
fn the_deadline_of_a_job_ends_it() {
    let mut shop = Shop::of(a_new_job(1, 1).with("/spec/activeDeadlineSeconds", json!(60)));
    shop.settle(0);
    assert_eq!(shop.decide(10).wake_at, Some(at(60)));
    shop.settle(60);
    assert_eq!(shop.conditions(), ["FailureTarget/DeadlineExceeded"]);
    assert!(shop.active().is_empty());
}

#[test]
fn a_suspended_job_has_no_pods_and_counts_none_of_them() {
    let mut shop = Shop::of(a_new_job(2, 2));
    shop.settle(0);
    shop.change(|job| job.with("/spec/suspend", json!(true)));
    assert_eq!(shop.turn(1, 9).1, Reason::Shrinks { to: 0 });
    assert_eq!(shop.settle(1), Reason::Suspended);
    assert!(shop.active().is_empty());
    assert_eq!(shop.status("/startTime"), json!(null));
    for name in shop.pods.keys().cloned().collect::<Vec<_>>() {
        shop.phase(&name, "Failed", 2);
    }
    shop.settle(2);
    assert_eq!(shop.status("/failed"), json!(null));
    assert_eq!(shop.conditions(), ["Suspended/JobSuspended"]);
    shop.change(|job| job.with("/spec/suspend", json!(false)));
    shop.settle(100);
    assert_eq!(shop.active().len(), 2);
    assert_eq!(shop.status("/startTime"), "2030-01-01T00:01:40Z");
    assert!(shop.conditions().is_empty());
}

#[test]
fn fewer_pods_in_parallel_means_that_the_youngest_go() {
    let mut shop = Shop::of(a_new_job(9, 3));
    shop.settle(0);
    let ready = shop.active()[0].clone();
    shop.phase(&ready, "Running", 1);
    let pod = shop.pods.get_mut(&ready).unwrap();
    pod.json["status"]["conditions"] = json!([{ "type": "Ready", "status": "True" }]);
    shop.change(|job| job.with("/spec/parallelism", json!(1)));
    shop.settle(2);
    assert_eq!(shop.active(), [ready]);
}

#[test]
fn an_indexed_job_runs_each_index_to_its_success() {
    let job = a_new_job(3, 3).with("/spec/completionMode", json!("Indexed"));
    let mut shop = Shop::of(job);
    shop.settle(0);
    let names = shop.active();
    for (index, name) in names.iter().enumerate() {
        assert!(name.starts_with(&format!("job-{index}-")), "{name}");
    }
    let pod = &shop.pods[&names[1]].json;
    assert_eq!(pod["spec"]["hostname"], "job-1");
    assert_eq!(
        pod["spec"]["containers"][0]["env"][0]["name"],
        "JOB_COMPLETION_INDEX"
    );
    shop.phase(&names[0], "Succeeded", 1);
    shop.phase(&names[2], "Succeeded", 1);
    shop.phase(&names[1], "Failed", 2);
    shop.settle(2);
    assert_eq!(shop.status("/completedIndexes"), "0,2");
    shop.settle(12);
    let again = shop.active();
    assert!(
        again[0].starts_with("job-1-") && again[0] != names[1],
        "{again:?}"
    );
    shop.phase(&again[0], "Succeeded", 13);
    assert_eq!(shop.settle(13), Reason::Finished);
    assert_eq!(shop.status("/completedIndexes"), "0-2");
    assert_eq!(shop.status("/succeeded"), 3);
}

#[test]
fn a_pod_that_goes_is_replaced_at_once_or_when_it_is_gone() {
    for (policy, active) in [("TerminatingOrFailed", 1), ("Failed", 0)] {
        let job = a_new_job(1, 1).with("/spec/podReplacementPolicy", json!(policy));
        let mut shop = Shop::of(job);
        shop.settle(0);
        let name = shop.active()[0].clone();
        let pod = shop.pods.get_mut(&name).unwrap();
        pod.json["metadata"]["deletionTimestamp"] = json!(at(40).to_string());
        pod.json["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        shop.settle(10);
        shop.settle(30);
        assert_eq!(shop.active().len(), active, "{policy}");
        let failed = if active == 1 { json!(1) } else { json!(null) };
        assert_eq!(shop.status("/failed"), failed, "{policy}");
        let terminating = shop.status("/terminating");
        assert_eq!(terminating, 1, "{policy}");
    }
}

#[test]
fn a_job_that_goes_holds_no_pod_back() {
    let mut shop = Shop::of(a_new_job(2, 2));
    shop.settle(0);
    shop.change(|job| job.deleting(&["orphan"]));
    assert_eq!(shop.turn(1, 9).1, Reason::LetsGo);
    assert_eq!(shop.settle(1), Reason::Deleting);
    assert!(
        shop.pods
            .values()
            .all(|pod| pod.build().finalizers().is_empty())
    );
    assert_eq!(shop.active().len(), 2, "they live on");
}

#[test]
fn a_pod_whose_job_is_gone_is_let_go_once_that_is_proven() {
    let mut shop = Shop::of(a_new_job(1, 1));
    shop.settle(0);
    let pod = shop.pods.values().next().unwrap().clone();
    let key = Key::Pod(pod.key());
    let there = shop.scene().decide(&key, 0);
    assert_eq!(there.reason, Reason::NoOrphan);
    let alone = crate::testing::Scene::new(super::super::Jobs::default()).seeing(&pod);
    let asks = alone.decide(&key, 0);
    assert_eq!(asks.reason, Reason::OrphanUnproven);
    assert_eq!(asks.needs, [Need::Live(shop.job.key())]);
    let read = alone.reading(&shop.job.key(), None);
    let decision = read.decide(&key, 0);
    assert_eq!(decision.reason, Reason::OrphanReleased);
    assert!(matches!(&decision.actions[..], [Action::Api(_)]));
}

#[test]
fn what_is_not_supported_or_not_ours_is_said_and_left() {
    let policy = a_new_job(1, 1).with("/spec/podFailurePolicy", json!({ "rules": [] }));
    let decision = Shop::of(policy).decide(0);
    let field = "podFailurePolicy";
    assert_eq!(decision.reason, Reason::Unsupported { field });
    assert!(matches!(&decision.actions[..], [Action::Tell(_)]));
    let other = a_new_job(1, 1).with("/spec/managedBy", json!("kueue"));
    assert_eq!(Shop::of(other).decide(0).reason, Reason::ManagedElsewhere);
    let scene = crate::testing::Scene::new(super::super::Jobs::default());
    let gone = scene.decide(&Key::Job(a_new_job(1, 1).key()), 0);
    assert_eq!(gone.reason, Reason::Gone);
}

#[test]
fn pods_are_made_until_enough_are_active() {
    let mut shop = Shop::of(a_new_job(40, 40));
    assert_eq!(shop.turn(0, 99).1, Reason::Grows { to: 40 });
    assert_eq!(shop.made.len(), 16, "in steps");
    shop.settle(0);
    assert_eq!(shop.made.len(), 40);
    let names: std::collections::BTreeSet<_> = shop.made.iter().collect();
    assert_eq!(names.len(), 40);
}

#[test]
fn a_pod_that_is_refused_is_told_and_one_that_is_there_as_well() {
    let shop = Shop::of(a_new_job(1, 1));
    let key = Key::Job(shop.job.key());
    let creates = |actions: &[Action]| {
        let creates = actions.iter().filter_map(|action| match action {
            Action::Api(Write::Create(draft)) => Some(draft.clone()),
            Action::Api(_) | Action::Tell(_) | Action::Do(_) => None,
        });
        creates.collect::<Vec<_>>()
    };
    let mut scene = shop.scene();
    let decision = scene.decide(&key, 0);
    let [draft] = creates(&decision.actions).try_into().unwrap();
    let told = draft.told.as_ref().unwrap();
    assert_eq!(&*told.reason, "SuccessfulCreate");
    assert!(!told.warning);
    let fact = RefusalFact {
        refused_at: at(0),
        reason: RefusalReason::Forbidden,
        message: "exceeded quota".to_owned(),
    };
    scene.facts.set_refusal(draft.key.clone(), fact);
    let again = scene.decide(&key, 1);
    assert_eq!(creates(&again.actions).len(), 1, "it is tried again");
    let told = again.actions.iter().find_map(|action| match action {
        Action::Tell(note) if note.warning => Some((&*note.reason, note.message.as_str())),
        Action::Tell(_) | Action::Api(_) | Action::Do(_) => None,
    });
    let expect = ("FailedCreate", "Error creating: exceeded quota");
    assert_eq!(told, Some(expect));
}
