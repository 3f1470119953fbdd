//! What a `RayJob` must look like, in the words and the order of upstream's validation.
//!
//! The first check that fails wins. How its end may be configured is judged in `deletion`.

mod deletion;

use sundown_model::dns;

use super::{DeploymentStatus, RayJob, SubmissionMode, runtime_env};
use crate::constants::{JOB_NAME_MAX, LABEL_CLUSTER};
use crate::invalid::{Invalid, Validated, go_list, refuse_if};
use crate::ray_cluster::validate as cluster;
use crate::{Gates, Metadata};

const PREFIX: &str = "The RayJob spec is invalid:";

/// Judges the name.
pub fn validate_metadata(metadata: &Metadata) -> Validated {
    let prefix = "The RayJob metadata is invalid: RayJob name should be";
    refuse_if(metadata.name.len() > JOB_NAME_MAX, || {
        format!("{prefix} no more than {JOB_NAME_MAX} characters")
    })?;
    let wrong = dns::letter_label(&metadata.name);
    refuse_if(!wrong.is_empty(), || {
        format!("{prefix} a valid DNS1035 label: {}", go_list(&wrong))
    })
}

/// Judges the spec.
pub fn validate_spec(job: &RayJob, gates: &Gates) -> Validated {
    let spec = &job.spec;
    refuse_if(spec.suspend && !spec.shutdown, || {
        format!(
            "{PREFIX} a RayJob with shutdownAfterJobFinishes set to false is not allowed to be suspended"
        )
    })?;
    validate_clean_up(job, gates)?;
    validate_cluster_choice(job)?;
    validate_mode(job)?;
    validate_cluster(job, gates)?;
    if let Err(error) = runtime_env(&spec.runtime_env_yaml) {
        return Err(Invalid(error.to_string()));
    }
    validate_bounds(job)?;
    // Upstream has no such check: a mode that nobody knows runs to Running and hangs there.
    match &spec.submission_mode {
        SubmissionMode::Unknown(mode) => Err(Invalid(format!(
            "{PREFIX} submissionMode must be K8sJobMode, HTTPMode, InteractiveMode or SidecarMode, got {mode:?}"
        ))),
        SubmissionMode::K8sJob
        | SubmissionMode::Http
        | SubmissionMode::Interactive
        | SubmissionMode::Sidecar => Ok(()),
    }
}

/// Judges only what is said about the time after the end, which a job that has ended goes by.
pub fn validate_clean_up(job: &RayJob, gates: &Gates) -> Validated {
    refuse_if(job.spec.ttl < 0, || {
        format!("{PREFIX} TTLSecondsAfterFinished must be a non-negative integer")
    })?;
    deletion::validate(job, gates)
}

/// Judges the status.
pub fn validate_status(job: &RayJob) -> Validated {
    let waits = job.status.job_deployment_status == DeploymentStatus::Waiting;
    refuse_if(
        waits && job.spec.submission_mode != SubmissionMode::Interactive,
        || {
            "The RayJob status is invalid: JobDeploymentStatus cannot be `Waiting` when SubmissionMode is \
         not InteractiveMode"
            .to_owned()
        },
    )
}

fn validate_cluster_choice(job: &RayJob) -> Validated {
    let spec = &job.spec;
    let selects = job.selects_cluster();
    refuse_if(spec.suspend && selects, || {
        format!("{PREFIX} the ClusterSelector mode doesn't support the suspend operation")
    })?;
    refuse_if(spec.cluster.is_none() && !selects, || {
        format!("{PREFIX} one of RayClusterSpec or ClusterSelector must be set")
    })?;
    if !selects {
        return Ok(());
    }
    let name = spec.cluster_selector.get(LABEL_CLUSTER);
    refuse_if(name.is_none_or(String::is_empty), || {
        "cluster name in ClusterSelector should not be empty".to_owned()
    })?;
    refuse_if(spec.submission_mode == SubmissionMode::Sidecar, || {
        "ClusterSelector is not supported in SidecarMode".to_owned()
    })?;
    refuse_if(retries(job), || {
        format!("{PREFIX} BackoffLimit is incompatible with ClusterSelector mode")
    })
}

fn retries(job: &RayJob) -> bool {
    job.spec.backoff_limit.is_some_and(|limit| limit > 0)
}

fn validate_mode(job: &RayJob) -> Validated {
    let spec = &job.spec;
    refuse_if(
        spec.submission_mode == SubmissionMode::Interactive && retries(job),
        || format!("{PREFIX} BackoffLimit is incompatible with InteractiveMode"),
    )?;
    if spec.submission_mode != SubmissionMode::Sidecar {
        return Ok(());
    }
    refuse_if(spec.submitter_template.is_some(), || {
        "Currently, SidecarMode doesn't support SubmitterPodTemplate".to_owned()
    })?;
    refuse_if(spec.submitter_config.is_some(), || {
        "Currently, SidecarMode doesn't support SubmitterConfig".to_owned()
    })?;
    let policy = spec
        .cluster
        .as_ref()
        .map_or("", |cluster| cluster.head.template.restart_policy());
    refuse_if(!matches!(policy, "" | "Never"), || {
        "restartPolicy for head Pod should be Never or unset when using SidecarMode".to_owned()
    })
}

fn validate_cluster(job: &RayJob, gates: &Gates) -> Validated {
    let Some(spec) = &job.spec.cluster else {
        return Ok(());
    };
    refuse_if(spec.is_token_review_enabled(), || {
        format!("{PREFIX} K8s token auth mode is currently not supported for RayJob")
    })?;
    // Upstream refuses only the cluster that it makes of it, and the job waits for that for ever.
    refuse_if(spec.upgrade_strategy.is_some(), || {
        format!("{PREFIX} upgradeStrategy cannot be set when RayCluster is created by RayJob")
    })?;
    cluster::validate_spec(spec, &job.metadata, gates)
        .map_err(|Invalid(text)| Invalid(format!("{PREFIX} {text}")))
}

fn validate_bounds(job: &RayJob) -> Validated {
    let spec = &job.spec;
    for (is_wrong, field) in [
        (
            spec.active_deadline.is_some_and(|value| value <= 0),
            "activeDeadlineSeconds",
        ),
        (
            spec.pre_running_deadline.is_some_and(|value| value <= 0),
            "preRunningDeadlineSeconds",
        ),
        (
            spec.backoff_limit.is_some_and(|value| value < 0),
            "backoffLimit",
        ),
    ] {
        refuse_if(is_wrong, || {
            format!("{PREFIX} {field} must be a positive integer")
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
