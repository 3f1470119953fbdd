//! What is posted to the dashboard in `HTTPMode`.
//!
//! Everything is sent as it was meant: no shell is between. The connection is the driver's business.

use serde_json::{Map, Value, json};

use super::runtime_env::whole;
use super::submitter::SubmitError;
use super::{RayJob, runtime_env};

/// The body of a submission. Empty and zero members are left out; the entrypoint always is there,
/// without the white space around it, as in the other modes.
///
/// Errors: the runtime environment or the resources of the entrypoint are malformed.
pub fn submission(job: &RayJob) -> Result<Value, SubmitError> {
    let spec = &job.spec;
    let mut body = Map::new();
    body.insert("entrypoint".into(), json!(spec.entrypoint.trim()));
    if !job.status.job_id.is_empty() {
        body.insert("submission_id".into(), json!(job.status.job_id));
    }
    if let Some(env) = runtime_env(&spec.runtime_env_yaml)?.filter(|env| !env.is_empty()) {
        body.insert("runtime_env".into(), Value::Object(env));
    }
    if !spec.metadata.is_empty() {
        body.insert("metadata".into(), json!(spec.metadata));
    }
    for (name, count) in [
        ("entrypoint_num_cpus", spec.entrypoint_cpus),
        ("entrypoint_num_gpus", spec.entrypoint_gpus),
    ] {
        if count != 0.0 {
            body.insert(name.into(), number(&json!(count)).unwrap_or_default());
        }
    }
    let resources = resources(&spec.entrypoint_resources)?;
    if !resources.is_empty() {
        body.insert("entrypoint_resources".into(), Value::Object(resources));
    }
    Ok(Value::Object(body))
}

fn resources(text: &str) -> Result<Map<String, Value>, SubmitError> {
    if text.is_empty() {
        return Ok(Map::new());
    }
    let failed = |why: String| SubmitError::Resources(format!("{text}: {why}"));
    let read: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| failed(error.to_string()))?;
    let numbers = read.into_iter().map(|(name, value)| match number(&value) {
        Some(value) => Ok((name, value)),
        None => Err(failed(format!("{name} is no number"))),
    });
    numbers.collect()
}

fn number(value: &Value) -> Option<Value> {
    match value {
        Value::Number(number) => Some(Value::Number(
            whole(number).unwrap_or_else(|| number.clone()),
        )),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

#[cfg(test)]
mod tests;
