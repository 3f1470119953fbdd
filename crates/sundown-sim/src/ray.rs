//! Ray as a value: heads that are sessions, jobs that go their way in virtual time, and everything that
//! ever began. A head that comes back is another session and knows nothing of the one before it.
//!
//! The entrypoint of a job is `exit CODE SECONDS` or `forever`, as the command of a pod is.

mod session;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use sundown_model::node::Run;
use sundown_model::ray::{Answer, Failure, FailureKind, JobStatus, Query};
use sundown_model::{DeedOutcome, DeedReason, DeedRefusal, Uid, ray};

use session::Session;

/// All heads that live, and what ever ran on any.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ray {
    sessions: BTreeMap<Run, Session>,
    /// How many sessions ever began: their names.
    begun: u32,
    /// A known bug: a job that was told to stop is told of as stopped.
    believes_stop: bool,
    pub(crate) executions: Vec<Execution>,
    judged: usize,
}

/// One job that was taken by one session.
#[derive(Debug, Clone)]
pub(crate) struct Execution {
    pub(crate) submission_id: Arc<str>,
    pub(crate) session: Arc<str>,
    /// The pod of its head.
    pub(crate) head: Uid,
    pub(crate) fate: Fate,
    /// Whose it is; None until that is judged, or if it is nobody's.
    pub(crate) of: Option<Attempt>,
    /// Whether its job only pointed at the cluster when it began.
    pub(crate) is_shared: bool,
}

/// One attempt of a `RayJob`: each has a cluster of another name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Attempt {
    pub(crate) job: Uid,
    pub(crate) cluster: String,
}

/// What became of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Goes,
    Ended {
        status: JobStatus,
        at: Timestamp,
    },
    /// Its head died first.
    Lost,
}

impl Ray {
    pub(crate) fn new(believes_stop: bool) -> Self {
        Self {
            believes_stop,
            ..Self::default()
        }
    }

    /// A head begins to run.
    pub(crate) fn begin(&mut self, head: &Run) {
        self.begun += 1;
        let name = format!("session_{}", self.begun);
        self.sessions
            .insert(head.clone(), Session::new(name.into()));
    }

    /// A head is gone, and with it all that it knew.
    pub(crate) fn lose(&mut self, head: &Run) {
        let Some(session) = self.sessions.remove(head) else {
            return;
        };
        for index in session.executions() {
            let fate = &mut self.executions[index].fate;
            if *fate == Fate::Goes {
                *fate = Fate::Lost;
            }
        }
    }

    /// The executions that nobody has looked at yet.
    pub(crate) fn take_unjudged(&mut self) -> std::ops::Range<usize> {
        let first = std::mem::replace(&mut self.judged, self.executions.len());
        first..self.executions.len()
    }

    /// Whether a session lives.
    pub(crate) fn has_session(&self, name: &str) -> bool {
        self.sessions.values().any(|it| *it.name == *name)
    }

    /// The heads that run.
    pub(crate) fn heads(&self) -> impl Iterator<Item = &Run> {
        self.sessions.keys()
    }

    /// When something happens by itself.
    pub(crate) fn next_at(&self) -> Option<Timestamp> {
        let all = self.sessions.values();
        all.filter_map(Session::next_at).min()
    }

    /// Lets everything happen that is due.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        for session in self.sessions.values_mut() {
            for (index, status, at) in session.tick(now) {
                self.executions[index].fate = Fate::Ended { status, at };
            }
        }
    }

    /// The name of the session of a head that runs.
    pub(crate) fn session(&self, head: &Run) -> Option<&Arc<str>> {
        self.sessions.get(head).map(|it| &it.name)
    }

    /// How a job stands; None: its head is gone, or never knew it.
    pub(crate) fn status(&self, head: &Run, id: &str) -> Option<JobStatus> {
        Some(self.sessions.get(head)?.job(id)?.status)
    }

    /// Takes a job, once per session.
    pub(crate) fn submit(
        &mut self,
        head: &Run,
        id: &Arc<str>,
        entrypoint: &str,
        now: Timestamp,
    ) -> DeedOutcome {
        let index = self.executions.len();
        let Some(session) = self.sessions.get_mut(head) else {
            return refused(ray::Refused::Unreachable, "nobody is there");
        };
        if session.job(id).is_some() {
            return refused(
                ray::Refused::AlreadyExists,
                "a job of this id already exists",
            );
        }
        session.take(id.clone(), entrypoint, index, now);
        self.executions.push(Execution {
            submission_id: id.clone(),
            session: session.name.clone(),
            head: head.pod.clone(),
            fate: Fate::Goes,
            of: None,
            is_shared: false,
        });
        DeedOutcome::Done
    }

    /// Tells a job to stop. One that Ray does not know needs no stopping.
    pub(crate) fn stop(&mut self, head: &Run, id: &str, now: Timestamp) -> DeedOutcome {
        if let Some(session) = self.sessions.get_mut(head) {
            session.stop(id, now);
        }
        DeedOutcome::Done
    }

    /// Answers as the dashboard of a head does; None: nobody is there.
    pub(crate) fn answer(&self, head: Option<&Run>, query: &Query) -> Result<Answer, Failure> {
        let session = head.and_then(|head| self.sessions.get(head));
        let session = session.ok_or_else(|| Failure {
            kind: FailureKind::Unreachable,
            message: "nobody is there".to_owned(),
        })?;
        Ok(match query {
            Query::Session { .. } => Answer::Session {
                name: session.name.clone(),
                ray_version: "2.52.0".into(),
            },
            Query::Job { submission_id, .. } => {
                let job = session.job(submission_id);
                Answer::Job(job.map(|job| job.told(self.believes_stop)))
            }
        })
    }
}

pub(crate) fn refused(reason: impl Into<DeedReason>, quote: &str) -> DeedOutcome {
    DeedOutcome::Refused(DeedRefusal::new(reason, "").quoting(quote))
}
