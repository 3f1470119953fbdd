//! Probes of a pod's ports, from inside the node's network as a kubelet would do them. Whether a pod is
//! ready or must be restarted is for the caller to decide.

mod tls;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::{Node, NodeError};
use crate::wire::Refusal;

/// The kubelet reads no more of an answer than this.
const ANSWER_BYTES_MAX: u64 = 10 << 10;

/// An HTTP request to a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpProbe {
    pub address: Ipv4Addr,
    pub port: u16,
    /// Starts with `/`.
    pub path: String,
    /// Over TLS, with whatever certificate.
    pub tls: bool,
    pub headers: Vec<(String, String)>,
    pub timeout: Duration,
}

/// What a pod answered to an [`HttpProbe`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeResult {
    pub status: u16,
    /// The start of the body, without transfer coding undone.
    pub body: String,
}

impl ProbeResult {
    /// The kubelet's judgement: 200 to 399.
    pub fn is_success(&self) -> bool {
        (200..400).contains(&self.status)
    }
}

/// Why a probe failed. The texts are those that the kubelet shows.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// Nobody accepts, or the connection broke.
    #[error("dial tcp {address}: {message}")]
    Connection {
        address: SocketAddrV4,
        message: String,
    },
    /// No answer in time.
    #[error("context deadline exceeded (Client.Timeout exceeded while awaiting headers)")]
    Timeout,
    /// What came is no HTTP.
    #[error("malformed HTTP response from {address}")]
    Malformed { address: SocketAddrV4 },
    /// The node itself failed, which says nothing about the pod.
    #[error(transparent)]
    Node(NodeError),
}

impl Node {
    /// Asks a pod over HTTP.
    pub async fn probe_http(&self, probe: &HttpProbe) -> Result<ProbeResult, ProbeError> {
        let asked = timeout(probe.timeout, self.ask_over_http(probe));
        asked.await.unwrap_or(Err(ProbeError::Timeout))
    }

    /// Whether a pod accepts connections at a port.
    pub async fn probe_tcp(&self, to: SocketAddrV4, limit: Duration) -> Result<(), ProbeError> {
        let dialled = timeout(limit, self.dial(to, limit)).await;
        let dialled = dialled.map_err(|_| ProbeError::Timeout)?;
        dialled.map(drop).map_err(connection)
    }

    async fn ask_over_http(&self, probe: &HttpProbe) -> Result<ProbeResult, ProbeError> {
        let address = SocketAddrV4::new(probe.address, probe.port);
        let stream = self
            .dial(address, probe.timeout)
            .await
            .map_err(connection)?;
        let broken = |error: std::io::Error| ProbeError::Connection {
            address,
            message: error.to_string(),
        };
        let asked = request(probe);
        let answered = if probe.tls {
            let stream = tls::connect(stream, probe.address).await.map_err(broken)?;
            converse(stream, &asked).await
        } else {
            converse(stream, &asked).await
        };
        let bytes = answered.map_err(broken)?;
        parse(&bytes).ok_or(ProbeError::Malformed { address })
    }
}

/// Asks, and reads as much of the answer as is looked at.
async fn converse(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    asked: &str,
) -> std::io::Result<Vec<u8>> {
    stream.write_all(asked.as_bytes()).await?;
    stream.flush().await?;
    let mut bytes = Vec::new();
    let mut bounded = stream.take(ANSWER_BYTES_MAX);
    while !is_whole(&bytes) {
        match bounded.read_buf(&mut bytes).await {
            Ok(0) => break,
            Ok(_) => {}
            // Many close without a word of farewell; what came counts.
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

fn connection(error: NodeError) -> ProbeError {
    match error {
        NodeError::Refused(Refusal::Network { address, message }) => {
            ProbeError::Connection { address, message }
        }
        other => ProbeError::Node(other),
    }
}

fn request(probe: &HttpProbe) -> String {
    let mut lines = vec![format!("GET {} HTTP/1.1", probe.path)];
    let has = |name: &str| {
        probe
            .headers
            .iter()
            .any(|(each, _)| each.eq_ignore_ascii_case(name))
    };
    let defaults = [
        ("Host", format!("{}:{}", probe.address, probe.port)),
        ("User-Agent", "kube-probe/1.37".to_owned()),
        ("Accept", "*/*".to_owned()),
    ];
    let defaults = defaults.into_iter().filter(|(name, _)| !has(name));
    lines.extend(defaults.map(|(name, value)| format!("{name}: {value}")));
    lines.extend(
        probe
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}")),
    );
    lines.push("Connection: close".to_owned());
    lines.join("\r\n") + "\r\n\r\n"
}

/// Whether nothing more is to come, as far as the answer says so: a server may keep the connection open
/// although it was asked not to.
fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let value = |wanted: &str| {
        let mut fields = head.lines().filter_map(|line| line.split_once(':'));
        let field = fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        field.map(|(_, value)| value.trim().to_owned())
    };
    if value("transfer-encoding").is_some() {
        return body.ends_with("0\r\n\r\n");
    }
    let length = value("content-length").and_then(|length| length.parse::<usize>().ok());
    length.is_some_and(|length| body.len() >= length)
}

fn parse(bytes: &[u8]) -> Option<ProbeResult> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut words = head.lines().next()?.split(' ');
    if !words.next()?.starts_with("HTTP/1.") {
        return None;
    }
    Some(ProbeResult {
        status: words.next()?.parse().ok()?,
        body: body.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_status_and_a_body() {
        let found = parse(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nsuccess").unwrap();
        assert_eq!((found.status, found.body.as_str()), (200, "success"));
        assert!(found.is_success());
        assert!(!parse(b"HTTP/1.1 503 No\r\n\r\n").unwrap().is_success());
        assert!(is_whole(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"));
        assert!(!is_whole(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok"));
        assert!(!is_whole(b"HTTP/1.1 200 OK\r\n\r\nok"));
        assert!(is_whole(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"
        ));
        assert_eq!(parse(b"SSH-2.0-OpenSSH\r\n\r\n"), None);
    }
}
