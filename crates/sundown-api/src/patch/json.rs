//! JSON patches with the semantics of Go's evanphx/json-patch, which clients rely on.
//!
//! The differences to RFC 6902 are all shimmed before the crate sees an operation: `test` of null on
//! a missing path holds (kube-rs' finalizer helper sends it), `-1` is the last element, `replace` of
//! a missing member adds it, `copy` of a missing one adds null. What a patch may build is bounded in depth and size: copies of copies would grow without end.

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
    let operations: Vec<Value> = serde_json::from_slice(body).map_err(|_| {
        // The body is JSON, so it is no list.
        let why = "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp";
        Failure::bad_request(format!("error decoding patch: {why}"))
    })?;
    if operations.len() > OPERATIONS_MAX {
        return Err(Failure::too_large(OPERATIONS_MAX));
    }
    let mut budget = BODY_BYTES_MAX;
    for mut operation in operations {
        resolve(&mut operation, "path", value);
        resolve(&mut operation, "from", value);
        soften(&mut operation, value);
        let operation: PatchOperation =
            serde_json::from_value(operation).map_err(|_| Failure::patch_failed())?;
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

/// Replacing or copying what is not there adds, where its parent is an object.
fn soften(operation: &mut Value, document: &Value) {
    let text = |member: &str| operation.get(member).and_then(Value::as_str);
    let (Some(op), Some(path)) = (text("op"), text("path")) else {
        return;
    };
    let is_missing = |pointer: &str| {
        let parent = pointer.rsplit_once('/').map(|(parent, _)| parent);
        let parent = parent.and_then(|parent| document.pointer(parent));
        parent.is_some_and(Value::is_object) && document.pointer(pointer).is_none()
    };
    let adds = match op {
        "replace" => is_missing(path),
        "copy" => text("from").is_some_and(is_missing),
        _ => false,
    };
    if adds && let Some(members) = operation.as_object_mut() {
        members.insert("op".into(), "add".into());
        members.entry("value").or_insert(Value::Null);
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
