//! A port of the host's loopback that leads into the node's network.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{Node, NodeError};
use crate::ACCEPT_PAUSE;
use crate::wire::Refusal;

/// A server that is up accepts at once; a longer wait would hold the caller's connection for nothing.
const DIAL_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections at once; further ones wait to be accepted.
const CONNECTION_COUNT_MAX: usize = 256;

/// A forward that lives as long as this value.
#[derive(Debug)]
pub struct Forward {
    local: SocketAddr,
    _task: JoinSet<()>,
}

impl Forward {
    /// Where the host reaches it.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }
}

pub(super) async fn forward(
    node: &Node,
    host_port: u16,
    to: SocketAddrV4,
) -> Result<Forward, NodeError> {
    let at = SocketAddrV4::new(Ipv4Addr::LOCALHOST, host_port);
    let refused = |error: std::io::Error| Refusal::Network {
        address: at,
        message: error.to_string(),
    };
    let listener = TcpListener::bind(at).await.map_err(refused)?;
    let local = listener.local_addr().map_err(refused)?;
    let mut task = JoinSet::new();
    task.spawn(serve(node.clone(), listener, to));
    Ok(Forward { local, _task: task })
}

async fn serve(node: Node, listener: TcpListener, to: SocketAddrV4) {
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= CONNECTION_COUNT_MAX {
            connections.join_next().await;
        }
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                match accepted {
                    Ok((outside, _)) => drop(connections.spawn(join(node.clone(), outside, to))),
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                }
            }
        }
    }
}

/// A connection that cannot be passed on is closed; the caller tries again or tells.
async fn join(node: Node, mut outside: TcpStream, to: SocketAddrV4) {
    if let Ok(mut inside) = node.dial(to, DIAL_TIMEOUT).await {
        let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
    }
}
