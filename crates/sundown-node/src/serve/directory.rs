//! The directory of a pod: written before its first process, removed after its last one.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use super::setup::REMOVING;
use crate::paths::{NodePaths, PodPaths};
use crate::record::{self, Identity};
use crate::spec::{PodSpec, is_plain_name};

/// Writes who the pod is.
pub(super) fn write(paths: &PodPaths, spec: &PodSpec, address: Ipv4Addr) -> io::Result<()> {
    let mut private = fs::DirBuilder::new();
    private.recursive(true).mode(0o700).create(paths.dir())?;
    let identity = Identity {
        uid: spec.uid.clone(),
        namespace: spec.namespace.clone(),
        name: spec.name.clone(),
        address,
    };
    record::write_whole(&paths.identity(), &identity)
}

/// Removes what the containers of a pod wrote; records and logs stay.
///
/// # Assumes
/// Nothing of the pod runs, so nothing is mounted there.
pub(super) fn clear(paths: &NodePaths, uid: &str) -> io::Result<()> {
    check(uid)?;
    let pod = paths.pod(uid);
    for name in record::names(&pod.containers()) {
        for attempt in record::names(&pod.containers().join(&name)) {
            if let Ok(attempt) = attempt.parse() {
                remove_all(paths, &pod.scratch(&name, attempt))?;
            }
        }
    }
    remove_all(paths, &pod.volumes())
}

/// A path that is joined to another replaces it when it is absolute: what is no plain name must
/// never come near a removal.
fn check(uid: &str) -> io::Result<()> {
    if is_plain_name(uid) {
        return Ok(());
    }
    let message = format!("{uid:?} cannot name a directory of ours");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Whatever a container left there: links are not followed on the way either.
pub(super) fn remove_all(paths: &NodePaths, directory: &Path) -> io::Result<()> {
    let root = paths.data_dir();
    let inside = directory.strip_prefix(root).map_err(io::Error::other)?;
    sundown_files::remove(root, inside)
}

/// Removes the directory of a pod; not finding it is success.
pub(super) fn remove(paths: &NodePaths, uid: &str) -> io::Result<()> {
    check(uid)?;
    let directory = paths.pod(uid);
    let doomed = paths.pods_dir().join(format!("{REMOVING}{uid}"));
    // Renamed first: half a directory must not be taken for a pod by the next node.
    match fs::rename(directory.dir(), &doomed) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    remove_all(paths, &doomed)
}
