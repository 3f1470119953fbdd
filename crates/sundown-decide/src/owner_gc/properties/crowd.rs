//! Random owners and dependents, and a server that answers and applies in their midst.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use serde_json::{Value, json};
use sundown_model::{Action, Need, ObjectKey, Resource, Write};

use super::OwnerGc;
use crate::kinds::{FOREGROUND, ORPHAN};
use crate::owner_gc::owners::key_of;
use crate::testing::apply::{Became, apply};
use crate::testing::seeds::{one_of, percent};
use crate::testing::{A, Scene, a, catalog};

/// More rounds than any crowd of this size needs.
const ROUNDS_MAX: usize = 60;

const NAMES: &[(&str, &str)] = &[
    ("configmap", "cm-1"),
    ("configmap", "cm-2"),
    ("event", "event"),
    ("job", "job-1"),
    ("job", "job-2"),
    ("namespace", "ns-1"),
    ("namespace", "ns-2"),
    ("pod", "pod-1"),
    ("pod", "pod-2"),
    ("relic", "relic"),
];

/// What a server holds.
#[derive(Debug, Clone)]
pub(super) struct Crowd {
    objects: BTreeMap<ObjectKey, A>,
    /// Seen once, and then seen to go.
    ended: Vec<A>,
}

/// How a crowd came to rest.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) scene: Scene<OwnerGc>,
    pub(super) gone: Vec<ObjectKey>,
    pub(super) writes: usize,
}

impl Crowd {
    pub(super) fn of(rng: &mut Rng) -> Self {
        let mut crowd = Self {
            objects: BTreeMap::new(),
            ended: Vec::new(),
        };
        for (kind, name) in NAMES {
            let object = some_object(rng, kind, name);
            match rng.u32(..10) {
                0..7 => {
                    crowd.objects.insert(object.key(), object);
                }
                7 if *kind != "relic" => crowd.ended.push(object),
                _ => {}
            }
        }
        crowd
    }

    /// The same crowd, but for what leaves the end to chance in Kubernetes as well: an owner that
    /// waits in two ways or stays after it has waited, a dependent that asks for a way to go.
    pub(super) fn without_choices(mut self) -> Self {
        for object in self.objects.values_mut() {
            let metadata = &mut object.json["metadata"];
            if metadata["deletionTimestamp"].is_null() || !is_watched_plural(&object.resource) {
                metadata["finalizers"] = json!(null);
                metadata["deletionTimestamp"] = json!(null);
            } else if metadata["finalizers"] != json!([ORPHAN]) {
                metadata["finalizers"] = json!([FOREGROUND]);
            }
        }
        self
    }

