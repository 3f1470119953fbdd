//! JSON patches with the semantics of Go's evanphx/json-patch, which clients rely on.
//!
//! The differences to RFC 6902 are all shimmed before the crate sees an operation: `test` of null on
//! a missing path holds (kube-rs' finalizer helper sends it), `-1` is the last element, `replace` of
//! a missing member adds it, `copy` of a missing one adds null. What a patch may build is bounded in depth and size: copies of copies would grow without end.
//! So is what it may shift: each insertion at the head of a list moves all of its elements.

use json_patch::PatchOperation;
use json_patch::jsonptr::PointerBuf;
use serde_json::Value;

use crate::document::{DEPTH_MAX, depth};
use crate::failure::Failure;
use crate::negotiate::BODY_BYTES_MAX;

/// As many operations as upstream takes.
const OPERATIONS_MAX: usize = 10_000;

/// How many elements of lists a patch may shift. Ten thousand operations on a list of 1,600 elements stay
/// below it, and take some hundredths of a second; a client that needs more would change our mind.
const SHIFTED_ELEMENTS_MAX: usize = 16 * 1024 * 1024;

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
    let (mut bytes_left, mut shifts_left) = (BODY_BYTES_MAX, SHIFTED_ELEMENTS_MAX);
    for mut operation in operations {
        resolve(&mut operation, "path", value);
        resolve(&mut operation, "from", value);
        soften(&mut operation, value);
        let operation: PatchOperation =
            serde_json::from_value(operation).map_err(|_| Failure::patch_failed())?;
        if is_test_of_nothing(&operation, value) {
            continue;
        }
        check_growth(&operation, value, &mut bytes_left)?;
        check_shifts(&operation, value, &mut shifts_left)?;
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

/// Refuses what would shift the elements of long lists over and over: a body of 3 MiB could ask for ten
/// seconds of it.
fn check_shifts(
    operation: &PatchOperation,
    document: &Value,
    shifts_left: &mut usize,
) -> Result<(), Failure> {
    let behind = |path: &PointerBuf| elements_behind(document, path.as_str());
    let shifted = match operation {
        PatchOperation::Add(add) => behind(&add.path),
        PatchOperation::Copy(copy) => behind(&copy.path),
        PatchOperation::Remove(remove) => behind(&remove.path),
        PatchOperation::Move(moved) => behind(&moved.from) + behind(&moved.path),
        PatchOperation::Replace(_) | PatchOperation::Test(_) => 0,
    };
    *shifts_left = shifts_left.checked_sub(shifted).ok_or_else(|| {
        Failure::too_costly(&format!(
            "the patch inserts or removes in front of too many elements of lists: limit is \
             {SHIFTED_ELEMENTS_MAX} shifted elements"
        ))
    })?;
    Ok(())
}

/// How many elements of a list stand at a place or behind it; none where there is no list.
fn elements_behind(document: &Value, pointer: &str) -> usize {
    let Some((parent, index)) = pointer.rsplit_once('/') else {
        return 0;
    };
    let list = document.pointer(parent).and_then(Value::as_array);
    match (list, index.parse::<usize>()) {
        (Some(list), Ok(index)) => list.len().saturating_sub(index),
        _ => 0,
    }
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
    // Followed along: asked from the root for each token, a long path below deep objects costs seconds.
    let (mut resolved, mut parent) = (PointerBuf::new(), Some(document));
    for token in &pointer {
        let length = parent.and_then(Value::as_array).map(Vec::len);
        let back = token
            .encoded()
            .strip_prefix('-')
            .and_then(|back| back.parse::<usize>().ok());
        let index = match (length, back) {
            (Some(length), Some(back)) if (1..=length).contains(&back) => Some(length - back),
            _ => None,
        };
        let name = index.map_or_else(|| token.decoded(), |index| index.to_string().into());
        parent = match parent {
            Some(Value::Object(members)) => members.get(&*name),
            Some(Value::Array(list)) => name.parse().ok().and_then(|at: usize| list.get(at)),
            _ => None,
        };
        match index {
            Some(index) => resolved.push_back(index),
            None => resolved.push_back(token),
        }
    }
    *text = resolved.to_string();
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(mut value: Value, operations: &Value) -> Result<Value, Failure> {
        apply(&mut value, operations.to_string().as_bytes())?;
        Ok(value)
    }

    /// Each insertion moved all elements behind it: one request held a worker for ten seconds.
    #[test]
    fn a_patch_that_shifts_long_lists_over_and_over_is_refused_by_name() {
        let long = vec![json!(""); 800_000];
        let document = json!({ "list": long, "other": [] });
        let first = json!({ "op": "add", "path": "/list/0", "value": "" });
        let last = json!({ "op": "remove", "path": "/list/0" });
        let moved = json!({ "op": "move", "from": "/list/0", "path": "/other/-" });
        let copied = json!({ "op": "copy", "from": "/list/0", "path": "/list/1" });
        for operation in [first, last, moved, copied] {
            let operations: Value = std::iter::repeat_n(&operation, 9_999).cloned().collect();
            let refused = patched(document.clone(), &operations).expect_err("it costs too much");
            assert_eq!(
                refused.status()["message"],
                "Request entity too large: the patch inserts or removes in front of too many \
                 elements of lists: limit is 16777216 shifted elements",
                "{operation}"
            );
        }
    }

    #[test]
    fn many_operations_on_usual_lists_are_done() {
        let document = json!({ "list": vec![0; 1_000] });
        let adds =
            std::iter::repeat_n(json!({ "op": "add", "path": "/list/-", "value": 1 }), 5_000);
        let removes = std::iter::repeat_n(json!({ "op": "remove", "path": "/list/0" }), 2_000);
        let operations: Value = adds.chain(removes).collect();
        let found = patched(document, &operations).ok();
        assert_eq!(found, Some(json!({ "list": vec![1; 4_000] })));
    }

    #[test]
    fn negative_indices_are_counted_from_the_end_on_every_level() {
        let document = json!({ "a/b": [[1, 2], [3, { "~": [4, 5] }]] });
        for (path, expect) in [
            ("/a~1b/-1/-1/~0/-2", "/a~1b/1/1/~0/0"),
            ("/a~1b/-3", "/a~1b/-3"),
            ("/a~1b/-", "/a~1b/-"),
            ("/none/-1/-1", "/none/-1/-1"),
            ("", ""),
        ] {
            let mut operation = json!({ "op": "remove", "path": path });
            resolve(&mut operation, "path", &document);
            assert_eq!(operation["path"], expect, "{path}");
        }
    }
}
