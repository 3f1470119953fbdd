//! The autoscaler: which one, and what it does not go together with.

use crate::Gates;
use crate::invalid::{Invalid, Validated, refuse_if};
use crate::ray_cluster::ClusterSpec;
use crate::template::named;

/// The old way to ask for the second autoscaler.
pub(super) const AUTOSCALER_V2: &str = "RAY_enable_autoscaler_v2";
const START_COMMAND: &str = "KUBERAY_GEN_AUTOSCALER_START_CMD";

/// Whether the second autoscaler is asked for, in either way.
pub(super) fn is_v2(spec: &ClusterSpec) -> bool {
    spec.is_autoscaler_v2() || env_asks_for_v2(spec).is_some()
}

fn env_asks_for_v2(spec: &ClusterSpec) -> Option<&str> {
    let value = spec.head.template.env_value(AUTOSCALER_V2);
    value.filter(|value| matches!(*value, "1" | "true"))
}

pub(super) fn validate(spec: &ClusterSpec, gates: &Gates) -> Validated {
    let suspended = spec.worker_groups.iter().find(|group| group.suspend);
    if let Some(group) = suspended.filter(|_| !gates.ray_job_deletion_policy) {
        return Err(Invalid(format!(
            "worker group {} can be suspended only when the RayJobDeletionPolicy feature gate is enabled",
            group.name
        )));
    }
    if spec.enable_autoscaling {
        if let Some(group) = suspended {
            let name = &group.name;
            let text = format!("worker group {name} cannot be suspended with Autoscaler enabled");
            return Err(Invalid(text));
        }
        enabled(spec)?;
    } else if let Some(value) = env_asks_for_v2(spec) {
        return Err(Invalid(format!(
            "environment variable {AUTOSCALER_V2} cannot be set to '{value}' when \
             enableInTreeAutoscaling is false. Please set enableInTreeAutoscaling: true to use \
             autoscaler v2"
        )));
    }
    options(spec)
}

fn enabled(spec: &ClusterSpec) -> Validated {
    let version = spec
        .autoscaler
        .as_ref()
        .and_then(|options| options.version.as_ref());
    refuse_if(
        version.is_some() && spec.head.template.has_env(AUTOSCALER_V2),
        || {
            format!(
                "both .spec.autoscalerOptions.version and head Pod env var {AUTOSCALER_V2} are set, please \
             only use the former"
            )
        },
    )?;
    if !spec.is_autoscaler_v2() {
        return Ok(());
    }
    let restarts = |policy: &str| !matches!(policy, "" | "Never");
    refuse_if(restarts(spec.head.template.restart_policy()), || {
        "restartPolicy for head Pod should be Never or unset when using autoscaler V2".to_owned()
    })?;
    let group = spec
        .worker_groups
        .iter()
        .find(|group| restarts(group.template.restart_policy()));
    refuse_if(group.is_some(), || {
        let name = group.map_or("", |group| &group.name);
        format!(
            "restartPolicy for worker group {name} should be Never or unset when using autoscaler V2"
        )
    })
}

fn options(spec: &ClusterSpec) -> Validated {
    let Some(options) = &spec.autoscaler else {
        return Ok(());
    };
    if let Some(timeout) = options.idle_timeout.filter(|timeout| *timeout < 0) {
        return Err(Invalid(format!(
            "autoscalerOptions.idleTimeoutSeconds must be non-negative, got {timeout}"
        )));
    }
    refuse_if(named(&options.env, START_COMMAND).is_some(), || {
        format!(
            "autoscalerOptions.env must not contain {START_COMMAND}: it is managed by KubeRay and \
             injected automatically into the autoscaler container"
        )
    })
}
