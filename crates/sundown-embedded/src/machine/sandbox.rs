//! The place of a pod as the node wants it.

use std::path::Path;

use sundown_decide::pod::room::Room;
use sundown_model::node::{self, Content, Sandbox};
use sundown_node::{ClosedPaths, HostPathKind, HostsEntry, PodSpec, Volume, VolumeSource};

use super::DeedFailure;
use super::files;
use super::references::References;

/// What `/dev/shm` has where a manifest does not say: as with container runtimes.
const SHARED_MEMORY_BYTES: u64 = 64 * 1024 * 1024;

/// How much the files of all volumes of a pod may be together: the same object can be named many times.
/// A pod that needs more than 64 full `ConfigMap`s would change our mind.
pub(super) const FILES_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The pod with the content of its volumes.
pub(super) async fn pod_spec(
    sandbox: &Sandbox,
    closed: &ClosedPaths,
    references: &References,
) -> Result<PodSpec, DeedFailure> {
    refuse_closed(sandbox, closed)?;
    let mut room = Room::of(FILES_BYTES_MAX);
    let mut volumes = Vec::new();
    for volume in &sandbox.volumes {
        let name = volume.name.clone();
        let source = source(sandbox, &volume.content, &mut room, references).await;
        let source = source.map_err(|failure| about(&name, failure))?;
        volumes.push(Volume { name, source });
    }
    let hosts = sandbox.hosts.iter().map(|(address, names)| HostsEntry {
        address: *address,
        names: names.clone(),
    });
    Ok(PodSpec {
        uid: sandbox.pod.to_string(),
        namespace: sandbox.namespace.to_string(),
        name: sandbox.name.to_string(),
        hostname: sandbox.hostname.clone(),
        domain: sandbox.domain.clone(),
        address: None,
        hosts: hosts.collect(),
        search_domains: sandbox.search.clone(),
        shm_bytes: sandbox.shared_memory_bytes.unwrap_or(SHARED_MEMORY_BYTES),
        volumes,
        closed: closed.clone(),
    })
}

/// Refuses by name what the node would refuse when it mounts it, and before it makes anything.
fn refuse_closed(sandbox: &Sandbox, closed: &ClosedPaths) -> Result<(), DeedFailure> {
    for volume in &sandbox.volumes {
        let Content::HostPath { path, .. } = &volume.content else {
            continue;
        };
        if let Some(why) = closed.refusal(Path::new(path)) {
            let message = format!("volume {:?}: {why}", volume.name);
            return Err(DeedFailure::refused(node::Refused::ClosedHostPath, message));
        }
    }
    Ok(())
}

/// As the kubelet tells of a volume that it cannot set up.
fn about(volume: &str, failure: DeedFailure) -> DeedFailure {
    match failure {
        DeedFailure::Refused(mut refusal) => {
            refusal.message = format!(
                "MountVolume.SetUp failed for volume {volume:?} : {}",
                refusal.message
            );
            DeedFailure::Refused(refusal)
        }
        DeedFailure::Unknown => DeedFailure::Unknown,
    }
}

async fn source(
    sandbox: &Sandbox,
    content: &Content,
    room: &mut Room,
    references: &References,
) -> Result<VolumeSource, DeedFailure> {
    Ok(match content {
        Content::Empty {
            in_memory,
            size_bytes,
        } => VolumeSource::EmptyDir {
            in_memory: *in_memory,
            bytes_max: *size_bytes,
        },
        Content::HostPath { path, kind } => VolumeSource::HostPath {
            path: path.into(),
            kind: host_path_kind(kind)?,
        },
        Content::Files { from, mode } => VolumeSource::Files {
            files: files::all(sandbox, from, *mode, room, references).await?,
        },
    })
}

fn host_path_kind(kind: &str) -> Result<HostPathKind, DeedFailure> {
    Ok(match kind {
        "" => HostPathKind::Any,
        "DirectoryOrCreate" => HostPathKind::DirectoryOrCreate,
        "Directory" => HostPathKind::Directory,
        "FileOrCreate" => HostPathKind::FileOrCreate,
        "File" => HostPathKind::File,
        "Socket" => HostPathKind::Socket,
        "CharDevice" => HostPathKind::CharDevice,
        "BlockDevice" => HostPathKind::BlockDevice,
        other => {
            let message = format!("hostPath.type {other:?} is not known");
            return Err(DeedFailure::refused(
                node::Refused::BadHostPathType,
                message,
            ));
        }
    })
}
