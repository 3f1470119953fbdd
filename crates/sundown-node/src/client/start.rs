//! Finding the node of a data directory, or starting it. Two clients that start at the same moment end
//! up with the same node: the directory's lock decides.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::BufReader;
use tokio::time::{Instant, sleep, timeout};

use super::{ANSWER_TIMEOUT, Config, Inner, Node, NodeError, open, read_reply};
use crate::paths::NodePaths;
use crate::peer::{ForeignPeer, foreign_peer};
use crate::stage::{Announcement, NODE};
use crate::wire::{Answer, Call, PROTOCOL};

/// Another node is ending or starting; there is nothing to be told by.
const RETRY_DELAY: Duration = Duration::from_millis(10);

pub(super) async fn connect_or_start(config: &Config) -> Result<Node, NodeError> {
    let data_dir = &config.settings.data_dir;
    let failed = |message: String| NodeError::Start {
        data_dir: data_dir.clone(),
        message,
    };
    let paths = NodePaths::new(data_dir).map_err(|error| failed(error.to_string()))?;
    let deadline = Instant::now() + config.start_timeout;
    loop {
        if let Some(node) = connect(&paths, config.answer_timeout).await? {
            return Ok(node);
        }
        let announcement = tokio::time::timeout_at(deadline, launch(config))
            .await
            .map_err(|_| failed(format!("not up after {:?}", config.start_timeout)))?
            .map_err(|error| failed(format!("{}: {error}", config.exe.display())))?;
        match announcement {
            Announcement::Failed { message } => return Err(failed(message)),
            Announcement::Ready(_) => {}
            Announcement::Occupied if Instant::now() > deadline => {
                let message = "another node holds the directory and does not answer".to_owned();
                return Err(failed(message));
            }
            Announcement::Occupied => sleep(RETRY_DELAY).await,
        }
    }
}

/// Joins the node of a directory that may not even exist.
pub(super) async fn connect_only(data_dir: &Path) -> Result<Option<Node>, NodeError> {
    if !data_dir.is_dir() {
        return Ok(None);
    }
    let paths = NodePaths::new(data_dir).map_err(|error| NodeError::Start {
        data_dir: data_dir.to_owned(),
        message: error.to_string(),
    })?;
    connect(&paths, ANSWER_TIMEOUT).await
}

/// Joins a node that is there.
async fn connect(paths: &NodePaths, answer_timeout: Duration) -> Result<Option<Node>, NodeError> {
    let stream = match open(paths, &Call::Hello).await {
        Ok(stream) => stream,
        Err(error) => {
            return match foreign_peer(&error) {
                Some(ForeignPeer { uid, .. }) => Err(NodeError::Foreign {
                    data_dir: paths.data_dir().to_owned(),
                    uid,
                }),
                None => Ok(None),
            };
        }
    };
    // The kernel knows who listens, in our numbers.
    let process = stream.peer_cred().ok().and_then(|it| it.pid()).unwrap_or(0);
    let mut presence = BufReader::new(stream);
    let reply = timeout(answer_timeout, read_reply(&mut presence)).await;
    let reply = reply.map_err(|_| NodeError::Silent {
        data_dir: paths.data_dir().to_owned(),
        process,
        waited: answer_timeout,
    })?;
    let Ok(Ok(Answer::Hello(hello))) = reply else {
        return Ok(None);
    };
    if hello.protocol != PROTOCOL {
        return Err(NodeError::Version {
            data_dir: paths.data_dir().to_owned(),
            theirs: hello.protocol,
            ours: PROTOCOL,
        });
    }
    let inner = Inner {
        paths: paths.clone(),
        hello,
        process,
        answer_timeout,
        _presence: presence,
    };
    Ok(Some(Node {
        inner: Arc::new(inner),
    }))
}

/// Runs `__node` until it says how the start went; it leaves the node behind and ends.
async fn launch(config: &Config) -> io::Result<Announcement> {
    let mut command = std::process::Command::new(&config.exe);
    command.arg(NODE).arg("--settings");
    command.arg(serde_json::to_string(&config.settings)?);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.current_dir("/");
    let launched = tokio::task::spawn_blocking(move || command.output());
    let output = launched.await.map_err(io::Error::other)??;
    serde_json::from_slice(&output.stdout).map_err(io::Error::other)
}