    pub(super) fn keys(&self) -> Vec<ObjectKey> {
        self.objects.keys().cloned().collect()
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&A> {
        self.objects.get(key)
    }

    /// Everything that can be watched, seen in a random order.
    pub(super) fn scene(&self, rng: &mut Rng) -> Scene<OwnerGc> {
        let watched = self.objects.values().filter(|it| is_watched(it));
        let mut seen: Vec<&A> = watched.chain(&self.ended).collect();
        rng.shuffle(&mut seen);
        let scene = seen
            .into_iter()
            .fold(Scene::new(OwnerGc::default()), Scene::seeing);
        self.ended.iter().fold(scene, Scene::seeing_the_end_of)
    }

    /// Live reads of all that is named as an owner.
    pub(super) fn read_owners(&self, scene: Scene<OwnerGc>) -> Scene<OwnerGc> {
        let named = self.objects.values().flat_map(|it| {
            let object = it.build();
            let key = |owner| key_of(owner, object.key(), &catalog());
            object.owners().iter().filter_map(key).collect::<Vec<_>>()
        });
        let named: BTreeSet<ObjectKey> = named.collect();
        named
            .iter()
            .fold(scene, |scene, key| scene.reading(key, self.get(key)))
    }

    /// Carries out a write and lets the scene see what became of it.
    pub(super) fn apply(&mut self, write: &Write, scene: Scene<OwnerGc>) -> Scene<OwnerGc> {
        let (Write::Delete { at, .. } | Write::Patch { at, .. }) = write else {
            panic!("the collector creates nothing: {write:?}");
        };
        let object = self.objects[at.key()].clone();
        if matches!(write, Write::Delete { .. }) {
            assert!(!self.is_held(&object), "a living owner holds {object:?}");
        }
        match apply(write, &object) {
            Became::Changed(after) => {
                self.objects.insert(after.key(), after.clone());
                scene.seeing(&after)
            }
            Became::Gone => {
                self.objects.remove(at.key());
                scene.seeing_the_end_of(&object)
            }
        }
    }

    /// Answers every need and applies every write until nothing is wanted, or so many are applied.
    pub(super) fn settle(
        &mut self,
        mut scene: Scene<OwnerGc>,
        writes_max: Option<usize>,
    ) -> Settled {
        let (mut gone, mut writes) = (Vec::new(), 0);
        for _ in 0..ROUNDS_MAX {
            let mut is_quiet = true;
            for key in self.keys() {
                let decision = scene.decide(&key, 0);
                for need in decision.needs {
                    is_quiet = false;
                    scene = match need {
                        Need::Live(key) => scene.reading(&key, self.get(&key)),
                        Need::Barrier(_) => scene.caught_up(),
                        Need::Ray(_) | Need::Node(_) => panic!("the collector asks the server"),
                    };
                }
                for action in decision.actions {
                    let Action::Api(write) = action else { continue };
                    if Some(writes) == writes_max {
                        return Settled {
                            scene,
                            gone,
                            writes,
                        };
                    }
                    is_quiet = false;
                    writes += 1;
                    scene = self.apply(&write, scene);
                    gone.extend((!self.objects.contains_key(&key)).then(|| key.clone()));
                }
            }
            if is_quiet {
                return Settled {
                    scene,
                    gone,
                    writes,
                };
            }
        }
        panic!("no rest after {ROUNDS_MAX} rounds: {self:?}");
    }

    /// What has owners, none of which exists.
    pub(super) fn garbage(&self) -> Vec<ObjectKey> {
        let collected = self.objects.values().filter(|it| is_watched(it));
        let garbage = collected.map(A::build).filter(|object| {
            let mut keys = object.owners().iter().map(|owner| {
                let key = key_of(owner, object.key(), &catalog())?;
                let found = self
                    .get(&key)
                    .is_some_and(|it| it.build().uid() == &owner.uid);
                (!found).then_some(key)
            });
            let is_abandoned = !object.owners().is_empty() && keys.all(|key| key.is_some());
            is_abandoned && !object.is_deleting()
        });
        garbage.map(|object| object.key().clone()).collect()
    }

    /// What is left, but for revisions.
    pub(super) fn shape(&self) -> Vec<Value> {
        let without_rv = |it: &A| it.clone().rv(0).json;
        self.objects.values().map(without_rv).collect()
    }

    /// Whether an owner exists that waits for nobody.
    fn is_held(&self, object: &A) -> bool {
        let object = object.build();
        object.owners().iter().any(|owner| {
            let key = key_of(owner, object.key(), &catalog());
            let found = key.and_then(|key| self.get(&key)).map(A::build);
            found.is_some_and(|found| {
                let waits = found.has_finalizer(FOREGROUND) || found.has_finalizer(ORPHAN);
                found.uid() == &owner.uid && !(found.is_deleting() && waits)
            })
        })
    }
}

/// The collector watches what can be deleted, but for events.
fn is_watched(object: &A) -> bool {
    is_watched_plural(&object.resource)
}

fn is_watched_plural(resource: &Resource) -> bool {
    !matches!(resource.plural(), "relics" | "events")
}

fn some_object(rng: &mut Rng, kind: &str, name: &str) -> A {
    let mut object = a(kind, name).rv(rng.u64(1..100));
    for _ in 0..rng.usize(..4) {
        object = object.referring(some_reference(rng));
    }
    let mut finalizers = [FOREGROUND, ORPHAN, "example.com/mine"].to_vec();
    finalizers.retain(|_| percent(rng, 30));
    if !finalizers.is_empty() {
        object = if percent(rng, 60) {
            object.deleting(&finalizers)
        } else {
            object.with("/metadata/finalizers", json!(finalizers))
        };
    }
    object
}

fn some_reference(rng: &mut Rng) -> Value {
    let (kind, name) = one_of(rng, NAMES);
    let owner = a(kind, name);
    let mut reference = json!({
        "apiVersion": owner.json["apiVersion"], "kind": owner.json["kind"],
        "name": name, "uid": owner.json["metadata"]["uid"],
    });
    match rng.u32(..20) {
        0 => reference["uid"] = json!("uid-of-another"),
        1 => reference["kind"] = json!("Unknown"),
        2 => reference["apiVersion"] = json!("v9"),
        3 => reference["name"] = json!("nobody"),
        _ => {}
    }
    if percent(rng, 40) {
        reference["blockOwnerDeletion"] = json!(rng.bool());
    }
    reference
}
