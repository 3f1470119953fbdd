//! Whether and how pods run here.

use std::path::PathBuf;

/// Pods as processes of this machine.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// Where the node keeps its pods, their logs and its socket.
    pub directory: PathBuf,
    /// The program that becomes the node: it calls `sundown_node::stage` first in `main`.
    pub program: PathBuf,
    /// Where the environments are that stand for images.
    pub environments: PathBuf,
    /// The user's rules about images; a file that is not there holds none.
    pub image_rules: PathBuf,
    /// Whether pip in pods reaches the package index of the host.
    pub egress: bool,
}
