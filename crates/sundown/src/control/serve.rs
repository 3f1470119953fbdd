//! The control plane's side of the control socket. One connection is one question; those that stay
//! open are counted.

use std::io;
use std::net::SocketAddrV4;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use sundown_embedded::{Engine, Local};
use sundown_node::{ACCEPT_PAUSE, Forward, SocketPath, check_peer};
use tokio::io::{AsyncReadExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::explain;

use super::client::{read, send};
use super::{Answer, Graces, Hello, NodeStanding, Request, SOCKET, Standing, stop_pods};

/// Connections at once; further ones wait to be accepted.
const CONNECTION_COUNT_MAX: usize = 256;

/// What is served.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) hello: Hello,
    pub(crate) while_used: bool,
    pub(crate) local: Local,
    /// How many connections are open.
    pub(crate) clients: watch::Sender<usize>,
    /// Whether it was told to end: clients shall not start another.
    pub(crate) is_ending: watch::Sender<bool>,
    /// Whether somebody asked for it by the socket, and all pods have ended.
    pub(crate) is_down: watch::Sender<bool>,
}

/// The socket, removed when dropped.
#[derive(Debug)]
pub(crate) struct Control {
    listener: UnixListener,
    path: std::path::PathBuf,
}

impl Control {
    /// Opens the socket for this user only.
    ///
    /// Assumes: this process holds the lock of the data directory, so that a socket that is there was
    /// left by one that was killed.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        let path = directory.join(SOCKET);
        match std::fs::symlink_metadata(&path) {
            Ok(found) if found.file_type().is_socket() => std::fs::remove_file(&path)?,
            Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let socket = SocketPath::new(directory, SOCKET)?;
        let listener = UnixListener::bind(socket.get())?;
        // Others cannot come to it before this either: the directory is closed to them, and every peer is
        // asked for its user. The mask of the process is left alone, because other threads make
        // directories meanwhile.
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(socket.get(), private)?;
        Ok(Self { listener, path })
    }

    /// Answers for ever.
    pub(crate) async fn serve(&self, served: Arc<Served>) {
        let mut connections = JoinSet::new();
        loop {
            served.clients.send_if_modified(|count| {
                let is_other = *count != connections.len();
                *count = connections.len();
                is_other
            });
            if connections.len() >= CONNECTION_COUNT_MAX {
                connections.join_next().await;
                continue;
            }
            tokio::select! {
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept() => {
                    let Ok((stream, _)) = accepted else {
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                        continue;
                    };
                    let served = Arc::clone(&served);
                    connections.spawn(async move {
                        if let Err(error) = answer(&served, stream).await {
                            tracing::debug!(%error, "control connection");
                        }
                    });
                }
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // Already gone: fine.
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn answer(served: &Served, stream: UnixStream) -> io::Result<()> {
    check_peer(&stream)?;
    let mut reader = BufReader::new(stream);
    let Some(request) = read::<Request>(&mut reader).await? else {
        return Ok(());
    };
    let mut stream = reader.into_inner();
    match request {
        Request::Hello => {
            send(&mut stream, &Answer::Hello(served.hello.clone())).await?;
            let mut is_ending = served.is_ending.subscribe();
            tokio::select! {
                closed = until_closed(&mut stream) => return closed,
                _ = is_ending.wait_for(|is_ending| *is_ending) => {}
            }
            send(&mut stream, &Answer::Ending).await?;
            until_closed(&mut stream).await
        }
        Request::Status => send(&mut stream, &Answer::Status(standing(served).await)).await,
        Request::Explain(wanted) => {
            let asked = move |engine: &Engine, now| explain::answer(engine, now, &wanted);
            let answer = match served.local.ask_controllers(asked).await {
                Ok(answer) => Answer::Explained(answer),
                Err(error) => Answer::Refused {
                    message: error.to_string(),
                },
            };
            send(&mut stream, &answer).await
        }
        Request::Forward {
            namespace,
            service,
            port,
        } => match open(&served.local, &namespace, &service, port).await {
            Ok(forward) => {
                let answer = Answer::Forwarded {
                    port: forward.local_address().port(),
                    token: forward.token().reveal().to_owned(),
                };
                send(&mut stream, &answer).await?;
                until_closed(&mut stream).await
            }
            Err(message) => send(&mut stream, &Answer::Refused { message }).await,
        },
        Request::Down => go_down(served, &mut stream).await,
    }
}

async fn until_closed(stream: &mut UnixStream) -> io::Result<()> {
    let mut byte = [0];
    while stream.read(&mut byte).await? > 0 {}
    Ok(())
}

async fn standing(served: &Served) -> Standing {
    let node = served.local.node().await.map(|node| NodeStanding {
        rootless: node.isolation().rootless,
        reason: node.isolation().reason.clone(),
    });
    Standing {
        while_used: served.while_used,
        runs_pods: served.local.runs_pods(),
        clients: served.clients.borrow().saturating_sub(1),
        node,
    }
}

async fn open(local: &Local, namespace: &str, service: &str, port: u16) -> Result<Forward, String> {
    let name = format!("{service}.{namespace}.svc.cluster.local");
    let missing = || format!("no ready pod stands behind service {namespace}/{service}");
    let address = local.address_of(&name).ok_or_else(missing)?;
    let node = local.node().await.ok_or_else(missing)?;
    let forward = node.forward(0, SocketAddrV4::new(address, port)).await;
    forward.map_err(|error| error.to_string())
}

/// Pods first: a controller that still worked would make new ones, so all are held before.
async fn go_down(served: &Served, stream: &mut UnixStream) -> io::Result<()> {
    served.is_ending.send_replace(true);
    if let Err(error) = served.local.hold_controllers().await {
        tracing::warn!(%error, "the controllers do not come to rest");
    }
    let graces = Graces::read(&served.local.client()).await;
    if let Some(node) = served.local.node().await {
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let mut tell = move |text: &str| drop(tell.send(text.to_owned()));
        let stopping = stop_pods(&node, &graces, &mut tell);
        tokio::pin!(stopping);
        let stopped = loop {
            tokio::select! {
                biased;
                Some(text) = told.recv() => step(stream, text).await,
                stopped = &mut stopping => break stopped,
            }
        };
        while let Ok(text) = told.try_recv() {
            step(stream, text).await;
        }
        if let Err(error) = stopped {
            go_on(served).await;
            let message = format!("not all pods could be ended: {error}");
            return send(stream, &Answer::Refused { message }).await;
        }
    }
    for text in graces.delete_unfinished(&served.local.client()).await {
        step(stream, text).await;
    }
    let said = send(stream, &Answer::Ending).await;
    served.is_down.send_replace(true);
    said?;
    // The end of the process closes it: that is how the other side knows.
    until_closed(stream).await
}

/// The way down ended half-way: what is up does its work again, and can be asked to end once more.
async fn go_on(served: &Served) {
    if let Err(error) = served.local.release_controllers().await {
        tracing::warn!(%error, "the controllers do not go on");
    }
    served.is_ending.send_replace(false);
}

/// Whoever asked may have gone; the way down goes on.
async fn step(stream: &mut UnixStream, text: String) {
    let _ = send(stream, &Answer::Step { text }).await;
}
