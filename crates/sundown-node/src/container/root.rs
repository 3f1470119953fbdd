//! The root of a container: a tmpfs with read-only binds of the host's system directories and of the
//! environment, fresh writable directories, devices, and the volumes. What is mounted is the caller's
//! choice; how it is put together is decided here.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::Plan;
use super::masks::Masks;
use super::place::{Kind, Root};
use super::system;
use crate::host_path::ClosedPaths;
use crate::mounts::{self, MountError, Tmpfs, descriptor_path};
use crate::spec::Mount;

/// Fresh directories on disk, one set per attempt, with their modes.
pub(crate) const SCRATCH: &[(&str, u32)] = &[
    ("home", 0o755),
    ("root", 0o700),
    ("tmp", 0o1777),
    ("var", 0o755),
];

/// Directories that programs expect below `/var`.
pub(crate) const SCRATCH_VAR: &[(&str, u32)] = &[
    ("cache", 0o755),
    ("lib", 0o755),
    ("log", 0o755),
    ("tmp", 0o1777),
];

/// What a container may put beside its directories on disk and its volumes: new directories at the top, and
/// `/run`. It is memory, so large files belong below `/tmp` or into a volume.
const ROOT_BYTES_MAX: u64 = 256 << 20;

/// Places for devices; nothing of size belongs there.
const DEV_BYTES_MAX: u64 = 1 << 20;

/// Parts of `/proc` through which root could change the host.
const PROC_READ_ONLY: &[&str] = &["bus", "fs", "irq", "sys", "sysrq-trigger"];

/// Builds the root and makes it the root of this process and of all that it starts.
///
/// # Assumes
/// The calling process is alone in a mount namespace that is cut off from others.
pub(super) fn enter(plan: &Plan) -> Result<(), MountError> {
    let path = plan.mount_dir.join("root");
    Tmpfs::new(&plan.marker, 0o755, ROOT_BYTES_MAX).mount(&path)?;
    let mut root = Root {
        path: &path,
        marker: &plan.marker,
        rebuilt: Vec::new(),
    };
    let system = plan.mount_dir.join(system::NAME);
    system::bind(&system, &path)?;
    make_scratch(plan, &path)?;
    bind_environment(plan, &mut root)?;
    mount_devices(plan, &system, &path)?;
    mount_kernel(&system, &path)?;
    bind_names(plan, &mut root)?;
    mount_volumes(plan, &mut root)?;
    root.seal_rebuilt()?;
    if plan.spec.read_only_root {
        let mut sealed = vec![path.clone()];
        sealed.extend(SCRATCH.iter().map(|(name, _)| path.join(name)));
        mounts::seal_exactly(&sealed)?;
    }
    pivot(&path).map_err(MountError::at("enter", &path))
}

/// Shows the environment, with the prefix of its interpreter, where a system directory does not yet.
fn bind_environment(plan: &Plan, root: &mut Root<'_>) -> Result<(), MountError> {
    let mut bound = Vec::new();
    for source in &plan.spec.environment {
        if !system::is_shown(source) {
            let place = root.place(source, Kind::Directory)?;
            let real = place.real_path().map_err(MountError::at("find", source))?;
            mounts::bind(source, &place.path())?;
            bound.push(real);
        }
    }
    mounts::seal_trees(&bound)
}

fn make_scratch(plan: &Plan, root: &Path) -> Result<(), MountError> {
    for (name, _) in SCRATCH {
        let inside = root.join(name);
        fs::create_dir(&inside).map_err(MountError::at("make", &inside))?;
        mounts::bind(&plan.scratch.join(name), &inside)?;
    }
    for name in ["run", "dev", "proc", "sys", "mnt", "srv"] {
        let inside = root.join(name);
        fs::create_dir(&inside).map_err(MountError::at("make", &inside))?;
    }
    Ok(())
}

fn mount_devices(plan: &Plan, system: &Path, root: &Path) -> Result<(), MountError> {
    let dev = root.join("dev");
    Tmpfs::new(&plan.marker, 0o755, DEV_BYTES_MAX).mount(&dev)?;
    system::bind_devices(system, &dev)?;
    let failed = || MountError::at::<io::Error>("make devices in", &dev);
    let links = [
        ("/proc/self/fd", "fd"),
        ("/proc/self/fd/0", "stdin"),
        ("/proc/self/fd/1", "stdout"),
        ("/proc/self/fd/2", "stderr"),
        ("pts/ptmx", "ptmx"),
    ];
    for (target, name) in links {
        symlink(target, dev.join(name)).map_err(failed())?;
    }
    let (pts, shm) = (dev.join("pts"), dev.join("shm"));
    fs::create_dir(&pts).map_err(failed())?;
    fs::create_dir(&shm).map_err(failed())?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount(
        "devpts",
        &pts,
        "devpts",
        flags,
        c"newinstance,ptmxmode=0666,mode=0620",
    )
    .map_err(MountError::at("mount devpts at", &pts))?;
    mounts::bind(&plan.mount_dir.join("shm"), &shm)
}

