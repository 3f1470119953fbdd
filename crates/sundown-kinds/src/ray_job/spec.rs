//! The spec of a job.

use std::collections::BTreeMap;
use std::fmt;

use crate::PodTemplate;
use crate::ray_cluster::ClusterSpec;
use crate::reader::{Malformed, Reader};

/// What a job shall be.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobSpec {
    pub entrypoint: String,
    pub runtime_env_yaml: String,
    pub job_id: String,
    pub submission_mode: SubmissionMode,
    pub entrypoint_resources: String,
    pub entrypoint_cpus: f64,
    pub entrypoint_gpus: f64,
    pub metadata: BTreeMap<String, String>,
    pub cluster: Option<ClusterSpec>,
    pub cluster_selector: BTreeMap<String, String>,
    pub submitter_template: Option<PodTemplate>,
    /// Some if the submitter is configured; inside, its retries.
    pub submitter_config: Option<Option<i32>>,
    pub managed_by: Option<String>,
    pub deletion_strategy: Option<DeletionStrategy>,
    pub active_deadline: Option<i32>,
    pub pre_running_deadline: Option<i32>,
    pub backoff_limit: Option<i32>,
    pub ttl: i32,
    pub shutdown: bool,
    pub suspend: bool,
}

/// How a job gets to Ray. The schema has no enum, so that anything may stand there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SubmissionMode {
    #[default]
    K8sJob,
    Http,
    Interactive,
    Sidecar,
    Unknown(String),
}

/// What goes when a job has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeletionStrategy {
    /// Some if there; inside, its policy.
    pub on_success: Option<Option<DeletionPolicy>>,
    pub on_failure: Option<Option<DeletionPolicy>>,
    /// None if the field is missing: an empty list still is a list.
    pub rules: Option<Vec<DeletionRule>>,
}

/// One thing that goes, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletionRule {
    pub policy: DeletionPolicy,
    pub condition: DeletionCondition,
}

/// When a rule applies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeletionCondition {
    pub job_status: Option<String>,
    pub deployment_status: Option<String>,
    pub ttl: i32,
}

/// What goes. Ordered by impact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeletionPolicy {
    DeleteNone,
    DeleteWorkers,
    DeleteCluster,
    DeleteSelf,
}

impl fmt::Display for SubmissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::K8sJob => "K8sJobMode",
            Self::Http => "HTTPMode",
            Self::Interactive => "InteractiveMode",
            Self::Sidecar => "SidecarMode",
            Self::Unknown(text) => text,
        })
    }
}

impl fmt::Display for DeletionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DeleteNone => "DeleteNone",
            Self::DeleteWorkers => "DeleteWorkers",
            Self::DeleteCluster => "DeleteCluster",
            Self::DeleteSelf => "DeleteSelf",
        })
    }
}

type Read<T> = Result<T, Malformed>;

impl JobSpec {
    pub(super) fn read(at: &Reader<'_>) -> Read<Self> {
        Ok(Self {
            entrypoint: at.text("entrypoint")?,
            runtime_env_yaml: at.text("runtimeEnvYAML")?,
            job_id: at.text("jobId")?,
            submission_mode: SubmissionMode::read(&at.text("submissionMode")?),
            entrypoint_resources: at.text("entrypointResources")?,
            entrypoint_cpus: at.number("entrypointNumCpus")?.unwrap_or(0.0),
            entrypoint_gpus: at.number("entrypointNumGpus")?.unwrap_or(0.0),
            metadata: at.texts("metadata")?,
            cluster: at.optional("rayClusterSpec", ClusterSpec::read)?,
            cluster_selector: at.texts("clusterSelector")?,
            submitter_template: at.optional("submitterPodTemplate", PodTemplate::read)?,
            submitter_config: at.optional("submitterConfig", |at| at.int32("backoffLimit"))?,
            managed_by: at.optional_text("managedBy")?,
            deletion_strategy: at.optional("deletionStrategy", DeletionStrategy::read)?,
            active_deadline: at.int32("activeDeadlineSeconds")?,
            pre_running_deadline: at.int32("preRunningDeadlineSeconds")?,
            backoff_limit: at.int32("backoffLimit")?,
            ttl: at.int32("ttlSecondsAfterFinished")?.unwrap_or(0),
            shutdown: at.flag("shutdownAfterJobFinishes")?.unwrap_or(false),
            suspend: at.flag("suspend")?.unwrap_or(false),
        })
    }

    /// Whether the cluster of this job scales by itself.
    pub fn is_autoscaling(&self) -> bool {
        self.cluster
            .as_ref()
            .is_some_and(|cluster| cluster.enable_autoscaling)
    }
}

impl SubmissionMode {
    fn read(text: &str) -> Self {
        match text {
            "" | "K8sJobMode" => Self::K8sJob,
            "HTTPMode" => Self::Http,
            "InteractiveMode" => Self::Interactive,
            "SidecarMode" => Self::Sidecar,
            other => Self::Unknown(other.to_owned()),
        }
    }
}

impl DeletionStrategy {
    fn read(at: &Reader<'_>) -> Read<Self> {
        let rules = at.list("deletionRules", DeletionRule::read)?;
        Ok(Self {
            on_success: at.optional("onSuccess", DeletionPolicy::read)?,
            on_failure: at.optional("onFailure", DeletionPolicy::read)?,
            rules: at.has("deletionRules").then_some(rules),
        })
    }
}

impl DeletionRule {
    fn read(at: &Reader<'_>) -> Read<Self> {
        let condition = at.member("condition")?;
        Ok(Self {
            policy: DeletionPolicy::read(at)?.ok_or_else(|| at.missing("policy", POLICY))?,
            condition: DeletionCondition {
                job_status: condition.optional_text("jobStatus")?,
                deployment_status: condition.optional_text("jobDeploymentStatus")?,
                ttl: condition.int32("ttlSeconds")?.unwrap_or(0),
            },
        })
    }
}

const POLICY: &str = "DeleteCluster, DeleteWorkers, DeleteSelf or DeleteNone";

impl DeletionPolicy {
    fn read(at: &Reader<'_>) -> Read<Option<Self>> {
        let Some(text) = at.optional_text("policy")? else {
            return Ok(None);
        };
        let all = [
            Self::DeleteNone,
            Self::DeleteWorkers,
            Self::DeleteCluster,
            Self::DeleteSelf,
        ];
        let policy = all.into_iter().find(|policy| policy.to_string() == text);
        policy.map(Some).ok_or_else(|| at.missing("policy", POLICY))
    }
}
