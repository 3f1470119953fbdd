//! Counting results so that none is lost and none counted twice: first on record by uid, then the
//! finalizer goes, then the number. Each step is one guarded write.

use std::collections::BTreeSet;

use sundown_model::Uid;

use super::indexes::Indexes;
use super::view::{JobView, PodState, PodView};

/// How many results may be on record by uid at once, as upstream bounds it.
const UNCOUNTED_MAX: usize = 500;

/// The results of a job as they shall be recorded, and the pods that may be let go.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    pub(super) succeeded: i64,
    pub(super) failed: i64,
    pub(super) uncounted_succeeded: BTreeSet<Uid>,
    pub(super) uncounted_failed: BTreeSet<Uid>,
    pub(super) completed: Indexes,
    /// Pods whose result is on record: their finalizer may go.
    pub(super) recorded: Vec<Uid>,
    /// All successes and failures, whether on record or only seen.
    pub(super) succeeded_all: i64,
    pub(super) failed_all: i64,
    /// Some results are not counted to the end yet.
    pub(super) is_open: bool,
}

impl Tally {
    pub(super) fn of(job: &JobView<'_>, pods: &[PodView]) -> Self {
        let held: BTreeSet<&Uid> = pods
            .iter()
            .filter(|pod| pod.is_tracked)
            .map(PodView::uid)
            .collect();
        let mut tally = Self {
            succeeded: job.succeeded,
            failed: job.failed,
            uncounted_succeeded: job.uncounted_succeeded.clone(),
            uncounted_failed: job.uncounted_failed.clone(),
            completed: job.completed.clone(),
            recorded: Vec::new(),
            succeeded_all: 0,
            failed_all: 0,
            is_open: false,
        };
        tally.settle(&held);
        for pod in pods.iter().filter(|pod| pod.is_tracked) {
            tally.record(job, pod);
        }
        if job.is_indexed {
            tally.succeeded = tally.completed.count();
        }
        let count = |set: &BTreeSet<Uid>| i64::try_from(set.len()).unwrap_or(i64::MAX);
        tally.succeeded_all = tally
            .succeeded
            .saturating_add(count(&tally.uncounted_succeeded));
        tally.failed_all = tally.failed.saturating_add(count(&tally.uncounted_failed));
        let results = |pod: &PodView| pod.is_tracked && (pod.is_over() || pod.has_failed(job));
        tally.is_open = count(&tally.uncounted_succeeded) + count(&tally.uncounted_failed) > 0
            || pods.iter().any(results);
        tally
    }

    /// Who is on record and not held any more becomes a number.
    fn settle(&mut self, held: &BTreeSet<&Uid>) {
        for (uncounted, counter) in [
            (&mut self.uncounted_succeeded, &mut self.succeeded),
            (&mut self.uncounted_failed, &mut self.failed),
        ] {
            let before = uncounted.len();
            uncounted.retain(|uid| held.contains(uid));
            let gone = i64::try_from(before - uncounted.len()).unwrap_or(0);
            *counter = counter.saturating_add(gone);
        }
    }

    /// Puts the result of a pod on record, or finds it there.
    fn record(&mut self, job: &JobView<'_>, pod: &PodView) {
        let uid = pod.uid();
        let is_recorded =
            job.uncounted_succeeded.contains(uid) || job.uncounted_failed.contains(uid);
        if is_recorded {
            self.recorded.push(uid.clone());
            return;
        }
        let is_full = self.uncounted_succeeded.len() + self.uncounted_failed.len() >= UNCOUNTED_MAX;
        if is_full {
            return;
        }
        if pod.state == PodState::Succeeded {
            self.succeed(job, pod);
        } else if pod.has_failed(job) {
            self.uncounted_failed.insert(uid.clone());
        }
    }

    /// Of an indexed job the index itself is the record.
    fn succeed(&mut self, job: &JobView<'_>, pod: &PodView) {
        let uid = pod.uid().clone();
        if !job.is_indexed {
            self.uncounted_succeeded.insert(uid);
            return;
        }
        let last = job.completions.unwrap_or(0);
        let index = pod.index.filter(|index| i64::from(*index) < last);
        match index {
            Some(index) if !job.completed.contains(index) => self.completed.insert(index),
            // On record already, or an index that does not count.
            Some(_) | None => self.recorded.push(uid),
        }
    }
}
