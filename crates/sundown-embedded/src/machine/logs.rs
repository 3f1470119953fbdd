//! What containers wrote, for the server: files of the node, read piece by piece and, if asked, along
//! with the one who writes. Which run is meant and how much of it was decided before.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use sundown_api::Log;
use sundown_node::{ContainerKey, LogChanges, LogOptions, LogReader, NodePaths};
use sundown_server::PodLogs;
use tokio::sync::watch;

use super::link::Link;
use super::pods::Heard;

/// The logs of this machine.
#[derive(Debug)]
pub(crate) struct Logs(pub(crate) Arc<Link>);

impl PodLogs for Logs {
    fn open(&self, log: Log) -> BoxFuture<'_, Result<BoxStream<'static, Bytes>, String>> {
        Box::pin(async move {
            let run = run(&log).ok_or_else(|| {
                let (id, container) = (&log.container_id, &log.container);
                format!("container {container:?} has no log here: its id is {id:?}")
            })?;
            let heard = self.0.pods().follow();
            let text = Text::open(self.0.data_directory().into(), run, &log, heard);
            let text = text.await.map_err(|error| error.to_string())?;
            let pieces = stream::unfold(text, |mut text| async {
                let piece = text.next().await?;
                Some((piece, text))
            });
            Ok(pieces.boxed())
        })
    }
}

/// The run that a status names: `sundown://POD/CONTAINER/ATTEMPT`, of that pod and container only.
fn run(log: &Log) -> Option<ContainerKey> {
    let own = format!("sundown://{}/{}/", log.pod, log.container);
    let attempt = log.container_id.strip_prefix(&own)?;
    Some(ContainerKey {
        uid: log.pod.clone(),
        container: log.container.clone(),
        attempt: attempt.parse().ok()?,
    })
}

/// A log on its way.
struct Text {
    run: ContainerKey,
    /// None: all that there is has been read.
    reader: Option<LogReader>,
    changes: Option<LogChanges>,
    heard: watch::Receiver<Heard>,
}

impl Text {
    async fn open(
        directory: std::path::PathBuf,
        run: ContainerKey,
        log: &Log,
        heard: watch::Receiver<Heard>,
    ) -> io::Result<Self> {
        let options = LogOptions {
            follow: log.follow,
            tail_lines: log.tail_lines,
            since: log.since,
            timestamps: log.timestamps,
            bytes_max: log.bytes_max,
        };
        let opened = run.clone();
        let (reader, changes) = blocking(move || {
            let reader = LogReader::open(&NodePaths::new(&directory)?, &opened, &options)?;
            // Watched before the first read, so that nothing is missed in between. A pod that went has
            // no directory, and nothing to wait for.
            let changes = options.follow.then(|| reader.changes().ok()).flatten();
            Ok((reader, changes))
        })
        .await?;
        Ok(Self {
            run,
            reader: Some(reader),
            changes,
            heard,
        })
    }

    /// The next piece; None at the end. An error in the midst of it can only end it.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            // Looked at before the read: what is read after a run is over is all.
            let is_over = self.heard.borrow_and_update().is_over(&self.run);
            let mut reader = self.reader.take()?;
            let read = blocking(move || Ok((reader.read()?, reader))).await;
            let (text, mut reader) = match read {
                Ok(read) => read,
                Err(error) => {
                    tracing::warn!(%error, run = ?self.run, "read a log");
                    return None;
                }
            };
            if let Some(text) = text {
                self.reader = Some(reader);
                return Some(text.into());
            }
            let Some(changes) = self.changes.as_mut().filter(|_| !is_over) else {
                let rest = reader.finish();
                return (!rest.is_empty()).then(|| rest.into());
            };
            if reader.is_full() {
                return None;
            }
            self.reader = Some(reader);
            tokio::select! {
                is_there = changes.changed() => if !matches!(is_there, Ok(true)) {
                    self.changes = None;
                },
                heard = self.heard.changed() => if heard.is_err() {
                    self.changes = None;
                },
            }
        }
    }
}

/// Files block; their time is not taken from others.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_of_the_pod_and_container_that_was_asked_for() {
        let check = |container_id: &str, expect: Option<u32>| {
            let log = Log {
                pod: "u".to_owned(),
                container: "c".to_owned(),
                container_id: container_id.to_owned(),
                follow: false,
                tail_lines: None,
                since: None,
                timestamps: false,
                bytes_max: None,
            };
            assert_eq!(run(&log).map(|run| run.attempt), expect, "{container_id}");
        };
        check("sundown://u/c/0", Some(0));
        check("sundown://u/c/12", Some(12));
        check("sundown://other/c/0", None);
        check("sundown://u/d/0", None);
        check("sundown://u/c/../../x", None);
        check("containerd://abc", None);
        check("", None);
    }
}
