//! What a pod and a container are to the node: everything that is needed to start them, chosen by
//! the caller. Where the values come from (manifests, images, defaults) is not known here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::host_path::ClosedPaths;
use crate::wire::base64_bytes;

/// A pod before any of its containers runs: its names, its place in the network, its volumes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodSpec {
    /// Identity across recreation; also the name of the pod's directory.
    pub uid: String,
    pub namespace: String,
    pub name: String,
    /// What `hostname` says inside; also an entry of the pod's hosts file.
    pub hostname: String,
    /// The domain below which it has its full name in the hosts file, as
    /// `set.default.svc.cluster.local`.
    #[serde(default)]
    pub domain: Option<String>,
    /// Given when the pod must keep an address; otherwise the node picks a free one.
    #[serde(default)]
    pub address: Option<Ipv4Addr>,
    /// Further lines of the hosts file.
    #[serde(default)]
    pub hosts: Vec<HostsEntry>,
    /// The search list of resolv.conf, as `default.svc.cluster.local`.
    #[serde(default)]
    pub search_domains: Vec<String>,
    /// Size of the `/dev/shm` that the containers of the pod share.
    pub shm_bytes: u64,
    #[serde(default)]
    pub volumes: Vec<Volume>,
    /// The paths of the host that none of these volumes may be, whatever links lead there.
    #[serde(default)]
    pub closed: ClosedPaths,
}

/// One line of a hosts file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostsEntry {
    pub address: IpAddr,
    pub names: Vec<String>,
}

/// A named place for files that lives as long as the pod (or longer, for a host path).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    pub name: String,
    pub source: VolumeSource,
}

/// Where the content of a volume comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum VolumeSource {
    /// An empty directory, on disk or in memory. Only one in memory has its size enforced.
    EmptyDir {
        in_memory: bool,
        bytes_max: Option<u64>,
    },
    /// Files by content, kept in memory and never written to disk: configMap, secret, projected,
    /// downwardAPI. Keys are paths relative to the volume.
    Files { files: BTreeMap<String, File> },
    /// A path of the host, checked as the kubelet checks it.
    HostPath { path: PathBuf, kind: HostPathKind },
}

/// One file of a [`VolumeSource::Files`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    #[serde(with = "base64_bytes")]
    pub content: Vec<u8>,
    pub mode: u32,
}

/// The content may be a secret, so only its size is shown.
impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "File({} bytes, {:o})", self.content.len(), self.mode)
    }
}

/// What must be found at a host path, with the meaning of Kubernetes' `hostPath.type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostPathKind {
    /// No check (the empty type); the path must exist all the same.
    Any,
    DirectoryOrCreate,
    Directory,
    FileOrCreate,
    File,
    Socket,
    CharDevice,
    BlockDevice,
}

/// One run of one container.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerSpec {
    pub name: String,
    /// Counts the runs of this container, from 0. A run is never repeated under the same number.
    pub attempt: u32,
    /// The command and its arguments, already expanded; never empty.
    pub argv: Vec<String>,
    /// The whole environment: nothing is inherited.
    pub env: Vec<(String, String)>,
    /// The working directory; `/` if absent, made if missing.
    #[serde(default)]
    pub working_directory: Option<PathBuf>,
    #[serde(default)]
    pub mounts: Vec<Mount>,
    /// Directories of the host that appear read-only at the same path: the environment that stands
    /// for the image, and the prefix of its interpreter.
    #[serde(default)]
    pub environment: Vec<PathBuf>,
    /// Whether everything but volumes and `/dev/shm` is read-only.
    #[serde(default)]
    pub read_only_root: bool,
    /// Rights of root that it gives up, by their names in [`CAPABILITIES`](crate::CAPABILITIES).
    #[serde(default)]
    pub dropped: Vec<String>,
    /// Another user than the node's root. Refused where the node has only one user id.
    #[serde(default)]
    pub run_as: Option<RunAs>,
}

/// Values of environment variables and arguments may be secrets, so only names are shown.
impl fmt::Debug for ContainerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainerSpec")
            .field("name", &self.name)
            .field("attempt", &self.attempt)
            .field("program", &self.argv.first())
            .finish_non_exhaustive()
    }
}

/// The user and group of a container's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAs {
    pub user: u32,
    pub group: u32,
}

impl RunAs {
    /// Whether it is not what the node itself is.
    pub(crate) fn is_other(self) -> bool {
        self.user != 0 || self.group != 0
    }
}

/// A volume at a path of one container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// The name of a volume of the pod.
    pub volume: String,
    /// Absolute; appears inside the container only, whether or not the host has it.
    pub mount_path: PathBuf,
    /// A path inside the volume; it cannot lead out of it.
    #[serde(default)]
    pub sub_path: Option<PathBuf>,
    #[serde(default)]
    pub read_only: bool,
}

/// Names one run of one container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ContainerKey {
    /// The uid of the pod.
    pub uid: String,
    pub container: String,
    pub attempt: u32,
}

impl fmt::Display for ContainerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "attempt {} of container {} of pod {}",
            self.attempt, self.container, self.uid
        )
    }
}

/// Whether a name can be a directory of ours: not empty, no separator, not hidden, not too long.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 253
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

impl PodSpec {
    /// What is wrong with it, if anything: names become directories and so must be plain.
    pub(crate) fn fault(&self) -> Option<String> {
        if !is_plain_name(&self.uid) {
            return Some(format!("uid {:?} cannot name a directory", self.uid));
        }
        if !is_plain_name(&self.hostname) || self.hostname.len() > 64 {
            return Some(format!("hostname {:?} is not a host name", self.hostname));
        }
        let bad = self.volumes.iter().find(|each| !is_plain_name(&each.name));
        bad.map(|volume| format!("volume name {:?} cannot name a directory", volume.name))
    }

    /// The volumes that are paths of the host.
    pub(crate) fn host_paths(&self) -> BTreeSet<String> {
        let is_one = |volume: &&Volume| matches!(volume.source, VolumeSource::HostPath { .. });
        let names = self.volumes.iter().filter(is_one);
        names.map(|volume| volume.name.clone()).collect()
    }
}

impl ContainerSpec {
    /// What is wrong with it, if anything.
    pub(crate) fn fault(&self) -> Option<String> {
        if !is_plain_name(&self.name) {
            return Some(format!(
                "container name {:?} cannot name a directory",
                self.name
            ));
        }
        if self.argv.is_empty() {
            return Some(format!("container {} has no command", self.name));
        }
        let relative = self
            .mounts
            .iter()
            .find(|each| !each.mount_path.is_absolute());
        relative.map(|mount| format!("mount path {} is not absolute", mount.mount_path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::is_plain_name;

    /// The decision alone is tested: no removal is ever handed a name that it must refuse.
    #[test]
    fn names_that_could_lead_elsewhere_are_not_plain() {
        let hostile = [
            "", "/", "//", ".", "..", "../x", "/etc", "a/b", "a/../b", ".hidden", "a\0b",
        ];
        for name in hostile {
            assert!(!is_plain_name(name), "{name:?}");
        }
        assert!(is_plain_name("0b3f-uid_1.2"));
    }
}
