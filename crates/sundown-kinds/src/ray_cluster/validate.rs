//! What a `RayCluster` must look like, in the words and the order of upstream's validation.
//!
//! The first check that fails wins. What the schema of the definition refuses is not repeated here,
//! except where upstream does.

mod autoscaling;
mod extras;
mod fault_tolerance;
mod groups;

use std::collections::BTreeSet;

use sundown_model::dns;

use super::{ClusterSpec, Origin, RayCluster};
use crate::constants::CLUSTER_NAME_MAX;
use crate::invalid::{Invalid, Validated, go_list, refuse_if};
use crate::version::Version;
use crate::{Gates, Metadata};

/// Judges the name.
pub fn validate_metadata(metadata: &Metadata) -> Validated {
    refuse_if(metadata.name.len() > CLUSTER_NAME_MAX, || {
        format!("RayCluster name should be no more than {CLUSTER_NAME_MAX} characters")
    })?;
    let wrong = dns::letter_label(&metadata.name);
    refuse_if(!wrong.is_empty(), || {
        format!(
            "RayCluster name should be a valid DNS1035 label: {}",
            go_list(&wrong)
        )
    })
}

/// Judges a spec. The metadata is that of the object that the spec stands in.
pub fn validate_spec(spec: &ClusterSpec, metadata: &Metadata, gates: &Gates) -> Validated {
    groups::validate(spec)?;
    fault_tolerance::validate(spec, metadata, gates)?;
    autoscaling::validate(spec, gates)?;
    extras::validate_history(spec, gates)?;
    validate_auth(spec)?;
    extras::validate_network_policy(spec, gates)?;
    extras::validate_tls(spec, gates)
}

/// Judges how a cluster is upgraded: only one that a user made may say.
pub fn validate_upgrade(cluster: &RayCluster) -> Validated {
    let Some(strategy) = &cluster.spec.upgrade_strategy else {
        return Ok(());
    };
    refuse_if(!matches!(strategy.as_str(), "Recreate" | "None"), || {
        format!(
            "The RayCluster spec is invalid: Spec.UpgradeStrategy.Type value {strategy} is invalid, \
             valid options are Recreate or None"
        )
    })?;
    match cluster.origin() {
        Origin::RayCluster => Ok(()),
        origin @ (Origin::RayJob | Origin::RayService) => Err(Invalid(format!(
            "upgradeStrategy cannot be set when RayCluster is created by {}",
            origin.as_str()
        ))),
    }
}

/// Judges the status.
pub fn validate_status(cluster: &RayCluster) -> Validated {
    let status = &cluster.status;
    let both = status.is_true("RayClusterSuspending") && status.is_true("RayClusterSuspended");
    refuse_if(both, || {
        "invalid RayCluster State: rayv1.RayClusterSuspending and rayv1.RayClusterSuspended conditions \
         should not be both true"
            .to_owned()
    })
}

/// Judges what the optional webhook judges: the name, and that groups can be told apart.
pub fn validate_admission(cluster: &RayCluster) -> Validated {
    validate_metadata(&cluster.metadata)?;
    let names: BTreeSet<&str> = cluster
        .spec
        .worker_groups
        .iter()
        .map(|group| &*group.name)
        .collect();
    refuse_if(names.len() < cluster.spec.worker_groups.len(), || {
        "worker group names must be unique".to_owned()
    })
}

fn validate_auth(spec: &ClusterSpec) -> Validated {
    let is_token_review = spec.is_token_review_enabled();
    if !spec.is_auth_enabled() {
        return refuse_if(is_token_review, || {
            "authOptions.enableK8sTokenAuth is enabled but authOptions.mode not set to 'token'"
                .into()
        });
    }
    let given = &spec.ray_version;
    refuse_if(given.is_empty(), || {
        "authOptions.mode is 'token' but RayVersion was not specified. Ray version 2.52.0 or later is \
         required"
            .to_owned()
    })?;
    let Some(version) = Version::generic(given) else {
        return Err(Invalid(format!(
            "authOptions.mode is 'token' but RayVersion format is invalid: {given}, could not parse \
             {given:?} as version"
        )));
    };
    refuse_if(version < Version(2, 52, 0), || {
        format!("authOptions.mode is 'token' but minimum Ray version is 2.52.0, got {given}")
    })?;
    refuse_if(is_token_review && version < Version(2, 55, 0), || {
        format!(
            "authOptions.enableK8sTokenAuth is enabled but minimum Ray version is 2.55.0, got {given}"
        )
    })?;
    let has_secret = spec
        .auth
        .as_ref()
        .is_some_and(|auth| auth.secret_name.is_some());
    refuse_if(is_token_review && has_secret, || {
        "authOptions.enableK8sTokenAuth is enabled and authOptions.secretName is also set".into()
    })
}

#[cfg(test)]
mod tests;
