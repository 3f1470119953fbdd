//! The way into pods from outside: the names that pods know, and the node that connects.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use sundown_driver::Dial;
use tokio::net::TcpStream;

use super::link::Link;

/// How long a connection into a pod may take.
const DIAL_TIME_MAX: Duration = Duration::from_secs(5);

/// The names that pods can look up, for those who dial in from outside.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<BTreeMap<String, Vec<Ipv4Addr>>>);

impl Names {
    pub(super) fn set(&self, names: &BTreeMap<String, Vec<Ipv4Addr>>) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone_from(names);
    }

    pub(super) fn all(&self) -> Vec<(String, Vec<Ipv4Addr>)> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let each = names.iter().map(|(name, it)| (name.clone(), it.clone()));
        each.collect()
    }

    pub(super) fn first(&self, name: &str) -> Option<Ipv4Addr> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.get(name)?.first().copied()
    }
}

/// The way to a dashboard: its name is one of the node's, and the node connects.
#[derive(Debug)]
pub(super) struct WayIn {
    pub(super) link: Arc<Link>,
    pub(super) names: Arc<Names>,
}

impl Dial for WayIn {
    fn dial<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<TcpStream>> {
        Box::pin(async move {
            let to = self.resolve(address).ok_or_else(|| {
                let message = format!("no ready pod stands behind {address}");
                io::Error::new(io::ErrorKind::NotFound, message)
            })?;
            let node = self.link.node().await.map_err(io::Error::other)?;
            node.dial(to, DIAL_TIME_MAX).await.map_err(io::Error::other)
        })
    }
}

impl WayIn {
    fn resolve(&self, address: &str) -> Option<SocketAddrV4> {
        let (host, port) = address.rsplit_once(':')?;
        let at = host.parse().ok().or_else(|| self.names.first(host))?;
        Some(SocketAddrV4::new(at, port.parse().ok()?))
    }
}
