//! What was answered to a need, with the moment of asking. A fact is an observation with an age;
//! whether it is young enough is for the decision to say.

mod node;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::port::{DeedFact, DeedOutcome, Question, Reply, ReplyFact, Report, Subject, What};
use crate::recent::Recent;
use crate::{Object, ObjectKey, RefusalReason, Resource, Step, Uid, node as machine};

/// How many answers of one sort are remembered. A forgotten one is asked again.
const REMEMBERED_MAX: usize = 4_096;

/// What Ray is asked while it fails to answer, it is asked every few seconds. Failures that are further apart are
/// not in a row: the machine slept, and nobody knows what was in between.
const SILENCE_GAP_MAX: SignedDuration = SignedDuration::from_mins(1);

/// The same of what is tried again after a pause, which is a minute at most.
const TRIAL_GAP_MAX: SignedDuration = SignedDuration::from_mins(3);

/// The answers to all needs so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Facts {
    live: Recent<ObjectKey, LiveFact, REMEMBERED_MAX>,
    fresh: BTreeMap<Resource, Step>,
    /// What is served is known as of this step.
    #[serde(default)]
    served: Step,
    replies: Recent<Question, ReplyFact, REMEMBERED_MAX>,
    deeds: Recent<Subject, DeedFact, REMEMBERED_MAX>,
    /// Of objects that could not be made or changed, until they are.
    #[serde(default)]
    refusals: Recent<ObjectKey, RefusalFact, REMEMBERED_MAX>,
    /// Of objects that could not be deleted, until they are on their way.
    #[serde(default)]
    refused_deletes: Recent<ObjectKey, RefusedDelete, REMEMBERED_MAX>,
    /// Of objects whose deletion came to nothing, or may have, until they are on their way.
    #[serde(default)]
    failed_deletes: Recent<ObjectKey, FailedFact, REMEMBERED_MAX>,
    /// Of objects that were to be made or changed, the same.
    #[serde(default)]
    failed_writes: Recent<ObjectKey, FailedFact, REMEMBERED_MAX>,
    /// When a status was last written by us.
    #[serde(default)]
    written: Recent<ObjectKey, WrittenFact, REMEMBERED_MAX>,
    /// How often in a row a node or Ray gave one sort of answer.
    streaks: Recent<Question, Streak, REMEMBERED_MAX>,
    node: node::NodeFacts,
}

/// How often in a row the answer to a question was one of its two sorts. It is a fact and not the
/// memory of a controller, so that it is part of what is recorded and flown again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streak {
    /// A probe that found all well; an image that can be had; a Ray that answers.
    pub is_well: bool,
    pub count: u32,
}

/// What a consistent read of one key showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveFact {
    /// The read was sent after this step.
    pub asked: Step,
    /// When the answer came.
    pub answered_at: Timestamp,
    /// None: an authoritative answer that the key is vacant.
    pub found: Option<Arc<Object>>,
}

/// Why an object was not made when that was last tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalFact {
    pub refused_at: Timestamp,
    pub reason: RefusalReason,
    /// In the words of the API server.
    pub message: String,
}

/// Why an object was not deleted when that was last tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RefusedDelete {
    /// The incarnation that was to go.
    uid: Uid,
    refusal: RefusalFact,
}

/// That a write came to nothing when it was last tried, or may have: it was refused, the server was busy, or
/// its answer was lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedFact {
    /// The incarnation that was to go; None: it was to be made or changed.
    uid: Option<Uid>,
    pub failed_at: Timestamp,
    /// How often in a row.
    pub failures: u32,
}

/// That a status of ours was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct WrittenFact {
    written_at: Timestamp,
}

impl Facts {
    /// The last live read of a key.
    pub fn live(&self, key: &ObjectKey) -> Option<&LiveFact> {
        self.live.get(key)
    }

    /// The cache of this resource shows everything that was committed before this step.
    pub fn fresh_since(&self, resource: &Resource) -> Option<Step> {
        self.fresh.get(resource).copied()
    }

    /// Whether the cache of a resource shows everything committed before `step`.
    pub fn is_fresh(&self, resource: &Resource, step: Step) -> bool {
        self.fresh_since(resource).is_some_and(|since| since > step)
    }

