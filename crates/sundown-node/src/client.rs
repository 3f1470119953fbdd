//! The caller's side: a [`Node`] is a door to the node of a data directory, started if it is not
//! there. Dropping it leaves the node and its pods as they are.

mod door;
mod egress;
mod forward;
mod outdated;
mod probe;
mod start;
mod watch;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpStream, UnixStream};

use crate::paths::{NodePaths, PodPaths, SocketPath};
use crate::peer::check_peer;
use crate::spec::{ContainerKey, ContainerSpec, PodSpec};
use crate::stage::Settings;
use crate::state::{ExecResult, Isolation, PodState};
use crate::wire::{Answer, Call, ExecCall, Hello, Refusal, Reply};
pub use door::Accepted;
pub use egress::{Egress, EgressRules};
pub use forward::{Forward, Token};
pub use probe::{HttpProbe, ProbeError, ProbeResult};
pub use watch::Watch;

/// How to reach a node, and how to run it if it must be started.
#[derive(Debug, Clone)]
pub struct Config {
    pub settings: Settings,
    /// The binary that calls [`crate::stage`]; usually `std::env::current_exe()`.
    pub exe: PathBuf,
    /// How long a start may take.
    pub start_timeout: Duration,
    /// How long an answer may take that needs nothing but a look.
    pub answer_timeout: Duration,
}

/// A node that is well answers in milliseconds; one that was stopped, or a machine without memory,
/// does not answer at all.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Calls that make or remove something wait for the kernel and the disk. Each can be repeated, so
/// whoever gives one up loses nothing.
const WORK_TIMEOUT: Duration = Duration::from_mins(10);

impl Config {
    /// The usual settings for a data directory.
    pub fn new(data_dir: impl Into<PathBuf>, exe: impl Into<PathBuf>) -> Self {
        Self {
            settings: Settings::new(data_dir),
            exe: exe.into(),
            start_timeout: Duration::from_secs(20),
            answer_timeout: ANSWER_TIMEOUT,
        }
    }
}

/// Why a call had no answer.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// No node could be started; the message says what to enable.
    #[error("cannot start a node for {}: {message}", data_dir.display())]
    Start { data_dir: PathBuf, message: String },
    /// The node was started by another version of Sundown.
    #[error(
        "the node of {} was started by another version of Sundown (protocol {theirs}, here {ours}): \
         `sundown down` ends it with its pods",
        data_dir.display()
    )]
    Version {
        data_dir: PathBuf,
        theirs: u32,
        ours: u32,
    },
    /// A node of another version could not be ended.
    #[error(
        "the node of {}, process {process}, was started by another version of Sundown and is not ended: \
         {message}", data_dir.display()
    )]
    NotEnded {
        data_dir: PathBuf,
        process: i32,
        message: String,
    },
    /// A process of another user listens at the node's socket.
    #[error(
        "the node's socket in {} belongs to user {uid}, not to you: its answers are not trusted. \
         Use a data directory of your own", data_dir.display()
    )]
    Foreign { data_dir: PathBuf, uid: u32 },
    /// The node is gone or does not answer: connect again, and look which pods were lost.
    #[error("the node of {} is gone", data_dir.display())]
    Gone {
        data_dir: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The node is there and says nothing.
    #[error(
        "the node of {}, process {process}, has not answered for {:.0?}: if it does not come back, \
         `kill -9 {process}` ends it with its pods",
        data_dir.display(), waited
    )]
    Silent {
        data_dir: PathBuf,
        process: i32,
        waited: Duration,
    },
    /// The node said no.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// A door to the node of a data directory; clones share it.
#[derive(Debug, Clone)]
pub struct Node {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    paths: NodePaths,
    hello: Hello,
    /// The node, as this process counts.
    process: i32,
    answer_timeout: Duration,
    /// Open as long as this client lives, so that the node does not end for want of one.
    _presence: BufReader<UnixStream>,
}

impl Node {
    /// Joins the node of the data directory, or starts one that outlives this process.
    ///
    /// # Errors
    /// No node could be started, or one is there that speaks another version.
    pub async fn connect_or_start(config: &Config) -> Result<Self, NodeError> {
        start::connect_or_start(config).await
    }

