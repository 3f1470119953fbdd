//! Ray on the node: which head a name leads to, what is asked and told there, and the submitter, which
//! is the generated command as far as it matters.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sundown_kinds::constants::ENV_SESSION;
use sundown_model::node::{Launch, Run, Variable};
use sundown_model::ray::{Answer, Call, Dashboard, Failure, Query};
use sundown_model::{DeedOutcome, Uid, ray};

use super::{Mood, Node};
use crate::ray::refused;

/// How long a submitter sleeps before it looks again whether Ray is there.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(2);
/// The exit code of a submitter that finds another session than its own.
const OTHER_SESSION: i32 = 75;

/// A submitter at work: it waits for Ray, submits unless the job is known, follows the log.
#[derive(Debug, Clone)]
pub(super) struct Submitter {
    at: Dashboard,
    id: Arc<str>,
    entrypoint: String,
    /// The only session that it submits to; None: to any.
    session: Option<String>,
    looks_at: Timestamp,
    /// The head whose log it follows.
    follows: Option<Run>,
}

/// What a run does for Ray.
#[derive(Debug, Clone)]
pub(super) enum Role {
    Nothing,
    Head,
    Worker,
    Submitter(Submitter),
}

impl Role {
    pub(super) fn of(launch: &Launch, now: Timestamp) -> Self {
        let text = launch.args.join(" ");
        if text.contains("ray job submit ") {
            return Self::Submitter(Submitter::of(launch, &text, now));
        }
        if text.contains("ray start --head") {
            return Self::Head;
        }
        if text.contains("ray start ") {
            return Self::Worker;
        }
        Self::Nothing
    }
}

impl Submitter {
    fn of(launch: &Launch, text: &str, now: Timestamp) -> Self {
        let variable = |wanted: &str| {
            let mut all = launch.variables.iter();
            all.find_map(|it| match it {
                Variable::Text { name, value } if name == wanted => Some(value.clone()),
                Variable::Text { .. }
                | Variable::ConfigMapKey { .. }
                | Variable::SecretKey { .. }
                | Variable::ConfigMap { .. }
                | Variable::Secret { .. } => None,
            })
        };
        let after = text.split_once("ray job submit ").map_or("", |it| it.1);
        let entrypoint = after.split_once(" -- ").map_or("", |it| it.1);
        let entrypoint = entrypoint.split(" ;").next().unwrap_or("");
        let session = variable(ENV_SESSION).filter(|_| text.contains(ENV_SESSION));
        let address = variable("RAY_DASHBOARD_ADDRESS").unwrap_or_default();
        Self {
            at: Dashboard(address.into()),
            id: variable("RAY_JOB_SUBMISSION_ID").unwrap_or_default().into(),
            entrypoint: entrypoint.to_owned(),
            session,
            looks_at: now,
            follows: None,
        }
    }

    /// When it does something by itself. While it follows a log it waits for others.
    pub(super) fn next_at(&self) -> Option<Timestamp> {
        self.follows.is_none().then_some(self.looks_at)
    }
}

impl Node {
    /// The head that runs behind a dashboard's name.
    fn head_at(&self, at: &Dashboard) -> Option<Run> {
        let host = at.0.rsplit_once(':').map_or(&*at.0, |it| it.0);
        let addresses = self.names.as_ref()?.get(host)?;
        let place = self.pods.values().find(|place| {
            let own = place.pod.address;
            own.is_some_and(|own| addresses.contains(&own))
        })?;
        let mut living = place.living.values();
        let head = living.find(|it| matches!(it.role, Role::Head))?;
        Some(head.run.clone())
    }

    pub(super) fn ask_ray(&self, query: &Query) -> Result<Answer, Failure> {
        let (Query::Session { at } | Query::Job { at, .. }) = query;
        self.ray.answer(self.head_at(at).as_ref(), query)
    }

    pub(super) fn tell_ray(&mut self, call: &Call, now: Timestamp) -> DeedOutcome {
        let (Call::Submit { at, .. } | Call::Stop { at, .. }) = call;
        let Some(head) = self.head_at(at) else {
            return super::nobody_does();
        };
        match call {
            Call::Submit { session, job, .. } => {
                if self.mood == Mood::Busy {
                    return refused(ray::Refused::Busy, "no agent is there yet");
                }
                let is_same = self.ray.session(&head) == Some(session);
                if !is_same && !self.flaws.ignores_intent {
                    return refused(
                        ray::Refused::OtherSession,
                        "the cluster is in another session",
                    );
                }
                let id = &job.submission_id;
                self.ray.submit(&head, id, &job.entrypoint, now)
            }
            Call::Stop {
                session,
                submission_id,
                ..
            } => {
                let is = self.ray.session(&head);
                if session.is_some() && session.as_ref() != is {
                    return refused(
                        ray::Refused::OtherSession,
                        "the cluster is in another session",
                    );
                }
                self.ray.stop(&head, submission_id, now)
            }
        }
    }

    /// Lets submitters go on; true when one of them did something.
    pub(super) fn submit_on(&mut self, now: Timestamp) -> bool {
        let mut all = Vec::new();
        for (uid, place) in &self.pods {
            for (name, living) in &place.living {
                if let Role::Submitter(submitter) = &living.role {
                    all.push((uid.clone(), name.clone(), submitter.clone()));
                }
            }
        }
        let mut any = false;
        for (uid, name, submitter) in all {
            any |= self.go_on(&uid, &name, submitter, now);
        }
        any
    }

    fn go_on(&mut self, uid: &Uid, name: &str, submitter: Submitter, now: Timestamp) -> bool {
        let id = &submitter.id;
        if let Some(head) = &submitter.follows {
            let is_over = match self.ray.status(head, id) {
                // The connection broke.
                None => Some(1),
                // The log ends well, however the job did.
                Some(status) => status.is_terminal().then_some(0),
            };
            if let Some(code) = is_over {
                self.end(uid, name, code, now);
            }
            return is_over.is_some();
        }
        if submitter.looks_at > now {
            return false;
        }
        let Some(head) = self.head_at(&submitter.at) else {
            let looks_at = now.saturating_add(LOOK_AGAIN).unwrap_or(Timestamp::MAX);
            let next = Submitter {
                looks_at,
                ..submitter
            };
            self.set_role(uid, name, Role::Submitter(next));
            return false;
        };
        if self.ray.status(&head, id).is_none() {
            let is = self.ray.session(&head).map(|it| &**it);
            let is_other = submitter.session.is_some() && is != submitter.session.as_deref();
            if is_other && !self.flaws.ignores_fence {
                self.end(uid, name, OTHER_SESSION, now);
                return true;
            }
            let entrypoint = submitter.entrypoint.clone();
            if self.ray.submit(&head, id, &entrypoint, now) != DeedOutcome::Done {
                self.end(uid, name, 1, now);
                return true;
            }
        }
        let next = Submitter {
            follows: Some(head),
            ..submitter
        };
        self.set_role(uid, name, Role::Submitter(next));
        true
    }

    fn set_role(&mut self, uid: &Uid, name: &str, role: Role) {
        let place = self.pods.get_mut(uid);
        if let Some(living) = place.and_then(|it| it.living.get_mut(name)) {
            living.role = role;
        }
    }

    /// The Ray container of every head dies.
    pub(super) fn kill_heads(&mut self, now: Timestamp) {
        let heads: Vec<Run> = self.ray.heads().cloned().collect();
        for head in heads {
            self.end(&head.pod, &head.container, 128 + super::KILLED, now);
        }
    }
}