fn mount_kernel(system: &Path, root: &Path) -> Result<(), MountError> {
    let proc = root.join("proc");
    mounts::mount_proc(&proc)?;
    for name in PROC_READ_ONLY {
        let part = proc.join(name);
        if part.exists() {
            mounts::bind(&part, &part)?;
            mounts::seal_alone(&part)?;
        }
    }
    Masks::at(system).hide_in_proc(&proc)?;
    mounts::bind(&system.join("sys"), &root.join("sys"))
}

/// Puts the pod's own hosts, resolv.conf and the like over the host's.
fn bind_names(plan: &Plan, root: &mut Root<'_>) -> Result<(), MountError> {
    let etc = crate::pod::etc(&plan.mount_dir);
    for name in crate::record::names(&etc) {
        let place = root.place(&Path::new("/etc").join(&name), Kind::File)?;
        mounts::bind(&etc.join(&name), &place.path())?;
    }
    Ok(())
}

fn mount_volumes(plan: &Plan, root: &mut Root<'_>) -> Result<(), MountError> {
    let mut ordered: Vec<&Mount> = plan.spec.mounts.iter().collect();
    // Outer paths first, or they would hide the inner ones.
    ordered.sort_by(|a, b| a.mount_path.cmp(&b.mount_path));
    for each in ordered {
        mount_volume(plan, root, each)?;
    }
    Ok(())
}

fn mount_volume(plan: &Plan, root: &mut Root<'_>, each: &Mount) -> Result<(), MountError> {
    let failed = || MountError::at::<io::Error>("mount a volume at", &each.mount_path);
    let volume = plan.volumes.get(&each.volume).ok_or_else(|| {
        let message = format!("the pod has no volume {}", each.volume);
        failed()(io::Error::other(message))
    })?;
    let closed = plan.of_host.contains(&each.volume).then_some(&plan.closed);
    let source = open_source(volume, each, closed).map_err(failed())?;
    let metadata = fs::metadata(descriptor_path(&source)).map_err(failed())?;
    let kind = if metadata.is_dir() {
        Kind::Directory
    } else {
        Kind::File
    };
    let place = root.place(&each.mount_path, kind)?;
    // By descriptors to the end: the place may lie in a volume in which another container moves things.
    let tree = mounts::copy_tree(&source).map_err(failed())?;
    mounts::attach(&tree, place.descriptor()).map_err(failed())?;
    if !each.read_only || metadata.file_type().is_socket() {
        return Ok(());
    }
    // Nothing is mounted below what the pod made in memory; below a directory of the host may be.
    if !volume.starts_with(&plan.mount_dir) {
        let real = fs::read_link(descriptor_path(&tree)).map_err(failed())?;
        mounts::seal_below(&tree, &real)?;
    }
    mounts::seal_alone(&descriptor_path(&tree))
}

/// Opens what a mount shows. A `subPath` is made if it is missing, and cannot leave the volume
/// whatever links other containers have put there.
fn open_source(
    volume: &Path,
    each: &Mount,
    closed: Option<&ClosedPaths>,
) -> io::Result<std::os::fd::OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let base = rustix::fs::open(volume, flags, Mode::empty())?;
    // The descriptor is what will be mounted; the name may lead elsewhere by now.
    if let Some(closed) = closed {
        closed.check_opened(volume, &base)?;
    }
    let Some(sub_path) = &each.sub_path else {
        return Ok(base);
    };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let open = |path: &Path| sundown_files::open_scoped(&base, path, flags, resolve);
    let mut reached = PathBuf::new();
    for name in sub_path.components() {
        let parent = if reached.as_os_str().is_empty() {
            ".".into()
        } else {
            reached.clone()
        };
        reached.push(name);
        if matches!(open(&reached), Err(rustix::io::Errno::NOENT)) {
            let directory = open(&parent)?;
            let made = rustix::fs::mkdirat(directory, name.as_os_str(), Mode::from_raw_mode(0o755));
            // Another container of the pod may have made it meanwhile.
            if let Err(error) = made
                && error != rustix::io::Errno::EXIST
            {
                return Err(error.into());
            }
        }
    }
    Ok(open(&reached)?)
}

fn pivot(root: &Path) -> io::Result<()> {
    std::env::set_current_dir(root)?;
    // The old root lands on top of the new one, from where it is taken away.
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    std::env::set_current_dir("/")
}
