//! A small stage for the Ray controllers: objects that writes really change, and a Ray that answers.
//! Only for tests.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sundown_model::ray::Refused;
use sundown_model::{
    Action, Controller, Decision, Deed, DeedFact, DeedOutcome, DeedRefusal, LiveFact, Need, Note,
    ObjectKey, Question, RefusalFact, RefusalReason, Reply, ReplyFact, Resource, What, Write, ray,
};

use super::apply::{Became, apply};
use super::{A, Scene, a, at};

/// Who is on the stage, and what time it is.
#[derive(Debug, Clone)]
pub(crate) struct Stage<C> {
    pub(crate) scene: Scene<C>,
    pub(crate) objects: BTreeMap<ObjectKey, A>,
    pub(crate) ray: Ray,
    pub(crate) now: Timestamp,
    pub(crate) notes: Vec<Note>,
    pub(crate) writes: Vec<Write>,
    /// Nothing of this plural can be made, for this reason.
    pub(crate) refuses: Option<(&'static str, RefusalReason)>,
    rv: u64,
}

/// One Ray behind every dashboard.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a way of its own in which it behaves"
)]
#[derive(Debug, Clone, Default)]
pub(crate) struct Ray {
    pub(crate) session: String,
    pub(crate) is_down: bool,
    /// The answer to the next submission is lost, after it was taken.
    pub(crate) loses_answer: bool,
    /// Submissions are answered so, and come to nothing.
    pub(crate) breaks: Option<&'static str>,
    /// The next submission is refused so.
    pub(crate) refuses: Option<Refused>,
    pub(crate) jobs: BTreeMap<String, ray::Job>,
    pub(crate) executions: BTreeMap<String, u32>,
    pub(crate) stops: u32,
    /// How often it was told to stop something while it was down, or refused to.
    pub(crate) refused_stops: u32,
    /// What is told to stop does not.
    pub(crate) is_deaf: bool,
    /// It refuses to stop anything, as of a job of Ray Client.
    pub(crate) refuses_stop: bool,
}

/// A job in this state.
pub(crate) fn ray_job(status: ray::JobStatus) -> ray::Job {
    ray::Job {
        status,
        message: String::new(),
        start_time: 0,
        end_time: 0,
        exit_code: None,
    }
}

impl Ray {
    /// The head is lost, and another comes: nothing is known any more.
    pub(crate) fn restart(&mut self) {
        self.session.push('x');
        self.jobs.clear();
    }

    pub(crate) fn set(&mut self, id: &str, status: ray::JobStatus) {
        self.jobs.insert(id.to_owned(), ray_job(status));
    }

    fn answer(&self, query: &ray::Query) -> Result<ray::Answer, ray::Failure> {
        if self.is_down {
            return Err(ray::Failure {
                kind: ray::FailureKind::Unreachable,
                message: "nobody is there".to_owned(),
            });
        }
        Ok(match query {
            ray::Query::Session { .. } => ray::Answer::Session {
                name: self.session.as_str().into(),
                ray_version: "2.55.0".into(),
            },
            ray::Query::Job { submission_id, .. } => {
                ray::Answer::Job(self.jobs.get(&**submission_id).cloned())
            }
        })
    }

    fn take(&mut self, call: &ray::Call) -> DeedOutcome {
        let refused = |why: Refused| DeedOutcome::Refused(DeedRefusal::new(why, "no"));
        if self.is_down {
            self.refused_stops += u32::from(matches!(call, ray::Call::Stop { .. }));
            return refused(Refused::Unreachable);
        }
        match call {
            ray::Call::Submit { session, job, .. } => {
                let id = job.submission_id.to_string();
                if let Some(reason) = self.refuses.take() {
                    return refused(reason);
                }
                if **session != *self.session {
                    return refused(Refused::OtherSession);
                }
                if self.jobs.contains_key(&id) {
                    return refused(Refused::AlreadyExists);
                }
                if let Some(message) = self.breaks {
                    let message = message.to_owned();
                    return DeedOutcome::Unknown { message };
                }
                self.set(&id, ray::JobStatus::Running);
                *self.executions.entry(id).or_default() += 1;
                if std::mem::take(&mut self.loses_answer) {
                    return DeedOutcome::unanswered();
                }
                DeedOutcome::Done
            }
            ray::Call::Stop {
                session,
                submission_id,
                ..
            } => {
                if session.as_ref().is_some_and(|it| **it != *self.session) {
                    return refused(Refused::OtherSession);
                }
                if self.refuses_stop {
                    self.refused_stops += 1;
                    return refused(Refused::Invalid);
                }
                self.stops += 1;
                if self.jobs.contains_key(&**submission_id) && !self.is_deaf {
                    self.set(submission_id, ray::JobStatus::Stopped);
                }
                DeedOutcome::Done
            }
        }
    }
}

