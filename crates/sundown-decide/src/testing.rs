//! Builders that read as sentences, and a small scene to decide in. Only for tests.

pub(crate) mod apply;
pub(crate) mod ray;
pub(crate) mod seeds;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sundown_model::{
    Cache, Catalog, Change, Controller, Decision, DeedFact, DeedOutcome, Facts, Form, LiveFact,
    Object, ObjectKey, Position, Question, RefusalFact, RefusalReason, Reply, ReplyFact, Report,
    Resource, ResourceType, Rv, Sight, Step, Subject, Verb, node,
};

use crate::kinds::VOLCANO_JOB;

/// The instant from which tests count.
pub(crate) fn at(seconds: i64) -> Timestamp {
    "2030-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

/// An object in the making.
#[derive(Debug, Clone)]
pub(crate) struct A {
    pub(crate) resource: Resource,
    pub(crate) json: Value,
}

pub(crate) fn a(kind: &str, name: &str) -> A {
    let ty = catalog().find(kind).unwrap().clone();
    let mut json = json!({
        "apiVersion": ty.api_version(),
        "kind": &*ty.kind,
        "metadata": { "name": name, "uid": format!("uid-{name}"), "resourceVersion": "1" },
    });
    if ty.namespaced {
        json["metadata"]["namespace"] = json!("here");
    }
    A {
        resource: ty.resource.clone(),
        json,
    }
}

pub(crate) fn a_job() -> A {
    a("job", "job")
}

pub(crate) fn a_volcano_job() -> A {
    a("jobs.batch.volcano.sh", "job")
}

impl A {
    pub(crate) fn with(mut self, pointer: &str, value: Value) -> Self {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        for part in parent.split('/').skip(1).scan(String::new(), |path, part| {
            *path = format!("{path}/{part}");
            Some(path.clone())
        }) {
            if self.json.pointer(&part).is_none() {
                let (up, name) = part.rsplit_once('/').unwrap();
                self.json.pointer_mut(up).unwrap()[name] = json!({});
            }
        }
        self.json.pointer_mut(parent).unwrap()[field] = value;
        self
    }

    pub(crate) fn ttl(self, seconds: i64) -> Self {
        self.with("/spec/ttlSecondsAfterFinished", json!(seconds))
    }

    pub(crate) fn finished_at(self, seconds: i64) -> Self {
        let at = at(seconds).to_string();
        if self.resource.is(&VOLCANO_JOB) {
            let done = json!({ "phase": "Completed", "lastTransitionTime": at });
            return self.with("/status/state", done);
        }
        let done = json!({ "type": "Complete", "status": "True", "lastTransitionTime": at });
        self.with("/status/conditions", json!([done]))
    }

    pub(crate) fn rv(self, rv: u64) -> Self {
        self.with("/metadata/resourceVersion", json!(rv.to_string()))
    }

    pub(crate) fn uid(self, uid: &str) -> Self {
        self.with("/metadata/uid", json!(uid))
    }

    pub(crate) fn namespace(self, namespace: &str) -> Self {
        self.with("/metadata/namespace", json!(namespace))
    }

    pub(crate) fn deleting(self, finalizers: &[&str]) -> Self {
        self.with("/metadata/deletionTimestamp", json!(at(0).to_string()))
            .with("/metadata/finalizers", json!(finalizers))
    }

    pub(crate) fn owned_by(self, owner: &A) -> Self {
        self.referring(json!({
            "apiVersion": owner.json["apiVersion"],
            "kind": owner.json["kind"],
            "name": owner.json["metadata"]["name"],
            "uid": owner.json["metadata"]["uid"],
        }))
    }

    pub(crate) fn blocking(self, owner: &A) -> Self {
        let mut it = self.owned_by(owner);
        let owners = it.json["metadata"]["ownerReferences"]
            .as_array_mut()
            .unwrap();
        owners.last_mut().unwrap()["blockOwnerDeletion"] = json!(true);
        it
    }

    pub(crate) fn referring(mut self, reference: Value) -> Self {
        let list = &mut self.json["metadata"]["ownerReferences"];
        if list.is_null() {
            *list = json!([]);
        }
        list.as_array_mut().unwrap().push(reference);
        self
    }

    pub(crate) fn build(&self) -> Arc<Object> {
        let mut form = Form::metadata();
        form.add(&[
            "/spec",
            "/status",
            "/addressType",
            "/aggregationRule",
            "/rules",
            "/endpoints",
            "/eventTime",
            "/lastTimestamp",
            "/series",
            "/ports",
            "/metadata/labels",
            "/metadata/annotations",
            "/metadata/creationTimestamp",
            "/metadata/generation",
        ]);
        Arc::new(Object::read(&self.resource, &self.json, &form).unwrap())
    }

    pub(crate) fn key(&self) -> ObjectKey {
        self.build().key().clone()
    }
}

pub(crate) fn catalog() -> Catalog {
    let ty = |group: &str, plural: &str, kind: &str, namespaced| ResourceType {
        resource: Resource::new(group, plural),
        version: "v1".into(),
        served: ["v1".into()].into(),
        kind: kind.into(),
        aliases: [].into(),
        namespaced,
        verbs: [
            Verb::Get,
            Verb::List,
            Verb::Watch,
            Verb::Create,
            Verb::Patch,
            Verb::Delete,
        ]
        .into(),
    };
    Catalog::new([
        ty("", "configmaps", "ConfigMap", true),
        ty("", "events", "Event", true),
        ty("", "namespaces", "Namespace", false),
        ty("", "nodes", "Node", false),
        ty("", "pods", "Pod", true),
        ty("", "persistentvolumeclaims", "PersistentVolumeClaim", true),
        ty("", "persistentvolumes", "PersistentVolume", false),
        ty("", "secrets", "Secret", true),
        ty("", "services", "Service", true),
        ty("discovery.k8s.io", "endpointslices", "EndpointSlice", true),
        ty("batch", "jobs", "Job", true),
        ResourceType {
            version: "v1alpha1".into(),
            served: ["v1alpha1".into()].into(),
            ..ty("batch.volcano.sh", "jobs", "Job", true)
        },
        ty(
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            "CustomResourceDefinition",
            false,
        ),
        ty(
            "rbac.authorization.k8s.io",
            "clusterroles",
            "ClusterRole",
            false,
        ),
        ty("ray.io", "rayclusters", "RayCluster", true),
        ty("ray.io", "rayjobs", "RayJob", true),
        ty("sky.io", "suns", "Sun", true),
        // It can be read and nothing else, so nobody watches it.
        ResourceType {
            verbs: [Verb::Get].into(),
            ..ty("odd.io", "relics", "Relic", true)
        },
    ])
}

/// What a controller sees, step by step.
#[derive(Debug, Clone)]
pub(crate) struct Scene<C> {
    pub(crate) controller: C,
    pub(crate) cache: Cache,
    pub(crate) facts: Facts,
    step: Step,
}

impl<C: Controller> Scene<C> {
    pub(crate) fn new(controller: C) -> Self {
        let mut cache = Cache::default();
        cache.set_catalog(Arc::new(catalog()));
        for ty in catalog().iter() {
            cache.advance(Position::new(ty.resource.clone(), Rv::new(0)));
        }
        Self {
            controller,
            cache,
            facts: Facts::default(),
            step: Step::default(),
        }
    }

    pub(crate) fn seeing(self, object: &A) -> Self {
        self.seeing_as_it_is(object.build())
    }

    pub(crate) fn seeing_as_it_is(mut self, object: Arc<Object>) -> Self {
        self.step = self.step.next();
        let old = self.cache.get(object.key()).cloned();
        self.cache.put(object.clone(), self.step);
        self.tell(&match old {
            Some(old) => Change::Updated { old, new: object },
            None => Change::Added(object),
        })
    }

    pub(crate) fn seeing_the_end_of(mut self, object: &A) -> Self {
        let object = object.build();
        self.cache.remove(object.key(), object.uid());
        self.tell(&Change::Deleted(object))
    }

    /// A live read of a key, asked now.
    pub(crate) fn reading(mut self, key: &ObjectKey, found: Option<&A>) -> Self {
        self.step = self.step.next();
        let found = found.map(A::build);
        let fact = LiveFact {
            asked: self.step,
            answered_at: at(0),
            found,
        };
        self.facts.set_live(key.clone(), fact);
        self
    }

    /// The API server refuses to delete an object.
    pub(crate) fn refusing(mut self, object: &A, message: &str) -> Self {
        let object = object.build();
        let fact = RefusalFact {
            refused_at: at(0),
            reason: RefusalReason::Forbidden,
            message: message.to_owned(),
        };
        self.facts
            .set_refused_delete(object.key().clone(), object.uid().clone(), fact);
        self.tell(&Change::Refused(object.key().clone()))
    }

    /// The node says something.
    pub(crate) fn reported(mut self, report: node::Report) -> Self {
        let report = Report::Node(report);
        self.facts.set_report(report.clone());
        self.tell(&Change::Report(report))
    }

    /// A deed ended so many seconds after the beginning.
    pub(crate) fn done(mut self, subject: Subject, seconds: i64, outcome: DeedOutcome) -> Self {
        let ended_at = at(seconds);
        let asked = self.step;
        let fact = DeedFact {
            asked,
            ended_at,
            outcome,
            failures: 0,
        };
        self.facts.set_outcome(subject, fact);
        self
    }

    /// The node answered a question.
    pub(crate) fn answered(mut self, query: node::Query, seconds: i64, is: node::Answer) -> Self {
        self.step = self.step.next();
        let question = Question::Node(query);
        let fact = ReplyFact {
            asked: self.step,
            answered_at: at(seconds),
            reply: Reply::Node(Ok(is)),
        };
        self.facts.set_reply(question.clone(), fact);
        self.tell(&Change::Answered(question))
    }

    /// A barrier over everything, asked now and passed.
    pub(crate) fn caught_up(mut self) -> Self {
        self.step = self.step.next();
        for ty in catalog().iter() {
            self.facts.set_fresh(ty.resource.clone(), self.step);
        }
        self.facts.set_served(self.step);
        self
    }

    pub(crate) fn decide(&self, key: &C::Key, seconds: i64) -> Decision<C::Reason> {
        self.decide_at(key, at(seconds))
    }

    pub(crate) fn decide_at(&self, key: &C::Key, now: Timestamp) -> Decision<C::Reason> {
        let sight = Sight {
            cache: &self.cache,
            facts: &self.facts,
            now,
        };
        self.controller.decide(key, sight)
    }

    fn tell(mut self, change: &Change) -> Self {
        self.controller
            .observe(change, &self.cache, &mut std::collections::BTreeSet::new());
        self
    }
}
