//! The data directory that a control plane stands on: removed or moved, it keeps nothing of what clients are
//! told is stored, and a node would be started at a path that is no longer its own.

use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use sundown_files::{WatchedDirectory, Whereabouts};
use tokio::io::unix::AsyncFd;

use crate::complaint::Complaint;
use crate::control::Served;

/// How long clients have to hear of the end.
const PARTING_TIME_MAX: Duration = Duration::from_secs(1);

/// The directory, watched. None: everything is in memory, or it cannot be watched.
pub(super) struct Ground(Option<AsyncFd<WatchedDirectory>>);

impl Ground {
    /// Begins to watch; that it cannot be done is a warning.
    pub(super) fn of(data: Option<&Path>) -> Self {
        Self(data.and_then(|data| {
            let watched = watch(&sundown_disk::state(data));
            watched
                .inspect_err(|error| {
                    tracing::warn!(%error, "the removal of the data directory is not noticed");
                })
                .ok()
        }))
    }

    /// Resolves when the path of the data directory leads to it no longer. Cancel-safe.
    pub(super) async fn until_gone(&self) -> Complaint {
        if let Some(watched) = &self.0 {
            match gone(watched).await {
                Ok(how) => return complaint(watched.get_ref().path(), how),
                Err(error) => {
                    tracing::warn!(%error, "the removal of the data directory is not noticed");
                }
            }
        }
        std::future::pending().await
    }
}

fn watch(state: &Path) -> std::io::Result<AsyncFd<WatchedDirectory>> {
    let watched = WatchedDirectory::open(&state.canonicalize()?)?;
    #[expect(
        deprecated,
        reason = "its successor is unsafe to call, for the sake of types that give away their \
                  descriptor; this one does not"
    )]
    AsyncFd::new(watched)
}

async fn gone(watched: &AsyncFd<WatchedDirectory>) -> std::io::Result<Whereabouts> {
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
        .help("pods of this directory end as well; `sundown reset` removes what is stored in good order")
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
