//! The way out of the node's network: a proxy for HTTP's CONNECT at the door, served by this process.
//! Who may use it, and which settings tell programs about it, is the caller's business.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite,
    AsyncWriteExt as _, BufReader, ReadBuf,
};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Accepted, Node, NodeError};
use crate::shares::Shares;

/// Names may need several servers, and far hosts their time; a program waits longer than this.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A client that opens a connection has something to say.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// More than any program sends with a CONNECT.
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// Connections at once; further ones are closed.
const CONNECTION_COUNT_MAX: usize = 256;

/// Connections of one pod. An installer opens a dozen at once; more than this would be taken from others.
const POD_CONNECTION_COUNT_MAX: usize = 32;

/// A tunnel through which nothing moves for this long is closed. An installer that computes between two
/// downloads opens a new one.
const TUNNEL_IDLE_MAX: Duration = Duration::from_mins(5);

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
    let shares = Shares::new(CONNECTION_COUNT_MAX, POD_CONNECTION_COUNT_MAX);
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = door.accept() => {
                let Ok(stream) = accepted else { return };
                let peer = stream.peer_addr().ok();
                let Some(place) = peer.and_then(|peer| shares.take(peer.ip())) else {
                    continue;
                };
                let rules = Arc::clone(&rules);
                connections.spawn(async move {
                    pass(stream, rules).await;
                    drop(place);
                });
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
            Ok(Ok(outside)) => {
                let answer = inside.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n");
                if answer.await.is_ok() {
                    tunnel(inside, outside, TUNNEL_IDLE_MAX).await;
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

/// Passes bytes on in both directions until one side ends, or nothing moves any more.
async fn tunnel(
    inside: impl AsyncRead + AsyncWrite + Unpin,
    mut outside: impl AsyncRead + AsyncWrite + Unpin,
    idle_max: Duration,
) {
    let moved = Arc::new(AtomicU64::new(0));
    let mut inside = Counted {
        stream: inside,
        moved: Arc::clone(&moved),
    };
    let mut copies = pin!(tokio::io::copy_bidirectional(&mut inside, &mut outside));
    loop {
        let before = moved.load(Ordering::Relaxed);
        match timeout(idle_max, &mut copies).await {
            Err(_) if moved.load(Ordering::Relaxed) != before => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// A stream that counts how often something moved through it.
struct Counted<S> {
    stream: S,
    moved: Arc<AtomicU64>,
}

impl<S> Counted<S> {
    fn count<T>(&self, poll: Poll<T>) -> Poll<T> {
        if poll.is_ready() {
            self.moved.fetch_add(1, Ordering::Relaxed);
        }
        poll
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.count(poll)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.count(poll)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The target of a CONNECT; `None` for another method. Never reads more than a head may have: a pod
/// that sends no line break would fill this process's memory.
async fn read_request(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<String>> {
    let mut head = String::new();
    loop {
        let left = u64::try_from(REQUEST_BYTES_MAX - head.len()).unwrap_or(0);
        let mut line = (&mut *from).take(left);
        if line.read_line(&mut head).await? == 0 {
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

    /// A pod that sends without end, and counts how much was taken.
    struct Endless {
        text: &'static [u8],
        taken: u64,
    }

    impl AsyncRead for Endless {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let before = buffer.filled().len();
            while buffer.remaining() >= self.text.len() {
                buffer.put_slice(self.text);
            }
            self.taken += (buffer.filled().len() - before) as u64;
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_head_without_an_end_is_given_up_after_what_a_head_may_have() {
        for text in [b"x".as_slice(), b"x: y\r\n"] {
            let mut from = BufReader::new(Endless { text, taken: 0 });
            assert!(read_request(&mut from).await.is_err());
            let taken = from.get_ref().taken;
            let max = REQUEST_BYTES_MAX + from.buffer().len() + 8192;
            assert!(taken <= max as u64, "{taken} bytes were taken");
        }
    }

    #[tokio::test]
    async fn a_request_is_read_to_its_end_and_no_further() {
        for (text, expect) in [
            (
                "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\nrest",
                Some("a:443"),
            ),
            ("GET / HTTP/1.1\r\n\r\nrest", None),
        ] {
            let mut from = text.as_bytes();
            let target = read_request(&mut from).await.unwrap();
            assert_eq!(target.as_deref(), expect);
            assert_eq!(from, b"rest");
        }
        assert!(read_request(&mut "CONNECT a:443".as_bytes()).await.is_err());
    }

    #[tokio::test]
    async fn a_tunnel_through_which_nothing_moves_is_closed() {
        let (mut pod, inside) = tokio::io::duplex(64);
        let (outside, mut server) = tokio::io::duplex(64);
        // What moves is counted, whichever way it goes.
        let counted = Counted {
            stream: inside,
            moved: Arc::default(),
        };
        let moved = Arc::clone(&counted.moved);
        pod.write_all(b"ping").await.unwrap();
        let passing = tunnel(counted, outside, Duration::from_millis(20));
        let ended = timeout(Duration::from_secs(30), passing).await;
        assert!(ended.is_ok(), "it is still open");
        let mut heard = String::new();
        server.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "ping", "what was sent before has arrived");
        assert!(moved.load(Ordering::Relaxed) > 0);
        let mut rest = Vec::new();
        pod.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"", "both ends are closed");
    }

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
