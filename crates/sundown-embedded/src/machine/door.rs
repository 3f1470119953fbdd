//! The API server's door inside the node's network: pods connect to the bridge, and the node hands
//! their connections over. It is opened again with each node that is found.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use sundown_decide::pod::API_PORT;
use sundown_node::{Accepted, Node, NodeError};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::again::caught;
use super::link::Link;

/// How long to wait before a door is tried again that the same node did not keep open. The node closes
/// that of a Sundown which was killed when it notices, and nothing tells of it.
const PAUSE: Duration = Duration::from_millis(100);

/// Every connection that a pod makes to the API server, for ever.
pub(crate) fn arrivals(link: &Arc<Link>) -> BoxStream<'static, TcpStream> {
    let link = Arc::clone(link);
    let open = move || Door {
        found: link.found(),
        open: None,
    };
    let tried = stream::unfold((open(), open), |(mut door, open)| async {
        loop {
            match caught("the door of pods", door.next()).await {
                Some(arrived) => return arrived.map(|stream| (stream, (door, open))),
                None => door = open(),
            }
        }
    });
    tried.boxed()
}

struct Door {
    found: watch::Receiver<Option<Node>>,
    open: Option<Accepted>,
}

impl Door {
    /// None: there will be no other node.
    async fn next(&mut self) -> Option<TcpStream> {
        loop {
            let Some(open) = &mut self.open else {
                self.found.changed().await.ok()?;
                self.open = self.listen().await;
                continue;
            };
            match open.accept().await {
                Ok(stream) => return Some(stream),
                // One connection that broke on its way is no reason to close the door.
                Err(NodeError::Refused(_)) => {}
                Err(error) => {
                    tracing::debug!(%error, "the door of pods to the API server");
                    tokio::time::sleep(PAUSE).await;
                    self.open = self.listen().await;
                }
            }
        }
    }

    /// Opens the door in the node that was found last; None: it is gone, wait for another.
    async fn listen(&mut self) -> Option<Accepted> {
        let node = self.found.borrow_and_update().clone()?;
        let at = SocketAddrV4::new(node.bridge(), API_PORT);
        loop {
            match node.listen_in_node(at).await {
                Ok(open) => return Some(open),
                Err(error @ (NodeError::Refused(_) | NodeError::Silent { .. })) => {
                    tracing::debug!(%error, "the door of pods to the API server");
                    tokio::time::sleep(PAUSE).await;
                }
                Err(_) => return None,
            }
        }
    }
}
