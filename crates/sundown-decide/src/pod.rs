//! The kubelet's head: what each pod of this node needs next. The hands are the node's.
//!
//! Two rules keep every run single, whoever is killed when. A run starts only after its attempt stands
//! in the pod's status, beside the condition that the pod has its place on the node; and a pod that had
//! its place and is not on a node that has reported everything is lost: what may have run of it ended,
//! and the next run is the next attempt.

mod account;
mod chart;
mod conditions;
mod confinement;
mod decide;
mod downward;
pub mod expand;
mod hook;
mod image;
mod launch;
mod memory;
mod notes;
mod probe;
mod reason;
mod references;
pub mod room;
mod sandbox;
mod status;
mod stop;
#[cfg(test)]
mod tests;
mod unsupported;
mod user;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sundown_model::{
    Action, Cache, Change, Controller, Decision, Deed, DeedOutcome, Facts, Grant, Interest, Object,
    ObjectKey, Part, Permit, Port, Question, Report, Scope, Sight, Subject, Uid, What, node,
};

use crate::json::after;
use crate::kinds::{CONFIG_MAP, NODE, POD, SECRET, SERVICE_ACCOUNT};
use view::PodView;

pub use launch::{API_HOST, API_PORT};
pub use probe::Purpose;
pub use reason::Reason;
pub use sandbox::DOMAIN;

/// The name of the one node.
pub const NODE_NAME: &str = "sundown";

/// How long a deed that was done has for showing in a report before it is done again.
const SETTLES_SECONDS: i64 = 1;

/// What is decided on, one at a time. Probes and images have keys of their own, so that a slow
/// answer never holds up the end of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Key {
    Pod(ObjectKey),
    Probe(ObjectKey, Arc<str>, Purpose),
    Image(Arc<str>),
    /// Something on the node, by the uid of its pod.
    Stray(Uid),
}

/// The controller; it remembers which pods are bound to the node and what the node has.
#[derive(Debug, Clone, Default)]
pub struct Pods {
    bound: BTreeMap<Uid, ObjectKey>,
    reported: BTreeSet<Uid>,
}

impl Controller for Pods {
    type Key = Key;
    type Reason = Reason;

