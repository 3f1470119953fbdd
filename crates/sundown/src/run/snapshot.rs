//! What the API server has shown of a namespace so far: the objects of the kinds that a run looks at.
//!
//! Only a memory: what follows from it is decided by the modules beside this one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use crate::objects::{Known, list_in, text};

/// How many objects are remembered after they went: the exit codes of pods may be all that tells why.
const DEPARTED_MAX: usize = 64;

/// The objects of a namespace.
#[derive(Debug, Clone, Default)]
pub(super) struct Snapshot {
    objects: BTreeMap<Known, BTreeMap<String, Value>>,
    departed: VecDeque<Value>,
    /// Who owned what went: what it owned may end after it.
    owners_departed: VecDeque<(String, Vec<String>)>,
}

/// One thing that the server said.
#[derive(Debug, Clone)]
pub(super) enum Seen {
    /// Everything of a kind.
    Listed(Known, Vec<Value>),
    Put(Known, Value),
    Gone(Known, Value),
}

impl Snapshot {
    /// Takes what the server said.
    pub(super) fn take(&mut self, seen: Seen) {
        match seen {
            Seen::Listed(kind, all) => {
                let all = all
                    .into_iter()
                    .map(|object| (uid(&object).to_owned(), object));
                let before = self.objects.insert(kind, all.collect()).unwrap_or_default();
                let now = &self.objects[&kind];
                let gone = before.into_iter().filter(|(uid, _)| !now.contains_key(uid));
                let gone: Vec<Value> = gone.map(|(_, object)| object).collect();
                for object in gone {
                    self.depart(kind, object);
                }
            }
            Seen::Put(kind, object) => {
                let key = uid(&object).to_owned();
                self.objects.entry(kind).or_default().insert(key, object);
            }
            Seen::Gone(kind, object) => {
                self.objects.entry(kind).or_default().remove(uid(&object));
                self.depart(kind, object);
            }
        }
    }

    fn depart(&mut self, kind: Known, object: Value) {
        if kind == Known::Pod {
            push(&mut self.departed, object);
            return;
        }
        let owners = list_in(&object, "/metadata/ownerReferences").iter();
        let owners = owners.map(|it| text(it, "/uid").to_owned()).collect();
        push(&mut self.owners_departed, (uid(&object).to_owned(), owners));
    }

    /// Whether everything of all kinds has been listed.
    pub(super) fn is_whole(&self) -> bool {
        Known::ALL
            .iter()
            .all(|kind| self.objects.contains_key(kind))
    }

    /// All objects of a kind.
    pub(super) fn of(&self, kind: Known) -> impl Iterator<Item = &Value> {
        self.objects
            .get(&kind)
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    /// The object of this identity.
    pub(super) fn get(&self, kind: Known, uid: &str) -> Option<&Value> {
        self.objects.get(&kind)?.get(uid)
    }

    /// The object of this name.
    pub(super) fn named(&self, kind: Known, name: &str) -> Option<&Value> {
        self.of(kind).find(|it| text(it, "/metadata/name") == name)
    }

    /// Pods with this label, those that went before included.
    pub(super) fn pods_ever<'a>(&'a self, owner: &'a str) -> impl Iterator<Item = &'a Value> {
        let all = self.departed.iter().chain(self.of(Known::Pod));
        all.filter(move |pod| is_owned_by(pod, owner))
    }

    /// The pods that are there and belong to an owner directly.
    pub(super) fn pods_of<'a>(&'a self, owner: &'a str) -> impl Iterator<Item = &'a Value> {
        self.of(Known::Pod)
            .filter(move |pod| is_owned_by(pod, owner))
    }

    /// Whether all that owned an object has gone, so that it follows.
    pub(super) fn is_left_behind(&self, object: &Value) -> bool {
        let owners = list_in(object, "/metadata/ownerReferences");
        let has_gone = |owner: &str| self.owners_departed.iter().any(|(gone, _)| gone == owner);
        !owners.is_empty() && owners.iter().all(|it| has_gone(text(it, "/uid")))
    }

    /// What is there of some objects and of everything that they own, also through others.
    pub(super) fn descendants(&self, roots: &BTreeSet<String>) -> Vec<(Known, &Value)> {
        let mut known = roots.clone();
        loop {
            let count = known.len();
            for object in self.objects.values().flat_map(BTreeMap::values) {
                if known.iter().any(|owner| is_owned_by(object, owner)) {
                    known.insert(uid(object).to_owned());
                }
            }
            for (gone, owners) in &self.owners_departed {
                if owners.iter().any(|owner| known.contains(owner)) {
                    known.insert(gone.clone());
                }
            }
            if known.len() == count {
                break;
            }
        }
        let all = self.objects.iter();
        let all = all.flat_map(|(kind, all)| all.values().map(|object| (*kind, object)));
        all.filter(|(_, object)| known.contains(uid(object)))
            .collect()
    }
}

/// Adds one and forgets the oldest if there are too many.
fn push<T>(departed: &mut VecDeque<T>, one: T) {
    if departed.len() == DEPARTED_MAX {
        departed.pop_front();
    }
    departed.push_back(one);
}

/// The identity of an object.
pub(super) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

fn is_owned_by(object: &Value, owner: &str) -> bool {
    let owners = list_in(object, "/metadata/ownerReferences");
    owners.iter().any(|it| it["uid"] == owner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, owner: &str) -> Value {
        json!({"metadata": {"name": name, "uid": name, "ownerReferences": [{"uid": owner}]}})
    }

    #[test]
    fn what_is_owned_through_others_belongs_to_the_root() {
        let mut snapshot = Snapshot::default();
        snapshot.take(Seen::Put(Known::RayCluster, object("cluster", "job")));
        snapshot.take(Seen::Put(Known::Pod, object("head", "cluster")));
        snapshot.take(Seen::Put(Known::Pod, object("stranger", "else")));
        snapshot.take(Seen::Put(Known::RayJob, object("job", "")));
        let roots = BTreeSet::from(["job".to_owned()]);
        let found = snapshot.descendants(&roots);
        let found: Vec<&str> = found.iter().map(|(_, it)| uid(it)).collect();
        assert_eq!(found, ["job", "cluster", "head"]);
    }

    #[test]
    fn what_ends_after_its_owner_still_belongs_to_the_root() {
        let mut snapshot = Snapshot::default();
        snapshot.take(Seen::Put(Known::RayCluster, object("cluster", "job")));
        snapshot.take(Seen::Put(Known::Pod, object("head", "cluster")));
        snapshot.take(Seen::Gone(Known::RayCluster, object("cluster", "job")));
        let roots = BTreeSet::from(["job".to_owned()]);
        let found = snapshot.descendants(&roots);
        assert_eq!(found.len(), 1);
        assert_eq!(uid(found[0].1), "head");
    }

    #[test]
    fn pods_that_went_are_remembered() {
        let mut snapshot = Snapshot::default();
        snapshot.take(Seen::Listed(
            Known::Pod,
            vec![object("one", "job"), object("two", "job")],
        ));
        snapshot.take(Seen::Gone(Known::Pod, object("one", "job")));
        snapshot.take(Seen::Listed(Known::Pod, Vec::new()));
        assert_eq!(snapshot.pods_of("job").count(), 0);
        assert_eq!(snapshot.pods_ever("job").count(), 2);
        assert!(!snapshot.is_whole());
    }
}
