//! What is owed to a job while the API server fails: its end is told soon, and its deadline is kept. J16.

use jiff::{SignedDuration, Timestamp};

use super::{Violation, number, rays, text};
use crate::ledger::{Ledger, Version};
use crate::node::Node;
use crate::ray::{Execution, Fate};

/// How long after its end Ray may be asked for it: twice as often as it is asked, and a few pauses.
const TOLD_WITHIN: SignedDuration = SignedDuration::from_secs(20);

/// How long after its deadline a job may go on: it is tried to end its submitter first, with pauses of up to a
/// minute.
const STOPPED_WITHIN: SignedDuration = SignedDuration::from_secs(240);

/// Judges at the end of a trouble that lasted ten minutes.
pub(crate) fn late(ledger: &Ledger, node: Option<&Node>, now: Timestamp) -> Vec<Violation> {
    let mut found = Vec::new();
    for job in rays(ledger, "rayjobs") {
        let name = text(job, super::NAME);
        if let Some(took) = untold(job).filter(|took| *took > TOLD_WITHIN) {
            let text = format!("the end of {name} was told after {took:#}");
            found.push(Violation::new("J16", text));
        }
        // A submitter that was taken from its job submits what it wants.
        let is_taken = text(job, "/status/reason") == "SubmissionFailed";
        let is_overdue = !is_taken && deadline(job).is_some_and(|at| now > at + STOPPED_WITHIN);
        let goes = |it: &&Execution| {
            it.fate == Fate::Goes && it.of.as_ref().is_some_and(|of| of.job == job.uid)
        };
        let executions = node.map_or(&[][..], |it| &it.ray.executions);
        if is_overdue && executions.iter().any(|it| goes(&it)) {
            let text = format!("{name} goes on though its time is over");
            found.push(Violation::new("J16", text));
        }
    }
    found
}

fn instant(job: &Version, pointer: &str) -> Option<Timestamp> {
    text(job, pointer).parse().ok()
}

/// How long it took to tell how a job ended.
fn untold(job: &Version) -> Option<SignedDuration> {
    let really = instant(job, "/status/rayJobInfo/endTime")?;
    Some(instant(job, "/status/endTime")?.duration_since(really))
}

fn deadline(job: &Version) -> Option<Timestamp> {
    let limit = number(job, "/spec/activeDeadlineSeconds");
    let started = instant(job, "/status/startTime")?;
    (limit > 0).then(|| started + SignedDuration::from_secs(limit))
}
