//! What has been observed of the watched resources. Monotone per key; a uid that went stays gone.
//!
//! Who feeds it (lists, watches, replies) is the engine's business; controllers only read.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Catalog, Namespace, Object, ObjectKey, Position, Resource, Step, Uid};

/// How many gone uids are remembered. A forgotten one costs a live read, never a wrong decision.
const GONE_MAX: usize = 65_536;

/// The observed state of all watched resources.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Cache {
    catalog: Arc<Catalog>,
    tables: BTreeMap<Resource, Table>,
    gone: BTreeSet<Uid>,
    gone_order: VecDeque<Uid>,
}

/// The observed state of one resource.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Table {
    #[serde(with = "entries")]
    objects: BTreeMap<ObjectKey, Entry>,
    /// How far the list and watch have come; None until a first complete list.
    position: Option<Position>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    object: Arc<Object>,
    /// When this revision of it was first seen.
    step: Step,
}

/// What putting an object into the cache changed.
#[derive(Debug, Clone, PartialEq)]
pub enum Put {
    /// Older than what is known, or a ghost of something gone.
    Ignored,
    /// The same revision again.
    Same,
    Added,
    Updated {
        old: Arc<Object>,
    },
    /// The key changed hands: the old incarnation is gone.
    Replaced {
        old: Arc<Object>,
    },
}

impl Cache {
    /// What is served.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The newest observation of a key.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<Object>> {
        Some(&self.tables.get(&key.resource)?.objects.get(key)?.object)
    }

    /// When the cached revision of a key was first seen.
    pub fn seen_step(&self, key: &ObjectKey) -> Option<Step> {
        Some(self.tables.get(&key.resource)?.objects.get(key)?.step)
    }

    /// Whether this incarnation was seen to go. False means nothing.
    pub fn is_gone(&self, uid: &Uid) -> bool {
        self.gone.contains(uid)
    }

    /// Whether a first complete list of the resource is in.
    pub fn is_synced(&self, resource: &Resource) -> bool {
        self.position(resource).is_some()
    }

    /// How far the resource has been observed.
    pub fn position(&self, resource: &Resource) -> Option<&Position> {
        self.tables.get(resource)?.position.as_ref()
    }

    /// The objects of one resource, in key order.
    pub fn of(&self, resource: &Resource) -> impl Iterator<Item = &Arc<Object>> + use<'_> {
        let table = self.tables.get(resource);
        table
            .into_iter()
            .flat_map(|table| table.objects.values().map(|entry| &entry.object))
    }

    /// The objects of all resources in a namespace, in key order.
    pub fn within(&self, namespace: &Namespace) -> impl Iterator<Item = &Arc<Object>> {
        let resources = self.tables.keys();
        resources.flat_map(move |resource| self.of_within(resource, namespace))
    }

    /// The objects of one resource in a namespace, in key order.
    pub fn of_within(
        &self,
        resource: &Resource,
        namespace: &Namespace,
    ) -> impl Iterator<Item = &Arc<Object>> + use<'_> {
        let namespace = Some(namespace.clone());
        let first = ObjectKey {
            resource: resource.clone(),
            namespace: namespace.clone(),
            name: "".into(),
        };
        let table = self.tables.get(resource);
        let entries = table.map(|table| table.objects.range(first..));
        let entries = entries.into_iter().flatten();
        entries
            .take_while(move |(key, _)| key.namespace == namespace)
            .map(|(_, entry)| &entry.object)
    }

    /// All objects, in key order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.tables
            .values()
            .flat_map(|table| table.objects.values().map(|entry| &entry.object))
    }

    /// The resources that are held.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.tables.keys()
    }

    /// Replaces what is served.
    pub fn set_catalog(&mut self, catalog: Arc<Catalog>) {
        self.catalog = catalog;
    }

    /// Takes in an observation from a watch or a reply.
    ///
    /// Guarantees: per key the revision never goes back, and an incarnation that went never returns.
    pub fn put(&mut self, object: Arc<Object>, step: Step) -> Put {
        // A reply may be older than the watch; if the key is vacant then, the watch saw it go.
        let vacant = self.get(&object.key).is_none();
        let table = self.tables.get(&object.key.resource);
        if vacant && table.is_some_and(|table| table.reaches(&object.position())) {
            return Put::Ignored;
        }
        self.put_listed(object, step)
    }

    /// Takes in an observation from a consistent list, which may fill a gap behind our position.
    pub fn put_listed(&mut self, object: Arc<Object>, step: Step) -> Put {
        if self.gone.contains(&object.uid) {
            return Put::Ignored;
        }
        let table = self.tables.entry(object.key.resource.clone()).or_default();
        let Some(entry) = table.objects.get_mut(&object.key) else {
            table
                .objects
                .insert(object.key.clone(), Entry { object, step });
            return Put::Added;
        };
        if entry.object.rv == object.rv && entry.object.uid == object.uid {
            return Put::Same;
        }
        if entry.object.position().reaches(&object.position()) == Some(true) {
            return Put::Ignored;
        }
        let old = std::mem::replace(entry, Entry { object, step }).object;
        if old.uid == entry.object.uid {
            return Put::Updated { old };
        }
        let uid = old.uid.clone();
        self.bury(uid);
        Put::Replaced { old }
    }

    /// Takes in that an incarnation is gone; gives back what was held of it.
    pub fn remove(&mut self, key: &ObjectKey, uid: &Uid) -> Option<Arc<Object>> {
        self.bury(uid.clone());
        let table = self.tables.get_mut(&key.resource)?;
        if table
            .objects
            .get(key)
            .is_some_and(|entry| &entry.object.uid == uid)
        {
            return table.objects.remove(key).map(|entry| entry.object);
        }
        None
    }

    /// Moves the position of a resource forward; never back.
    pub fn advance(&mut self, position: Position) {
        let table = self.tables.entry(position.resource().clone()).or_default();
        if !table.reaches(&position) {
            table.position = Some(position);
        }
    }

    /// Forgets a resource that is no longer served; gives back what was held.
    pub fn forget(&mut self, resource: &Resource) -> Vec<Arc<Object>> {
        let table = self.tables.remove(resource).unwrap_or_default();
        table
            .objects
            .into_values()
            .map(|entry| entry.object)
            .collect()
    }

    fn bury(&mut self, uid: Uid) {
        if self.gone.insert(uid.clone()) {
            self.gone_order.push_back(uid);
        }
        if self.gone_order.len() > GONE_MAX {
            let oldest = self
                .gone_order
                .pop_front()
                .expect("the queue is longer than its bound");
            self.gone.remove(&oldest);
        }
    }
}

impl Table {
    fn reaches(&self, position: &Position) -> bool {
        self.position.as_ref().and_then(|own| own.reaches(position)) == Some(true)
    }
}

/// JSON has only text keys, so the map travels as a list; the keys stand in the objects.
mod entries {
    use super::{BTreeMap, Deserialize, Entry, ObjectKey, Serialize};

    pub(super) fn serialize<S: serde::Serializer>(
        map: &BTreeMap<ObjectKey, Entry>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        map.values().collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<ObjectKey, Entry>, D::Error> {
        let entries = Vec::<Entry>::deserialize(deserializer)?;
        Ok(entries
            .into_iter()
            .map(|entry| (entry.object.key().clone(), entry))
            .collect())
    }
}