impl<C: Controller> Stage<C> {
    pub(crate) fn new(controller: C) -> Self {
        Self {
            scene: Scene::new(controller),
            objects: BTreeMap::new(),
            ray: Ray {
                session: "session".to_owned(),
                ..Ray::default()
            },
            now: at(0),
            notes: Vec::new(),
            writes: Vec::new(),
            refuses: None,
            rv: 100,
        }
    }

    pub(crate) fn with(mut self, object: A) -> Self {
        self.put(object);
        self
    }

    pub(crate) fn put(&mut self, object: A) {
        self.rv += 1;
        let object = object.rv(self.rv);
        self.scene = self.scene.clone().seeing(&object);
        self.objects.insert(object.key(), object);
    }

    /// Changes what is there.
    pub(crate) fn edit(&mut self, key: &ObjectKey, pointer: &str, value: Value) {
        let object = self.objects[key].clone().with(pointer, value);
        self.put(object);
    }

    pub(crate) fn remove(&mut self, key: &ObjectKey) {
        if let Some(object) = self.objects.remove(key) {
            self.scene = self.scene.clone().seeing_the_end_of(&object);
        }
    }

    /// What was asked and answered is forgotten, as by a restart.
    pub(crate) fn forget(&mut self) {
        self.scene.facts = sundown_model::Facts::default();
    }

    pub(crate) fn json(&self, key: &ObjectKey) -> &Value {
        &self.objects[key].json
    }

    pub(crate) fn of(&self, plural: &str) -> Vec<&A> {
        let all = self.objects.values();
        all.filter(|it| it.resource.plural() == plural).collect()
    }

    pub(crate) fn said(&self) -> BTreeSet<&str> {
        self.notes.iter().map(|note| &*note.reason).collect()
    }

    pub(crate) fn decide(&self, key: &C::Key) -> Decision<C::Reason> {
        self.scene.decide_at(key, self.now)
    }

    pub(crate) fn wait(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// Carries out decisions on a key until one asks for nothing; at most so many.
    #[track_caller]
    pub(crate) fn settle(&mut self, key: &C::Key) -> Decision<C::Reason> {
        for _ in 0..60 {
            let decision = self.step(key);
            let does = |action: &Action| !matches!(action, Action::Tell(_));
            if decision.needs.is_empty() && !decision.actions.iter().any(does) {
                return decision;
            }
        }
        panic!("no end: {:?}", self.decide(key));
    }

    /// Carries out one decision.
    pub(crate) fn step(&mut self, key: &C::Key) -> Decision<C::Reason> {
        // Time goes on a little between two decisions, as it does.
        self.now += SignedDuration::from_millis(10);
        let decision = self.decide(key);
        self.carry_out(&decision);
        decision
    }

    pub(crate) fn carry_out(&mut self, decision: &Decision<C::Reason>) {
        for need in &decision.needs {
            self.know(need);
        }
        if decision.needs.is_empty() {
            for action in &decision.actions {
                self.act(action);
            }
        }
    }

    fn know(&mut self, need: &Need) {
        let asked = self.scene.step.next();
        self.scene.step = asked;
        match need {
            Need::Ray(query) => {
                let fact = ReplyFact {
                    asked,
                    answered_at: self.now,
                    reply: Reply::Ray(self.ray.answer(query)),
                };
                let question = Question::Ray(query.clone());
                self.scene.facts.set_reply(question, fact);
            }
            // As in the engine: what is not served is not read.
            Need::Live(key) if self.scene.cache.catalog().get(&key.resource).is_none() => {}
            Need::Live(key) => {
                let fact = LiveFact {
                    asked,
                    answered_at: self.now,
                    found: self.objects.get(key).map(A::build),
                };
                self.scene.facts.set_live(key.clone(), fact);
            }
            Need::Barrier(_) => self.scene = self.scene.clone().caught_up(),
            Need::Node(_) => panic!("nobody here asks that: {need:?}"),
        }
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Tell(note) => self.notes.push(note.clone()),
            Action::Do(Deed { what, .. }) => {
                let What::Ray(call) = what else {
                    panic!("nobody here does that: {what:?}");
                };
                let outcome = self.ray.take(call);
                // After a refusal there is a pause.
                let pause = i64::from(outcome != DeedOutcome::Done);
                let ended_at = self.now;
                let asked = sundown_model::Step::default();
                let fact = DeedFact {
                    asked,
                    ended_at,
                    outcome,
                    failures: 0,
                };
                self.scene.facts.set_deed(what, fact);
                self.wait(pause);
            }
            Action::Api(write) => {
                self.writes.push(write.clone());
                self.write(write);
            }
        }
    }

