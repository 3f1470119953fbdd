//! What the node reports: the whole state of a pod each time, so that a missed report is no loss.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How the node is separated from the host, and why that way was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// Whether the node lives in a user namespace of its own, where only one user id exists.
    pub rootless: bool,
    /// One sentence for people.
    pub reason: String,
    /// Who started the node: in a user namespace, whom root inside is outside.
    #[serde(default)]
    pub user: u32,
    #[serde(default)]
    pub group: u32,
}

/// A pod as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodState {
    pub uid: String,
    pub namespace: String,
    pub name: String,
    pub address: Ipv4Addr,
    /// By container name, the latest attempt of each.
    pub containers: BTreeMap<String, ContainerStatus>,
    /// Why what the pod ran in is gone although nobody removed it: it was lost, or released after its
    /// end. Its records stay until it is removed, its address may be another pod's.
    pub lost: Option<String>,
}

/// The latest attempt of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerStatus {
    pub attempt: u32,
    pub state: ContainerState,
}

/// Where one run of a container stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContainerState {
    /// The command was executed. `pid` is that of the container's init as the pod's own process
    /// namespace counts it.
    Running { pid: u32, started_at: Timestamp },
    /// The command ended, and its record is on disk.
    Exited(Exit),
    /// It was running when the pod was lost, and nobody saw how it ended.
    Lost { started_at: Timestamp },
}

/// The record of one ended run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// As a shell tells it: the code, 128 + the signal, 127 for a command that was not found and
    /// 126 for one that could not be executed. See [`Exit::kubelet_code`].
    pub code: i32,
    pub signal: Option<i32>,
    pub reason: ExitReason,
    pub message: String,
    pub started_at: Timestamp,
    pub finished_at: Timestamp,
}

/// The kubelet's word for how a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitReason {
    Completed,
    Error,
    /// The command never ran; the message says why.
    StartError,
}

impl Exit {
    /// The exit code that the kubelet shows: 128 for a command that never ran.
    pub fn kubelet_code(&self) -> i32 {
        match self.reason {
            ExitReason::StartError => 128,
            ExitReason::Completed | ExitReason::Error => self.code,
        }
    }
}

impl ContainerState {
    /// Whether its processes may still exist.
    pub fn is_running(&self) -> bool {
        matches!(self, Self::Running { .. })
    }

    /// The record, once there is one.
    pub fn exit(&self) -> Option<&Exit> {
        match self {
            Self::Exited(exit) => Some(exit),
            Self::Running { .. } | Self::Lost { .. } => None,
        }
    }
}

impl PodState {
    /// The state of one container, whichever attempt is the latest.
    pub fn container(&self, name: &str) -> Option<&ContainerState> {
        self.containers.get(name).map(|status| &status.state)
    }

    /// Whether something has run and nothing runs any more. Its records and logs stay without a node.
    pub fn has_ended(&self) -> bool {
        let states = self.containers.values().map(|status| &status.state);
        !self.containers.is_empty() && states.into_iter().all(|state| !state.is_running())
    }
}

/// One report of the stream of [`crate::Watch`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// The pod as it stands now.
    Pod(PodState),
    /// The pod is gone, with everything that belonged to it.
    Removed { uid: String },
    /// Every pod that existed when the stream was opened has been reported.
    Listed,
}

/// What a command run inside a container gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecResult {
    /// As a shell tells it; absent if the command was killed at the end of its time.
    pub code: Option<i32>,
    /// Standard output and error in the order of arrival, as much as was asked for.
    pub output: String,
    /// Whether more was written than was asked for.
    pub is_truncated: bool,
}
