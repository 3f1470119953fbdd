//! When a batch Job has finished.

use super::*;

fn condition(kind: &str, status: &str, at: &Value) -> Value {
    json!({ "type": kind, "status": status, "lastTransitionTime": at })
}

fn with(conditions: &[Value]) -> A {
    a_job().ttl(5).with("/status/conditions", json!(conditions))
}

#[test]
fn counts_only_true_complete_and_failed_conditions() {
    let then = json!(at(0).to_string());
    for kind in ["Suspended", "FailureTarget", "SuccessCriteriaMet"] {
        let job = with(&[condition(kind, "True", &then)]);
        check(&job, 9, &Reason::StillRunning);
    }
    let job = with(&[condition("Complete", "False", &then)]);
    check(&job, 9, &Reason::StillRunning);
    let job = with(&[condition("Failed", "True", &then)]);
    check(&job, 9, &Reason::Expired { due_at: at(5) });
}

#[test]
fn takes_the_first_finished_condition_in_list_order() {
    let [first, second] = [7, 3].map(|seconds| json!(at(seconds).to_string()));
    let job = with(&[
        condition("Failed", "True", &first),
        condition("Complete", "True", &second),
    ]);
    check(&job.ttl(0), 5, &Reason::NotDue { due_at: at(7) });
}

#[test]
fn never_guesses_a_missing_finish_time() {
    let field = "the lastTransitionTime of its Complete or Failed condition";
    for nothing in no_instants() {
        check_missing(&with(&[condition("Complete", "True", &nothing)]), field);
    }
}