    const NAME: &'static str = "pod";
    const TOLD_BY: &'static str = "kubelet";
    const INTERESTS: &'static [Interest] = &[
        Interest {
            scope: Scope::One(POD),
            fields: view::FIELDS,
        },
        Interest {
            scope: Scope::One(NODE),
            fields: &["/status/addresses", "/status/allocatable"],
        },
        Interest {
            scope: Scope::One(SERVICE_ACCOUNT),
            fields: &["/automountServiceAccountToken"],
        },
        // That they changed, never what they hold.
        Interest {
            scope: Scope::One(CONFIG_MAP),
            fields: &[],
        },
        Interest {
            scope: Scope::One(SECRET),
            fields: &[],
        },
    ];
    const GRANTS: &'static [Grant] = &[Grant {
        group: Some(POD.group),
        plural: Some(POD.plural),
        permits: &[Permit::Patch(Part::Status), Permit::Finish],
    }];
    const PORTS: &'static [Port] = &[Port::Node];

    fn observe(&mut self, change: &Change, cache: &Cache, touched: &mut BTreeSet<Key>) {
        match change {
            Change::Added(object) | Change::Updated { new: object, .. } => {
                self.follow(object, touched);
                self.touch_readers(object, cache, touched);
            }
            Change::Deleted(object) | Change::Forgotten(object) => {
                if object.key().resource.is(&POD) {
                    self.bound.remove(object.uid());
                    touched.insert(Key::Stray(object.uid().clone()));
                }
            }
            Change::Freshness(resource) if resource.is(&POD) => {
                touched.extend(self.reported.iter().cloned().map(Key::Stray));
            }
            Change::Report(Report::Node(report)) => self.reported(report, cache, touched),
            Change::Answered(Question::Node(node::Query::Probe { run, .. })) => {
                let key = self.bound.get(&run.pod);
                touched.extend(key.cloned().map(Key::Pod));
            }
            Change::Answered(Question::Node(node::Query::Image { image })) => {
                self.touch_users(image, cache, touched);
            }
            Change::Read(_)
            | Change::Refused(_)
            | Change::Freshness(_)
            | Change::Catalog
            | Change::Answered(Question::Ray(_)) => {}
        }
    }

    fn decide(&self, key: &Key, sight: Sight<'_>) -> Decision<Reason> {
        match key {
            Key::Pod(key) => match sight.cache.get(key) {
                Some(pod) if is_bound(pod) => decide::decide(&PodView::of(pod), &sight),
                Some(_) => Decision::idle(Reason::NotOurs),
                None => Decision::idle(Reason::Gone),
            },
            Key::Probe(key, name, purpose) => {
                let Some(pod) = sight.cache.get(key).filter(|pod| is_bound(pod)) else {
                    return Decision::idle(Reason::NothingToProbe);
                };
                let pod = PodView::of(pod);
                let container = pod.containers().find(|it| it.name == *name);
                container.map_or_else(
                    || Decision::idle(Reason::NothingToProbe),
                    |container| probe::decide(&pod, container, *purpose, sight.facts, sight.now),
                )
            }
            Key::Image(image) => match self.first_user(image, sight.cache) {
                Some(about) if sight.facts.knows_all_pods() => {
                    image::decide(image, about, sight.facts, sight.now)
                }
                Some(_) | None => Decision::idle(Reason::ImageUnwanted),
            },
            Key::Stray(uid) => self.stray(uid, sight.cache, sight.facts, sight.now),
        }
    }

    fn keys_about(&self, object: &Object) -> Vec<Key> {
        if !object.key().resource.is(&POD) {
            return Vec::new();
        }
        let pod = PodView::of(object);
        let images: BTreeSet<_> = pod.containers().map(|it| it.image.clone()).collect();
        let images = images.into_iter().map(Key::Image);
        let own = Key::Pod(object.key().clone());
        [own]
            .into_iter()
            .chain(images.filter(|_| is_bound(object)))
            .collect()
    }
}

impl Pods {
    /// A pod came or changed.
    fn follow(&mut self, object: &Object, touched: &mut BTreeSet<Key>) {
        if !object.key().resource.is(&POD) {
            return;
        }
        if !is_bound(object) {
            self.bound.remove(object.uid());
            return;
        }
        self.bound
            .insert(object.uid().clone(), object.key().clone());
        Self::touch(object, touched);
    }

    fn touch(object: &Object, touched: &mut BTreeSet<Key>) {
        let key = object.key();
        touched.insert(Key::Pod(key.clone()));
        if view::is_finished(object) {
            return;
        }
        let pod = PodView::of(object);
        for container in pod.containers() {
            if view::may_start(object) {
                touched.insert(Key::Image(container.image.clone()));
            }
            for purpose in probe::Purpose::ALL {
                if probe::ProbeView::of(container, purpose).is_some() {
                    let name = container.name.clone();
                    touched.insert(Key::Probe(key.clone(), name, purpose));
                }
            }
        }
    }

    fn reported(&mut self, report: &node::Report, cache: &Cache, touched: &mut BTreeSet<Key>) {
        let of_one = |uid: &Uid, bound: &BTreeMap<Uid, ObjectKey>| bound.get(uid).cloned();
        match report {
            node::Report::All(pods) => {
                self.reported = pods.iter().map(|pod| pod.pod.clone()).collect();
                touched.extend(self.reported.iter().cloned().map(Key::Stray));
                for key in self.bound.values() {
                    if let Some(object) = cache.get(key) {
                        Self::touch(object, touched);
                    }
                }
            }
            node::Report::Pod(pod) => {
                self.reported.insert(pod.pod.clone());
                match of_one(&pod.pod, &self.bound).and_then(|key| cache.get(&key)) {
                    Some(object) => Self::touch(object, touched),
                    None => {
                        touched.insert(Key::Stray(pod.pod.clone()));
                    }
                }
            }
            node::Report::Removed { pod } => {
                self.reported.remove(pod);
                touched.extend(of_one(pod, &self.bound).map(Key::Pod));
            }
            node::Report::Image { image, .. } => self.touch_users(image, cache, touched),
            node::Report::Away { .. } => {}
        }
    }

