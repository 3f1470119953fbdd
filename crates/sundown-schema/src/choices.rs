//! The values that a schema lists under `enum`. Long lists are not gone through for each value: a request
//! may bring as many values as its definition has choices.

use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher as _};

use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

/// Up to here a look at each is cheaper than a hash.
const UNINDEXED_MAX: usize = 16;

/// What a value may be.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    listed: Box<[Value]>,
    /// Of long lists: the places of values by their hash.
    places: BTreeMap<u64, Vec<usize>>,
}

impl Choices {
    pub(crate) fn new(listed: &[Value]) -> Self {
        let mut places: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        if listed.len() > UNINDEXED_MAX {
            for (place, value) in listed.iter().enumerate() {
                places.entry(hash(value)).or_default().push(place);
            }
        }
        Self {
            listed: listed.into(),
            places,
        }
    }

    /// Whether a value may be there: it is listed, or nothing is.
    pub(crate) fn allow(&self, value: &Value) -> bool {
        if self.listed.len() <= UNINDEXED_MAX {
            return self.listed.is_empty() || self.listed.contains(value);
        }
        let places = self.places.get(&hash(value));
        places.is_some_and(|places| places.iter().any(|&place| self.listed[place] == *value))
    }

    /// In the order of the schema.
    pub(crate) fn listed(&self) -> &[Value] {
        &self.listed
    }
}

/// The same in every run.
fn hash(value: &Value) -> u64 {
    let mut hasher = Xxh3::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn short_and_long_lists_allow_what_they_list_and_nothing_else() {
        assert!(Choices::default().allow(&json!(1)), "nothing is listed");
        let listed = [
            json!("a"),
            json!(1),
            json!(null),
            json!({ "b": [1] }),
            json!(0.0),
        ];
        let more = (100..200).map(|it| json!(it));
        let long: Vec<Value> = listed.iter().cloned().chain(more).collect();
        for choices in [Choices::new(&listed), Choices::new(&long)] {
            for value in &listed {
                assert!(choices.allow(value), "{value}");
            }
            assert!(choices.allow(&json!(-0.0)), "both zeros are equal");
            for value in [json!("1"), json!(1.0), json!({ "b": [2] }), json!("")] {
                assert!(!choices.allow(&value), "{value}");
            }
        }
    }
}