    /// Whether the catalog shows every kind that was defined before `step`: a kind that is not known yet may
    /// hold what a decision would miss.
    pub fn is_catalog_fresh(&self, step: Step) -> bool {
        self.served > step
    }

    /// The last answer to a question beyond the API server.
    pub fn reply(&self, question: &Question) -> Option<&ReplyFact> {
        self.replies.get(question)
    }

    /// How often in a row a question had the answer that it had last. That the node did not answer counts
    /// for neither side; that Ray did not is a failure. Answers of Ray before and after a sleep of the machine are
    /// not in a row.
    pub fn streak(&self, question: &Question) -> Option<Streak> {
        self.streaks.get(question).copied()
    }

    /// What became of the last deed on a subject.
    pub fn deed(&self, subject: &Subject) -> Option<&DeedFact> {
        self.deeds.get(subject)
    }

    /// Why the object of this key was refused when it was last to be made or changed (its status aside);
    /// None once it is.
    pub fn refusal(&self, key: &ObjectKey) -> Option<&RefusalFact> {
        self.refusals.get(key)
    }

    /// Why the deletion of this incarnation was refused when it was last tried; None once it is on its
    /// way.
    pub fn refused_delete(&self, key: &ObjectKey, uid: &Uid) -> Option<&RefusalFact> {
        let found = self.refused_deletes.get(key).filter(|it| it.uid == *uid);
        found.map(|it| &it.refusal)
    }

    /// How many deletions were refused and are still to be done.
    pub fn refused_deletes(&self) -> usize {
        self.refused_deletes.len()
    }

    /// Whether there may be more of them than are remembered.
    pub fn forgets_refused_deletes(&self) -> bool {
        self.refused_deletes.is_full()
    }

    /// How the deletion of this incarnation last failed, for whatever reason; None once it is on its way.
    pub fn failed_delete(&self, key: &ObjectKey, uid: &Uid) -> Option<&FailedFact> {
        let found = self.failed_deletes.get(key);
        found.filter(|it| it.uid.as_ref() == Some(uid))
    }

    /// How the making or changing of an object (its status aside) last failed, for whatever reason; None once it
    /// is done.
    pub fn failed_write(&self, key: &ObjectKey) -> Option<&FailedFact> {
        self.failed_writes.get(key)
    }

    /// When a status of this object was last written by us, in this life.
    pub fn written_at(&self, key: &ObjectKey) -> Option<Timestamp> {
        self.written.get(key).map(|it| it.written_at)
    }

    /// A pod on the node, as it was last reported.
    pub fn pod(&self, uid: &Uid) -> Option<&machine::Pod> {
        self.node.pods.get(uid)
    }

    /// All pods on the node.
    pub fn pods(&self) -> impl Iterator<Item = &machine::Pod> {
        self.node.pods.values()
    }

    /// How an image stands, as it was last reported.
    pub fn image(&self, image: &str) -> Option<&machine::Image> {
        self.node.images.get(image)
    }

    /// The names that the node has, as far as we announced them.
    pub fn names(&self) -> Option<&Arc<machine::Names>> {
        self.node.names.as_ref()
    }

    /// Whether a pod that is not known is not on the node.
    pub fn knows_all_pods(&self) -> bool {
        self.node.is_complete
    }

    /// Records a live read.
    pub fn set_live(&mut self, key: ObjectKey, fact: LiveFact) {
        self.live.set(key, fact);
    }

    /// Records an answer.
    pub fn set_reply(&mut self, question: Question, fact: ReplyFact) {
        if let Some(is_well) = fact.reply.is_well() {
            let before = self.streak(&question).filter(|it| it.is_well == is_well);
            let before = before.filter(|_| !self.is_far_from_last(&question, &fact));
            let count = before.map_or(0, |it| it.count).saturating_add(1);
            self.streaks
                .set(question.clone(), Streak { is_well, count });
        }
        if let (Question::Node(query), Reply::Node(Ok(answer))) = (&question, &fact.reply) {
            self.node.note_answer(query, answer);
        }
        self.replies.set(question, fact);
    }

