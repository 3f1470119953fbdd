//! What a node does before it answers and after it has answered for the last time: mounts, socket,
//! leftovers of a node that was killed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use tokio::signal::unix::SignalKind;

use super::directory;
use crate::container::system;
use crate::mounts::{self, Tmpfs};
use crate::paths::{NodePaths, SocketPath};
use crate::record;
use crate::state::PodState;

/// Begins the name of a pod's directory while it is being removed.
pub(crate) const REMOVING: &str = ".removing-";

/// As container runtimes have it. Programs that close all descriptors one by one are slow above it.
const DESCRIPTOR_COUNT_MAX: u64 = 1 << 20;

/// For how long a node that is told to end goes on to remove what an earlier one left. Less than what
/// `sundown down` waits for the end.
const CLEAR_UP_TIME_MAX: Duration = Duration::from_secs(10);

/// The node's mount points are names only.
const MOUNT_POINTS_BYTES_MAX: u64 = 1 << 20;

/// Sundown makes no links. Behind one, pods would be written to, and removed from, files of the user's.
///
/// # Errors
/// One of the node's own places is a link.
pub(super) fn refuse_links(paths: &NodePaths) -> Result<(), String> {
    let places = [paths.node_dir(), paths.pods_dir(), paths.log()];
    let is_link = |path: &&PathBuf| fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink());
    match places.iter().find(is_link) {
        Some(place) => Err(format!(
            "{} is a link, which Sundown never makes: move it away",
            place.display()
        )),
        None => Ok(()),
    }
}

/// Sends errors to the node's log: the client's terminal is not ours.
pub(super) fn redirect_errors(paths: &NodePaths) -> io::Result<()> {
    let log = fs::File::create(paths.log())?;
    rustix::stdio::dup2_stderr(&log)?;
    Ok(())
}

/// Containers start with the usual mask for new files, whatever the client's was.
pub(super) fn set_file_mask() {
    rustix::process::umask(Mode::from_raw_mode(0o022));
}

/// Each pod costs the node a few descriptors, and the usual soft limit is made for programs that use
/// `select`. Containers inherit it: Ray asks for as much.
pub(super) fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: descriptor_limit(limit.current, limit.maximum),
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        eprintln!("node: more descriptors: {error}");
    }
}

/// Files of Secrets pass through the node's memory, which no core dump may hold. Containers inherit it and
/// may raise it again. That the node's process cannot be dumped at all would close its `/proc` to the
/// processes that it starts.
pub(super) fn forbid_core_dumps() {
    let limit = Rlimit {
        current: Some(0),
        ..getrlimit(Resource::Core)
    };
    if let Err(error) = setrlimit(Resource::Core, limit) {
        eprintln!("node: no core dumps: {error}");
    }
}

/// The soft limit that is taken, of soft and hard limit; None: no limit.
fn descriptor_limit(soft: Option<u64>, hard: Option<u64>) -> Option<u64> {
    let wanted = hard.map_or(DESCRIPTOR_COUNT_MAX, |hard| hard.min(DESCRIPTOR_COUNT_MAX));
    soft.map(|soft| soft.max(wanted))
}

/// Containers find every signal as a new program expects it. What a starter ignores is inherited by all
/// that it starts: `nohup` ignores hang-ups, and a shell the interrupts of what it runs behind it. A signal
/// with a handler is not inherited, so one that is ignored gets a handler that does nothing.
///
/// # Assumes
/// The process table is that of our own pid namespace.
pub(super) fn restore_signals() -> io::Result<()> {
    let ignored = ignored_signals(&fs::read_to_string("/proc/self/status")?);
    if ignored.is_empty() {
        return Ok(());
    }
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_io().build()?;
    let _inside = runtime.enter();
    for number in ignored {
        // A few cannot have a handler; nobody ignores these to be polite.
        let _ = tokio::signal::unix::signal(SignalKind::from_raw(number));
    }
    Ok(())
}

/// The signals that a process ignores, by what the kernel says of it. That of broken pipes is left out: it
/// is ignored here on purpose, and given back to every command.
fn ignored_signals(status: &str) -> Vec<i32> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let mask = mask.unwrap_or(0);
    let is_ignored = |number: &i32| mask & (1 << (number - 1)) != 0;
    let usual = 1..=31;
    usual
        .filter(|number| is_ignored(number) && *number != Signal::PIPE.as_raw())
        .collect()
}

