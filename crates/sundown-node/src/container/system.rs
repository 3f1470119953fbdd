//! What every container sees of the host, read-only: its system directories and `/sys`. The node puts
//! it together once. A container copies the mounts, which are read-only from their first moment.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::place::{Kind, Root};
use crate::mounts::{self, MountError};

/// Where it is below the node's mount points.
pub(crate) const NAME: &str = "system";

/// Directories of the host. A link stays a link.
const DIRECTORIES: &[&str] = &[
    "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "opt",
];

/// Files that each pod has its own of. They must be there to be covered.
const COVERED: &[&str] = &["/etc/hosts", "/etc/hostname", "/etc/resolv.conf"];

/// Whether a path of the host is seen in every container.
pub(super) fn shows(path: &Path) -> bool {
    let below_root = path.strip_prefix("/").unwrap_or(path);
    DIRECTORIES.iter().any(|name| below_root.starts_with(name))
}

/// Puts it together at `at`.
///
/// # Assumes
/// The mount namespace is cut off from others, and nothing is mounted at `at` yet.
pub(crate) fn prepare(at: &Path, marker: &str) -> Result<(), MountError> {
    let host = Path::new("/");
    let mut names = DIRECTORIES.to_vec();
    names.push("sys");
    for name in &names {
        show(&host.join(name), &at.join(name))?;
    }
    let bound: Vec<_> = names.iter().map(|name| at.join(name)).collect();
    // Nothing may be made inside a bind before it is read-only: it would be made on the host.
    mounts::seal_trees(&bound)?;
    let mut root = Root {
        path: at,
        marker,
        rebuilt: Vec::new(),
    };
    for path in COVERED {
        root.place(Path::new(path), Kind::File)?;
    }
    mounts::seal_exactly(&root.rebuilt)
}

/// Shows the system directories in a root that is being built.
pub(super) fn bind(prepared: &Path, root: &Path) -> Result<(), MountError> {
    for name in DIRECTORIES {
        show(&prepared.join(name), &root.join(name))?;
    }
    Ok(())
}

fn show(source: &Path, target: &Path) -> Result<(), MountError> {
    let failed = || MountError::at::<io::Error>("make", target);
    let Ok(metadata) = fs::symlink_metadata(source) else {
        return Ok(());
    };
    if metadata.is_symlink() {
        let leads_to = fs::read_link(source).map_err(failed())?;
        return symlink(leads_to, target).map_err(failed());
    }
    fs::create_dir(target).map_err(failed())?;
    mounts::bind(source, target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_below_a_system_directory_is_shown() {
        for (path, is_shown) in [
            ("/usr/lib/python3", true),
            ("/opt", true),
            ("/optional", false),
            ("/home/user/usr", false),
            ("/", false),
        ] {
            assert_eq!(shows(Path::new(path)), is_shown, "{path}");
        }
    }
}