    /// Joins the node of the data directory if there is one.
    ///
    /// # Errors
    /// One is there that speaks another version.
    pub async fn connect(data_dir: &Path) -> Result<Option<Self>, NodeError> {
        start::connect_only(data_dir).await
    }

    /// Ends the node of the data directory with its pods, if another version of Sundown started it, and gives
    /// its process. Its pods get no signal before they end.
    ///
    /// # Errors
    /// What listens there is not proven to be such a node, and was left alone.
    pub async fn end_other_version(data_dir: &Path) -> Result<i32, NodeError> {
        outdated::end(data_dir).await
    }

    /// How the node is separated from the host, and why that way.
    pub fn isolation(&self) -> &Isolation {
        &self.inner.hello.isolation
    }

    /// The bridge's address: the pods' name server and gateway, and the host of the API door.
    pub fn bridge(&self) -> Ipv4Addr {
        self.inner.hello.bridge
    }

    /// The places of a pod: its logs can be read from there.
    pub fn pod_paths(&self, uid: &str) -> PodPaths {
        self.inner.paths.pod(uid)
    }

    /// Makes a pod without containers; one that exists is left as it is.
    pub async fn create_pod(&self, spec: PodSpec) -> Result<PodState, NodeError> {
        self.pod(Call::CreatePod(spec)).await
    }

    /// Starts one attempt of a container; one that was started is left as it is. The state tells
    /// whether the command could be executed.
    pub async fn start_container(
        &self,
        uid: &str,
        spec: ContainerSpec,
    ) -> Result<PodState, NodeError> {
        let uid = uid.to_owned();
        self.pod(Call::StartContainer { uid, spec }).await
    }

    /// Sends a signal to the command of a container, SIGKILL to all its processes. One that has ended
    /// needs none.
    pub async fn signal(&self, key: ContainerKey, signal: i32) -> Result<(), NodeError> {
        self.done(Call::Signal { key, signal }).await
    }

    /// Ends what a pod ran in when nothing of it runs any more: its init, namespaces, link and address,
    /// and what its containers wrote. Its records and logs stay until it is removed. Not finding it is
    /// success.
    ///
    /// # Errors
    /// Something of the pod runs: nothing was done.
    pub async fn release_pod(&self, uid: &str) -> Result<(), NodeError> {
        let uid = uid.to_owned();
        self.done(Call::ReleasePod { uid }).await
    }

    /// Kills every process of the pod and removes its mounts, link and files. Not finding it is
    /// success.
    ///
    /// # Guarantees
    /// Answers only when all is gone.
    pub async fn remove_pod(&self, uid: &str) -> Result<(), NodeError> {
        let uid = uid.to_owned();
        self.done(Call::RemovePod { uid }).await
    }