/// The node's own process table, and mount points that exist inside the node only.
pub(super) fn mount(paths: &NodePaths) -> Result<(), String> {
    let describe = |error: &dyn std::error::Error| error.to_string();
    mounts::make_private().map_err(|error| describe(&error))?;
    mounts::mount_proc(Path::new("/proc")).map_err(|error| describe(&error))?;
    let at = paths.mount_dir();
    fs::create_dir_all(&at).map_err(|error| describe(&error))?;
    let marker = paths.marker();
    let tmpfs = Tmpfs::new(&marker, 0o700, MOUNT_POINTS_BYTES_MAX);
    tmpfs.mount(&at).map_err(|error| describe(&error))?;
    for name in ["root", "pod", "shm", system::NAME] {
        fs::create_dir(at.join(name)).map_err(|error| describe(&error))?;
    }
    system::prepare(&at.join(system::NAME), &marker).map_err(|error| describe(&error))?;
    if let Err(error) = seal_binary(&paths.binary()) {
        eprintln!("node: its own program is not read-only to pods: {error}");
    }
    Ok(())
}

/// Shows the node's own program, from which pods and containers begin, on a mount that cannot be written to:
/// a process of a container reaches it by the name of its own file.
fn seal_binary(at: &Path) -> io::Result<()> {
    let own = Path::new("/proc/self/exe");
    let (found, running) = (fs::read_link(own)?, fs::metadata(own)?);
    let stored = fs::metadata(&found)?;
    if (stored.dev(), stored.ino()) != (running.dev(), running.ino()) {
        return Err(io::Error::other("the file was replaced"));
    }
    fs::File::create(at)?;
    let sealed = mounts::bind(&found, at).and_then(|()| mounts::seal_alone(at));
    sealed.map_err(|error| {
        // Without it, pods begin from the file itself.
        let _ = rustix::mount::unmount(at, rustix::mount::UnmountFlags::DETACH);
        let _ = fs::remove_file(at);
        io::Error::other(error)
    })
}

/// What an earlier node left.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// Its pods, whose processes are gone: only their records and logs stay.
    pub(super) pods: BTreeMap<String, PodState>,
    /// What its containers wrote, and what is no whole pod.
    pub(super) remains: Vec<PathBuf>,
}

/// Looks at what an earlier node left. Nothing is removed here: it can take minutes, and no pod is to wait
/// for what another one left.
pub(super) fn find_lost(paths: &NodePaths) -> Lost {
    let reason = "the node process ended, and the pod's processes with it";
    let mut lost = Lost::default();
    for name in record::names(&paths.pods_dir()) {
        let pod = paths.pod(&name);
        let aside = match record::read_lost(&pod, reason) {
            Some(state) if state.uid == name => {
                let aside = directory::set_aside(paths, &name);
                lost.pods.insert(name, state);
                aside
            }
            _ if name.starts_with(REMOVING) => Ok(pod.dir().to_owned()),
            // Moved as well: a pod of this name may be made while it is removed.
            _ => directory::set_aside_whole(paths, &name),
        };
        match aside {
            Ok(aside) => lost.remains.push(aside),
            Err(error) => eprintln!("node: {}: {error}", pod.dir().display()),
        }
    }
    lost
}

/// Removes what an earlier node left.
pub(super) fn remove_all(paths: &NodePaths, remains: &[PathBuf]) {
    for directory in remains {
        if let Err(error) = directory::remove_all(paths, directory) {
            eprintln!("node: {}: {error}", directory.display());
        }
    }
}

/// What is being removed beside the node's other work.
pub(super) struct ClearUp(mpsc::Receiver<()>);

impl ClearUp {
    /// Does it on a thread of its own, and drops what is held for it at its end, also if that is a panic.
    pub(super) fn begin(
        work: impl FnOnce() + Send + 'static,
        held: impl Send + 'static,
    ) -> io::Result<Self> {
        let (end, ended) = mpsc::channel();
        let clears_up = thread::Builder::new().name("clears-up".to_owned());
        clears_up.spawn(move || {
            let _held = held;
            let _end: mpsc::Sender<()> = end;
            work();
        })?;
        Ok(Self(ended))
    }

    /// Waits for its end, but not so long that the node's own would be missed.
    pub(super) fn wait(&self) {
        if self.0.recv_timeout(CLEAR_UP_TIME_MAX) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("node: what an earlier node left is not yet removed: the next node goes on");
        }
    }
}

