//! What every container sees of the host, read-only: its system directories, devices and `/sys`. The node
//! puts it together once. A container copies the mounts, which are read-only from their first moment.

mod etc;

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::masks::Masks;
use crate::mounts::{self, MountError, Tmpfs};

/// Where it is below the node's mount points.
pub(crate) const NAME: &str = "system";

/// Directories of the host. A link stays a link.
const DIRECTORIES: &[&str] = &[
    "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "opt",
];

/// A directory of which a part is shown.
const SETTINGS: &str = "etc";

/// Files of it that each pod has its own of. They must be there to be covered.
const COVERED: &[&str] = &["hosts", "hostname", "resolv.conf"];

/// More than the parts that are shown can have, by their own bound.
const SETTINGS_BYTES_MAX: u64 = 64 << 20;

const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

/// Whether a path of the host is seen in every container, as far as its name says.
pub fn is_shown(path: &Path) -> bool {
    let below_root = path.strip_prefix("/").unwrap_or(path);
    match below_root.strip_prefix(SETTINGS) {
        Ok(setting) => etc::lists(setting),
        Err(_) => DIRECTORIES.iter().any(|name| below_root.starts_with(name)),
    }
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
    let masks = Masks::at(at);
    masks.prepare()?;
    masks.hide_in_sys(&at.join("sys"))?;
    prepare_settings(&at.join(SETTINGS), marker)?;
    prepare_devices(&at.join("dev"))
}

fn prepare_settings(at: &Path, marker: &str) -> Result<(), MountError> {
    let failed = || MountError::at::<io::Error>("make", at);
    fs::create_dir(at).map_err(failed())?;
    let settings = Tmpfs::new(marker, 0o755, SETTINGS_BYTES_MAX);
    settings.with_room_for(etc::ENTRY_COUNT_MAX).mount(at)?;
    etc::copy(&Path::new("/").join(SETTINGS), at).map_err(failed())?;
    etc::make_places(at, COVERED).map_err(failed())?;
    mounts::seal_alone(at)
}

/// The devices of the host, as mounts that allow their use but no change of their modes and owners.
fn prepare_devices(at: &Path) -> Result<(), MountError> {
    let failed = || MountError::at::<io::Error>("make devices in", at);
    fs::create_dir(at).map_err(failed())?;
    for name in DEVICES {
        let (host, inside) = (Path::new("/dev").join(name), at.join(name));
        if host.exists() {
            fs::File::create(&inside).map_err(failed())?;
            mounts::bind(&host, &inside)?;
            mounts::seal_alone(&inside)?;
        }
    }
    Ok(())
}

/// Shows the devices in a `/dev` that is being built.
pub(super) fn bind_devices(prepared: &Path, dev: &Path) -> Result<(), MountError> {
    for name in DEVICES {
        let (sealed, inside) = (prepared.join("dev").join(name), dev.join(name));
        if sealed.exists() {
            fs::File::create(&inside).map_err(MountError::at("make", &inside))?;
            mounts::bind(&sealed, &inside)?;
        }
    }
    Ok(())
}

/// Shows the system directories in a root that is being built.
pub(super) fn bind(prepared: &Path, root: &Path) -> Result<(), MountError> {
    for name in DIRECTORIES.iter().chain([&SETTINGS]) {
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
            ("/etc", false),
            ("/etc/ssl/certs/ca-certificates.crt", true),
            ("/etc/shadow", false),
        ] {
            assert_eq!(super::is_shown(Path::new(path)), is_shown, "{path}");
        }
    }
}
