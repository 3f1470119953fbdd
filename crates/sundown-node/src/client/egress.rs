//! The way out of the node's network: a proxy for HTTP's CONNECT at the door, served by this process.
//! Who may use it, and which settings tell programs about it, is the caller's business.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Accepted, Node, NodeError};

/// Names may need several servers, and far hosts their time; a program waits longer than this.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A client that opens a connection has something to say.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// More than any program sends with a CONNECT.
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// Connections at once; further ones wait to be accepted.
const CONNECTION_COUNT_MAX: usize = 256;

/// A proxy that lives as long as this value.
#[derive(Debug)]
pub struct Egress {
    at: SocketAddrV4,
    _task: JoinSet<()>,
}

/// Where the proxy may lead.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EgressRules {
    /// Servers of the host's own loopback that pods may reach, such as a package index: `host:port`, as
    /// programs name them.
    pub loopback: BTreeSet<String>,
}

impl Egress {
    /// Where pods reach it.
    pub fn address(&self) -> SocketAddrV4 {
        self.at
    }
}

impl Node {
    /// Offers pods a way out: an HTTP proxy that understands CONNECT and nothing else.
    pub async fn offer_egress(
        &self,
        at: SocketAddrV4,
        rules: EgressRules,
    ) -> Result<Egress, NodeError> {
        let door = self.listen_in_node(at).await?;
        let mut task = JoinSet::new();
        task.spawn(serve(door, Arc::new(rules)));
        Ok(Egress { at, _task: task })
    }
}

/// Ends with the node.
async fn serve(mut door: Accepted, rules: Arc<EgressRules>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= CONNECTION_COUNT_MAX {
            connections.join_next().await;
        }
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = door.accept() => match accepted {
                Ok(stream) => drop(connections.spawn(pass(stream, Arc::clone(&rules)))),
                Err(_) => return,
            }
        }
    }
}

async fn pass(inside: TcpStream, rules: Arc<EgressRules>) {
    let mut inside = BufReader::new(inside);
    let target = timeout(REQUEST_TIMEOUT, read_request(&mut inside)).await;
    let Ok(Ok(target)) = target else {
        return;
    };
    let refusal = match target {
        Some(target) => match timeout(CONNECT_TIMEOUT, connect(&target, &rules)).await {
            Ok(Ok(mut outside)) => {
                let answer = inside.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n");
                if answer.await.is_ok() {
                    let _ = tokio::io::copy_bidirectional(&mut inside, &mut outside).await;
                }
                return;
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => "403 Forbidden",
            Ok(Err(_)) => "502 Bad Gateway",
            Err(_) => "504 Gateway Timeout",
        },
        None => "405 Method Not Allowed",
    };
    let answer = format!("HTTP/1.1 {refusal}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    // The program inside tells people; there is nobody else to tell.
    let _ = inside.write_all(answer.as_bytes()).await;
}

/// The target of a CONNECT; `None` for another method.
async fn read_request(from: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    let mut head = String::new();
    loop {
        let length = from.read_line(&mut head).await?;
        if length == 0 || head.len() > REQUEST_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if head.ends_with("\r\n\r\n") {
            break;
        }
    }
    let mut words = head.split(' ');
    let is_connect = words.next() == Some("CONNECT");
    Ok(words.next().filter(|_| is_connect).map(str::to_owned))
}

/// Connects to the first address of the target that may be reached and answers.
async fn connect(target: &str, rules: &EgressRules) -> io::Result<TcpStream> {
    let found: Vec<SocketAddr> = tokio::net::lookup_host(target).await?.collect();
    let mut last = io::Error::from(io::ErrorKind::PermissionDenied);
    for address in found
        .into_iter()
        .filter(|each| rules.allow(target, each.ip()))
    {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl EgressRules {
    /// The host's own services are not meant for pods. Judged by address: a name may lead anywhere.
    fn allow(&self, target: &str, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_local = address.is_loopback() || address.is_unspecified();
        let is_link_local = match address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        !is_link_local && !address.is_multicast() && (!is_local || self.loopback.contains(target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_own_services_are_out_of_reach_unless_allowed() {
        let strict = EgressRules::default();
        let open = EgressRules {
            loopback: BTreeSet::from(["index:443".to_owned()]),
        };
        for (address, by_default, if_allowed) in [
            ("127.0.0.1", false, true),
            ("::ffff:127.0.0.1", false, true),
            ("0.0.0.0", false, true),
            ("169.254.169.254", false, false),
            ("fe80::1", false, false),
            ("203.0.113.7", true, true),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(strict.allow("index:443", address), by_default, "{address}");
            assert_eq!(open.allow("index:443", address), if_allowed, "{address}");
            assert_eq!(open.allow("index:22", address), by_default, "{address}");
        }
    }
}
