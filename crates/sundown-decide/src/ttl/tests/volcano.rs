//! When a Volcano Job has finished.

use sundown_kinds::volcano::JobPhase;

use super::*;

fn in_phase(phase: &str, since: &Value) -> A {
    let state = json!({ "phase": phase, "lastTransitionTime": since });
    a_volcano_job().ttl(5).with("/status/state", state)
}

#[test]
fn counts_completed_failed_and_terminated_and_no_other_phase() {
    let then = json!(at(0).to_string());
    let goes: Vec<&str> = JobPhase::ALL
        .into_iter()
        .map(JobPhase::as_str)
        .filter(|phase| !decide(&in_phase(phase, &then), 9).actions.is_empty())
        .collect();
    assert_eq!(goes, ["Completed", "Terminated", "Failed"]);
    for phase in goes {
        let job = in_phase(phase, &then);
        check(&job, 4, &Reason::NotDue { due_at: at(5) });
        check(&job, 5, &Reason::Expired { due_at: at(5) });
    }
}

/// volcano#4736: it may be resumed.
#[test]
fn an_aborted_job_stays() {
    let then = json!(at(0).to_string());
    check(&in_phase("Aborted", &then), 9, &Reason::StillRunning);
}

#[test]
fn a_phase_that_is_not_known_is_not_final() {
    let then = json!(at(0).to_string());
    for phase in ["", "completed", "Succeeded"] {
        check(&in_phase(phase, &then), 9, &Reason::StillRunning);
    }
    check(&a_volcano_job().ttl(0), 9, &Reason::StillRunning);
}

#[test]
fn conditions_of_a_volcano_job_are_no_matter() {
    let done = json!([{ "status": "Completed", "type": "Complete", "lastTransitionTime": at(0).to_string() }]);
    let job = a_volcano_job().ttl(0).with("/status/conditions", done);
    check(&job, 9, &Reason::StillRunning);
}

#[test]
fn never_guesses_a_missing_finish_time() {
    for nothing in no_instants() {
        check_missing(
            &in_phase("Completed", &nothing),
            "status.state.lastTransitionTime",
        );
    }
}
