//! What of a node is still there, as lines for people: empty means that nothing is. Asked of the node
//! itself, and of the host when there is no node any more.

use std::fs;
use std::io;
use std::path::Path;

use crate::container::system;
use crate::network;
use crate::paths::NodePaths;
use crate::record;
use crate::serve::REMOVING;

/// What the host sees of the node of a data directory: processes, with them their namespaces and
/// mounts, mounts of the host, and files.
///
/// # Errors
/// The process table cannot be read, so nothing can be said.
pub fn leftovers(data_dir: &Path) -> io::Result<Vec<String>> {
    let paths = match data_dir.canonicalize() {
        Ok(_) => NodePaths::new(data_dir)?,
        Err(_) => return Ok(Vec::new()),
    };
    let marker = paths.marker();
    let mut found = Vec::new();
    for pid in process_numbers(Path::new("/proc"))? {
        // A process that has just ended has no mount table.
        let table = fs::read(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
        if String::from_utf8_lossy(&table).contains(&marker) {
            found.push(format!("process {pid}: {}", command_line(&pid)));
        }
    }
    let own = fs::read_to_string("/proc/self/mountinfo")?;
    let directory = paths.node_dir();
    let directory = directory.to_string_lossy();
    let mounts = own.lines().filter(|line| line.contains(&*directory));
    found.extend(mounts.map(|line| format!("mount: {line}")));
    if paths.socket().exists() {
        found.push(format!("socket {}", paths.socket().display()));
    }
    found.extend(pod_directories(&paths));
    Ok(found)
}

/// Whether files of ended pods were still being removed when the node of a data directory ended. The next one goes on
/// with it.
pub fn is_removing(data_dir: &Path) -> bool {
    // Looked for first: a directory that is not there is made otherwise.
    let paths = data_dir.canonicalize().and_then(|it| NodePaths::new(&it));
    let names = paths.map(|paths| record::names(&paths.pods_dir()));
    names.is_ok_and(|names| names.iter().any(|name| name.starts_with(REMOVING)))
}

/// What the node itself sees: every process but its own, links, directories, mounts.
pub(crate) fn inside(paths: &NodePaths) -> Vec<String> {
    let mut found = Vec::new();
    for pid in process_numbers(Path::new("/proc")).unwrap_or_default() {
        // The node is the first process of its namespace.
        if pid != "1" {
            found.push(format!("process {pid}: {}", command_line(&pid)));
        }
    }
    let links = network::pod_links().unwrap_or_else(|error| vec![error.to_string()]);
    found.extend(links.into_iter().map(|name| format!("link {name}")));
    let mount_dir = paths.mount_dir();
    let below = format!("{}/", mount_dir.display());
    // The node's own, for all pods.
    let system = format!("{below}{}/", system::NAME);
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mounts = table.lines().filter(|line| line.contains(&below));
    let mounts = mounts.filter(|line| !line.contains(&system));
    found.extend(mounts.map(|line| format!("mount: {line}")));
    found.extend(pod_directories(paths));
    found
}

fn pod_directories(paths: &NodePaths) -> Vec<String> {
    let pods = paths.pods_dir();
    let names = record::names(&pods);
    let describe = |name: String| format!("directory {}", pods.join(name).display());
    names.into_iter().map(describe).collect()
}

fn process_numbers(table: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(table)?;
    let is_number = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
    Ok(record::names(table).into_iter().filter(is_number).collect())
}

fn command_line(pid: &str) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    words.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}
