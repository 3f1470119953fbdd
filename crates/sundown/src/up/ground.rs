//! The data directory that a control plane stands on: removed or moved, it keeps nothing of what clients are
//! told is stored, and a node would be started at a path that is no longer its own.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use sundown_files::{WatchedDirectory, Whereabouts};
use tokio::io::unix::AsyncFd;

use crate::complaint::Complaint;
use crate::control::Served;

/// How long clients have to hear of the end.
const PARTING_TIME_MAX: Duration = Duration::from_secs(1);

/// The directory of a control plane that has started.
pub(super) enum Ground {
    /// Everything is in memory, or the directory cannot be watched.
    Unwatched,
    Watched(AsyncFd<WatchedDirectory>),
    /// Its path led nowhere when it was to be watched.
    Gone(PathBuf),
}

impl Ground {
    /// Begins to watch; that it cannot be done is a warning.
    pub(super) fn of(data: Option<&Path>) -> Self {
        let Some(data) = data else {
            return Self::Unwatched;
        };
        let state = sundown_disk::state(data);
        match watch(&state) {
            Ok(watched) => Self::Watched(watched),
            // It was there when the control plane began to use it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::Gone(state),
            Err(error) => {
                tracing::warn!(%error, "the removal of the data directory is not noticed");
                Self::Unwatched
            }
        }
    }

    /// Resolves when the path of the data directory leads to it no longer. Cancel-safe.
    pub(super) async fn until_gone(&self) -> Complaint {
        match self {
            Self::Gone(state) => return complaint(state, Whereabouts::Removed),
            Self::Watched(watched) => match gone(watched).await {
                Ok(how) => return complaint(watched.get_ref().path(), how),
                Err(error) => {
                    tracing::warn!(%error, "the removal of the data directory is not noticed");
                }
            },
            Self::Unwatched => {}
        }
        std::future::pending().await
    }
}

fn watch(state: &Path) -> io::Result<AsyncFd<WatchedDirectory>> {
    let watched = WatchedDirectory::open(&state.canonicalize()?)?;
    #[expect(
        deprecated,
        reason = "its successor is unsafe to call, for the sake of types that give away their \
                  descriptor; this one does not"
    )]
    AsyncFd::new(watched)
}

async fn gone(watched: &AsyncFd<WatchedDirectory>) -> io::Result<Whereabouts> {
    loop {
        let found = watched.get_ref().look()?;
        if found != Whereabouts::There {
            return Ok(found);
        }
        watched.readable().await?.clear_ready();
    }
}

fn complaint(state: &Path, how: Whereabouts) -> Complaint {
    Complaint::new("the data directory is gone, and the control plane ends")
        .at(state.display().to_string())
        .because_of(&format!("it {how} while the control plane ran"))
        .help("pods of this directory end as well; a reset removes what is stored in good order")
}

/// Tells clients that this is the end, so that none of them starts another control plane there.
pub(super) async fn part(served: &Served, answering: &mut Pin<&mut impl Future<Output = ()>>) {
    served.is_ending.send_replace(true);
    let mut clients = served.clients.subscribe();
    let all_left = async {
        let _ = clients.wait_for(|count| *count == 0).await;
    };
    let parting = async {
        tokio::select! {
            () = answering => {}
            () = all_left => {}
        }
    };
    // Those that stay find the connection closed.
    let _ = tokio::time::timeout(PARTING_TIME_MAX, parting).await;
}

#[cfg(test)]
mod tests {
    use sundown_testing::within;

    use super::*;

    /// It was a warning that nobody read, and the control plane stayed up.
    #[tokio::test]
    async fn a_directory_that_is_gone_before_it_is_watched_is_noticed() -> anyhow::Result<()> {
        let home = tempfile::tempdir()?;
        let ground = Ground::of(Some(&home.path().join("gone")));
        let told = within("the end of the ground", ground.until_gone()).await?;
        assert!(told.text().contains("the data directory is gone"));
        Ok(())
    }
}
