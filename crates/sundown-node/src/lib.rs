//! Runs pods as local processes, with root and without. Hands only: restart policy, readiness, names
//! and everything else that is decided is decided by the caller.
//!
//! Three processes. *The caller* holds a [`Node`]. *The node* (`sundown __node`, one per data
//! directory) outlives it: it owns the namespaces, the bridge, the name server and the pods. *The
//! init* of each pod starts containers, keeps their logs, and writes how they ended before anybody
//! hears of it. All three are the same binary, which calls [`stage`] first in `main`.
#![cfg(target_os = "linux")]

mod client;
mod container;
mod descriptors;
mod dns;
pub mod environment;
mod host_path;
mod leftovers;
mod log;
mod mounts;
mod netlink;
mod network;
mod paths;
mod peer;
mod pod;
mod record;
mod serve;
mod shares;
mod spec;
mod stage;
mod state;
mod wire;

pub use client::{
    Accepted, Config, Egress, EgressRules, Forward, HttpProbe, Node, NodeError, ProbeError,
    ProbeResult, Token, Watch,
};
pub use container::{CAPABILITIES, is_shown};
pub use host_path::{ClosedPaths, home_of_account};
pub use leftovers::{is_removing, leftovers};
pub use log::{LogChanges, LogOptions, LogReader};
pub use network::Subnet;
pub use paths::{NodePaths, PodPaths, SocketPath, has_node_directory};
pub use peer::{ForeignPeer, PeerProcess, check_peer, foreign_peer};
pub use spec::{
    ContainerKey, ContainerSpec, File, HostPathKind, HostsEntry, Mount, PodSpec, RunAs, Volume,
    VolumeSource,
};
pub use stage::{NODE, Settings, stage};
pub use state::{
    Change, ContainerState, ContainerStatus, ExecResult, Exit, ExitReason, Isolation, PodState,
};
pub use wire::Refusal;

/// How long nothing is accepted at a socket after an accept that failed: usually for lack of descriptors,
/// which the end of other connections cures; at once it would fail again.
pub const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(20);
