//! What Sundown knows of Volcano: the kinds that it stores, and in which phases a Job has finished.
//!
//! Nothing here runs a Volcano Job. Volcano's controllers do, or whoever writes its status.

use sundown_model::KnownKind;

/// batch.volcano.sh/v1alpha1 `Job`.
pub const JOB: KnownKind = KnownKind {
    group: "batch.volcano.sh",
    version: "v1alpha1",
    kind: "Job",
    plural: "jobs",
};

/// scheduling.volcano.sh/v1beta1 `PodGroup`.
pub const POD_GROUP: KnownKind = KnownKind {
    group: "scheduling.volcano.sh",
    version: "v1beta1",
    kind: "PodGroup",
    plural: "podgroups",
};

/// scheduling.volcano.sh/v1beta1 `Queue`.
pub const QUEUE: KnownKind = KnownKind {
    group: "scheduling.volcano.sh",
    version: "v1beta1",
    kind: "Queue",
    plural: "queues",
};

/// `status.state.phase` of a Job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobPhase {
    Pending,
    Aborting,
    Aborted,
    Running,
    Restarting,
    Completing,
    Completed,
    Terminating,
    Terminated,
    Failed,
}

impl JobPhase {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Pending,
        Self::Aborting,
        Self::Aborted,
        Self::Running,
        Self::Restarting,
        Self::Completing,
        Self::Completed,
        Self::Terminating,
        Self::Terminated,
        Self::Failed,
    ];

    /// The phase of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == name)
    }

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Aborting => "Aborting",
            Self::Aborted => "Aborted",
            Self::Running => "Running",
            Self::Restarting => "Restarting",
            Self::Completing => "Completing",
            Self::Completed => "Completed",
            Self::Terminating => "Terminating",
            Self::Terminated => "Terminated",
            Self::Failed => "Failed",
        }
    }

    /// Whether a Job stays in it. An aborted Job may be resumed (volcano#4736).
    pub fn is_final(self) -> bool {
        match self {
            Self::Completed | Self::Terminated | Self::Failed => true,
            Self::Pending
            | Self::Aborting
            | Self::Aborted
            | Self::Running
            | Self::Restarting
            | Self::Completing
            | Self::Terminating => false,
        }
    }
}
