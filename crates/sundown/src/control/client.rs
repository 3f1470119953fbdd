//! The caller's side of the control socket.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use sundown_node::{ForeignPeer, PeerProcess, SocketPath, check_peer, foreign_peer};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::{Answer, Hello, Request, SOCKET, Standing};
use crate::complaint::Complaint;
use crate::data;
use crate::explain::{self, Wanted};

/// A control plane that is up answers in milliseconds; one that is stopped by a signal never does.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// A process that has closed its sockets frees its memory and is gone; a busy machine lets it wait for that.
const EXIT_TIME_MAX: Duration = Duration::from_secs(30);
/// No answer is longer.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    /// Nobody listens: no control plane is up.
    #[error("no control plane is up")]
    NotUp,
    #[error("the control plane does not answer")]
    Silent(#[source] io::Error),
    #[error("the control plane has said that it ends, but its process is still there")]
    StillThere(#[source] io::Error),
    #[error("the control plane refuses: {0}")]
    Refused(String),
    /// A process of another user listens there.
    #[error("{} belongs to user {uid}, not to you", socket.display())]
    Foreign { socket: PathBuf, uid: u32 },
}

impl ControlError {
    /// In words, with what to do about it.
    pub(crate) fn complaint(&self, directory: &Path) -> Complaint {
        let complaint = Complaint::of(self).at(directory.display().to_string());
        match self {
            Self::Silent(_) | Self::StillThere(_) => {
                complaint.help("is its process stopped? `kill` it, and try again")
            }
            Self::Foreign { .. } => complaint.help(
                "its answers are not trusted; use a data directory of your own: --data-dir DIR",
            ),
            Self::NotUp | Self::Refused(_) => complaint,
        }
    }
}

/// A control plane that knows that this client is there.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) hello: Hello,
    /// That of the data directory, whatever the answer says: a kubeconfig names programs to run.
    pub(crate) kubeconfig: PathBuf,
    reader: BufReader<UnixStream>,
}

/// How a control plane went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    /// Somebody told it to end, and it said so.
    Asked,
    /// Without a word.
    Lost,
}

impl Held {
    /// Returns when the control plane ends. Cancel-safe: what was read is kept.
    pub(crate) async fn gone(&mut self) -> Gone {
        loop {
            match self.reader.fill_buf().await {
                // It says one thing only after its hello: that it ends.
                Ok(bytes) if bytes.contains(&b'\n') => return Gone::Asked,
                Ok(bytes) if !bytes.is_empty() => {
                    let length = bytes.len();
                    self.reader.consume(length);
                }
                Ok(_) | Err(_) => return Gone::Lost,
            }
        }
    }
}

/// Joins the control plane of a data directory, by where its state lies.
pub(crate) async fn connect(data: &Path, state: &Path) -> Result<Held, ControlError> {
    let mut reader = ask(state, &Request::Hello).await?;
    match answer(&mut reader).await? {
        Answer::Hello(hello) => Ok(Held {
            hello,
            kubeconfig: data::kubeconfig(data),
            reader,
        }),
        other => Err(unexpected(other)),
    }
}

/// What is up.
pub(crate) async fn status(directory: &Path) -> Result<Standing, ControlError> {
    let mut reader = ask(directory, &Request::Status).await?;
    match answer(&mut reader).await? {
        Answer::Status(standing) => Ok(standing),
        other => Err(unexpected(other)),
    }
}

/// What the controllers that run there say of an object.
pub(crate) async fn explained(
    directory: &Path,
    wanted: Wanted,
) -> Result<explain::Answer, ControlError> {
    let mut reader = ask(directory, &Request::Explain(wanted)).await?;
    match answer(&mut reader).await? {
        Answer::Explained(answer) => Ok(answer),
        other => Err(unexpected(other)),
    }
}

/// A port of the host's loopback that is open as long as this value.
#[derive(Debug)]
pub(crate) struct Forwarded {
    pub(crate) port: u16,
    pub(crate) token: String,
    _open: BufReader<UnixStream>,
}

