//! A job together with what it runs on, and what Ray last said.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sundown_kinds::ray_cluster::{ClusterSpec, ClusterStatus, summary};
use sundown_kinds::ray_job::{JobStatus, RayJobStatus, SubmissionMode, validate};
use sundown_kinds::{RayCluster, RayJob};
use sundown_model::{
    Cache, DeedFact, Need, Object, ObjectKey, Question, RefusalFact, Reply, Sight, Step, Subject,
    ray,
};

use super::RayJobs;
use super::intent::Intent;
use super::lapse::Lapse;
use crate::kinds::{CRD, JOB, RAY_CLUSTER, RAY_JOB};
use crate::ray::{beside, is_owned, view};

/// What is read of a submitter.
pub(super) const SUBMITTER_FIELDS: &[&str] = &["/status/conditions"];

/// How many failures in a row end what a bound would end: one may be chance.
pub(super) const FAILURE_COUNT_MIN: u32 = 3;

/// All that a decision on a `RayJob` looks at.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) config: &'a RayJobs,
    pub(super) sight: Sight<'a>,
    pub(super) object: &'a Object,
    pub(super) job: RayJob,
    pub(super) cluster: Cluster<'a>,
    pub(super) submitter: Submitter<'a>,
}

/// The cluster of a job.
#[derive(Debug)]
pub(super) enum Cluster<'a> {
    /// Not seen, or not named yet.
    Absent,
    /// One of that name, on which nothing of this job runs.
    Foreign(&'a Object),
    /// The one that the job is for: made for it, pointed at, or submitted to.
    There(&'a Object, Box<RayCluster>),
}

/// The Job that submits.
#[derive(Debug)]
pub(super) enum Submitter<'a> {
    Absent,
    /// One of that name, which is not this job's.
    Foreign,
    Runs(&'a Object),
    Completed(&'a Object),
    Failed(&'a Object, String),
}

/// What Ray said about a job.
#[derive(Debug, Clone)]
pub(super) struct Told<'a> {
    pub(super) asked: Step,
    pub(super) at: Timestamp,
    pub(super) answer: Result<Option<&'a ray::Job>, String>,
}

impl<'a> View<'a> {
    pub(super) fn of(
        object: &'a Object,
        job: RayJob,
        config: &'a RayJobs,
        sight: Sight<'a>,
    ) -> Self {
        Self {
            cluster: cluster(object, &job, config, sight.cache),
            submitter: submitter(object, sight.cache),
            config,
            sight,
            object,
            job,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.sight.now
    }

    pub(super) fn cluster_key(&self) -> ObjectKey {
        let name = &self.job.status.ray_cluster_name;
        beside(self.object.key(), &RAY_CLUSTER, name)
    }

    pub(super) fn submitter_key(&self) -> ObjectKey {
        beside(self.object.key(), &JOB, &self.object.key().name)
    }

    /// The status to go on from: with what the cluster tells, if that is news.
    pub(super) fn next(&self) -> RayJobStatus {
        let mut next = self.job.status.clone();
        if let Cluster::There(_, cluster) = &self.cluster
            && summary::is_worth_writing(&next.ray_cluster_status, &cluster.status)
        {
            next.ray_cluster_status = cluster.status.clone();
        }
        next
    }

    /// What is stored about the submission of this attempt, to whichever cluster of the name.
    pub(super) fn stored(&self) -> Option<Intent> {
        stored(self.object, &self.job)
    }

    /// The same, if it was to the very cluster that is there.
    pub(super) fn intent(&self) -> Option<Intent> {
        let Cluster::There(cluster, _) = &self.cluster else {
            return None;
        };
        let uid = cluster.uid().as_str();
        self.stored().filter(|it| *it.cluster_uid == *uid)
    }

    /// Whether anything can have been submitted in this attempt, by this controller, by one before it, or by
    /// the user who names a job in `InteractiveMode`.
    pub(super) fn may_be_submitted(&self) -> bool {
        let is_named = self.is_interactive()
            && !self.submission_id().is_empty()
            && !self.config.lapses(Lapse::ForgetsInteractive);
        let is_known = is_named || self.job.status.job_status != JobStatus::New;
        let has_submitter = match self.submitter {
            Submitter::Absent | Submitter::Foreign => false,
            Submitter::Runs(_) | Submitter::Completed(_) | Submitter::Failed(..) => true,
        };
        is_known || has_submitter || self.stored().is_some()
    }

    /// Whether the cluster of this name is not the one that the job was submitted to.
    pub(super) fn has_another_cluster(&self) -> bool {
        self.stored().is_some() && self.intent().is_none()
    }

    /// Whether the cluster was made for this job. The spec does not tell: a selector may be added to it or taken
    /// away at any time.
    pub(super) fn owns_cluster(&self) -> bool {
        match &self.cluster {
            Cluster::There(cluster, _) => is_owned(cluster, self.object),
            Cluster::Absent | Cluster::Foreign(_) => false,
        }
    }

    /// Whether the job is on a cluster that was not made for it: it cannot be made anew, and stays.
    pub(super) fn is_guest(&self) -> bool {
        matches!(self.cluster, Cluster::There(..)) && !self.owns_cluster()
    }

    pub(super) fn is_interactive(&self) -> bool {
        is_interactive(&self.job)
    }

    /// What Ray knows the job by; empty if it has no name yet. That of an interactive job is the user's, from
    /// the moment in which it is named.
    pub(super) fn submission_id(&self) -> &str {
        submission_id(&self.job)
    }

    /// Whether the job shall be suspended: a wish that the spec may not have is not obeyed.
    pub(super) fn shall_be_suspended(&self) -> bool {
        let config = self.config;
        let is_valid = || validate::validate_spec(&self.job, &config.settings.gates).is_ok();
        self.job.spec.suspend && (is_valid() || config.lapses(Lapse::ObeysFlaws))
    }

    /// Whether a question was asked in vain often enough in this life to mean something: the first failure
    /// after a long absence says nothing about the time before.
    pub(super) fn is_silence_proven(&self, query: &ray::Query) -> bool {
        let question = Question::Ray(query.clone());
        let streak = self.sight.facts.streak(&question);
        streak.is_some_and(|it| {
            !it.is_well && it.count >= self.failure_count_min(Lapse::BelievesOneFailure)
        })
    }

    /// How many failures in a row prove something.
    pub(super) fn failure_count_min(&self, lapse: Lapse) -> u32 {
        if self.config.lapses(lapse) {
            1
        } else {
            FAILURE_COUNT_MIN
        }
    }

    pub(super) fn dashboard(&self) -> ray::Dashboard {
        ray::Dashboard(self.job.status.dashboard_url.as_str().into())
    }

    pub(super) fn job_query(&self) -> ray::Query {
        ray::Query::Job {
            at: self.dashboard(),
            submission_id: self.submission_id().into(),
        }
    }

    /// What Ray says about the job, not older than the bounds; Err with the question otherwise.
    ///
    /// An answer counts only if it was asked for after the job became what it is now: one from before a
    /// submission was stored says nothing about it.
    pub(super) fn ask(&self, not_before: Option<Timestamp>) -> Result<Told<'a>, Need> {
        let question = Question::Ray(self.job_query());
        let need = || Need::Ray(self.job_query());
        let fact = self.sight.facts.reply(&question).ok_or_else(need)?;
        let is_young = self.now() < later(fact.answered_at, self.pause(&fact.reply));
        let is_about_this = fact.asked > self.seen();
        let is_late_enough = not_before.is_none_or(|at| fact.answered_at >= at);
        if !(is_young && is_about_this && is_late_enough) {
            return Err(need());
        }
        Ok(Told {
            asked: fact.asked,
            at: fact.answered_at,
            answer: match &fact.reply {
                Reply::Ray(Ok(ray::Answer::Job(job))) => Ok(job.as_ref()),
                Reply::Ray(Err(failure)) => Err(failure.message.clone()),
                Reply::Ray(Ok(ray::Answer::Session { .. })) | Reply::Node(_) => {
                    Err("the answer is to another question".to_owned())
                }
            },
        })
    }

    /// When the job is to be asked for again.
    pub(super) fn next_poll(&self, told: &Told<'_>) -> Timestamp {
        let pause = match told.answer {
            Ok(_) => self.config.limits.poll,
            Err(_) => self.retry(),
        };
        later(told.at, pause)
    }

    fn pause(&self, reply: &Reply) -> SignedDuration {
        match reply {
            Reply::Ray(Ok(_)) => self.config.limits.poll,
            Reply::Ray(Err(_)) | Reply::Node(_) => self.retry(),
        }
    }

    /// Who does not answer is not asked as often.
    fn retry(&self) -> SignedDuration {
        self.config.limits.poll.max(SignedDuration::from_secs(1))
    }

    pub(super) fn deed(&self, subject: &Subject) -> Option<&'a DeedFact> {
        self.sight.facts.deed(subject)
    }

    /// Why an object could not be made when that was last tried.
    pub(super) fn refusal(&self, key: &ObjectKey) -> Option<&'a RefusalFact> {
        self.sight.facts.refusal(key)
    }

    /// When the job was last seen to change.
    pub(super) fn seen(&self) -> Step {
        let key = self.object.key();
        self.sight.cache.seen_step(key).unwrap_or_default()
    }

    /// Whether it is known that nothing bears this name; Err with what has to be read for it.
    pub(super) fn is_absent(&self, key: &ObjectKey) -> Result<bool, Need> {
        if self.sight.cache.get(key).is_some() {
            return Ok(false);
        }
        if key.name.is_empty() && !self.config.lapses(Lapse::ReadsNoName) {
            // Of a status that was edited by hand: a read of it would be of all objects.
            return Ok(true);
        }
        let fact = self.sight.facts.live(key);
        let is_proof = fact.is_some_and(|it| it.asked > self.seen() && it.found.is_none());
        if is_proof {
            return Ok(true);
        }
        if self.is_unserved(key) {
            // Nothing of a kind that is not served is there, and a read of it is never answered.
            return if self.sight.facts.is_catalog_fresh(self.seen()) {
                Ok(true)
            } else {
                Err(Need::Barrier(vec![CRD.resource()]))
            };
        }
        Err(Need::Live(key.clone()))
    }

    fn is_unserved(&self, key: &ObjectKey) -> bool {
        let catalog = self.sight.cache.catalog();
        catalog.get(&key.resource).is_none() && catalog.get(&CRD.resource()).is_some()
    }
}

