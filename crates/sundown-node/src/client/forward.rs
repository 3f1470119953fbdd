//! A port of the host's loopback that leads into the node's network, for the user who opened it.
//!
//! What stands behind it trusts every client that reaches it: Ray's job API runs any command. But every user of
//! this machine reaches its loopback, and every web page reaches it through the user's browser. So a
//! connection must belong to the user, and each request must prove that it is meant: see [`admit`].

mod admit;
mod answer;
mod owner;
mod proxy;
mod token;

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Node, NodeError};
use crate::ACCEPT_PAUSE;
use crate::peer;
use crate::wire::Refusal;
use admit::Expectations;
pub use token::Token;

/// Connections at once; further ones wait to be accepted.
const CONNECTION_COUNT_MAX: usize = 256;

/// Looks at once: each reads the kernel's table of sockets, and other users can cause as many as they like.
const LOOK_COUNT_MAX: usize = 4;

/// A forward that lives as long as this value. It speaks HTTP, upgrades included.
#[derive(Debug)]
pub struct Forward {
    local: SocketAddr,
    token: Token,
    _task: JoinSet<()>,
}

impl Forward {
    /// Where the host reaches it.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// What a request has to prove that it knows.
    pub fn token(&self) -> &Token {
        &self.token
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
    let token = Token::random().map_err(refused)?;
    let listener = TcpListener::bind(at).await.map_err(refused)?;
    let local = listener.local_addr().map_err(refused)?;
    let door = Arc::new(Door {
        node: node.clone(),
        looks: Semaphore::new(LOOK_COUNT_MAX),
        to,
        expectations: Expectations {
            port: local.port(),
            token: token.clone(),
        },
    });
    let mut task = JoinSet::new();
    task.spawn(serve(door, listener));
    Ok(Forward {
        local,
        token,
        _task: task,
    })
}

/// Where requests go, and what is asked of them.
#[derive(Debug)]
struct Door {
    node: Node,
    /// Taken while it is looked whose a connection is.
    looks: Semaphore,
    to: SocketAddrV4,
    expectations: Expectations,
}

async fn serve(door: Arc<Door>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= CONNECTION_COUNT_MAX {
            connections.join_next().await;
        }
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                match accepted {
                    Ok((outside, _)) => drop(connections.spawn(join(Arc::clone(&door), outside))),
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                }
            }
        }
    }
}

/// A connection of another user is closed at once: it gets not even an answer.
async fn join(door: Arc<Door>, outside: TcpStream) {
    let owner = {
        let Ok(_look) = door.looks.acquire().await else {
            return;
        };
        owner::of(&outside).await
    };
    if owner.is_some_and(|uid| peer::is_trusted(uid, peer::own_uid())) {
        proxy::serve(door, outside).await;
    }
}
