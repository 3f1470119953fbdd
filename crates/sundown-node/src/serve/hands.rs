//! One pod from the node's side: made, followed, told what to do, removed. The pod's init does the
//! work inside.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufReader};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use nix::sched::{CloneFlags, unshare};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::registry::Removal;
use super::{Node, directory, etc};
use crate::netlink::Netlink;
use crate::network;
use crate::paths::PodPaths;
use crate::pod::{Event, Order, Plan};
use crate::spec::PodSpec;
use crate::stage;
use crate::state::{ContainerState, ExecResult, PodState};
use crate::wire::{self, ExecCall, Refusal};

type Executed = Result<ExecResult, Refusal>;

/// A pod whose init runs.
#[derive(Debug)]
pub(super) struct Hands {
    /// Names the pod's init and never another process.
    init: OwnedFd,
    orders: Mutex<UnixStream>,
    executions: Mutex<BTreeMap<u64, Sender<Executed>>>,
    next_execution: AtomicU64,
    has_ended: Mutex<bool>,
    ended: Condvar,
}

/// Makes a pod at an address that was reserved for it.
///
/// # Errors
/// Says what failed; nothing of the pod is left then.
pub(super) fn create(
    node: &Arc<Node>,
    spec: &PodSpec,
    address: Ipv4Addr,
) -> Result<Arc<Hands>, String> {
    let paths = node.paths.pod(&spec.uid);
    let made = directory::write(&paths, spec, address)
        .map_err(|error| format!("{}: {error}", paths.dir().display()))
        .and_then(|()| launch(node, &paths, spec, address));
    if made.is_err() {
        let _ = network::disconnect_pod(address);
        let _ = directory::remove_all(&node.paths, paths.dir());
    }
    made
}

fn launch(
    node: &Arc<Node>,
    paths: &PodPaths,
    spec: &PodSpec,
    address: Ipv4Addr,
) -> Result<Arc<Hands>, String> {
    let describe = |error: io::Error| format!("starting its init: {error}");
    let (mut ours, theirs) = UnixStream::pair().map_err(describe)?;
    let mut child = spawn(node, address, theirs).map_err(describe)?;
    let name_services = fs::read_to_string("/etc/nsswitch.conf").ok();
    let plan = Plan {
        etc: etc::files(node.bridge(), spec, address, name_services.as_deref()),
        spec: spec.clone(),
        pod_dir: paths.dir().to_owned(),
        mount_dir: node.paths.mount_dir(),
        marker: node.paths.marker(),
        log_bytes_max: node.settings.log_bytes_max,
    };
    let prepared = ours.try_clone().and_then(|reader| {
        let mut events = BufReader::new(reader);
        wire::send(&mut ours, &plan)?;
        Ok((wire::receive(&mut events)?, events))
    });
    let failure = match prepared {
        Ok((Some(Event::Ready), events)) => {
            match follow(node, &spec.uid, &child, ours, events) {
                Ok((hands, give)) => {
                    // The thread waits for it.
                    let _ = give.send(child);
                    return Ok(hands);
                }
                Err(error) => describe(error),
            }
        }
        Ok((Some(Event::Failed { message }), _)) => message,
        Ok(_) => "its init ended before it was ready".to_owned(),
        Err(error) => describe(error),
    };
    let _ = child.kill();
    let _ = child.wait();
    Err(failure)
}

/// Spawns the pod's init in namespaces of its own, connected to the bridge. A thread does it and ends:
/// the namespaces of a thread are its own, and the rest of the node is not moved.
fn spawn(node: &Arc<Node>, address: Ipv4Addr, theirs: UnixStream) -> io::Result<Child> {
    let (bridge_index, subnet) = (node.bridge_index, node.settings.subnet);
    let sealed = Some(node.paths.binary()).filter(|binary| binary.exists());
    let spawner = thread::Builder::new().spawn(move || {
        let netlink = Netlink::open()?;
        unshare(
            CloneFlags::CLONE_NEWNET
                | CloneFlags::CLONE_NEWNS
                | CloneFlags::CLONE_NEWUTS
                | CloneFlags::CLONE_NEWIPC
                | CloneFlags::CLONE_NEWPID,
        )?;
        network::connect_pod(&netlink, bridge_index, subnet, address)?;
        let mut command = match sealed {
            Some(binary) => stage::again_from(&binary, stage::POD),
            None => stage::again(stage::POD),
        };
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
        command.spawn()
    })?;
    let panicked = |_| Err(io::Error::other("the spawning thread panicked"));
    spawner.join().unwrap_or_else(panicked)
}

