//! How a job ends: the criterion first, the end itself when all its pods have ended and are counted.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::tally::Tally;
use super::view::{JobView, PodView};
use crate::json::{text, written};

/// Why a job ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) is_success: bool,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Target {
    fn new(is_success: bool, reason: &str, message: &str) -> Self {
        Self {
            is_success,
            reason: reason.to_owned(),
            message: message.to_owned(),
        }
    }

    fn interim(&self) -> &'static str {
        if self.is_success {
            "SuccessCriteriaMet"
        } else {
            "FailureTarget"
        }
    }

    fn last(&self) -> &'static str {
        if self.is_success {
            "Complete"
        } else {
            "Failed"
        }
    }
}

/// Whether a job ends, and why. What is on record already stands.
pub(super) fn target(
    job: &JobView<'_>,
    tally: &Tally,
    pods: &[PodView],
    now: Timestamp,
) -> Option<Target> {
    for (name, is_success) in [("SuccessCriteriaMet", true), ("FailureTarget", false)] {
        if let Some(it) = job.condition(name) {
            return Some(Target::new(
                is_success,
                text(it, "reason"),
                text(it, "message"),
            ));
        }
    }
    if tally.failed_all > job.backoff_limit || restarts_exceed(job, pods) {
        let message = "Job has reached the specified backoff limit";
        return Some(Target::new(false, "BackoffLimitExceeded", message));
    }
    let is_late = job.deadline().is_some_and(|at| at <= now);
    if is_late && !job.is_suspended {
        let message = "Job was active longer than specified deadline";
        return Some(Target::new(false, "DeadlineExceeded", message));
    }
    let is_quiet = !pods.iter().any(PodView::is_active);
    let is_complete = match job.completions {
        Some(completions) => tally.succeeded_all >= completions,
        None => tally.succeeded_all > 0,
    };
    if is_complete && is_quiet {
        let message = "Reached expected number of succeeded pods";
        return Some(Target::new(true, "CompletionsReached", message));
    }
    None
}

/// Containers that restart in place count against the limit as well.
fn restarts_exceed(job: &JobView<'_>, pods: &[PodView]) -> bool {
    if !job.restarts_on_failure {
        return false;
    }
    let active = pods.iter().filter(|pod| !pod.is_over());
    let restarts: i64 = active.map(|pod| pod.restarts).sum();
    if job.backoff_limit == 0 {
        restarts > 0
    } else {
        restarts >= job.backoff_limit
    }
}

/// The conditions as they shall stand, and whether the job has ended with them.
pub(super) fn conditions(
    job: &JobView<'_>,
    target: Option<&Target>,
    is_settled: bool,
    now: Timestamp,
) -> (Vec<Value>, bool) {
    let mut all = job.conditions.to_vec();
    let Some(target) = target else {
        suspension(job, &mut all, now);
        return (all, false);
    };
    let mut add = |name: &str| {
        if job.condition(name).is_none() {
            all.push(condition(name, target, now));
        }
    };
    // On record before the pods are let go, so that nobody changes their mind about it.
    let is_recorded = job.condition(target.interim()).is_some();
    add(target.interim());
    let ends = is_recorded && is_settled;
    if ends {
        add(target.last());
    }
    (all, ends)
}

fn condition(name: &str, target: &Target, now: Timestamp) -> Value {
    json!({
        "type": name, "status": "True", "reason": target.reason, "message": target.message,
        "lastProbeTime": written(now), "lastTransitionTime": written(now),
    })
}

/// A suspended job says so; one that was suspended says that it goes on.
fn suspension(job: &JobView<'_>, all: &mut Vec<Value>, now: Timestamp) {
    let (status, reason, message) = if job.is_suspended {
        ("True", "JobSuspended", "Job suspended")
    } else {
        ("False", "JobResumed", "Job resumed")
    };
    let wanted = json!({
        "type": "Suspended", "status": status, "reason": reason, "message": message,
        "lastProbeTime": written(now), "lastTransitionTime": written(now),
    });
    match all.iter_mut().find(|it| text(it, "type") == "Suspended") {
        Some(it) if text(it, "status") == status => {}
        Some(it) => *it = wanted,
        None if job.is_suspended => all.push(wanted),
        None => {}
    }
}
