//! The note of a run that shows some writes before they are synced. A killed process loses none of
//! them; a power failure may, and then their revisions must not be given again.
//!
//! Which writes may be shown early is decided by the server.

use std::fs;
use std::io::{self, Write};

use crate::directory::{Directory, create_private};

/// Differs after every start of the system.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Whether writes that were seen may be lost: such a run did not end by itself, and the system has
/// been started since.
pub(crate) fn may_have_lost(directory: &Directory) -> io::Result<bool> {
    match fs::read_to_string(directory.relaxed()) {
        Ok(noted) => Ok(boot_id().is_none_or(|boot_id| boot_id != noted)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        // Torn by a power failure.
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(true),
        Err(error) => Err(error),
    }
}

/// Notes that this run is such a one.
pub(crate) fn note(directory: &Directory) -> io::Result<()> {
    let mut file = create_private(&directory.relaxed())?;
    file.write_all(boot_id().unwrap_or_default().as_bytes())?;
    file.sync_all()?;
    directory.sync()
}

/// Takes the note back: everything is synced.
pub(crate) fn forget(directory: &Directory) -> io::Result<()> {
    match fs::remove_file(directory.relaxed()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// None where the system tells none: then every unfinished run counts as one that lost something.
fn boot_id() -> Option<String> {
    let text = fs::read_to_string(BOOT_ID).ok()?;
    (!text.is_empty()).then_some(text)
}
