//! The Job that submits, in `K8sJobMode`.
//!
//! Tokens for clusters that want them are added where those are made.

mod command;

use serde_json::{Map, Value, json};

use super::{RayJob, RuntimeEnvError};
use crate::constants::{
    CONTAINER_SUBMITTER, CREATED_BY, ENV_RUNTIME_ENV, ENV_SESSION, LABEL_CREATED_BY,
    LABEL_ORIGIN_KIND, LABEL_ORIGIN_NAME,
};
use crate::ray_cluster::ClusterSpec;
use crate::settings::Settings;
use crate::template::list;

pub use command::{Submission, Target, submit_command};

/// How often the pod of a submitter is tried again, unless the job says otherwise.
const BACKOFF_LIMIT: i32 = 2;

/// Why a job cannot be submitted as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    #[error(transparent)]
    RuntimeEnv(#[from] RuntimeEnvError),
    #[error("failed to parse Ray version: {0}: invalid semantic version")]
    Version(String),
    #[error("the Ray version must be at least 2.6.0 to use the metadata field")]
    OldVersion,
    #[error("status.dashboardURL is no address: {0:?}")]
    Address(String),
    #[error("entrypointResources is no JSON object of numbers: {0}")]
    Resources(String),
}

/// The Job that submits.
///
/// `cluster` is the spec of the cluster that is submitted to, `session` the session of Ray that was seen
/// there: a submitter that finds another one does not submit.
///
/// Errors: what would be submitted makes no sense; told also when the user's own command is kept.
pub fn job(
    job: &RayJob,
    cluster: &ClusterSpec,
    session: Option<&str>,
    settings: &Settings,
) -> Result<Value, SubmitError> {
    let target = Target::Dashboard(&job.status.dashboard_url);
    let command = submit_command(job, target, session.is_some(), settings)?;
    let labels = labels(job);
    let mut template = template(job, cluster);
    if let Some(container) = template.pointer_mut("/spec/containers/0") {
        complete(container, job, &command, session, settings);
    }
    set_labels(&mut template, &labels);
    let configured = job.spec.submitter_config.flatten();
    Ok(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job.metadata.name,
            "namespace": job.metadata.namespace,
            "labels": labels,
            "ownerReferences": job.metadata.controller_reference("RayJob"),
        },
        "spec": {
            "backoffLimit": configured.unwrap_or(BACKOFF_LIMIT),
            "template": template,
        },
    }))
}

fn labels(job: &RayJob) -> Map<String, Value> {
    [
        (LABEL_ORIGIN_NAME, job.metadata.name.as_str()),
        (LABEL_ORIGIN_KIND, "RayJob"),
        (LABEL_CREATED_BY, CREATED_BY),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), json!(value)))
    .collect()
}

fn set_labels(template: &mut Value, labels: &Map<String, Value>) {
    let own = &mut template["metadata"]["labels"];
    if own.is_null() {
        *own = json!({});
    }
    if let Value::Object(own) = own {
        own.extend(labels.clone());
    }
}

/// The user's template, or a pod with the image of the head.
fn template(job: &RayJob, cluster: &ClusterSpec) -> Value {
    if let Some(template) = &job.spec.submitter_template {
        let mut template = Value::Object(template.0.clone());
        // Without a policy the Job would be refused: that of a pod does not fit a Job.
        if let Some(Value::Object(spec)) = template.get_mut("spec") {
            let policy = spec.entry("restartPolicy").or_insert(Value::Null);
            if policy.as_str().unwrap_or("").is_empty() {
                *policy = json!("Never");
            }
        }
        return template;
    }
    json!({"spec": {"containers": [default_container(cluster)], "restartPolicy": "Never"}})
}

/// A container with the image of the head, so that both are of one version.
pub fn default_container(cluster: &ClusterSpec) -> Value {
    let head = cluster.head.template.ray_container();
    json!({
        "name": CONTAINER_SUBMITTER,
        "image": head.and_then(|head| head.get("image")).cloned().unwrap_or_default(),
        "resources": {
            "requests": {"cpu": "500m", "memory": "200Mi"},
            "limits": {"cpu": "1", "memory": "1Gi"},
        },
    })
}

fn complete(
    container: &mut Value,
    job: &RayJob,
    command: &Submission,
    session: Option<&str>,
    settings: &Settings,
) {
    let is_ours = list(container.get("command")).is_empty();
    if is_ours {
        let flags = if settings.login_shell { "-cel" } else { "-ce" };
        container["command"] = json!(["/bin/bash", flags, "--"]);
        container["args"] = json!([command.text]);
    }
    let mut env = list(container.get("env")).to_vec();
    env.push(json!({"name": "PYTHONUNBUFFERED", "value": "1"}));
    env.push(json!({"name": "RAY_DASHBOARD_ADDRESS", "value": job.status.dashboard_url}));
    env.push(json!({"name": "RAY_JOB_SUBMISSION_ID", "value": job.status.job_id}));
    if let Some(session) = session {
        env.push(json!({"name": ENV_SESSION, "value": session}));
    }
    if let Some(value) = command.runtime_env.as_ref().filter(|_| is_ours) {
        env.push(json!({"name": ENV_RUNTIME_ENV, "value": value}));
    }
    container["env"] = json!(env);
}

#[cfg(test)]
mod tests;
