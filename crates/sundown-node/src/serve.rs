//! The node: the first process of its pid namespace, alone in its network namespace but for its pods.
//! Hands only: it does what it is asked over its socket, and what it knows goes out as whole states.
//!
//! If it is killed, the kernel kills every process of its pid namespace, and with them go mounts,
//! links and namespaces. What stays is the pods' directories; the next node reports them as lost. A node
//! whose own directory is gone ends the same way: no client finds it again.

mod calls;
mod directory;
mod door;
mod etc;
mod ground;
mod hands;
mod registry;
mod setup;

use std::ffi::OsString;
use std::io::{self, BufReader, Read as _};
use std::net::Ipv4Addr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use crate::ACCEPT_PAUSE;
use crate::container::keyring;
use crate::dns::Names;
use crate::paths::NodePaths;
use crate::peer::{check_peer, foreign_peer};
use crate::stage::{Announcement, Settings, announce, argument};
use crate::state::Isolation;
use crate::wire::{self, Call, Reply};
use registry::Registry;
pub(crate) use setup::REMOVING;

/// The running node, shared by the threads that answer calls.
#[derive(Debug)]
struct Node {
    settings: Settings,
    paths: NodePaths,
    isolation: Isolation,
    bridge_index: u32,
    names: Names,
    registry: Registry,
}

/// Runs as the node until it has nothing left to do.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let started = start(arguments);
    let (node, door, remains) = match started {
        Ok(started) => started,
        Err(message) => {
            announce(&Announcement::Failed { message });
            return ExitCode::FAILURE;
        }
    };
    announce(&Announcement::Ready(node.isolation.clone()));
    let acceptor = Arc::clone(&node);
    let accepting = thread::Builder::new()
        .name("accept".to_owned())
        .spawn(move || accept(&acceptor, &door));
    if let Err(error) = accepting {
        eprintln!("node: {error}");
        return ExitCode::FAILURE;
    }
    let clearing = clear_up(&node, remains);
    let ground = ground::stand_on(&node);
    node.registry.wait_until_idle(node.settings.idle);
    if let Some(gone) = ground.and_then(|it| ground::why_gone(&it)) {
        // All that a path leads to now is another's. The kernel ends the pods with this process.
        eprintln!("node: {gone}");
        return ExitCode::FAILURE;
    }
    if let Some(clearing) = clearing {
        clearing.wait();
    }
    // Before the lock goes with this process: a client that finds no socket starts another node.
    setup::clear(&node.paths);
    ExitCode::SUCCESS
}

fn start(arguments: &[OsString]) -> Result<(Arc<Node>, Door, Vec<PathBuf>), String> {
    let settings: Settings = argument(arguments, 0)?;
    let isolation: Isolation = argument(arguments, 1)?;
    let describe = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    let paths = NodePaths::new(&settings.data_dir).map_err(describe("data directory"))?;
    setup::refuse_links(&paths)?;
    setup::redirect_errors(&paths).map_err(describe("log"))?;
    keyring::leave_session().map_err(describe("session keyring"))?;
    setup::set_file_mask();
    setup::raise_descriptor_limit();
    setup::forbid_core_dumps();
    setup::mount(&paths)?;
    setup::restore_signals().map_err(describe("signals"))?;
    let bridge_index = crate::network::make_bridge(settings.subnet).map_err(describe("bridge"))?;
    let names = Names::default();
    crate::dns::serve(settings.subnet.bridge, &names).map_err(describe("name server"))?;
    let lost = setup::find_lost(&paths);
    let door = setup::listen(&paths).and_then(Door::new);
    let door = door.map_err(describe("socket"))?;
    let node = Node {
        registry: Registry::new(lost.pods, settings.subnet),
        settings,
        paths,
        isolation,
        bridge_index,
        names,
    };
    Ok((Arc::new(node), door, lost.remains))
}

/// Removes what an earlier node left while this one serves. It counts as a client: a node with that to do
/// is not idle.
fn clear_up(node: &Arc<Node>, remains: Vec<PathBuf>) -> Option<setup::ClearUp> {
    if remains.is_empty() {
        return None;
    }
    let (client, paths) = (Client::came(node)?, node.paths.clone());
    let begun = setup::ClearUp::begin(move || setup::remove_all(&paths, &remains), client);
    begun
        .inspect_err(|error| eprintln!("node: what an earlier node left stays: {error}"))
        .ok()
}

/// Counts as a client as long as it lives; a panic ends it, too.
struct Client(Arc<Node>);

impl Client {
    /// None: the node ends.
    fn came(node: &Arc<Node>) -> Option<Self> {
        let is_taken = node.registry.client_came();
        is_taken.then(|| Self(Arc::clone(node)))
    }

    fn node(&self) -> &Arc<Node> {
        &self.0
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.0.registry.client_left();
    }
}

/// The socket, which asks each caller's user before anything is read.
struct Door {
    // Only so that the kernel can be asked who calls: calls themselves have threads.
    runtime: tokio::runtime::Runtime,
    listener: tokio::net::UnixListener,
}

impl Door {
    fn new(listener: UnixListener) -> io::Result<Self> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_io().build()?;
        listener.set_nonblocking(true)?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::UnixListener::from_std(listener)?
        };
        Ok(Self { runtime, listener })
    }

    /// The next caller; one of another user is an error that `foreign_peer` knows.
    fn accept(&self) -> io::Result<UnixStream> {
        let (stream, _) = self.runtime.block_on(self.listener.accept())?;
        check_peer(&stream)?;
        let stream = stream.into_std()?;
        stream.set_nonblocking(false)?;
        Ok(stream)
    }
}

fn accept(node: &Arc<Node>, door: &Door) {
    loop {
        let stream = match door.accept() {
            Ok(stream) => stream,
            Err(error) => {
                match foreign_peer(&error) {
                    Some(foreign) => eprintln!("node: a connection is refused: {foreign}"),
                    None => thread::sleep(ACCEPT_PAUSE),
                }
                continue;
            }
        };
        // Counted here and not on the thread, so that the node cannot end in between.
        let Some(client) = Client::came(node) else {
            continue;
        };
        let spawned = thread::Builder::new()
            .name("call".to_owned())
            .spawn(move || {
                if let Err(error) = serve(client.node(), stream) {
                    eprintln!("node: call: {error}");
                }
            });
        if let Err(error) = spawned {
            eprintln!("node: no thread for a call: {error}");
        }
    }
}

/// One connection is one call.
fn serve(node: &Arc<Node>, mut stream: UnixStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let Some(call) = wire::receive::<Call>(&mut reader)? else {
        return Ok(());
    };
    match call {
        Call::Watch => door::watch(node, stream, reader),
        Call::Dial { to, timeout_ms } => door::dial(&stream, to, timeout_ms),
        Call::Listen { at } => door::listen(stream, reader, at),
        Call::Hello => {
            let reply: Reply = Ok(calls::hello(node));
            wire::send(&mut stream, &reply)?;
            // The client is there as long as this connection is.
            reader.read(&mut [0]).map(drop)
        }
        other => {
            let is_end = matches!(other, Call::End);
            let reply: Reply = calls::answer(node, other);
            // A client that has gone needs no answer.
            let _ = wire::send(&mut stream, &reply);
            if is_end && reply.is_ok() {
                node.registry.end();
            }
            Ok(())
        }
    }
}

impl Node {
    fn bridge(&self) -> Ipv4Addr {
        self.settings.subnet.bridge
    }
}