/// Follows the events of a pod until its init has ended, which is then waited for. It is handed over
/// through the sender: without a thread it stays with the caller.
fn follow(
    node: &Arc<Node>,
    uid: &str,
    child: &Child,
    orders: UnixStream,
    mut events: BufReader<UnixStream>,
) -> io::Result<(Arc<Hands>, Sender<Child>)> {
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a child has a process number");
    let hands = Arc::new(Hands {
        init: pidfd_open(pid, PidfdFlags::empty())?,
        orders: Mutex::new(orders),
        executions: Mutex::default(),
        next_execution: AtomicU64::new(0),
        has_ended: Mutex::new(false),
        ended: Condvar::new(),
    });
    let (node, uid, followed) = (Arc::clone(node), uid.to_owned(), Arc::clone(&hands));
    let (give, take) = channel::<Child>();
    thread::Builder::new()
        .name("pod".to_owned())
        .spawn(move || {
            let Ok(mut child) = take.recv() else { return };
            while let Ok(Some(event)) = wire::receive(&mut events) {
                followed.take(&node, &uid, event);
            }
            followed.kill();
            let status = child.wait();
            followed.end();
            let why = match status.ok().and_then(|status| status.signal()) {
                Some(signal) => format!("the pod's init was killed by signal {signal}"),
                None => "the pod's init ended".to_owned(),
            };
            node.registry.lose(&uid, |state| mark_lost(state, &why));
        })?;
    Ok((hands, give))
}

fn mark_lost(state: &mut PodState, why: &str) {
    state.lost = Some(why.to_owned());
    for status in state.containers.values_mut() {
        if let ContainerState::Running { started_at, .. } = status.state {
            status.state = ContainerState::Lost { started_at };
        }
    }
}

impl Hands {
    fn take(&self, node: &Node, uid: &str, event: Event) {
        match event {
            Event::Container { name, status } => {
                node.registry.update(uid, |state| {
                    state.containers.insert(name, status);
                });
            }
            Event::Executed { id, result } => {
                let mut executions = lock(&self.executions);
                if let Some(waiting) = executions.remove(&id) {
                    let _ = waiting.send(result);
                }
            }
            Event::Ready | Event::Failed { .. } => {}
        }
    }

    /// Tells the pod's init what to do.
    pub(super) fn order(&self, order: &Order) -> io::Result<()> {
        wire::send(&mut *lock(&self.orders), order)
    }

    /// Runs a command in a container; the receiver is cut off if the pod ends first.
    pub(super) fn execute(&self, call: ExecCall) -> io::Result<Receiver<Executed>> {
        let id = self.next_execution.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = channel();
        lock(&self.executions).insert(id, sender);
        self.order(&Order::Exec { id, call })?;
        Ok(receiver)
    }

    /// Kills the pod's init; the kernel kills every other process of the pod with it.
    fn kill(&self) {
        // An error means that it has been waited for.
        let _ = pidfd_send_signal(&self.init, Signal::KILL);
    }

    fn end(&self) {
        lock(&self.executions).clear();
        *lock(&self.has_ended) = true;
        self.ended.notify_all();
    }

    fn wait_for_end(&self) {
        let mut has_ended = lock(&self.has_ended);
        while !*has_ended {
            let waited = self.ended.wait(has_ended);
            has_ended = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes everything of a pod: processes, link, directory. Not finding it is success.
///
/// # Guarantees
/// When it succeeds, the pod's init was waited for (the kernel lets it end after all other processes
/// of its namespace), its link is not listed any more and its directory does not exist.
pub(super) fn remove(node: &Node, uid: &str) -> Result<(), Refusal> {
    let Some(removal) = node.registry.begin_removal(uid) else {
        return Ok(());
    };
    let removed = end(&removal).and_then(|()| directory::remove(&node.paths, uid));
    removed.map_err(|error| not_gone(node, uid, &error))?;
    node.registry.finish_removal(uid);
    Ok(())
}

/// Ends what a pod ran in and removes what its containers wrote; its records and logs stay. Not finding
/// it is success.
pub(super) fn release(node: &Node, uid: &str) -> Result<(), Refusal> {
    let Some(removal) = node.registry.begin_release(uid)? else {
        return Ok(());
    };
    let released = end(&removal).and_then(|()| directory::clear(&node.paths, uid));
    released.map_err(|error| not_gone(node, uid, &error))?;
    node.registry.finish_release(uid);
    Ok(())
}

/// Ends all processes of a pod, and with them its namespaces, and its link.
fn end(removal: &Removal) -> io::Result<()> {
    if let Some(hands) = &removal.hands {
        hands.kill();
        hands.wait_for_end();
    }
    let Some(address) = removal.address else {
        return Ok(());
    };
    network::disconnect_pod(address)?;
    if network::is_connected(address)? {
        return Err(io::Error::other("its link is still at the bridge"));
    }
    Ok(())
}

fn not_gone(node: &Node, uid: &str, error: &io::Error) -> Refusal {
    let message = error.to_string();
    node.registry.fail_removal(uid, &message);
    let uid = uid.to_owned();
    Refusal::NotGone { uid, message }
}
