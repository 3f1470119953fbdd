//! The status of a job as it is on the wire.
//!
//! What Ray said about the job and the status of the cluster are always written, also when empty.

use std::fmt;

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::ray_cluster::{ClusterStatus, optional_seconds};
use crate::reader::{Malformed, Reader};

/// What was last told about a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RayJobStatus {
    pub ray_job_info: RayJobInfo,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub job_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ray_cluster_name: String,
    #[serde(rename = "dashboardURL", skip_serializing_if = "String::is_empty")]
    pub dashboard_url: String,
    #[serde(skip_serializing_if = "JobStatus::is_new")]
    pub job_status: JobStatus,
    #[serde(skip_serializing_if = "DeploymentStatus::is_new")]
    pub job_deployment_status: DeploymentStatus,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "optional_seconds"
    )]
    pub start_time: Option<Timestamp>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "optional_seconds"
    )]
    pub end_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<i32>,
    pub ray_cluster_status: ClusterStatus,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "optional_seconds"
    )]
    pub job_status_check_failure_start_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// When Ray itself says that the job began and ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RayJobInfo {
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "optional_seconds"
    )]
    pub start_time: Option<Timestamp>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "optional_seconds"
    )]
    pub end_time: Option<Timestamp>,
}

/// What Ray says about a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JobStatus {
    #[default]
    New,
    Pending,
    Running,
    Stopped,
    Succeeded,
    Failed,
}

/// Where a job is on its way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeploymentStatus {
    #[default]
    New,
    Initializing,
    Running,
    Complete,
    Failed,
    ValidationFailed,
    Suspending,
    Suspended,
    Retrying,
    Waiting,
}

impl JobStatus {
    const ALL: [Self; 6] = [
        Self::New,
        Self::Pending,
        Self::Running,
        Self::Stopped,
        Self::Succeeded,
        Self::Failed,
    ];

    /// The status of this name; None for what Ray never says.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// As on the wire; empty for a new one.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "",
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::Stopped => "STOPPED",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
        }
    }

    /// Whether the job runs no more.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Stopped | Self::Succeeded | Self::Failed)
    }

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature that serde calls"
    )]
    fn is_new(&self) -> bool {
        *self == Self::New
    }
}

impl DeploymentStatus {
    const ALL: [Self; 10] = [
        Self::New,
        Self::Initializing,
        Self::Running,
        Self::Complete,
        Self::Failed,
        Self::ValidationFailed,
        Self::Suspending,
        Self::Suspended,
        Self::Retrying,
        Self::Waiting,
    ];

    /// The status of this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// As on the wire; empty for a new one.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "",
            Self::Initializing => "Initializing",
            Self::Running => "Running",
            Self::Complete => "Complete",
            Self::Failed => "Failed",
            Self::ValidationFailed => "ValidationFailed",
            Self::Suspending => "Suspending",
            Self::Suspended => "Suspended",
            Self::Retrying => "Retrying",
            Self::Waiting => "Waiting",
        }
    }

    /// Whether the job goes nowhere from here.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Complete | Self::Failed)
    }

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature that serde calls"
    )]
    fn is_new(&self) -> bool {
        *self == Self::New
    }
}

impl fmt::Display for JobStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for DeploymentStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for JobStatus {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl Serialize for DeploymentStatus {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl RayJobStatus {
    pub(super) fn read(at: &Reader<'_>) -> Result<Self, Malformed> {
        let info = at.member("rayJobInfo")?;
        let job_status = JobStatus::parse(&at.text("jobStatus")?);
        let deployment = DeploymentStatus::parse(&at.text("jobDeploymentStatus")?);
        let unknown = |name| at.missing(name, "a known status");
        Ok(Self {
            ray_job_info: RayJobInfo {
                start_time: info.instant("startTime")?,
                end_time: info.instant("endTime")?,
            },
            job_id: at.text("jobId")?,
            ray_cluster_name: at.text("rayClusterName")?,
            dashboard_url: at.text("dashboardURL")?,
            job_status: job_status.ok_or_else(|| unknown("jobStatus"))?,
            job_deployment_status: deployment.ok_or_else(|| unknown("jobDeploymentStatus"))?,
            reason: at.text("reason")?,
            message: at.text("message")?,
            start_time: at.instant("startTime")?,
            end_time: at.instant("endTime")?,
            succeeded: at.int32("succeeded")?,
            failed: at.int32("failed")?,
            ray_cluster_status: ClusterStatus::read(&at.member("rayClusterStatus")?)?,
            job_status_check_failure_start_time: at.instant("jobStatusCheckFailureStartTime")?,
            observed_generation: at.int64("observedGeneration")?,
        })
    }

    /// As it is on the wire.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("plain fields and maps of strings are JSON")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{a_job, job_json, with};

    #[test]
    fn an_empty_status_still_has_the_parts_that_go_always_writes() {
        let zero = json!({"desiredCPU": "0", "desiredMemory": "0", "desiredGPU": "0",
                          "desiredTPU": "0", "head": {}});
        let written = RayJobStatus::default().to_value();
        assert_eq!(written, json!({"rayJobInfo": {}, "rayClusterStatus": zero}));
    }

    #[test]
    fn what_is_written_reads_back_in_whole_seconds() {
        let status = json!({
            "jobStatus": "RUNNING", "jobDeploymentStatus": "Running", "failed": 1,
            "startTime": "2026-01-01T00:00:00.5Z", "rayJobInfo": {"startTime": "2026-01-01T00:00:01Z"},
        });
        let written = a_job(&[("/status", status)]).status.to_value();
        assert_eq!(written["startTime"], "2026-01-01T00:00:00Z");
        assert_eq!(written["jobDeploymentStatus"], "Running");
        let again = a_job(&[("/status", written.clone())]).status;
        assert_eq!(again.to_value(), written);
    }

    #[test]
    fn a_status_that_nobody_knows_is_named() {
        for (field, value) in [("jobStatus", "Failure"), ("jobDeploymentStatus", "Done")] {
            let path = format!("/status/{field}");
            let job = with(job_json(), &[(&path, json!(value))]);
            let told = crate::RayJob::read(&job).unwrap_err();
            assert_eq!(told.field, format!("status.{field}"));
        }
    }
}
