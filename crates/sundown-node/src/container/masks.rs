//! Parts of `/proc` and `/sys` that are about the machine and not about a container: hidden, as container
//! runtimes hide them. What is put over them is made once per node, read-only from its first moment.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, unmount};

use crate::mounts::{self, MountError};

/// Of every process table. Through some of them root could take a disk from the machine or switch parts of
/// it off, others tell of other processes.
const PROC: &[&str] = &[
    "acpi",
    "asound",
    "interrupts",
    "kcore",
    "keys",
    "latency_stats",
    "sched_debug",
    "scsi",
    "timer_list",
    "timer_stats",
];

/// Of `/sys`; all of them directories.
const SYS: &[&str] = &[
    "devices/virtual/powercap",
    "firmware",
    "fs/bpf",
    "fs/pstore",
    "kernel/debug",
    "kernel/security",
    "kernel/tracing",
];

/// What is put over the parts that are hidden.
#[derive(Debug)]
pub(super) struct Masks {
    directory: PathBuf,
    file: PathBuf,
}

impl Masks {
    /// Where they are below what is put together once per node.
    pub(super) fn at(system: &Path) -> Self {
        let masks = system.join("masks");
        Self {
            directory: masks.join("directory"),
            file: masks.join("file"),
        }
    }

    /// Makes them: an empty directory, and a device that reads as an empty file.
    pub(super) fn prepare(&self) -> Result<(), MountError> {
        let made = fs::create_dir_all(&self.directory).and_then(|()| fs::File::create(&self.file));
        made.map_err(MountError::at("make", &self.file))?;
        mounts::bind(&self.directory, &self.directory)?;
        mounts::bind(Path::new("/dev/null"), &self.file)?;
        mounts::seal_alone(&self.directory)?;
        mounts::seal_alone(&self.file)
    }

    /// Hides parts of the `/sys` that containers copy.
    pub(super) fn hide_in_sys(&self, sys: &Path) -> Result<(), MountError> {
        for part in SYS.iter().map(|name| sys.join(name)) {
            if part.is_dir() {
                // A file system less to copy for each container. A user namespace may have to leave it.
                let _ = unmount(&part, UnmountFlags::DETACH);
                mounts::bind(&self.directory, &part)?;
            }
        }
        Ok(())
    }

    /// Hides parts of a process table.
    pub(super) fn hide_in_proc(&self, proc: &Path) -> Result<(), MountError> {
        for part in PROC.iter().map(|name| proc.join(name)) {
            let Ok(found) = fs::symlink_metadata(&part) else {
                continue;
            };
            let mask = if found.is_dir() {
                &self.directory
            } else {
                &self.file
            };
            mounts::bind(mask, &part)?;
        }
        Ok(())
    }
}
