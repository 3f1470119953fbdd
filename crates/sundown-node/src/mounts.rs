//! Mounts of the calling thread's mount namespace: what the node, the pod and the container have in
//! common. Which directories are mounted where is decided by them.

use std::ffi::{CStr, CString, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, ResolveFlags, StatVfsMountFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount,
    mount_bind_recursive, mount_change, mount_remount, move_mount, open_tree,
};

pub(crate) const PAGE_BYTES: u64 = 4096;

/// Directories and links take no pages.
const ENTRY_COUNT_MIN: u64 = 1024;

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

/// A file system in memory to mount. It always has a size: without one it may take half of the machine's
/// memory, and what is in it stays when the kernel kills for lack of memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tmpfs<'a> {
    /// See [`crate::paths::NodePaths::marker`].
    marker: &'a str,
    mode: u32,
    bytes_max: u64,
    entry_count_max: u64,
}

impl<'a> Tmpfs<'a> {
    /// One with room for a file in each page, and for a few more.
    pub(crate) fn new(marker: &'a str, mode: u32, bytes_max: u64) -> Self {
        Self {
            marker,
            mode,
            // Zero would be no bound at all.
            bytes_max: bytes_max.max(PAGE_BYTES),
            entry_count_max: (bytes_max / PAGE_BYTES).max(ENTRY_COUNT_MIN),
        }
    }

    /// The same with room for so many entries more.
    pub(crate) fn with_room_for(self, entry_count: usize) -> Self {
        let entry_count = u64::try_from(entry_count).unwrap_or(u64::MAX);
        Self {
            entry_count_max: self.entry_count_max.saturating_add(entry_count),
            ..self
        }
    }

    fn options(self) -> [(&'static str, String); 3] {
        [
            ("mode", format!("{:o}", self.mode)),
            ("size", self.bytes_max.to_string()),
            ("nr_inodes", self.entry_count_max.to_string()),
        ]
    }

    /// Mounts it.
    pub(crate) fn mount(self, at: &Path) -> Result<(), MountError> {
        self.mount_with("", at)
            .map_err(MountError::at("mount tmpfs at", at))
    }

    /// Mounts it so that nothing in it is ever swapped out, where the kernel knows that (6.4) and lets
    /// us: not in a user namespace.
    pub(crate) fn mount_for_secrets(self, at: &Path) -> Result<(), MountError> {
        self.mount_with(",noswap", at).or_else(|_| self.mount(at))
    }

    fn mount_with(self, more: &str, at: &Path) -> io::Result<()> {
        let options = self
            .options()
            .map(|(name, value)| format!("{name}={value}"));
        let options = options.join(",") + more;
        let options = CString::new(options).expect("digits hold no zero byte");
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let options: &CStr = &options;
        Ok(mount(self.marker, at, "tmpfs", flags, options)?)
    }

    /// Makes it without a place; it is reached by the descriptor, whatever becomes of names.
    pub(crate) fn make(self) -> io::Result<OwnedFd> {
        let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_string(context.as_fd(), "source", self.marker)?;
        for (name, value) in self.options() {
            fsconfig_set_string(context.as_fd(), name, value)?;
        }
        fsconfig_create(context.as_fd())?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        Ok(fsmount(
            context.as_fd(),
            FsMountFlags::FSMOUNT_CLOEXEC,
            attributes,
        )?)
    }
}

/// How much a volume in memory may hold: what was asked for, up to the whole memory. Who asks for nothing
/// gets half of it, as the kernel has it for file systems without a size.
pub(crate) fn memory_bytes(asked: Option<u64>, total: u64) -> u64 {
    let asked = asked.filter(|bytes| *bytes > 0);
    asked.unwrap_or(total / 2).min(total)
}

/// The memory of this machine.
pub(crate) fn machine_memory() -> u64 {
    let found = rustix::system::sysinfo();
    u64::from(found.mem_unit).saturating_mul(found.totalram)
}

/// A copy of what a descriptor names, with everything that is mounted below it, still without a place.
pub(crate) fn copy_tree(source: impl AsFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(source, "", flags)?)
}

/// Gives a mount without a place one. Both are named by descriptors, so no path is followed; the first
/// one names the mount from then on, too.
pub(crate) fn attach(tree: impl AsFd, place: impl AsFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(tree, "", place, "", flags)?)
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

/// Makes the mounts below a tree read-only, which is at `point`. Each is opened from the tree on without
/// following a link: the directories in between may belong to somebody who moves them.
pub(crate) fn seal_below(tree: &OwnedFd, point: &Path) -> Result<(), MountError> {
    let table = Path::new("/proc/self/mountinfo");
    let text = fs::read(table).map_err(MountError::at("read", table))?;
    for (found, _) in parse_table(&text) {
        let Ok(below) = found.strip_prefix(point) else {
            continue;
        };
        if below.as_os_str().is_empty() {
            continue;
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let opened = sundown_files::open_scoped(tree, below, flags, resolve);
        let opened = opened.map_err(MountError::at("make read-only", &found))?;
        seal_alone(&descriptor_path(&opened))?;
    }
    Ok(())
}

/// A name of what a descriptor stands for, valid as long as it is open.
pub(crate) fn descriptor_path(descriptor: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()))
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
    fn a_volume_in_memory_always_has_a_size() {
        for (asked, bytes) in [
            (None, 500),
            (Some(0), 500),
            (Some(7), 7),
            (Some(900), 900),
            (Some(5000), 1000),
        ] {
            assert_eq!(memory_bytes(asked, 1000), bytes, "{asked:?}");
        }
        let smallest = Tmpfs::new("marker", 0o755, 0).options();
        assert_eq!(smallest[1].1, "4096", "zero would be no bound");
    }

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
