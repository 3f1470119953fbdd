//! Mounts of the calling thread's mount namespace: what the node, the pod and the container have in
//! common. Which directories are mounted where is decided by them.

use std::ffi::{CStr, CString, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_remount,
};

/// What was tried at which path.
#[derive(Debug, thiserror::Error)]
#[error("{action} {}: {source}", path.display())]
pub(crate) struct MountError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl MountError {
    /// For `map_err`: names the step.
    pub(crate) fn at<E: Into<io::Error>>(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self {
            action,
            path: path.to_owned(),
            source: source.into(),
        }
    }
}

/// Cuts the namespace off: nothing mounted here is seen elsewhere, and the other way round.
pub(crate) fn make_private() -> Result<(), MountError> {
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    let root = Path::new("/");
    mount_change(root, flags).map_err(MountError::at("make private", root))
}

/// Mounts the process table of the calling process's own pid namespace.
pub(crate) fn mount_proc(at: &Path) -> Result<(), MountError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", at, "proc", flags, None).map_err(MountError::at("mount proc at", at))
}

/// A file system in memory to mount.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tmpfs<'a> {
    /// See [`crate::paths::NodePaths::marker`].
    pub(crate) marker: &'a str,
    pub(crate) mode: u32,
    pub(crate) bytes_max: Option<u64>,
}

impl Tmpfs<'_> {
    /// Mounts it.
    pub(crate) fn mount(self, at: &Path) -> Result<(), MountError> {
        let size = self.bytes_max.map(|bytes| format!(",size={bytes}"));
        let options = format!("mode={:o}{}", self.mode, size.unwrap_or_default());
        let options = CString::new(options).expect("digits hold no zero byte");
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let options: &CStr = &options;
        mount(self.marker, at, "tmpfs", flags, options)
            .map_err(MountError::at("mount tmpfs at", at))
    }
}

/// Shows `source`, with everything that is mounted below it, at `target` too.
pub(crate) fn bind(source: &Path, target: &Path) -> Result<(), MountError> {
    mount_bind_recursive(source, target).map_err(MountError::at("bind", source))
}

/// Makes a mount with nothing mounted below it read-only; the mount table need not be read. It keeps its
/// other flags.
pub(crate) fn seal_alone(point: &Path) -> Result<(), MountError> {
    let failed = || MountError::at::<io::Error>("make read-only", point);
    let found = rustix::fs::statvfs(point).map_err(|error| failed()(error.into()))?;
    let flags = kept_flags(found.f_flag) | MountFlags::BIND | MountFlags::RDONLY;
    mount_remount(point, flags, c"").map_err(|error| failed()(error.into()))
}

/// The flags of a mount by what its file system says of it: there relatime is one of its own.
fn kept_flags(found: StatVfsMountFlags) -> MountFlags {
    [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ]
    .into_iter()
    .filter(|(is_set, _)| found.contains(*is_set))
    .fold(MountFlags::empty(), |flags, (_, flag)| flags | flag)
}

/// Makes the mounts at and below these paths read-only. A mount keeps its other flags: a user
/// namespace may not clear those that it inherited.
pub(crate) fn seal_trees(trees: &[PathBuf]) -> Result<(), MountError> {
    if trees.is_empty() {
        return Ok(());
    }
    seal_where(|point| trees.iter().any(|tree| point.starts_with(tree)))
}

/// Makes exactly the mounts at these paths read-only, not what is mounted below them.
pub(crate) fn seal_exactly(points: &[PathBuf]) -> Result<(), MountError> {
    if points.is_empty() {
        return Ok(());
    }
    seal_where(|point| points.iter().any(|each| each == point))
}

fn seal_where(is_chosen: impl Fn(&Path) -> bool) -> Result<(), MountError> {
    let table = Path::new("/proc/self/mountinfo");
    let text = fs::read(table).map_err(MountError::at("read", table))?;
    for (point, flags) in parse_table(&text) {
        if is_chosen(&point) {
            let flags = flags | MountFlags::BIND | MountFlags::RDONLY;
            mount_remount(&point, flags, c"").map_err(MountError::at("make read-only", &point))?;
        }
    }
    Ok(())
}

/// The mount points of a mount table with the flags of each mount. A point that is covered by a
/// later mount appears more than once.
fn parse_table(text: &[u8]) -> impl Iterator<Item = (PathBuf, MountFlags)> {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|byte| *byte == b' ').skip(4);
        let point = unescape(fields.next()?);
        let options = String::from_utf8_lossy(fields.next()?);
        Some((
            point,
            options.split(',').fold(MountFlags::empty(), add_flag),
        ))
    })
}

fn add_flag(flags: MountFlags, option: &str) -> MountFlags {
    flags
        | match option {
            "ro" => MountFlags::RDONLY,
            "nosuid" => MountFlags::NOSUID,
            "nodev" => MountFlags::NODEV,
            "noexec" => MountFlags::NOEXEC,
            "noatime" => MountFlags::NOATIME,
            "nodiratime" => MountFlags::NODIRATIME,
            "relatime" => MountFlags::RELATIME,
            _ => MountFlags::empty(),
        }
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let decoded = octal
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() {
            &after[3..]
        } else {
            after
        };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_table_gives_points_and_flags() {
        let text = b"22 27 0:21 / /proc rw,relatime - proc proc rw\n\
            30 27 8:1 / /a\\040b ro,nosuid,nodev master:1 - ext4 /dev/x rw\n";
        let found: Vec<_> = parse_table(text).collect();
        assert_eq!(found[0], (PathBuf::from("/proc"), MountFlags::RELATIME));
        let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
        assert_eq!(found[1], (PathBuf::from("/a b"), flags));
    }
}