impl Forwarded {
    /// What a browser opens.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }
}

/// Opens a port of the host's loopback.
pub(crate) async fn forward(
    directory: &Path,
    request: &Request,
) -> Result<Forwarded, ControlError> {
    let mut reader = ask(directory, request).await?;
    match answer(&mut reader).await? {
        Answer::Forwarded { port, token } => Ok(Forwarded {
            port,
            token,
            _open: reader,
        }),
        other => Err(unexpected(other)),
    }
}

/// Ends the control plane and tells each step; returns when its process has ended.
pub(crate) async fn down(
    directory: &Path,
    tell: &mut (dyn FnMut(&str) + Send),
) -> Result<(), ControlError> {
    let mut reader = ask(directory, &Request::Down).await?;
    // In another pid namespace it cannot be waited for: then the end of the connection has to do.
    let process = PeerProcess::of(reader.get_ref()).ok();
    let mut is_ending = false;
    loop {
        // No bound: pods have their own grace, and every step is told.
        match read(&mut reader).await {
            Ok(Some(Answer::Step { text })) => tell(&text),
            Ok(Some(Answer::Ending)) => is_ending = true,
            Ok(Some(other)) => return Err(unexpected(other)),
            Ok(None) if is_ending => return until_ended(process.as_ref()).await,
            Ok(None) => return Err(ControlError::Silent(io::ErrorKind::UnexpectedEof.into())),
            Err(error) => return Err(ControlError::Silent(error)),
        }
    }
}

async fn until_ended(process: Option<&PeerProcess>) -> Result<(), ControlError> {
    let Some(process) = process else {
        return Ok(());
    };
    let ended = timeout(EXIT_TIME_MAX, process.ended()).await;
    let ended = ended.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    ended.map_err(ControlError::StillThere)
}

async fn ask(directory: &Path, request: &Request) -> Result<BufReader<UnixStream>, ControlError> {
    let socket = SocketPath::new(directory, SOCKET).map_err(|_| ControlError::NotUp)?;
    let stream = UnixStream::connect(socket.get()).await;
    let mut stream = stream.map_err(|_| ControlError::NotUp)?;
    if let Err(error) = check_peer(&stream) {
        let Some(ForeignPeer { uid, .. }) = foreign_peer(&error) else {
            return Err(ControlError::Silent(error));
        };
        let socket = directory.join(SOCKET);
        return Err(ControlError::Foreign { socket, uid });
    }
    match send(&mut stream, request).await {
        Ok(()) => Ok(BufReader::new(stream)),
        Err(error) if is_closed(&error) => Err(ControlError::NotUp),
        Err(error) => Err(ControlError::Silent(error)),
    }
}

fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    [BrokenPipe, ConnectionReset, UnexpectedEof].contains(&error.kind())
}

pub(super) async fn send<T: Serialize>(to: &mut UnixStream, message: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line).await
}

async fn answer(reader: &mut BufReader<UnixStream>) -> Result<Answer, ControlError> {
    let read = timeout(ANSWER_TIME_MAX, read(reader)).await;
    let read = read.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    match read {
        Ok(Some(answer)) => Ok(answer),
        // It was ending, or was killed, before it could answer.
        Ok(None) => Err(ControlError::NotUp),
        Err(error) if is_closed(&error) => Err(ControlError::NotUp),
        Err(error) => Err(ControlError::Silent(error)),
    }
}

pub(super) async fn read<T: serde::de::DeserializeOwned>(
    reader: &mut BufReader<UnixStream>,
) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    let mut bounded = reader.take(LINE_BYTES_MAX);
    if bounded.read_until(b'\n', &mut line).await? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line)?))
}

fn unexpected(answer: Answer) -> ControlError {
    match answer {
        Answer::Refused { message } => ControlError::Refused(message),
        other => ControlError::Silent(io::Error::other(format!("unexpected answer {other:?}"))),
    }
}
