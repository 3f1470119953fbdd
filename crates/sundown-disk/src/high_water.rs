//! The newest acknowledged revision, outside the journal: what a shorter journal is found out by.
//!
//! It is written after every group and synced once a second. A killed process loses none of it; after
//! a power failure it may be a second old, and then only the last group of the journal can be lost
//! unseen: any earlier one is betrayed by its successors, see `scratch.rs`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use sundown_store::Revision;

use crate::directory::create_private;
use crate::record::checksum;

/// More often would cost a second sync per group.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct HighWater {
    file: File,
    synced_at: Instant,
}

impl HighWater {
    /// Writes a new file, whole or not at all.
    pub(crate) fn create(path: &Path, revision: Revision) -> io::Result<()> {
        let temporary = path.with_extension("new");
        let file = create_private(&temporary)?;
        file.write_all_at(line(revision).as_bytes(), 0)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    }

    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: OpenOptions::new().write(true).open(path)?,
            synced_at: Instant::now(),
        })
    }

    /// What a file says; None when it says nothing that could be believed.
    pub(crate) fn read(path: &Path) -> Option<Revision> {
        let text = std::fs::read_to_string(path).ok()?;
        let revision = Revision::parse(text.split(' ').next()?)?;
        (line(revision) == text).then_some(revision)
    }

    /// Notes that everything up to a revision is durable.
    pub(crate) fn raise(&mut self, revision: Revision) -> io::Result<()> {
        self.file.write_all_at(line(revision).as_bytes(), 0)?;
        if self.synced_at.elapsed() >= SYNC_INTERVAL {
            self.sync()?;
        }
        Ok(())
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.synced_at = Instant::now();
        Ok(())
    }
}

/// Always of the same length, so that it is written in place by one small write.
fn line(revision: Revision) -> String {
    let digits = format!("{:020}", revision.number());
    format!("{digits} {:016x}\n", checksum(digits.as_bytes()))
}
