//! The job that is followed, and where its parts are in a snapshot.

use serde_json::Value;
use sundown_decide::ray_job::ANNOTATION_READER;

use super::snapshot::{Snapshot, uid};
use crate::objects::{Known, text};

/// The job that is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) kind: Known,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
}

/// The parts of a job, as far as they are there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) target: &'a Target,
    /// The job itself.
    pub(super) job: Option<&'a Value>,
    /// The cluster that it runs on.
    pub(super) cluster: Option<&'a Value>,
    /// The Job that submits it.
    pub(super) submitter: Option<&'a Value>,
}

/// How a job gets into its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Submission {
    /// A Job beside the cluster.
    Job,
    /// A container of the head.
    Sidecar,
    /// The controller itself, by HTTP.
    Http,
    /// A person.
    Interactive,
}

impl Target {
    /// What is followed when this object is.
    pub(super) fn of(object: &Value) -> Option<Self> {
        let own = |pointer| text(object, pointer).to_owned();
        Some(Self {
            kind: Known::of(object)?,
            namespace: own("/metadata/namespace"),
            name: own("/metadata/name"),
            uid: own("/metadata/uid"),
        })
    }

    /// As kubectl names it.
    pub(super) fn word(&self) -> String {
        format!("{}/{}", self.kind.word(), self.name)
    }

    /// Finds its parts.
    pub(super) fn parts<'a>(&'a self, snapshot: &'a Snapshot) -> Parts<'a> {
        let job = snapshot.get(self.kind, &self.uid);
        let cluster = match self.kind {
            Known::RayJob => job.map(|job| text(job, "/status/rayClusterName")),
            Known::RayCluster => Some(&*self.name),
            Known::Job | Known::Pod | Known::Service => None,
        };
        let cluster = cluster.filter(|name| !name.is_empty());
        let submitter = match self.kind {
            Known::RayJob => snapshot.named(Known::Job, &self.name),
            Known::RayCluster | Known::Job | Known::Pod | Known::Service => None,
        };
        Parts {
            snapshot,
            target: self,
            job,
            cluster: cluster.and_then(|name| snapshot.named(Known::RayCluster, name)),
            submitter,
        }
    }
}

impl<'a> Parts<'a> {
    /// A text of the job.
    pub(super) fn says(&self, pointer: &str) -> &'a str {
        self.job.map_or("", |job| text(job, pointer))
    }

    /// Whether the job says that its clean-up waits for a reader of its logs.
    pub(super) fn is_held(&self) -> bool {
        let annotations = self.job.map(|job| &job["metadata"]["annotations"]);
        annotations.is_some_and(|all| all.get(ANNOTATION_READER).is_some())
    }

    /// How the job is submitted.
    pub(super) fn submission(&self) -> Submission {
        match self.says("/spec/submissionMode") {
            "SidecarMode" => Submission::Sidecar,
            "HTTPMode" => Submission::Http,
            "InteractiveMode" => Submission::Interactive,
            _ => Submission::Job,
        }
    }

    /// The pods of the cluster with this part in it: `head` or `worker`.
    pub(super) fn nodes(&self, part: &'a str) -> Vec<&'a Value> {
        let Some(cluster) = self.cluster else {
            return Vec::new();
        };
        let pods = self.snapshot.pods_of(uid(cluster));
        let is_part = move |pod: &&Value| pod["metadata"]["labels"]["ray.io/node-type"] == part;
        pods.filter(is_part).collect()
    }

    /// The head, if there is one.
    pub(super) fn head(&self) -> Option<&'a Value> {
        self.nodes("head").into_iter().next()
    }

    /// The pods that submit, or for a plain Job those that are its work.
    pub(super) fn own_pods(&self) -> Vec<&'a Value> {
        let owner = match self.target.kind {
            Known::RayJob => self.submitter,
            Known::Job | Known::RayCluster | Known::Pod | Known::Service => self.job,
        };
        owner.map_or_else(Vec::new, |owner| {
            self.snapshot.pods_of(uid(owner)).collect()
        })
    }

    /// Every pod of it.
    pub(super) fn all_pods(&self) -> Vec<&'a Value> {
        let mut all = self.nodes("head");
        all.extend(self.nodes("worker"));
        all.extend(self.own_pods());
        if self.target.kind == Known::Pod {
            all.extend(self.job);
        }
        all
    }
}
