//! What the paths of `/scale` ask of the objects that have it.

use serde_json::Value;
use sundown_schema::Problem;

use crate::route::Part;
use crate::scale::ScalePaths;

/// What is wrong at the paths of a Scale; a status is not asked about its spec.
pub(super) fn problems(paths: &ScalePaths, object: &Value, part: Part) -> Vec<Problem> {
    let mut problems = Vec::new();
    if part != Part::Status {
        problems.extend(count(object, &paths.spec_replicas));
    }
    problems.extend(count(object, &paths.status_replicas));
    if let Some(path) = paths.label_selector.as_deref() {
        let read = typed(object, path, "string", Value::is_string);
        let told = |why: String| Problem::invalid(path, &Value::from(""), &why);
        problems.extend(read.err().map(told));
    }
    problems
}

fn count(object: &Value, path: &str) -> Option<Problem> {
    let found = match typed(object, path, "int64", |value| value.as_i64().is_some()) {
        Ok(found) => found?,
        Err(why) => return Some(Problem::invalid(path, &Value::from(0), &why)),
    };
    let number = found.as_i64()?;
    let why = if number < 0 {
        "should be a non-negative integer".to_owned()
    } else if number > i64::from(i32::MAX) {
        format!("should be less than or equal to {}", i32::MAX)
    } else {
        return None;
    };
    Some(Problem::invalid(path, found, &why))
}

/// The value at a path; Err if something on the way is of another type, in Go's words.
fn typed<'a>(
    object: &'a Value,
    path: &str,
    wanted: &str,
    is_it: impl Fn(&Value) -> bool,
) -> Result<Option<&'a Value>, String> {
    let told = |value: &Value, wanted: &str, done: &[&str]| {
        let shown = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let done = done.join(".");
        let found = go_type(value);
        format!(".{done} accessor error: {shown} is of the type {found}, expected {wanted}")
    };
    let members: Vec<&str> = path.trim_start_matches('.').split('.').collect();
    let mut value = object;
    for (index, member) in members.iter().enumerate() {
        let Value::Object(map) = value else {
            return Err(told(value, "map[string]interface{}", &members[..index]));
        };
        match map.get(*member) {
            Some(found) => value = found,
            None => return Ok(None),
        }
    }
    if is_it(value) {
        Ok(Some(value))
    } else {
        Err(told(value, wanted, &members))
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
