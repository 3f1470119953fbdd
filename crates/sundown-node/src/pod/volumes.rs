//! The content of a pod's volumes, made once for all its containers. Files by content live on a
//! tmpfs of the pod's own mount namespace: they are on no disk and go with the pod.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use super::Plan;
use crate::host_path::{ClosedPaths, Start};
use crate::mounts::{self, MountError, Tmpfs};
use crate::paths::PodPaths;
use crate::spec::{File, HostPathKind, PodSpec, VolumeSource};

/// Makes all volumes and says where each one is.
pub(super) fn prepare(
    plan: &Plan,
    paths: &PodPaths,
) -> Result<BTreeMap<String, PathBuf>, MountError> {
    let mut places = BTreeMap::new();
    for volume in &plan.spec.volumes {
        let in_memory = plan.mount_dir.join("pod").join(&volume.name);
        let name = Path::new(&volume.name);
        let failed = || MountError::at::<io::Error>("set up volume", name);
        let place = match &volume.source {
            VolumeSource::EmptyDir {
                in_memory: true,
                bytes_max,
            } => {
                fs::create_dir(&in_memory).map_err(failed())?;
                let bytes = mounts::memory_bytes(*bytes_max, mounts::machine_memory());
                Tmpfs::new(&plan.marker, 0o777, bytes).mount(&in_memory)?;
                in_memory
            }
            VolumeSource::EmptyDir { .. } => {
                let place = paths.volume(&volume.name);
                make_open_directory(&place).map_err(failed())?;
                place
            }
            VolumeSource::Files { files } => {
                write_files(&in_memory, files).map_err(failed())?;
                in_memory
            }
            VolumeSource::HostPath { path, kind } => {
                let closed = &plan.spec.closed;
                closed.check_path(path).map_err(failed())?;
                check_host_path(closed, path, *kind).map_err(failed())?;
                path.clone()
            }
        };
        places.insert(volume.name.clone(), place);
    }
    Ok(places)
}

/// How much memory the files take that volumes begin with.
pub(super) fn files_bytes(pod: &PodSpec) -> u64 {
    let sources = pod.volumes.iter().map(|volume| &volume.source);
    let files = sources.filter_map(|source| match source {
        VolumeSource::Files { files } => Some(files),
        VolumeSource::EmptyDir { .. } | VolumeSource::HostPath { .. } => None,
    });
    // A file takes whole pages.
    let of_one = |file: &File| u64::try_from(file.content.len()).unwrap_or(u64::MAX) / 4096 + 1;
    let pages: u64 = files.flat_map(BTreeMap::values).map(of_one).sum();
    pages.saturating_mul(4096)
}

/// Open to every user of the pod, as the kubelet makes it.
fn make_open_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o777))
}

fn write_files(directory: &Path, files: &BTreeMap<String, File>) -> io::Result<()> {
    fs::create_dir(directory)?;
    for (name, file) in files {
        let relative = Path::new(name);
        let is_inside = relative
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !is_inside {
            return Err(io::Error::other(format!(
                "file {name:?} is not inside the volume"
            )));
        }
        let path = directory.join(relative);
        fs::create_dir_all(path.parent().expect("a joined path has a parent"))?;
        let mut opened = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        opened.write_all(&file.content)?;
        opened.set_permissions(fs::Permissions::from_mode(file.mode))?;
    }
    Ok(())
}

/// Checks a host path as the kubelet does, and makes what may be made. What is there is checked once more
/// by its descriptor when it is mounted.
fn check_host_path(closed: &ClosedPaths, path: &Path, kind: HostPathKind) -> io::Result<()> {
    let found = fs::metadata(path);
    let is_missing = matches!(&found, Err(error) if error.kind() == io::ErrorKind::NotFound);
    match kind {
        HostPathKind::DirectoryOrCreate if is_missing => {
            return Start::find(closed, path)?.make_directory();
        }
        HostPathKind::FileOrCreate if is_missing => return Start::find(closed, path)?.make_file(),
        _ => {}
    }
    let named = |what: &str| {
        let path = path.display();
        io::Error::other(format!("hostPath type check failed: {path} is not {what}"))
    };
    let found = found.map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("hostPath {}: {error}", path.display()),
        )
    })?;
    let kind_found = found.file_type();
    let (is_right, what) = match kind {
        HostPathKind::Any => (true, "there"),
        HostPathKind::Directory | HostPathKind::DirectoryOrCreate => {
            (kind_found.is_dir(), "a directory")
        }
        HostPathKind::File | HostPathKind::FileOrCreate => (kind_found.is_file(), "a file"),
        HostPathKind::Socket => (kind_found.is_socket(), "a socket file"),
        HostPathKind::CharDevice => (kind_found.is_char_device(), "a character device"),
        HostPathKind::BlockDevice => (kind_found.is_block_device(), "a block device"),
    };
    if is_right { Ok(()) } else { Err(named(what)) }
}
