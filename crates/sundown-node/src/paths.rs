//! Where things lie in the node's directory, which is the `state` of a data directory. Only names: nobody
//! creates anything here.
//!
//! ```text
//! DIR/node.sock                            the door
//! DIR/node/                                locked while a node lives
//! DIR/node/node.log                        what the node had to say, from its last start
//! DIR/node/mount/                          mount points, filled inside the node's namespaces only
//! DIR/node/pods/UID/pod.json               who the pod is; without it the directory is rubbish
//! DIR/node/pods/UID/volumes/NAME/          empty directories on disk
//! DIR/node/pods/UID/containers/NAME/N/     started.json, exit.json, scratch/
//! DIR/node/pods/UID/logs/NAME/N.log[.1]    in the format of the container runtime interface
//! ```

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// The name of the directory that is locked while a node lives.
const NODE_DIR: &str = "node";

/// The name of the node's socket.
const NODE_SOCKET: &str = "node.sock";

/// The places of one data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePaths {
    data_dir: PathBuf,
}

/// The places of one pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodPaths {
    dir: PathBuf,
}

impl NodePaths {
    /// The places of a data directory, which is made if it is missing.
    ///
    /// # Errors
    /// The directory cannot be made or resolved.
    pub fn new(data_dir: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(data_dir)?;
        let data_dir = data_dir.canonicalize()?;
        Ok(Self { data_dir })
    }

    /// The data directory itself, absolute and without links.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// The node's part of it, locked while a node lives.
    pub fn node_dir(&self) -> PathBuf {
        self.data_dir.join(NODE_DIR)
    }

    /// What the node had to say.
    pub fn log(&self) -> PathBuf {
        self.node_dir().join("node.log")
    }

    /// The directory of all pods.
    pub fn pods_dir(&self) -> PathBuf {
        self.node_dir().join("pods")
    }

    /// The directory of one pod.
    pub fn pod(&self, uid: &str) -> PodPaths {
        PodPaths {
            dir: self.pods_dir().join(uid),
        }
    }

    /// The Unix socket, as people see it; see `SocketPath` for how to use it.
    pub fn socket(&self) -> PathBuf {
        self.data_dir.join(NODE_SOCKET)
    }

    /// A mount point that carries a file system only inside the node's namespaces.
    pub(crate) fn mount_dir(&self) -> PathBuf {
        self.node_dir().join("mount")
    }

    /// Where the node's own program is read-only, inside its namespaces only.
    pub(crate) fn binary(&self) -> PathBuf {
        self.mount_dir()
            .join(crate::container::system::NAME)
            .join("program")
    }

    /// The source name of every tmpfs that the node mounts. It stands in the mount table of each
    /// process of the node and so tells, from outside, whose they are.
    pub(crate) fn marker(&self) -> String {
        let hash = xxhash_rust::xxh3::xxh3_64(self.data_dir.as_os_str().as_encoded_bytes());
        format!("sundown-{hash:016x}")
    }
}

/// Whether a node has worked in this directory: its part of it stays when it ends. Nothing is made.
pub fn has_node_directory(data_dir: &Path) -> bool {
    data_dir.join(NODE_DIR).is_dir()
}

/// A way to a socket of a directory that is short enough for a socket address, however long the
/// directory's name is: the kernel allows 107 bytes.
#[derive(Debug)]
pub struct SocketPath {
    directory: OwnedFd,
    name: &'static str,
}

impl SocketPath {
    /// The way to a socket of this name.
    ///
    /// # Errors
    /// The directory is not there.
    pub fn new(directory: &Path, name: &'static str) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(directory, flags, Mode::empty())?;
        Ok(Self { directory, name })
    }

    pub(crate) fn of_node(paths: &NodePaths) -> io::Result<Self> {
        Self::new(paths.data_dir(), NODE_SOCKET)
    }

    /// Valid as long as `self` is.
    pub fn get(&self) -> PathBuf {
        let directory = self.directory.as_raw_fd();
        PathBuf::from(format!("/proc/self/fd/{directory}/{}", self.name))
    }
}

impl PodPaths {
    pub(crate) fn at(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// The pod's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The log of one attempt; a rotated part has `.1` after it.
    pub fn log(&self, container: &str, attempt: u32) -> PathBuf {
        let logs = self.dir.join("logs").join(container);
        logs.join(format!("{attempt}.log"))
    }

    pub(crate) fn identity(&self) -> PathBuf {
        self.dir.join("pod.json")
    }

    pub(crate) fn volumes(&self) -> PathBuf {
        self.dir.join("volumes")
    }

    pub(crate) fn volume(&self, name: &str) -> PathBuf {
        self.volumes().join(name)
    }

    pub(crate) fn containers(&self) -> PathBuf {
        self.dir.join("containers")
    }

    pub(crate) fn attempt(&self, container: &str, attempt: u32) -> PathBuf {
        self.containers().join(container).join(attempt.to_string())
    }

    pub(crate) fn scratch(&self, container: &str, attempt: u32) -> PathBuf {
        self.attempt(container, attempt).join("scratch")
    }
}
