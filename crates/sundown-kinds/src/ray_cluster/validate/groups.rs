//! The groups: containers, bounds, and resources and labels that are said once.

use std::collections::BTreeMap;

use sundown_model::dns;

use crate::invalid::{Invalid, Validated, refuse_if};
use crate::ray_cluster::{ClusterSpec, WorkerGroup};
use crate::version::Version;

use super::autoscaling::{AUTOSCALER_V2, is_v2};

type Texts = BTreeMap<String, String>;

pub(super) fn validate(spec: &ClusterSpec) -> Validated {
    let head = &spec.head;
    refuse_if(head.template.containers().is_empty(), || {
        "headGroupSpec should have at least one container".to_owned()
    })?;
    resources("Head", &head.ray_start_params, &head.resources)?;
    labels("Head", &head.ray_start_params, &head.labels)?;
    spec.worker_groups
        .iter()
        .try_for_each(|group| worker_group(group, spec))
}

fn worker_group(group: &WorkerGroup, spec: &ClusterSpec) -> Validated {
    let name = &group.name;
    refuse_if(group.template.containers().is_empty(), || {
        "workerGroupSpec should have at least one container".to_owned()
    })?;
    let (min, max) = (group.min_replicas, group.max_replicas);
    refuse_if(
        !spec.enable_autoscaling && (min.is_none() || max.is_none()),
        || {
            format!(
                "worker group {name} must set both minReplicas and maxReplicas when autoscaling is disabled"
            )
        },
    )?;
    for (bound, value) in [("minReplicas", min), ("maxReplicas", max)] {
        if let Some(value) = value.filter(|value| *value < 0) {
            return Err(Invalid(format!(
                "worker group {name} has negative {bound} {value}"
            )));
        }
    }
    if let (Some(min), Some(max)) = (min, max) {
        refuse_if(min > max, || {
            format!("worker group {name} has minReplicas {min} greater than maxReplicas {max}")
        })?;
    }
    resources(name, &group.ray_start_params, &group.resources)?;
    labels(name, &group.ray_start_params, &group.labels)?;
    idle_timeout(group, spec)?;
    priority(group, spec)
}

fn resources(group: &str, params: &Texts, resources: &Texts) -> Validated {
    let is_set = |name: &&str| params.get(*name).is_some_and(|value| !value.is_empty());
    let in_params = ["num-cpus", "num-gpus", "memory", "resources"]
        .iter()
        .any(is_set);
    refuse_if(in_params && !resources.is_empty(), || {
        format!(
            "resource fields should not be set in both rayStartParams and Resources for {group} group; \
             please use only one"
        )
    })
}

fn labels(group: &str, params: &Texts, labels: &Texts) -> Validated {
    refuse_if(params.contains_key("labels"), || {
        format!(
            "rayStartParams['labels'] is not supported for {group} group; please use the top-level \
             Labels field instead"
        )
    })?;
    let mut wrong = Vec::new();
    for (key, value) in labels {
        let of_key = dns::qualified_name(key).into_iter();
        wrong.extend(
            of_key.map(|why| format!("invalid label key for {group} group: '{key}', error: {why}")),
        );
        let of_value = dns::label_value(value).into_iter();
        wrong.extend(of_value.map(|why| {
            format!("invalid label value for key '{key}' in {group} group: '{value}', error: {why}")
        }));
    }
    refuse_if(!wrong.is_empty(), || wrong.join("; "))
}

fn idle_timeout(group: &WorkerGroup, spec: &ClusterSpec) -> Validated {
    let (Some(timeout), name) = (group.idle_timeout, &group.name) else {
        return Ok(());
    };
    refuse_if(timeout < 0, || {
        format!("worker group {name}: idleTimeoutSeconds must be non-negative, got {timeout}")
    })?;
    refuse_if(!is_v2(spec), || {
        format!(
            "worker group {name}: idleTimeoutSeconds is set, but autoscaler v2 is not enabled. Please \
             set .spec.autoscalerOptions.version to 'v2' (or set {AUTOSCALER_V2} environment variable \
             to 'true' in the head pod if using KubeRay < 1.4.0)"
        )
    })
}

fn priority(group: &WorkerGroup, spec: &ClusterSpec) -> Validated {
    let (name, priority, given) = (&group.name, group.priority, &spec.ray_version);
    if priority == 0 {
        return Ok(());
    }
    refuse_if(given.is_empty(), || {
        format!(
            "worker group {name}: priority is set, but RayVersion was not specified. Ray version 2.56.0 \
             or later is required"
        )
    })?;
    let Some(version) = Version::generic(given) else {
        return Err(Invalid(format!(
            "worker group {name}: priority is set, but RayVersion format is invalid: {given}, could not \
             parse {given:?} as version"
        )));
    };
    refuse_if(version < Version(2, 56, 0), || {
        format!(
            "worker group {name}: priority is set, but minimum Ray version is 2.56.0, got {given}"
        )
    })?;
    refuse_if(!is_v2(spec), || {
        format!(
            "worker group {name}: priority is set to {priority}, but autoscaler v2 is not enabled. \
             Priority is only supported with autoscaler v2 enabled"
        )
    })
}
