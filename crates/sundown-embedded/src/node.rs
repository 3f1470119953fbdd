//! Whether and how pods run here.

use std::path::PathBuf;

use sundown_decide::schedule::Asked;
use sundown_node::ClosedPaths;
use sundown_node::environment::{Hidden, Limits};

/// Pods as processes of this machine.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// Where the node keeps its pods, their logs and its socket.
    pub directory: PathBuf,
    /// The program that becomes the node: it calls `sundown_node::stage` first in `main`.
    pub program: PathBuf,
    /// Where the environments are that stand for images.
    pub environments: PathBuf,
    /// How much these may take.
    pub environment_limits: Limits,
    /// What no pod may see of the host, whatever is bound for it.
    pub hidden: Hidden,
    /// The user's rules about images; a file that is not there holds none.
    pub image_rules: PathBuf,
    /// Whether pip in pods reaches the package index of the host.
    pub egress: bool,
    /// Whether pods get the user names and passwords in the addresses of that index.
    pub egress_credentials: bool,
    /// The paths of the host that no hostPath may be.
    pub closed: ClosedPaths,
    /// The CPUs and the memory that pods are offered.
    pub offers: Asked,
}