    fn is_refused(&mut self, key: &ObjectKey) -> bool {
        let Some((plural, reason)) = self.refuses else {
            return false;
        };
        if key.resource.plural() != plural {
            return false;
        }
        let fact = RefusalFact {
            refused_at: self.now,
            reason,
            message: "no room".to_owned(),
        };
        let facts = &mut self.scene.facts;
        facts.set_failed_write(key.clone(), self.now);
        // As in the engine: that the server is busy says nothing about the object.
        if reason != RefusalReason::Busy {
            facts.set_refusal(key.clone(), fact);
        }
        true
    }

    fn write(&mut self, write: &Write) {
        let key = match write {
            Write::Create(draft) => {
                assert!(
                    !self.objects.contains_key(&draft.key),
                    "{} exists",
                    draft.key
                );
                if self.is_refused(&draft.key) {
                    return;
                }
                self.notes.extend(draft.told.clone());
                self.scene.facts.clear_refusal(&draft.key);
                let object = A {
                    resource: draft.key.resource.clone(),
                    json: draft.body.clone(),
                };
                let name = &draft.key.name;
                let uid = format!("uid-{name}-{}", self.rv);
                let born = json!(self.now.to_string());
                let object = object.uid(&uid).with("/metadata/creationTimestamp", born);
                self.put(object);
                return;
            }
            Write::Patch { at, .. } | Write::Delete { at, .. } | Write::Finish { at } => {
                at.key().clone()
            }
        };
        if matches!(write, Write::Patch { .. }) && self.is_refused(&key) {
            return;
        }
        match apply(write, &self.objects[&key]) {
            Became::Gone => self.remove(&key),
            Became::Changed(object) => {
                let waits = json!(["foregroundDeletion"]);
                let goes = !object.json["metadata"]["deletionTimestamp"].is_null();
                if goes && object.json["metadata"]["finalizers"] == waits {
                    self.remove(&key);
                } else {
                    self.put(object);
                }
            }
        }
    }
}

/// A container with an image.
fn container(name: &str) -> Value {
    json!({"name": name, "image": "rayproject/ray:2.55.0"})
}

/// A cluster of a head and two workers, as a spec.
pub(crate) fn cluster_spec() -> Value {
    json!({
        "rayVersion": "2.55.0",
        "headGroupSpec": {
            "rayStartParams": {},
            "template": {"spec": {"containers": [container("ray-head")]}},
        },
        "workerGroupSpecs": [{
            "groupName": "small", "replicas": 2, "minReplicas": 0, "maxReplicas": 5,
            "numOfHosts": 1,
            "template": {"spec": {"containers": [container("ray-worker")]}},
        }],
    })
}

pub(crate) fn a_cluster() -> A {
    let it = a("raycluster", "demo").with("/spec", cluster_spec());
    it.with("/metadata/generation", json!(1))
}

/// A job that describes its cluster and submits over HTTP.
pub(crate) fn a_ray_job() -> A {
    let spec = json!({
        "entrypoint": "python main.py", "submissionMode": "HTTPMode",
        "rayClusterSpec": cluster_spec(),
    });
    let it = a("rayjob", "counter").with("/spec", spec);
    it.with("/metadata/generation", json!(1))
}

/// The key of something in the namespace of the tests.
pub(crate) fn key(group: &str, plural: &str, name: &str) -> ObjectKey {
    ObjectKey::namespaced(&Resource::new(group, plural), "here", name)
}

/// A pod that runs and is ready.
pub(crate) fn ready_status() -> Value {
    json!({"phase": "Running", "podIP": "10.0.0.1",
           "conditions": [{"type": "Ready", "status": "True"}]})
}
