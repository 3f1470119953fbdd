//! One session of Ray: its table of jobs, and how each of them goes its way.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sundown_model::ray::{self, JobStatus};

/// How long a job is pending.
const PENDING: SignedDuration = SignedDuration::from_millis(400);
/// How long a job that was told to stop goes on: real ones have three seconds, then they are killed.
const STOPPING: SignedDuration = SignedDuration::from_millis(3_500);

/// A head from its start to its end.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) name: Arc<str>,
    jobs: BTreeMap<Arc<str>, Job>,
}

/// A job of a session.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) status: JobStatus,
    execution: usize,
    begins_at: Timestamp,
    /// None: when somebody stops it.
    ends_at: Option<Timestamp>,
    outcome: JobStatus,
    ended_at: Option<Timestamp>,
    is_told_to_stop: bool,
}

impl Session {
    pub(super) fn new(name: Arc<str>) -> Self {
        let jobs = BTreeMap::new();
        Self { name, jobs }
    }

    pub(super) fn job(&self, id: &str) -> Option<&Job> {
        self.jobs.get(id)
    }

    /// The numbers of all executions of this session.
    pub(super) fn executions(&self) -> impl Iterator<Item = usize> {
        self.jobs.values().map(|job| job.execution)
    }

    pub(super) fn take(
        &mut self,
        id: Arc<str>,
        entrypoint: &str,
        execution: usize,
        now: Timestamp,
    ) {
        let begins_at = later(now, PENDING);
        let words: Vec<&str> = entrypoint.split_whitespace().collect();
        let (ends_at, outcome) = match words[..] {
            ["exit", code, seconds] => {
                let duration = SignedDuration::from_secs(seconds.parse().unwrap_or(0));
                let outcome = if code == "0" {
                    JobStatus::Succeeded
                } else {
                    JobStatus::Failed
                };
                (Some(later(begins_at, duration)), outcome)
            }
            ["forever"] => (None, JobStatus::Stopped),
            _ => (Some(begins_at), JobStatus::Succeeded),
        };
        let job = Job {
            status: JobStatus::Pending,
            execution,
            begins_at,
            ends_at,
            outcome,
            ended_at: None,
            is_told_to_stop: false,
        };
        self.jobs.insert(id, job);
    }

    pub(super) fn stop(&mut self, id: &str, now: Timestamp) {
        let Some(job) = self.jobs.get_mut(id).filter(|it| !it.status.is_terminal()) else {
            return;
        };
        job.is_told_to_stop = true;
        let at = later(now, STOPPING);
        if job.ends_at.is_none_or(|ends_at| at < ends_at) {
            job.ends_at = Some(at);
            job.outcome = JobStatus::Stopped;
        }
    }

    pub(super) fn next_at(&self) -> Option<Timestamp> {
        let going = self.jobs.values().filter(|job| !job.status.is_terminal());
        going.filter_map(Job::next_at).min()
    }

    /// Lets its jobs go on; gives those that ended, by their execution.
    pub(super) fn tick(&mut self, now: Timestamp) -> Vec<(usize, JobStatus, Timestamp)> {
        let mut ended = Vec::new();
        for job in self.jobs.values_mut().filter(|it| !it.status.is_terminal()) {
            if job.begins_at <= now {
                job.status = JobStatus::Running;
            }
            if let Some(at) = job.ends_at.filter(|at| *at <= now) {
                job.status = job.outcome;
                job.ended_at = Some(at);
                ended.push((job.execution, job.outcome, at));
            }
        }
        ended
    }
}

impl Job {
    fn next_at(&self) -> Option<Timestamp> {
        match self.status {
            JobStatus::Pending => self.ends_at.into_iter().chain([self.begins_at]).min(),
            JobStatus::Running => self.ends_at,
            JobStatus::Stopped | JobStatus::Succeeded | JobStatus::Failed => None,
        }
    }

    /// As the dashboard tells of it.
    pub(super) fn told(&self, believes_stop: bool) -> ray::Job {
        let status = if believes_stop && self.is_told_to_stop {
            JobStatus::Stopped
        } else {
            self.status
        };
        let milliseconds = |at: Timestamp| u64::try_from(at.as_millisecond()).unwrap_or(0);
        let exit_code = match status {
            JobStatus::Succeeded => Some(0),
            JobStatus::Failed => Some(1),
            JobStatus::Pending | JobStatus::Running | JobStatus::Stopped => None,
        };
        ray::Job {
            status,
            message: String::new(),
            start_time: milliseconds(self.begins_at),
            end_time: self.ended_at.map_or(0, milliseconds),
            exit_code,
        }
    }
}

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.saturating_add(by).unwrap_or(Timestamp::MAX)
}