    /// Runs a command in a running container. Output is kept up to `output_bytes_max`.
    pub async fn exec(
        &self,
        uid: &str,
        container: &str,
        argv: Vec<String>,
        timeout: Duration,
        output_bytes_max: usize,
    ) -> Result<ExecResult, NodeError> {
        let call = ExecCall {
            uid: uid.to_owned(),
            container: container.to_owned(),
            argv,
            timeout_ms: milliseconds(timeout),
            output_bytes_max,
        };
        match self.call(&Call::Exec(call)).await? {
            Answer::Exec(result) => Ok(result),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Connects to an address of the node's network.
    pub async fn dial(&self, to: SocketAddrV4, timeout: Duration) -> Result<TcpStream, NodeError> {
        door::dial(self, to, timeout).await
    }

    /// Listens at an address of the node's network, usually the bridge's, and gives each connection
    /// to this process: the way of pods to an API server outside.
    pub async fn listen_in_node(&self, at: SocketAddrV4) -> Result<Accepted, NodeError> {
        door::listen(self, at).await
    }

    /// Listens on the host's loopback and passes requests of our own user that know its token on to a
    /// server of HTTP in the node's network.
    pub async fn forward(&self, host_port: u16, to: SocketAddrV4) -> Result<Forward, NodeError> {
        forward::forward(self, host_port, to).await
    }

    /// Replaces the whole table of names that the node's name server answers.
    pub async fn set_names(&self, names: Vec<(String, Vec<Ipv4Addr>)>) -> Result<(), NodeError> {
        self.done(Call::SetNames { names }).await
    }

    /// Every pod as it stands.
    pub async fn snapshot(&self) -> Result<Vec<PodState>, NodeError> {
        match self.call(&Call::Snapshot).await? {
            Answer::Pods(pods) => Ok(pods),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Every pod, then every change.
    pub async fn watch(&self) -> Result<Watch, NodeError> {
        watch::watch(self).await
    }

    /// What of the node's pods is there: processes, links, mounts, directories. Empty when all pods
    /// are removed; see [`crate::leftovers`] for when the node itself has ended.
    pub async fn leftovers(&self) -> Result<Vec<String>, NodeError> {
        match self.call(&Call::Leftovers).await? {
            Answer::Lines(lines) => Ok(lines),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Ends the node at once instead of after its idle time; refused while a pod runs or has not begun
    /// to. The records and logs of pods that have ended stay in the data directory.
    pub async fn end(&self) -> Result<(), NodeError> {
        self.done(Call::End).await
    }

    async fn pod(&self, call: Call) -> Result<PodState, NodeError> {
        match self.call(&call).await? {
            Answer::Pod(state) => Ok(state),
            other => Err(self.unexpected(&other)),
        }
    }

    async fn done(&self, call: Call) -> Result<(), NodeError> {
        match self.call(&call).await? {
            Answer::Done => Ok(()),
            other => Err(self.unexpected(&other)),
        }
    }

    async fn call(&self, call: &Call) -> Result<Answer, NodeError> {
        let timeout = self.timeout(call);
        let reply = self.within(timeout, ask(&self.inner.paths, call)).await?;
        Ok(reply?)
    }

    /// How long to wait for the answer to a call.
    fn timeout(&self, call: &Call) -> Duration {
        let answer = self.inner.answer_timeout;
        match call {
            Call::Hello
            | Call::Watch
            | Call::Snapshot
            | Call::Signal { .. }
            | Call::Listen { .. }
            | Call::SetNames { .. }
            | Call::Leftovers => answer,
            Call::Exec(call) => answer.saturating_add(Duration::from_millis(call.timeout_ms)),
            Call::Dial { timeout_ms, .. } => {
                answer.saturating_add(Duration::from_millis(*timeout_ms))
            }
            Call::CreatePod(_)
            | Call::StartContainer { .. }
            | Call::ReleasePod { .. }
            | Call::RemovePod { .. }
            | Call::End => answer.max(WORK_TIMEOUT),
        }
    }

    /// Waits for an answer, but not for ever.
    async fn within<T>(
        &self,
        waited: Duration,
        answer: impl Future<Output = io::Result<T>>,
    ) -> Result<T, NodeError> {
        match tokio::time::timeout(waited, answer).await {
            Ok(answer) => answer.map_err(|source| self.gone(source)),
            Err(_) => Err(NodeError::Silent {
                data_dir: self.inner.paths.data_dir().to_owned(),
                process: self.inner.process,
                waited,
            }),
        }
    }

    fn gone(&self, source: io::Error) -> NodeError {
        let data_dir = self.inner.paths.data_dir().to_owned();
        NodeError::Gone { data_dir, source }
    }

    fn unexpected(&self, answer: &Answer) -> NodeError {
        self.gone(io::Error::other(format!("unexpected answer {answer:?}")))
    }
}

/// Opens a connection and says what it is for.
async fn open(paths: &NodePaths, call: &Call) -> io::Result<UnixStream> {
    let mut line = serde_json::to_vec(call)?;
    line.push(b'\n');
    let socket = SocketPath::of_node(paths)?;
    let mut stream = UnixStream::connect(socket.get()).await?;
    // Before anything is said: what is asked may hold secrets.
    check_peer(&stream)?;
    stream.write_all(&line).await?;
    Ok(stream)
}

async fn ask(paths: &NodePaths, call: &Call) -> io::Result<Reply> {
    let mut reader = BufReader::new(open(paths, call).await?);
    read_reply(&mut reader).await
}

async fn read_reply(reader: &mut BufReader<UnixStream>) -> io::Result<Reply> {
    let mut line = Vec::new();
    if reader.read_until(b'\n', &mut line).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&line)?)
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
