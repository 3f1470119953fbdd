//! The init of a pod: the first process of the pod's pid namespace, also in network, mount, uts and
//! ipc namespaces of its own. It prepares volumes, starts containers when told, keeps their logs, and
//! writes how each one ended before anybody hears of it. When it should start one is decided elsewhere.

mod exec;
mod log;
mod run;
mod volumes;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::{Signal, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::mounts::{self, MountError, Tmpfs};
use crate::paths::PodPaths;
use crate::spec::{ContainerSpec, PodSpec};
use crate::state::{ContainerStatus, ExecResult};
use crate::wire::{self, ExecCall, Refusal};

/// Of 1000 at most: Ray puts its workers there, so that they go before the rest of their container.
const OOM_SCORE: &str = "900";

/// What containers may write to volumes whose files came from objects, beside these files.
const FILES_BYTES_SPARE: u64 = 16 << 20;

/// Everything that the pod's init needs to know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) spec: PodSpec,
    /// Files below `/etc` that containers find instead of the host's.
    pub(crate) etc: BTreeMap<String, String>,
    pub(crate) pod_dir: PathBuf,
    pub(crate) mount_dir: PathBuf,
    pub(crate) marker: String,
    pub(crate) log_bytes_max: u64,
}

/// What the node may ask of a pod.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    Start(ContainerSpec),
    Signal {
        container: String,
        attempt: u32,
        signal: i32,
    },
    Exec {
        id: u64,
        call: ExecCall,
    },
}

/// What a pod tells the node.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Event {
    Ready,
    Failed {
        message: String,
    },
    Container {
        name: String,
        status: ContainerStatus,
    },
    Executed {
        id: u64,
        result: Result<ExecResult, Refusal>,
    },
}

/// The pod's init, shared by the threads that look after one container or command each.
#[derive(Debug)]
struct Pod {
    plan: Plan,
    paths: PodPaths,
    volumes: BTreeMap<String, PathBuf>,
    node: Mutex<UnixStream>,
    running: Mutex<BTreeMap<String, Arc<Running>>>,
}

/// A container whose init was started and not yet waited for.
#[derive(Debug)]
struct Running {
    attempt: u32,
    spec: ContainerSpec,
    /// Names the container's init and never another process.
    init: OwnedFd,
    orders: Mutex<UnixStream>,
}

/// Runs as a pod's init: orders come through standard input, events go back through it.
pub(crate) fn run() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pod init: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    let node = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut orders = io::BufReader::new(node.try_clone()?);
    let plan: Plan = wire::receive(&mut orders)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let paths = PodPaths::at(plan.pod_dir.clone());
    let prepared = prepare(&plan).and_then(|()| volumes::prepare(&plan, &paths));
    let mut node = node;
    let volumes = match prepared {
        Ok(volumes) => volumes,
        Err(error) => {
            let message = error.to_string();
            return wire::send(&mut node, &Event::Failed { message });
        }
    };
    wire::send(&mut node, &Event::Ready)?;
    let pod = Arc::new(Pod {
        plan,
        paths,
        volumes,
        node: Mutex::new(node),
        running: Mutex::default(),
    });
    while let Some(order) = wire::receive(&mut orders)? {
        pod.obey(order);
    }
    Ok(())
}

/// Namespace-wide surroundings: name, process table, memory file systems.
fn prepare(plan: &Plan) -> Result<(), MountError> {
    let proc = Path::new("/proc");
    let hostname = plan.spec.hostname.as_bytes();
    rustix::system::sethostname(hostname).map_err(MountError::at("set host name", proc))?;
    mounts::make_private()?;
    mounts::mount_proc(proc)?;
    // Servers may use the usual low ports as any user; pods have their own, so nobody is disturbed.
    let _ = fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
    let_everybody_ping();
    become_first_to_go();
    let tmpfs = |mode, bytes_max| Tmpfs::new(&plan.marker, mode, bytes_max);
    let files_bytes_max = volumes::files_bytes(&plan.spec) + FILES_BYTES_SPARE;
    tmpfs(0o755, files_bytes_max).mount_for_secrets(&plan.mount_dir.join("pod"))?;
    let shm_bytes = mounts::memory_bytes(Some(plan.spec.shm_bytes), mounts::machine_memory());
    tmpfs(0o1777, shm_bytes).mount(&plan.mount_dir.join("shm"))?;
    let etc = etc(&plan.mount_dir);
    write_all(&etc, &plan.etc).map_err(MountError::at("write to", &etc))
}

/// Without the right to write packets as they like, programs ping through a socket that is only for that.
/// The groups that may have one must be known to the user namespace, which knows all or a single one.
fn let_everybody_ping() {
    let setting = "/proc/sys/net/ipv4/ping_group_range";
    let _ = fs::write(setting, "0 2147483647").or_else(|_| fs::write(setting, "0 0"));
}

/// Where memory ends, the kernel takes a pod before anything else of the machine.
fn become_first_to_go() {
    // The node's starter may stand higher already, and the node may not be able to come down.
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE);
}

/// Where the pod's own files below `/etc` are, in its mount namespace. No volume has such a name.
pub(crate) fn etc(mount_dir: &Path) -> PathBuf {
    mount_dir.join("pod").join(".etc")
}

fn write_all(directory: &Path, files: &BTreeMap<String, String>) -> io::Result<()> {
    fs::create_dir(directory)?;
    for (name, text) in files {
        fs::write(directory.join(name), text)?;
    }
    Ok(())
}

impl Pod {
    fn obey(self: &Arc<Self>, order: Order) {
        match order {
            Order::Start(spec) => {
                let (name, attempt) = (spec.name.clone(), spec.attempt);
                let begun = self.on_a_thread(move |pod| run::run(&pod, &spec));
                if let Err(error) = begun {
                    run::give_up(self, &name, attempt, &error);
                }
            }
            Order::Signal {
                container,
                attempt,
                signal,
            } => self.signal(&container, attempt, signal),
            Order::Exec { id, call } => {
                let refusal = exec::not_running(&call);
                let begun = self.on_a_thread(move |pod| {
                    let result = exec::exec(&pod, &call);
                    pod.tell(&Event::Executed { id, result });
                });
                if begun.is_err() {
                    let result = Err(refusal);
                    self.tell(&Event::Executed { id, result });
                }
            }
        }
    }

    fn on_a_thread(
        self: &Arc<Self>,
        work: impl FnOnce(Arc<Self>) + Send + 'static,
    ) -> io::Result<()> {
        let pod = Arc::clone(self);
        thread::Builder::new().spawn(move || work(pod)).map(drop)
    }

    /// SIGKILL ends the container's init, and the kernel everything below it; other signals are
    /// passed on by the init. A container that has ended is left alone.
    fn signal(&self, container: &str, attempt: u32, signal: i32) {
        let running = self.running().get(container).cloned();
        let Some(running) = running.filter(|each| each.attempt == attempt) else {
            return;
        };
        // Errors mean that the init has ended meanwhile.
        if signal == Signal::KILL.as_raw() {
            let _ = pidfd_send_signal(&running.init, Signal::KILL);
        } else {
            let mut orders = running
                .orders
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let _ = wire::send(&mut *orders, &signal);
        }
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Running>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, event: &Event) {
        let mut node = self.node.lock().unwrap_or_else(PoisonError::into_inner);
        // Without the node this process is about to be killed by the kernel.
        if let Err(error) = wire::send(&mut *node, event) {
            eprintln!("pod init: {error}");
        }
    }
}
