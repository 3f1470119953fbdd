//! What a strategic merge patch may cost, however often it names one element.

use serde_json::{Map, Value};

use crate::failure::Failure;

/// How many bytes may be gone over once more for elements of one list with one key. Clients that make
/// patches name each element once; upstream has no bound.
const REPEATED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What a patch may still cost. An element that is named once is merged in one pass over it and its
/// patch; each further patch of it is one more pass over all that it has become, and costs as much.
pub(super) struct Budget {
    bytes_left: usize,
}

impl Default for Budget {
    fn default() -> Self {
        let bytes_left = REPEATED_BYTES_MAX;
        Self { bytes_left }
    }
}

impl Budget {
    pub(super) fn spend(&mut self, element: &Map<String, Value>) -> Result<(), Failure> {
        let left = self.bytes_left.checked_sub(weight_of(element));
        self.bytes_left = left.ok_or_else(|| {
            Failure::too_costly(&format!(
                "the patch names the same elements of lists too often: limit is \
                 {REPEATED_BYTES_MAX} bytes of repeated elements"
            ))
        })?;
        Ok(())
    }
}

/// About how many bytes a value has.
fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => 8 + text.len(),
        Value::Array(list) => 8 + list.iter().map(weight).sum::<usize>(),
        Value::Object(map) => weight_of(map),
    }
}

fn weight_of(map: &Map<String, Value>) -> usize {
    let members = map.iter().map(|(name, value)| name.len() + weight(value));
    8 + members.sum::<usize>()
}
