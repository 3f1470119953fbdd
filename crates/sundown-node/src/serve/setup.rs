//! What a node does before it answers and after it has answered for the last time: mounts, socket,
//! leftovers of a node that was killed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::Mode;

use crate::mounts::{self, Tmpfs};
use crate::paths::{NodePaths, SocketPath};
use crate::record;
use crate::state::PodState;

/// Begins the name of a pod's directory while it is being removed.
pub(super) const REMOVING: &str = ".removing-";

/// Sends errors to the node's log: the client's terminal is not ours.
pub(super) fn redirect_errors(paths: &NodePaths) -> io::Result<()> {
    let log = fs::File::create(paths.log())?;
    rustix::stdio::dup2_stderr(&log)?;
    Ok(())
}

/// Containers start with the usual mask for new files, whatever the client's was.
pub(super) fn set_file_mask() {
    rustix::process::umask(Mode::from_raw_mode(0o022));
}

/// The node's own process table, and mount points that exist inside the node only.
pub(super) fn mount(paths: &NodePaths) -> Result<(), String> {
    let describe = |error: &dyn std::error::Error| error.to_string();
    mounts::make_private().map_err(|error| describe(&error))?;
    mounts::mount_proc(Path::new("/proc")).map_err(|error| describe(&error))?;
    let at = paths.mount_dir();
    fs::create_dir_all(&at).map_err(|error| describe(&error))?;
    let tmpfs = Tmpfs {
        marker: &paths.marker(),
        mode: 0o700,
        bytes_max: None,
    };
    tmpfs.mount(&at).map_err(|error| describe(&error))?;
    for name in ["root", "pod", "shm"] {
        fs::create_dir(at.join(name)).map_err(|error| describe(&error))?;
    }
    Ok(())
}

/// The pods of an earlier node, whose processes are gone; what is no whole pod is removed.
pub(super) fn find_lost(paths: &NodePaths) -> BTreeMap<String, PodState> {
    let reason = "the node process ended, and the pod's processes with it";
    let mut found = BTreeMap::new();
    for name in record::names(&paths.pods_dir()) {
        let pod = paths.pod(&name);
        match record::read_lost(&pod, reason) {
            Some(state) if state.uid == name => drop(found.insert(name, state)),
            _ => {
                if let Err(error) = fs::remove_dir_all(pod.dir()) {
                    eprintln!("node: {}: {error}", pod.dir().display());
                }
            }
        }
    }
    found
}

/// Opens the door to clients of our own user only.
pub(super) fn listen(paths: &NodePaths) -> io::Result<UnixListener> {
    match fs::remove_file(paths.socket()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let socket = SocketPath::of_node(paths)?;
    // There is no moment in which others could connect.
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(socket.get());
    rustix::process::umask(before);
    listener
}

/// Removes what belongs to a living node only. The directory of the pods stays if a pod was lost.
pub(super) fn clear(paths: &NodePaths) {
    let _ = fs::remove_file(paths.socket());
    let _ = fs::remove_dir(paths.pods_dir());
}
