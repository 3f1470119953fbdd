//! Records on disk: who a pod is, when a run of a container started, how it ended. They are what a
//! node that was killed leaves to the next one.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::paths::PodPaths;
use crate::state::{ContainerState, ContainerStatus, Exit, PodState};

/// What is kept of a pod's specification: nothing that may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) uid: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) address: Ipv4Addr,
}

#[derive(Debug, Serialize, Deserialize)]
struct Started {
    started_at: Timestamp,
}

/// Writes a record so that it is either there as a whole or not at all, whoever is killed meanwhile.
///
/// It is not forced to disk: that would cost more than the rest of a pod. After a power loss no pod
/// runs, and one that stands in its status as placed and has no record here is lost, not run again.
pub(crate) fn write_whole<T: Serialize>(path: &Path, record: &T) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    fs::write(&temporary, serde_json::to_vec(record)?)?;
    fs::rename(&temporary, path)
}

/// Notes that a run began. A lost note costs the time of the start only, so it is not forced to
/// disk.
pub(crate) fn write_started(paths: &PodPaths, name: &str, attempt: u32, started_at: Timestamp) {
    let path = paths.attempt(name, attempt).join("started.json");
    let record = serde_json::to_vec(&Started { started_at }).unwrap_or_default();
    if let Err(error) = fs::write(&path, record) {
        eprintln!("{}: {error}", path.display());
    }
}

/// Writes how a run ended.
pub(crate) fn write_exit(
    paths: &PodPaths,
    name: &str,
    attempt: u32,
    exit: &Exit,
) -> io::Result<()> {
    write_whole(&paths.attempt(name, attempt).join("exit.json"), exit)
}

/// Reads the state of a pod whose processes are gone; `None` if the directory is no pod's.
pub(crate) fn read_lost(paths: &PodPaths, reason: &str) -> Option<PodState> {
    let identity: Identity = read(&paths.identity())?;
    Some(PodState {
        uid: identity.uid,
        namespace: identity.namespace,
        name: identity.name,
        address: identity.address,
        containers: read_containers(paths),
        lost: Some(reason.to_owned()),
    })
}

fn read_containers(paths: &PodPaths) -> BTreeMap<String, ContainerStatus> {
    let mut containers = BTreeMap::new();
    for name in names(&paths.containers()) {
        let attempts = names(&paths.containers().join(&name));
        let attempts = attempts.iter().filter_map(|each| each.parse::<u32>().ok());
        let latest = attempts
            .filter_map(|attempt| Some((attempt, read_state(paths, &name, attempt)?)))
            .max_by_key(|(attempt, _)| *attempt);
        if let Some((attempt, state)) = latest {
            containers.insert(name, ContainerStatus { attempt, state });
        }
    }
    containers
}

fn read_state(paths: &PodPaths, name: &str, attempt: u32) -> Option<ContainerState> {
    let directory = paths.attempt(name, attempt);
    if let Some(exit) = read::<Exit>(&directory.join("exit.json")) {
        return Some(ContainerState::Exited(exit));
    }
    let started: Started = read(&directory.join("started.json"))?;
    let started_at = started.started_at;
    Some(ContainerState::Lost { started_at })
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// The names in a directory, none if there is no such directory.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
