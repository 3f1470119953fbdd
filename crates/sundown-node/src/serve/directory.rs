//! The directory of a pod: written before its first process, removed after its last one.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use super::setup::REMOVING;
use crate::paths::{NodePaths, PodPaths};
use crate::record::{self, Identity};
use crate::spec::{PodSpec, is_plain_name};

/// Writes who the pod is and what it finds below `/etc`.
pub(super) fn write(
    bridge: Ipv4Addr,
    paths: &PodPaths,
    spec: &PodSpec,
    address: Ipv4Addr,
) -> io::Result<()> {
    let mut private = fs::DirBuilder::new();
    private.recursive(true).mode(0o700).create(paths.dir())?;
    fs::create_dir_all(paths.etc())?;
    fs::create_dir_all(paths.containers())?;
    fs::write(paths.etc().join("hosts"), hosts(spec, address))?;
    fs::write(paths.etc().join("hostname"), format!("{}\n", spec.hostname))?;
    fs::write(paths.etc().join("resolv.conf"), resolver(bridge, spec))?;
    if let Ok(text) = fs::read_to_string("/etc/nsswitch.conf") {
        fs::write(paths.etc().join("nsswitch.conf"), name_services(&text))?;
    }
    let identity = Identity {
        uid: spec.uid.clone(),
        namespace: spec.namespace.clone(),
        name: spec.name.clone(),
        address,
    };
    record::write_whole(&paths.identity(), &identity)
}

fn hosts(spec: &PodSpec, address: Ipv4Addr) -> String {
    let mut text = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n".to_owned();
    let hostname = &spec.hostname;
    let _ = match &spec.domain {
        Some(domain) => writeln!(text, "{address}\t{hostname}.{domain}\t{hostname}"),
        None => writeln!(text, "{address}\t{hostname}"),
    };
    for entry in &spec.hosts {
        let _ = writeln!(text, "{}\t{}", entry.address, entry.names.join("\t"));
    }
    text
}

fn resolver(bridge: Ipv4Addr, spec: &PodSpec) -> String {
    let search = match spec.search_domains.as_slice() {
        [] => String::new(),
        domains => format!("search {}\n", domains.join(" ")),
    };
    format!("nameserver {bridge}\n{search}options ndots:5\n")
}

/// The host may ask services that a pod cannot reach, and wait for them.
fn name_services(text: &str) -> String {
    let mut changed = String::with_capacity(text.len());
    for line in text.lines() {
        let is_hosts = line.trim_start().starts_with("hosts:");
        changed.push_str(if is_hosts { "hosts: files dns" } else { line });
        changed.push('\n');
    }
    changed
}

/// Removes what the containers of a pod wrote and what they found there; records and logs stay.
///
/// # Assumes
/// Nothing of the pod runs, so nothing is mounted there.
pub(super) fn clear(paths: &NodePaths, uid: &str) -> io::Result<()> {
    check(uid)?;
    let pod = paths.pod(uid);
    for name in record::names(&pod.containers()) {
        for attempt in record::names(&pod.containers().join(&name)) {
            if let Ok(attempt) = attempt.parse() {
                remove_all(&pod.scratch(&name, attempt))?;
            }
        }
    }
    remove_all(&pod.volumes())?;
    remove_all(&pod.etc())
}

/// A path that is joined to another replaces it when it is absolute: what is no plain name must
/// never come near a removal.
fn check(uid: &str) -> io::Result<()> {
    if is_plain_name(uid) {
        return Ok(());
    }
    let message = format!("{uid:?} cannot name a directory of ours");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

fn remove_all(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes the directory of a pod; not finding it is success.
pub(super) fn remove(paths: &NodePaths, uid: &str) -> io::Result<()> {
    check(uid)?;
    let directory = paths.pod(uid);
    let doomed = paths.pods_dir().join(format!("{REMOVING}{uid}"));
    // Renamed first: half a directory must not be taken for a pod by the next node.
    match fs::rename(directory.dir(), &doomed) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    remove_all(&doomed)
}
