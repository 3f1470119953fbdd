//! A map that forgets what came first when it is full. What is forgotten is asked again.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

/// At most `MAX` entries.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(
    serialize = "K: Ord + Clone + Serialize, V: Serialize",
    deserialize = "K: Ord + Clone + Deserialize<'de>, V: Deserialize<'de>"
))]
pub(crate) struct Recent<K, V, const MAX: usize> {
    #[serde(with = "pairs")]
    entries: BTreeMap<K, V>,
    order: VecDeque<K>,
}

impl<K, V, const MAX: usize> Default for Recent<K, V, MAX> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl<K: Ord + Clone, V, const MAX: usize> Recent<K, V, MAX> {
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= MAX
    }

    pub(crate) fn remove(&mut self, key: &K) {
        if self.entries.remove(key).is_some() {
            self.order.retain(|other| other != key);
        }
    }

    pub(crate) fn set(&mut self, key: K, value: V) {
        if self.entries.insert(key.clone(), value).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > MAX {
            let oldest = self.order.pop_front();
            let oldest = oldest.expect("the queue is longer than its bound");
            self.entries.remove(&oldest);
        }
    }
}

/// JSON has only text keys, so the map travels as a list of pairs.
pub(crate) mod pairs {
    use super::{BTreeMap, Deserialize, Serialize};

    pub(crate) fn serialize<K: Serialize, V: Serialize, S: serde::Serializer>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        map.iter().collect::<Vec<_>>().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Ord + Deserialize<'de>,
        V: Deserialize<'de>,
        D: serde::Deserializer<'de>,
    {
        Ok(Vec::<(K, V)>::deserialize(deserializer)?
            .into_iter()
            .collect())
    }
}
