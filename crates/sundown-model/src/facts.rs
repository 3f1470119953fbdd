//! What was answered to a need, with the moment of asking. A fact is an observation with an age;
//! whether it is young enough is for the decision to say.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Object, ObjectKey, Resource, Step};

/// How many live reads are remembered. A forgotten one is asked again.
const LIVE_MAX: usize = 4_096;

/// The answers to all needs so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Facts {
    #[serde(with = "pairs")]
    live: BTreeMap<ObjectKey, LiveFact>,
    live_order: VecDeque<ObjectKey>,
    fresh: BTreeMap<Resource, Step>,
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

    /// Records a live read.
    pub fn set_live(&mut self, key: ObjectKey, fact: LiveFact) {
        if self.live.insert(key.clone(), fact).is_none() {
            self.live_order.push_back(key);
        }
        if self.live_order.len() > LIVE_MAX {
            let oldest = self
                .live_order
                .pop_front()
                .expect("the queue is longer than its bound");
            self.live.remove(&oldest);
        }
    }

    /// Records that a resource was caught up with what was committed before `step`.
    pub fn set_fresh(&mut self, resource: Resource, step: Step) {
        let since = self.fresh.entry(resource).or_default();
        *since = step.max(*since);
    }
}

/// JSON has only text keys, so the map travels as a list of pairs.
mod pairs {
    use super::{BTreeMap, Deserialize, LiveFact, ObjectKey, Serialize};

    pub(super) fn serialize<S: serde::Serializer>(
        map: &BTreeMap<ObjectKey, LiveFact>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        map.iter().collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<ObjectKey, LiveFact>, D::Error> {
        Ok(Vec::deserialize(deserializer)?.into_iter().collect())
    }
}
