//! A `RayCluster`: what its spec says, what its status tells, and what both must look like.
//!
//! The pods and services of a cluster are made in `pod` and `service`.

mod fault_tolerance;
mod spec;
mod status;
pub mod summary;
pub mod validate;

use serde_json::Value;

use crate::constants::{LABEL_ORIGIN_KIND, MANAGED_BY_OPERATOR};
use crate::reader::{Malformed, Reader};
use crate::{Metadata, names};

pub use fault_tolerance::{FaultToleranceOptions, Storage};
pub use spec::{
    AuthOptions, AutoscalerOptions, ClusterSpec, CollectorOptions, HeadGroup, NetworkPolicy,
    NetworkPolicyRules, WorkerGroup,
};
pub(crate) use status::optional_seconds;
pub use status::{ClusterStatus, Condition, HeadInfo};

/// A cluster as an API server shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct RayCluster {
    pub metadata: Metadata,
    pub spec: ClusterSpec,
    pub status: ClusterStatus,
}

/// Which kind of object a cluster was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    RayCluster,
    RayJob,
    RayService,
}

impl Origin {
    /// The kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RayCluster => "RayCluster",
            Self::RayJob => "RayJob",
            Self::RayService => "RayService",
        }
    }
}

impl RayCluster {
    /// Reads a cluster.
    ///
    /// Errors: the first field that is not of its type, by its path.
    pub fn read(json: &Value) -> Result<Self, Malformed> {
        let root = Reader::root(json)?;
        Ok(Self {
            metadata: Metadata::read(&root.member("metadata")?)?,
            spec: ClusterSpec::read(&root.member("spec")?)?,
            status: ClusterStatus::read(&root.member("status")?)?,
        })
    }

    /// What it was made for.
    pub fn origin(&self) -> Origin {
        match self
            .metadata
            .labels
            .get(LABEL_ORIGIN_KIND)
            .map(String::as_str)
        {
            Some("RayJob") => Origin::RayJob,
            Some("RayService") => Origin::RayService,
            Some(_) | None => Origin::RayCluster,
        }
    }

    /// Whether another controller is responsible for it.
    pub fn is_managed_elsewhere(&self) -> bool {
        is_managed_elsewhere(self.spec.managed_by.as_deref())
    }

    /// The name of the service of its head.
    pub fn head_service_name(&self) -> String {
        let custom = self.spec.head.service_name();
        custom.map_or_else(|| names::head_service(&self.metadata.name), str::to_owned)
    }

    /// Where its pods find the head.
    pub fn head_domain_name(&self, cluster_domain: &str) -> String {
        names::domain_name(
            &self.head_service_name(),
            &self.metadata.namespace,
            cluster_domain,
        )
    }
}

/// Whether `managedBy` names another controller.
pub(crate) fn is_managed_elsewhere(managed_by: Option<&str>) -> bool {
    managed_by.is_some_and(|name| name != MANAGED_BY_OPERATOR)
}