    /// The pods that may wait for a `ConfigMap` or a Secret.
    fn touch_readers(&self, object: &Object, cache: &Cache, touched: &mut BTreeSet<Key>) {
        let resource = &object.key().resource;
        if !resource.is(&CONFIG_MAP) && !resource.is(&SECRET) {
            return;
        }
        let readers = self.bound.values().filter(|key| {
            let pod = cache.get(key);
            pod.is_some_and(|pod| references::may_wait(&PodView::of(pod), object.key()))
        });
        touched.extend(readers.cloned().map(Key::Pod));
    }

    fn touch_users(&self, image: &Arc<str>, cache: &Cache, touched: &mut BTreeSet<Key>) {
        touched.insert(Key::Image(image.clone()));
        let users = self.users(image, cache);
        touched.extend(users.map(|key| Key::Pod(key.clone())));
    }

    /// The pods that want an image and may still start something.
    fn users<'a>(
        &'a self,
        image: &'a Arc<str>,
        cache: &'a Cache,
    ) -> impl Iterator<Item = &'a ObjectKey> {
        self.bound.values().filter(move |key| {
            let pod = cache.get(key);
            pod.is_some_and(|pod| {
                view::may_start(pod) && view::images(pod).any(|it| it == &**image)
            })
        })
    }

    fn first_user<'a>(&'a self, image: &'a Arc<str>, cache: &'a Cache) -> Option<&'a ObjectKey> {
        self.users(image, cache).next()
    }

    /// Something on the node without its pod.
    ///
    /// A pod gets its place only after we have seen its object, in this life or in one before. So it
    /// stands in every list that is taken later, unless it is gone.
    fn stray(&self, uid: &Uid, cache: &Cache, facts: &Facts, now: Timestamp) -> Decision<Reason> {
        let pods = POD.resource();
        let is_proven = cache.is_gone(uid) || cache.is_synced(&pods);
        let is_there = facts.knows_all_pods() && facts.pod(uid).is_some();
        let has_pod = self.bound.contains_key(uid) || cache.of(&pods).any(|it| it.uid() == uid);
        if !is_there || !is_proven || has_pod {
            return Decision::idle(Reason::NotStray);
        }
        if let Some(until) = settles_at(facts, &Subject::Removal(uid.clone()), now) {
            return Decision::wake_at(until, Reason::Stray);
        }
        // Its own key went with it; a brake on the node holds what is done to strays.
        let about = ObjectKey::cluster(&NODE.resource(), NODE_NAME);
        let what = What::Node(node::Call::Remove { pod: uid.clone() });
        Decision::act(Action::Do(Deed { about, what }), Reason::Stray)
    }
}

fn is_bound(object: &Object) -> bool {
    object
        .field("/spec/nodeName")
        .and_then(serde_json::Value::as_str)
        == Some(NODE_NAME)
}

fn deed(pod: &PodView<'_>, call: node::Call) -> Action {
    Action::Do(Deed {
        about: pod.object.key().clone(),
        what: What::Node(call),
    })
}

/// Until when a deed that was done is given time to show; None: it is not, or it did not.
fn settles_at(facts: &Facts, subject: &Subject, now: Timestamp) -> Option<Timestamp> {
    let done = facts.deed(subject);
    let done = done.filter(|it| it.outcome == DeedOutcome::Done)?;
    Some(after(done.ended_at, SETTLES_SECONDS)).filter(|until| now < *until)
}

/// Until when a deed is not done again: because it was done, or because what it lacks has not changed.
fn holds_until(sight: &Sight<'_>, subject: &Subject) -> Option<Timestamp> {
    let (facts, now) = (sight.facts, sight.now);
    settles_at(facts, subject, now).or_else(|| references::lacks_until(sight, facts.deed(subject)?))
}