/// An instant and a duration, without an overflow: what is centuries away never comes.
pub(super) fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// Seconds of a spec as a duration.
pub(super) fn seconds(count: i32) -> SignedDuration {
    SignedDuration::from_secs(count.into())
}

fn is_interactive(job: &RayJob) -> bool {
    job.spec.submission_mode == SubmissionMode::Interactive
}

fn submission_id(job: &RayJob) -> &str {
    let (stored, named) = (&job.status.job_id, &job.spec.job_id);
    if stored.is_empty() && is_interactive(job) {
        named
    } else {
        stored
    }
}

/// What is stored about the submission of the present attempt.
fn stored(object: &Object, job: &RayJob) -> Option<Intent> {
    let (cluster, id) = (job.status.ray_cluster_name.as_str(), submission_id(job));
    let is_this = |it: &Intent| *it.cluster == *cluster && *it.submission_id == *id;
    Intent::of(object).filter(is_this)
}

fn cluster<'a>(object: &Object, job: &RayJob, config: &RayJobs, cache: &'a Cache) -> Cluster<'a> {
    let name = &job.status.ray_cluster_name;
    let found = cache.get(&beside(object.key(), &RAY_CLUSTER, name));
    let Some(found) = found.filter(|_| !name.is_empty()) else {
        return Cluster::Absent;
    };
    // What was submitted runs where it was submitted to, whatever the spec says since.
    let is_of_submission = |it: Intent| *it.cluster_uid == *found.uid().as_str();
    let runs_there =
        stored(object, job).is_some_and(is_of_submission) && !config.lapses(Lapse::LosesGuests);
    if !job.selects_cluster() && !is_owned(found, object) && !runs_there {
        return Cluster::Foreign(found);
    }
    match view::ray_cluster(found) {
        Ok(cluster) => Cluster::There(found, Box::new(cluster)),
        // Nothing can be done with it, but it is this job's.
        Err(_) => Cluster::There(found, Box::new(empty(found))),
    }
}

