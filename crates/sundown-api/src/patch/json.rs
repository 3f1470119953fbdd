//! JSON patches with the semantics of Go's evanphx/json-patch, which clients rely on.
//!
//! Two differences to RFC 6902, both shimmed before the crate sees an operation: `test` of null on
//! a missing path holds (kube-rs' finalizer helper sends it), and `-1` is the last element. What a
//! patch may build is bounded in depth and size: copies of copies would grow without end.

use json_patch::PatchOperation;
use json_patch::jsonptr::PointerBuf;
use serde_json::Value;

use crate::document::{DEPTH_MAX, depth};
use crate::failure::Failure;
use crate::negotiate::BODY_BYTES_MAX;

/// As many operations as upstream takes.
const OPERATIONS_MAX: usize = 10_000;

/// Applies a patch; on an error the value is left half done and must be dropped.
pub(super) fn apply(value: &mut Value, body: &[u8]) -> Result<(), Failure> {
    let operations: Vec<Value> = serde_json::from_slice(body)
        .map_err(|error| Failure::bad_request(format!("error decoding patch: {error}")))?;
    if operations.len() > OPERATIONS_MAX {
        return Err(Failure::too_large(OPERATIONS_MAX));
    }
    let mut budget = BODY_BYTES_MAX;
    for mut operation in operations {
        resolve(&mut operation, "path", value);
        resolve(&mut operation, "from", value);
        let operation: PatchOperation = serde_json::from_value(operation)
            .map_err(|error| Failure::bad_request(format!("error decoding patch: {error}")))?;
        if is_test_of_nothing(&operation, value) {
            continue;
        }
        check_growth(&operation, value, &mut budget)?;
        json_patch::patch(value, &[operation]).map_err(|_| Failure::patch_failed())?;
    }
    Ok(())
}

/// Refuses what would nest too deeply or copy too much.
fn check_growth(
    operation: &PatchOperation,
    document: &Value,
    budget: &mut usize,
) -> Result<(), Failure> {
    let (path, placed) = match operation {
        PatchOperation::Add(add) => (&add.path, Some(&add.value)),
        PatchOperation::Replace(replace) => (&replace.path, Some(&replace.value)),
        PatchOperation::Move(moved) => (&moved.path, document.pointer(moved.from.as_str())),
        PatchOperation::Copy(copy) => (&copy.path, document.pointer(copy.from.as_str())),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => return Ok(()),
    };
    let Some(placed) = placed else {
        return Ok(());
    };
    if path.count() + depth(placed) > DEPTH_MAX {
        return Err(Failure::bad_request("exceeded max depth"));
    }
    let bytes = placed.to_string().len();
    *budget = budget
        .checked_sub(bytes)
        .ok_or_else(|| Failure::too_large(BODY_BYTES_MAX))?;
    Ok(())
}

fn is_test_of_nothing(operation: &PatchOperation, value: &Value) -> bool {
    match operation {
        PatchOperation::Test(test) => {
            test.value.is_null() && value.pointer(test.path.as_str()).is_none()
        }
        PatchOperation::Add(_)
        | PatchOperation::Remove(_)
        | PatchOperation::Replace(_)
        | PatchOperation::Move(_)
        | PatchOperation::Copy(_) => false,
    }
}

/// Turns negative indices of a pointer into positive ones.
fn resolve(operation: &mut Value, member: &str, document: &Value) {
    let Some(Value::String(text)) = operation.get_mut(member) else {
        return;
    };
    let Ok(pointer) = PointerBuf::parse(text.as_str()) else {
        return;
    };
    let mut resolved = PointerBuf::new();
    for token in &pointer {
        let parent = document.pointer(resolved.as_str());
        let length = parent.and_then(Value::as_array).map(Vec::len);
        let back = token
            .encoded()
            .strip_prefix('-')
            .and_then(|back| back.parse::<usize>().ok());
        match (length, back) {
            (Some(length), Some(back)) if (1..=length).contains(&back) => {
                resolved.push_back(length - back);
            }
            _ => resolved.push_back(token),
        }
    }
    *text = resolved.to_string();
}
