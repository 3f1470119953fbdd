//! The words between client and node: one call per connection, as a line of JSON each way, so that
//! calls cannot block each other and a dropped connection is a cancelled call.

mod descriptor;

use std::io::{self, BufRead, Write};
use std::net::{Ipv4Addr, SocketAddrV4};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(crate) use descriptor::{Received, receive_with_descriptor, send_with_descriptor};

use crate::spec::{ContainerKey, ContainerSpec, PodSpec};
use crate::state::{ExecResult, Isolation, PodState};

/// Raised when calls or answers change their meaning: a node may be older than its client.
pub(crate) const PROTOCOL: u32 = 3;

/// A pod's files travel in one line; Kubernetes allows 1 MiB for each object that they come from.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// What a client may ask.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Call {
    Hello,
    Watch,
    Snapshot,
    CreatePod(PodSpec),
    StartContainer { uid: String, spec: ContainerSpec },
    Signal { key: ContainerKey, signal: i32 },
    ReleasePod { uid: String },
    RemovePod { uid: String },
    Exec(ExecCall),
    Dial { to: SocketAddrV4, timeout_ms: u64 },
    Listen { at: SocketAddrV4 },
    SetNames { names: Vec<(String, Vec<Ipv4Addr>)> },
    Leftovers,
    End,
}

/// A command to run inside a running container.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ExecCall {
    pub(crate) uid: String,
    pub(crate) container: String,
    pub(crate) argv: Vec<String>,
    pub(crate) timeout_ms: u64,
    pub(crate) output_bytes_max: usize,
}

/// What the node answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Done,
    Hello(Hello),
    Pod(PodState),
    Pods(Vec<PodState>),
    Exec(ExecResult),
    Lines(Vec<String>),
}

/// Who answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) protocol: u32,
    pub(crate) isolation: Isolation,
    pub(crate) bridge: Ipv4Addr,
}

/// The answer to a call, or why there is none.
pub(crate) type Reply = Result<Answer, Refusal>;

/// Why the node did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Refusal {
    /// The call makes no sense, whenever it comes.
    #[error("{message}")]
    Invalid { message: String },
    /// There is no such pod, or its processes are gone.
    #[error("pod {uid} does not run on this node")]
    NoSuchPod { uid: String },
    /// The container does not run.
    #[error("container {container} of pod {uid} does not run")]
    NoSuchContainer { uid: String, container: String },
    /// An earlier attempt must end first.
    #[error("attempt {running} of container {container} of pod {uid} still runs")]
    StillRunning {
        uid: String,
        container: String,
        running: u32,
    },
    /// The address belongs to somebody else or lies outside the node's network.
    #[error("address {address} is {why}")]
    Address { address: Ipv4Addr, why: String },
    /// The pod could not be set up; nothing of it is left.
    #[error("pod {uid}: {message}")]
    Setup { uid: String, message: String },
    /// Not everything of the pod could be removed; asking again goes on where it stopped.
    #[error("pod {uid} is not gone: {message}")]
    NotGone { uid: String, message: String },
    /// A connection or a listener inside the node's network failed.
    #[error("{address}: {message}")]
    Network {
        address: SocketAddrV4,
        message: String,
    },
    /// The node has pods and does not end.
    #[error("{pod_count} pods still run")]
    HasPods { pod_count: usize },
    /// The node takes nothing new: connect again for the next one.
    #[error("the node is ending")]
    Ending,
}

/// Sends one message.
pub(crate) fn send<T: Serialize>(to: &mut impl Write, message: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// Receives one message; `None` when the other side has closed.
pub(crate) fn receive<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    let mut bounded = io::Read::take(&mut *from, LINE_BYTES_MAX);
    if bounded.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the message has no end",
        ));
    }
    Ok(Some(serde_json::from_slice(&line)?))
}

/// Bytes as base64: a list of numbers would be four times as long.
pub(crate) mod base64_bytes {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map_err(de::Error::custom)
    }
}