fn empty(object: &Object) -> RayCluster {
    RayCluster {
        metadata: sundown_kinds::Metadata {
            namespace: object.key().namespace_str().to_owned(),
            name: object.key().name.to_string(),
            uid: object.uid().as_str().to_owned(),
            ..Default::default()
        },
        spec: ClusterSpec::default(),
        status: ClusterStatus::default(),
    }
}

fn submitter<'a>(object: &Object, cache: &'a Cache) -> Submitter<'a> {
    let key = beside(object.key(), &JOB, &object.key().name);
    let Some(found) = cache.get(&key) else {
        return Submitter::Absent;
    };
    if !is_owned(found, object) {
        return Submitter::Foreign;
    }
    let conditions = found.field("/status/conditions").and_then(Value::as_array);
    let is_true = |it: &&Value, kind: &str| it["type"] == kind && it["status"] == "True";
    let find = |kind: &str| conditions?.iter().find(|it| is_true(it, kind));
    if let Some(failed) = find("Failed") {
        let text = |name: &str| failed[name].as_str().unwrap_or("").to_owned();
        let why = format!("Reason: {}. Message: {}", text("reason"), text("message"));
        return Submitter::Failed(found, why);
    }
    match find("Complete") {
        Some(_) => Submitter::Completed(found),
        None => Submitter::Runs(found),
    }
}

/// The jobs that run on a cluster.
pub(super) fn jobs_on(cluster: &ObjectKey, cache: &Cache) -> Vec<ObjectKey> {
    let Some(namespace) = &cluster.namespace else {
        return Vec::new();
    };
    let is_on = |job: &&Arc<Object>| {
        let name = job.field("/status/rayClusterName").and_then(Value::as_str);
        name == Some(&*cluster.name)
    };
    let all = cache.of_within(&RAY_JOB.resource(), namespace);
    all.filter(is_on).map(|job| job.key().clone()).collect()
}
