//! Connections that stay open: reports to watchers, and the one door between the host and the node's
//! network, through which connected sockets are handed over.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use super::Node;
use crate::ACCEPT_PAUSE;
use crate::state::Change;
use crate::wire::{self, Refusal, Reply, send_with_descriptor};

/// Reports every pod and then every change, until the client goes.
pub(super) fn watch(
    node: &Arc<Node>,
    mut stream: UnixStream,
    mut reader: BufReader<UnixStream>,
) -> io::Result<()> {
    let is_gone = Arc::new(AtomicBool::new(false));
    let (registry, gone) = (Arc::clone(node), Arc::clone(&is_gone));
    thread::Builder::new()
        .name("watch".to_owned())
        .spawn(move || {
            // A watcher says nothing, so the first that comes is its end.
            let _ = reader.read(&mut [0]);
            gone.store(true, Ordering::Release);
            registry.registry.notify();
        })?;
    let mut seen = 0;
    let is_gone = || is_gone.load(Ordering::Acquire);
    while let Some((changes, revision)) = node.registry.changes_after(seen, is_gone) {
        for change in &changes {
            wire::send(&mut stream, change)?;
        }
        if seen == 0 {
            wire::send(&mut stream, &Change::Listed)?;
        }
        seen = revision;
    }
    // The other thread holds the connection too.
    stream.shutdown(std::net::Shutdown::Both)
}

/// Connects inside the node's network and hands the connection over.
pub(super) fn dial(stream: &UnixStream, to: SocketAddrV4, timeout_ms: u64) -> io::Result<()> {
    let timeout = Duration::from_millis(timeout_ms.max(1));
    match TcpStream::connect_timeout(&SocketAddr::V4(to), timeout) {
        Ok(connected) => send_with_descriptor(stream, connected),
        Err(error) => refuse(stream, to, &error),
    }
}

/// Listens inside the node's network and hands over each connection, until the client goes.
pub(super) fn listen(
    mut stream: UnixStream,
    reader: BufReader<UnixStream>,
    at: SocketAddrV4,
) -> io::Result<()> {
    drop(reader);
    let listener = match TcpListener::bind(at) {
        Ok(listener) => listener,
        Err(error) => return refuse(&stream, at, &error),
    };
    listener.set_nonblocking(true)?;
    // The listener itself is not handed over, only the word that it is there.
    stream.write_all(b"!")?;
    loop {
        let mut waited = [
            PollFd::new(&stream, PollFlags::IN | PollFlags::RDHUP),
            PollFd::new(&listener, PollFlags::IN),
        ];
        poll(&mut waited, None)?;
        if !waited[0].revents().is_empty() {
            return Ok(());
        }
        match listener.accept() {
            Ok((connection, _)) => send_with_descriptor(&stream, connection)?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The peer gave up meanwhile, or there are no descriptors: at once that would fail again.
            Err(error) => {
                eprintln!("node: {at}: {error}");
                thread::sleep(ACCEPT_PAUSE);
            }
        }
    }
}

/// A byte without a descriptor, then the reason as a line.
fn refuse(mut stream: &UnixStream, address: SocketAddrV4, error: &io::Error) -> io::Result<()> {
    let message = error.to_string();
    let reply: Reply = Err(Refusal::Network { address, message });
    stream.write_all(b"-")?;
    wire::send(&mut stream, &reply)
}