/// Opens the door to clients of our own user only.
pub(super) fn listen(paths: &NodePaths) -> io::Result<UnixListener> {
    match fs::remove_file(paths.socket()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let socket = SocketPath::of_node(paths)?;
    // There is no moment in which others could connect.
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(socket.get());
    rustix::process::umask(before);
    listener
}

/// Removes what belongs to a living node only. The directory of the pods stays if a pod was lost.
pub(super) fn clear(paths: &NodePaths) {
    let _ = fs::remove_file(paths.socket());
    let _ = fs::remove_dir(paths.pods_dir());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_mask_of_the_kernel() {
        let status = "Name:\tx\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001007\n";
        assert_eq!(ignored_signals(status), [1, 2, 3], "not broken pipes");
        assert!(ignored_signals("Name:\tx\n").is_empty());
    }

    #[test]
    fn what_an_earlier_node_left_is_moved_first_and_removed_later() {
        let home = tempfile::tempdir().unwrap();
        let paths = NodePaths::new(home.path()).unwrap();
        let whole = paths.pod("whole");
        fs::create_dir_all(whole.scratch("main", 0).join("deep/down")).unwrap();
        fs::create_dir_all(whole.volumes().join("data")).unwrap();
        let identity = r#"{"uid":"whole","namespace":"n","name":"p","address":"10.88.0.2"}"#;
        fs::write(whole.identity(), identity).unwrap();
        fs::create_dir_all(paths.pod("half").dir().join("containers")).unwrap();
        let earlier = paths.pods_dir().join(".removing-whole-0");
        fs::create_dir_all(earlier.join("0")).unwrap();

        let lost = find_lost(&paths);

        assert!(crate::is_removing(home.path()), "`down` tells it");
        assert_eq!(lost.pods.keys().collect::<Vec<_>>(), ["whole"]);
        let moved = paths.pods_dir().join(".removing-whole-1");
        assert!(moved.join("1/deep/down").is_dir(), "it may take its time");
        assert!(moved.join("0/data").is_dir());
        assert!(!whole.volumes().exists() && !whole.scratch("main", 0).exists());
        assert!(whole.identity().exists(), "records stay");
        assert!(!paths.pod("half").dir().exists(), "its name is free");
        assert_eq!(lost.remains.len(), 3, "{:?}", lost.remains);

        let (clears, remains) = (paths.clone(), lost.remains);
        let clearing = ClearUp::begin(move || remove_all(&clears, &remains), ()).unwrap();
        clearing.wait();
        assert!(!crate::is_removing(home.path()));
        assert_eq!(record::names(&paths.pods_dir()), ["whole"]);

        // A removal that was cut short is finished with the next one.
        fs::create_dir_all(earlier.join("0")).unwrap();
        directory::remove(&paths, "whole").unwrap();
        assert!(record::names(&paths.pods_dir()).is_empty());
        directory::remove(&paths, "whole").unwrap();
    }

    /// It counts as a client: a node that waits for one that never leaves is never idle again.
    #[test]
    fn a_clearing_up_that_panics_holds_nothing_any_more() {
        let (held, is_held) = mpsc::channel::<()>();
        let panics = || std::panic::resume_unwind(Box::new("a bug"));
        let clearing = ClearUp::begin(panics, held).unwrap();
        clearing.wait();
        let ended = is_held.recv_timeout(sundown_testing::BOUND);
        assert_eq!(ended, Err(mpsc::RecvTimeoutError::Disconnected));
    }

    #[test]
    fn pods_behind_a_link_are_refused() {
        let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let paths = NodePaths::new(home.path()).unwrap();
        refuse_links(&paths).unwrap();
        fs::create_dir(paths.node_dir()).unwrap();
        std::os::unix::fs::symlink(other.path(), paths.pods_dir()).unwrap();
        let refused = refuse_links(&paths).unwrap_err();
        assert!(refused.contains("node/pods is a link"), "{refused}");
    }

    #[test]
    fn the_soft_limit_goes_up_to_the_hard_one_within_reason_and_never_down() {
        let many = Some(DESCRIPTOR_COUNT_MAX);
        for (soft, hard, taken) in [
            (Some(1024), Some(4096), Some(4096)),
            (Some(1024), Some(u64::MAX), many),
            (Some(1024), None, many),
            (Some(4096), Some(4096), Some(4096)),
            (Some(u64::MAX), Some(u64::MAX), Some(u64::MAX)),
            (None, None, None),
        ] {
            assert_eq!(descriptor_limit(soft, hard), taken, "{soft:?} {hard:?}");
        }
    }
}
