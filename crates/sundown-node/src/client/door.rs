//! Connections of the node's network, received as descriptors.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::{TcpStream, UnixStream};

use super::{Node, NodeError, milliseconds, open};
use crate::wire::{Call, Received, Refusal, Reply, receive_with_descriptor};

pub(super) async fn dial(
    node: &Node,
    to: SocketAddrV4,
    timeout: Duration,
) -> Result<TcpStream, NodeError> {
    let timeout_ms = milliseconds(timeout);
    let call = Call::Dial { to, timeout_ms };
    let answer = async {
        let stream = open(&node.inner.paths, &call).await?;
        Ok((receive(&stream).await?, stream))
    };
    let (received, mut stream) = node.within(node.timeout(&call), answer).await?;
    match received {
        Received::Descriptor(descriptor) => {
            adopt(descriptor).map_err(|error| network(to, &error).into())
        }
        Received::Byte => Err(refusal(node, &mut stream, to).await),
        Received::Closed => Err(node.gone(io::ErrorKind::UnexpectedEof.into())),
    }
}

pub(super) async fn listen(node: &Node, at: SocketAddrV4) -> Result<Accepted, NodeError> {
    let call = Call::Listen { at };
    let answer = async {
        let mut stream = open(&node.inner.paths, &call).await?;
        Ok((stream.read_u8().await?, stream))
    };
    let (first, mut stream) = node.within(node.timeout(&call), answer).await?;
    match first {
        b'!' => Ok(Accepted {
            node: node.clone(),
            stream,
            at,
        }),
        _ => Err(refusal(node, &mut stream, at).await),
    }
}

/// Connections that pods made to an address of the node's network. Dropping it closes the listener.
#[derive(Debug)]
pub struct Accepted {
    node: Node,
    stream: UnixStream,
    at: SocketAddrV4,
}

impl Accepted {
    /// Where it listens.
    pub fn local_address(&self) -> SocketAddrV4 {
        self.at
    }

    /// The next connection. May be cancelled.
    ///
    /// # Errors
    /// The node is gone.
    pub async fn accept(&mut self) -> Result<TcpStream, NodeError> {
        let gone = |error: io::Error| self.node.gone(error);
        match receive(&self.stream).await.map_err(gone)? {
            Received::Descriptor(descriptor) => {
                adopt(descriptor).map_err(|error| network(self.at, &error).into())
            }
            Received::Byte | Received::Closed => Err(gone(io::ErrorKind::UnexpectedEof.into())),
        }
    }
}

async fn receive(stream: &UnixStream) -> io::Result<Received> {
    stream
        .async_io(Interest::READABLE, || receive_with_descriptor(stream))
        .await
}

fn adopt(descriptor: OwnedFd) -> io::Result<TcpStream> {
    let stream = std::net::TcpStream::from(descriptor);
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    TcpStream::from_std(stream)
}

async fn refusal(node: &Node, stream: &mut UnixStream, address: SocketAddrV4) -> NodeError {
    let mut line = Vec::new();
    if let Err(error) = stream.read_to_end(&mut line).await {
        return node.gone(error);
    }
    match serde_json::from_slice::<Reply>(&line) {
        Ok(Err(refusal)) => refusal.into(),
        Ok(Ok(answer)) => node.unexpected(&answer),
        Err(error) => network(address, &error.into()).into(),
    }
}

fn network(address: SocketAddrV4, error: &io::Error) -> Refusal {
    Refusal::Network {
        address,
        message: error.to_string(),
    }
}
