//! A `RayJob`: what its spec says, what its status tells, and the objects that it is carried out with.
//!
//! When they are made, and what follows from what Ray answers, is decided elsewhere.

mod clean_up;
pub mod cluster;
pub mod http;
mod runtime_env;
mod spec;
mod status;
pub mod submitter;
pub mod validate;

use serde_json::Value;

use crate::Metadata;
use crate::ray_cluster::is_managed_elsewhere;
use crate::reader::{Malformed, Reader};

pub use clean_up::{CleanUp, Due};
pub use runtime_env::{RuntimeEnvError, runtime_env};
pub use spec::{
    DeletionCondition, DeletionPolicy, DeletionRule, DeletionStrategy, JobSpec, SubmissionMode,
};
pub use status::{DeploymentStatus, JobStatus, RayJobInfo, RayJobStatus};

/// A job as an API server shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct RayJob {
    pub metadata: Metadata,
    pub spec: JobSpec,
    pub status: RayJobStatus,
}

impl RayJob {
    /// Reads a job.
    ///
    /// Errors: the first field that is not of its type, by its path.
    pub fn read(json: &Value) -> Result<Self, Malformed> {
        let root = Reader::root(json)?;
        Ok(Self {
            metadata: Metadata::read(&root.member("metadata")?)?,
            spec: JobSpec::read(&root.member("spec")?)?,
            status: RayJobStatus::read(&root.member("status")?)?,
        })
    }

    /// Whether another controller is responsible for it.
    pub fn is_managed_elsewhere(&self) -> bool {
        is_managed_elsewhere(self.spec.managed_by.as_deref())
    }

    /// Whether it runs on a cluster that it does not own.
    pub fn selects_cluster(&self) -> bool {
        !self.spec.cluster_selector.is_empty()
    }
}
