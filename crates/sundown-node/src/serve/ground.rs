//! The directory that a node stands on. When its path leads to it no longer, no client can reach the node and
//! no other node is kept from starting, so it ends.

use std::io;
use std::sync::Arc;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use sundown_files::{WatchedDirectory, Whereabouts};

use super::Node;

/// Ends the node when its directory is gone. None: that cannot be heard of here, which the log tells.
pub(super) fn stand_on(node: &Arc<Node>) -> Option<Arc<WatchedDirectory>> {
    let begun = begin(node);
    begun
        .inspect_err(|error| {
            eprintln!("node: the removal of its directory is not noticed: {error}");
        })
        .ok()
}

fn begin(node: &Arc<Node>) -> io::Result<Arc<WatchedDirectory>> {
    // The one that is locked while a node lives.
    let ground = Arc::new(WatchedDirectory::open(&node.paths.node_dir())?);
    let (node, watched) = (Arc::clone(node), Arc::clone(&ground));
    let thread = thread::Builder::new().name("ground".to_owned());
    thread.spawn(move || match until_gone(&watched) {
        Ok(()) => node.registry.end(),
        Err(error) => eprintln!("node: the removal of its directory is not noticed: {error}"),
    })?;
    Ok(ground)
}

fn until_gone(ground: &WatchedDirectory) -> io::Result<()> {
    // Something may have happened before it was watched.
    while ground.look()? == Whereabouts::There {
        match poll(&mut [PollFd::new(ground, PollFlags::IN)], None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Why nothing at the node's paths is its own any more; None while its directory is there.
pub(super) fn why_gone(ground: &WatchedDirectory) -> Option<String> {
    match ground.look() {
        // It may have come back in the meantime: then the usual end is right.
        Ok(Whereabouts::There) | Err(_) => None,
        Ok(gone) => Some(format!(
            "{} {gone}: the node ends with its pods",
            ground.path().display()
        )),
    }
}
