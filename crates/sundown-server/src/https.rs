//! HTTPS: accepts connections, speaks TLS, hands requests to the service, and drains on request.
//! HTTP itself is hyper's work, the answers are the service's.

mod admission;
mod connection;
mod trial;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, Stream};
use futures::{StreamExt, future};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::access::Token;
use crate::{Identity, IdentityError, Shared, Stop};

use trial::House;
pub(crate) use trial::Trial;

/// How many connections may be open; further ones are closed at once. kube-rs opens one per watch,
/// so this is about the number of watches of such clients. A few kilobytes each.
const CONNECTIONS_MAX: usize = 4096;

/// Of the descriptors that this process may have, one in so many may be a connection of one front. The
/// rest is for the other front, for the database, which cannot go on without, and for logs.
const DESCRIPTOR_SHARE: u64 = 4;

/// How long open connections may take to finish their requests after a stop. Watches end at once.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);

/// The pause after a failed accept: out of file descriptors is not cured by asking again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A bound socket that is ready to serve.
#[derive(Debug)]
pub struct Https {
    listener: TcpListener,
    address: SocketAddr,
    front: Front,
}

/// How connections are served, wherever they come from.
#[derive(Clone)]
pub struct Front {
    tls: TlsAcceptor,
    shared: Arc<Shared>,
    token: Token,
    connections_max: usize,
}

/// Why HTTPS does not start or has to end.
#[derive(Debug, thiserror::Error)]
pub enum HttpsError {
    /// The address is taken or not ours.
    #[error("listen on {address}")]
    Bind {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    /// The identity is not usable for TLS.
    #[error("set up TLS")]
    Identity(#[from] IdentityError),
    /// A commit broke an invariant: nothing more may be written.
    #[error("a commit failed: {cause}")]
    Broken { cause: String },
}

impl Https {
    /// Binds the address; port 0 takes any free port.
    pub async fn bind(
        shared: Arc<Shared>,
        identity: &Identity,
        address: SocketAddr,
    ) -> Result<Self, HttpsError> {
        let front = Front::new(shared, identity)?;
        let failed = |source| HttpsError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            listener,
            address,
            front,
        })
    }

    /// The same with another bound on connections.
    #[must_use]
    pub fn connections_max(mut self, connections_max: usize) -> Self {
        self.front.connections_max = connections_max;
        self
    }

    /// The address that was bound, with the real port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for clients on this machine.
    pub fn url(&self) -> String {
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        format!("https://{}", SocketAddr::new(ip, self.address.port()))
    }

    /// Serves until `stop` is asked, see [`Front::serve`].
    ///
    /// Errors: a commit has failed, see [`Shared::broken`].
    pub async fn serve(self, stop: Stop) -> Result<(), HttpsError> {
        self.front.serve(accepted(self.listener), stop).await
    }
}

impl Front {
    /// Serves this state under this identity.
    ///
    /// Errors: the identity is not usable for TLS.
    pub fn new(shared: Arc<Shared>, identity: &Identity) -> Result<Self, IdentityError> {
        Ok(Self {
            tls: TlsAcceptor::from(Arc::new(identity.tls()?)),
            shared,
            token: Token::new(identity.token()),
            connections_max: connections_max(descriptors_max()),
        })
    }

    /// Serves connections until `stop` is asked; then takes no more, ends the watches, lets requests
    /// finish and cuts off what takes longer than five seconds.
    ///
    /// Errors: a commit has failed, see [`Shared::broken`].
    pub async fn serve(
        self,
        arrivals: impl Stream<Item = TcpStream>,
        stop: Stop,
    ) -> Result<(), HttpsError> {
        // Boxed, so that it can be dropped before the end.
        let mut arrivals = Box::pin(arrivals);
        let mut connections = JoinSet::new();
        let house = House::new(self.connections_max);
        let end = loop {
            tokio::select! {
                () = stop.asked() => break Ok(()),
                cause = self.shared.broken() => break Err(HttpsError::Broken { cause }),
                Some(ended) = connections.join_next() => log_panic(ended),
                Some(stream) = arrivals.next() => self.open(&mut connections, &house, stream, &stop),
            }
        };
        drop(arrivals);
        let drain = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_TIME_MAX, drain).await.is_err() {
            tracing::warn!(connection_count = connections.len(), "cut off at the end");
        }
        connections.shutdown().await;
        end
    }

    fn open(&self, connections: &mut JoinSet<()>, house: &House, stream: TcpStream, stop: &Stop) {
        let peer = stream.peer_addr().ok();
        let Some(trial) = peer.and_then(|peer| house.arrive(peer.ip())) else {
            tracing::warn!(?peer, "too many connections");
            return;
        };
        let shared = Arc::clone(&self.shared);
        let (token, tls, stop) = (self.token.clone(), self.tls.clone(), stop.clone());
        connections.spawn(async move {
            if let Err(error) = connection::serve(stream, tls, shared, token, trial, stop).await {
                // A client that goes away is everyday business.
                tracing::debug!(?peer, error = %error, "connection");
            }
        });
    }
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Front")
    }
}

/// How many connections a front may have, of the descriptors that the process may have; None: no limit.
fn connections_max(descriptors_max: Option<u64>) -> usize {
    let share = descriptors_max.map(|max| max / DESCRIPTOR_SHARE);
    let share = share.and_then(|share| usize::try_from(share).ok());
    share.map_or(CONNECTIONS_MAX, |share| share.min(CONNECTIONS_MAX))
}

fn descriptors_max() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

/// Every connection to a socket. Cancelling loses none: accepting is one step.
fn accepted(listener: TcpListener) -> impl Stream<Item = TcpStream> {
    let tried = stream::unfold(listener, |listener| async {
        let stream = match listener.accept().await {
            Ok((stream, _)) => Some(stream),
            Err(error) => {
                tracing::warn!(%error, "accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                None
            }
        };
        Some((stream, listener))
    });
    tried.filter_map(future::ready)
}

/// Panics of the core are caught in [`Shared`]; one that gets here concerns its connection only.
fn log_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection panicked");
    }
}

#[cfg(test)]
mod tests {
    use super::{CONNECTIONS_MAX, connections_max};

    #[test]
    fn connections_leave_descriptors_for_the_database() {
        for (descriptors_max, expect) in [
            (None, CONNECTIONS_MAX),
            (Some(1024), 256),
            (Some(65_536), CONNECTIONS_MAX),
            (Some(u64::MAX), CONNECTIONS_MAX),
        ] {
            assert_eq!(connections_max(descriptors_max), expect);
        }
    }
}
