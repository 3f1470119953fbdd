//! Owns every task of a process. What a task does when it is asked to stop is its own business;
//! that it has ended, and why, is known here.

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use tokio::task::JoinSet;

use crate::Stop;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A set of tasks that are all meant to run until they are asked to stop.
///
/// Dropping it ends every task at its next await.
#[derive(Debug, Default)]
pub struct Tasks {
    running: JoinSet<End>,
    stop: Stop,
}

/// Why the tasks did not run as they were meant to.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The task gave up with an error.
    #[error("task {name} failed")]
    Failed {
        name: &'static str,
        #[source]
        source: BoxError,
    },
    /// The task panicked: a bug.
    #[error("task {name} panicked: {message}")]
    Panicked { name: &'static str, message: String },
    /// The task returned although nobody had asked it to stop.
    #[error("task {name} ended by itself")]
    Ended { name: &'static str },
    /// Some tasks were still running at the end of the grace period and were cut off.
    #[error("{task_count} tasks did not stop within {grace:?}")]
    Late { task_count: usize, grace: Duration },
}

#[derive(Debug)]
struct End {
    name: &'static str,
    how: Result<(), Failure>,
}

enum Failure {
    Error(BoxError),
    Panic(String),
}

impl Tasks {
    /// No tasks yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The signal that [`Tasks::stop`] gives. Every task listens to it, and anyone may give it.
    pub fn signal(&self) -> Stop {
        self.stop.clone()
    }

    /// Starts a task that is to run until it is asked to stop.
    ///
    /// Assumes: a tokio runtime; the task listens to [`Tasks::signal`].
    pub fn spawn<F, E>(&mut self, name: &'static str, task: F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        // Caught here rather than read from the JoinError, which does not know the name.
        let task = AssertUnwindSafe(task.map(|end| end.map_err(Into::into))).catch_unwind();
        self.running.spawn(task.map(move |end| End {
            name,
            how: match end {
                Ok(end) => end.map_err(Failure::Error),
                Err(panic) => Err(Failure::Panic(panic_message(panic.as_ref()))),
            },
        }));
    }

    /// Waits until a task ends without having been asked, or the signal was given.
    ///
    /// Errors: the cause, if a task ended first. Cancel-safe.
    pub async fn run(&mut self) -> Result<(), TaskError> {
        tokio::select! {
            () = self.stop.asked() => Ok(()),
            Some(end) = self.running.join_next() => Err(unasked(end)),
        }
    }

    /// Asks every task to stop and waits for them; those that take longer than `grace` are cut off.
    ///
    /// Errors: the first failure among the tasks, else that some were late.
    pub async fn stop(mut self, grace: Duration) -> Result<(), TaskError> {
        self.stop.ask();
        let mut first = Ok(());
        let drain = async {
            while let Some(end) = self.running.join_next().await {
                first = std::mem::replace(&mut first, Ok(())).and_then(|()| asked(end));
            }
        };
        let in_time = tokio::time::timeout(grace, drain).await.is_ok();
        let task_count = self.running.len();
        self.running.shutdown().await;
        first?;
        if in_time {
            Ok(())
        } else {
            Err(TaskError::Late { task_count, grace })
        }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => error.fmt(f),
            Self::Panic(message) => message.fmt(f),
        }
    }
}

/// The text that a panic was raised with.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
        .to_owned()
}

fn unasked(end: Result<End, tokio::task::JoinError>) -> TaskError {
    let name = end.as_ref().map_or("unknown", |end| end.name);
    asked(end).err().unwrap_or(TaskError::Ended { name })
}

fn asked(end: Result<End, tokio::task::JoinError>) -> Result<(), TaskError> {
    match end {
        Ok(End { how: Ok(()), .. }) => Ok(()),
        Ok(End {
            name,
            how: Err(Failure::Error(source)),
        }) => Err(TaskError::Failed { name, source }),
        Ok(End {
            name,
            how: Err(Failure::Panic(message)),
        }) => Err(TaskError::Panicked { name, message }),
        // Panics are caught inside the task and nobody holds an abort handle: the runtime went away.
        Err(join) => Err(TaskError::Failed {
            name: "unknown",
            source: join.into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use super::{TaskError, Tasks};

    const GRACE: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn stops_tasks_that_listen() {
        let mut tasks = Tasks::new();
        let stop = tasks.signal();
        tasks.spawn("listener", async move {
            stop.asked().await;
            Ok::<(), Infallible>(())
        });
        tasks.stop(GRACE).await.unwrap();
    }

    #[tokio::test]
    async fn names_the_task_that_failed() {
        let mut tasks = Tasks::new();
        tasks.spawn("idle", std::future::pending::<Result<(), Infallible>>());
        tasks.spawn("disk", async { Err::<(), _>("no space") });
        let error = tasks.run().await.unwrap_err();
        assert!(
            matches!(error, TaskError::Failed { name: "disk", .. }),
            "{error}"
        );
    }

    #[tokio::test]
    async fn reports_a_panic_and_an_early_end() {
        let mut tasks = Tasks::new();
        tasks.spawn("bug", async {
            assert!(std::hint::black_box(false), "impossible");
            Ok::<(), Infallible>(())
        });
        let error = tasks.run().await.unwrap_err();
        assert_eq!(error.to_string(), "task bug panicked: impossible");
        tasks.spawn("brief", async { Ok::<(), Infallible>(()) });
        let error = tasks.run().await.unwrap_err();
        assert!(
            matches!(error, TaskError::Ended { name: "brief" }),
            "{error}"
        );
    }

    #[tokio::test]
    async fn cuts_off_tasks_that_do_not_listen() {
        let mut tasks = Tasks::new();
        tasks.spawn("deaf", std::future::pending::<Result<(), Infallible>>());
        let error = tasks.stop(Duration::ZERO).await.unwrap_err();
        assert!(
            matches!(error, TaskError::Late { task_count: 1, .. }),
            "{error}"
        );
    }
}