    /// Whether a question to Ray was answered so long after the last time that nothing follows from both.
    fn is_far_from_last(&self, question: &Question, fact: &ReplyFact) -> bool {
        let last = match question {
            Question::Ray(_) => self.reply(question),
            // How often a node is asked is for the pod to say.
            Question::Node(_) => None,
        };
        last.is_some_and(|it| !is_near(it.answered_at, fact.answered_at, SILENCE_GAP_MAX))
    }

    /// Records what became of a deed.
    pub fn set_deed(&mut self, what: &What, fact: DeedFact) {
        if let (What::Node(call), DeedOutcome::Done) = (what, &fact.outcome) {
            self.node.note_done(call);
        }
        self.set_outcome(what.subject(), fact);
    }

    /// Records the outcome of the last deed on a subject.
    pub fn set_outcome(&mut self, subject: Subject, mut fact: DeedFact) {
        fact.failures = match fact.outcome {
            DeedOutcome::Done => 0,
            DeedOutcome::Refused(_) | DeedOutcome::Unknown { .. } => {
                let before = self.deeds.get(&subject);
                let before = before.filter(|it| is_near(it.ended_at, fact.ended_at, TRIAL_GAP_MAX));
                before.map_or(0, |it| it.failures).saturating_add(1)
            }
        };
        self.deeds.set(subject, fact);
    }

    /// Records that an object could not be made or changed.
    pub fn set_refusal(&mut self, key: ObjectKey, fact: RefusalFact) {
        self.refusals.set(key, fact);
    }

    /// Records that an object came, was changed or went: what kept it from that is over.
    pub fn clear_refusal(&mut self, key: &ObjectKey) {
        self.refusals.remove(key);
        self.failed_writes.remove(key);
    }

    /// Records that an object could not be deleted.
    pub fn set_refused_delete(&mut self, key: ObjectKey, uid: Uid, refusal: RefusalFact) {
        self.refused_deletes
            .set(key, RefusedDelete { uid, refusal });
    }

    /// Records that an object is on its way or gone: what kept it from being deleted is over.
    pub fn clear_refused_delete(&mut self, key: &ObjectKey) {
        self.refused_deletes.remove(key);
        self.failed_deletes.remove(key);
    }

    /// Records that the deletion of an object came to nothing, or may have.
    pub fn set_failed_delete(&mut self, key: ObjectKey, uid: Uid, failed_at: Timestamp) {
        let before = self.failed_delete(&key, &uid);
        let fact = FailedFact::after(before, Some(uid), failed_at);
        self.failed_deletes.set(key, fact);
    }

    /// Records that an object was not made or changed, or may not have been.
    pub fn set_failed_write(&mut self, key: ObjectKey, failed_at: Timestamp) {
        let fact = FailedFact::after(self.failed_write(&key), None, failed_at);
        self.failed_writes.set(key, fact);
    }

    /// Records that a status of ours was accepted.
    pub fn set_written(&mut self, key: ObjectKey, written_at: Timestamp) {
        self.written.set(key, WrittenFact { written_at });
    }

    /// Records what a port says by itself.
    pub fn set_report(&mut self, report: Report) {
        match report {
            Report::Node(report) => self.node.take(report),
        }
    }

    /// What the ports would say again of what is known, to a controller that begins anew.
    pub fn reports(&self) -> impl Iterator<Item = Report> {
        self.node.reports().map(Report::Node)
    }

    /// Records that the catalog was caught up with what was defined before `step`.
    pub fn set_served(&mut self, step: Step) {
        self.served = step.max(self.served);
    }

    /// Records that a resource was caught up with what was committed before `step`.
    pub fn set_fresh(&mut self, resource: Resource, step: Step) {
        let since = self.fresh.entry(resource).or_default();
        *since = step.max(*since);
    }
}

impl FailedFact {
    fn after(before: Option<&Self>, uid: Option<Uid>, failed_at: Timestamp) -> Self {
        let before = before.filter(|it| is_near(it.failed_at, failed_at, TRIAL_GAP_MAX));
        Self {
            uid,
            failed_at,
            failures: before.map_or(0, |it| it.failures).saturating_add(1),
        }
    }
}

fn is_near(before: Timestamp, after: Timestamp, gap_max: SignedDuration) -> bool {
    after.duration_since(before) <= gap_max
}
