//! Whether a control plane that was started for a `run` may end: nothing runs, and nobody has been
//! there for a while.

use std::time::Duration;

use sundown_embedded::Local;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::objects;

/// Long enough that the next `run` of a person at work finds it up.
const UNUSED_TIME_MAX: Duration = Duration::from_mins(1);
/// How often it is looked whether something still runs, while nobody is there.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// What is known about the use of a control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Usage {
    clients: usize,
    /// Since the last client went, or since the start.
    unused: Duration,
    /// Pods that wait or run, and jobs that have not come to their end.
    unfinished: usize,
}

/// Whether nobody would miss it.
fn may_end(usage: Usage) -> bool {
    usage.clients == 0 && usage.unfinished == 0 && usage.unused >= UNUSED_TIME_MAX
}

/// Returns when nobody would miss the control plane any more.
pub(crate) async fn until_unused(local: &Local, mut clients: watch::Receiver<usize>) {
    let mut unused_since = Instant::now();
    loop {
        if *clients.borrow_and_update() > 0 {
            // An error means that the server of the socket has ended, and with it everything.
            if clients.wait_for(|count| *count == 0).await.is_err() {
                return;
            }
            unused_since = Instant::now();
        }
        tokio::select! {
            _ = clients.changed() => {}
            () = tokio::time::sleep(LOOK_INTERVAL) => {
                let unused = unused_since.elapsed();
                if unused < UNUSED_TIME_MAX {
                    continue;
                }
                // What cannot be told runs: an end by mistake would be worse than a late one.
                let unfinished = objects::unfinished(&local.client()).await;
                let unfinished = unfinished.map_or(1, |found| found.len());
                let clients = *clients.borrow();
                if may_end(Usage { clients, unused, unfinished }) {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_only_when_nothing_runs_and_nobody_has_been_there_for_a_minute() {
        let usage = |clients, seconds, unfinished| Usage {
            clients,
            unused: Duration::from_secs(seconds),
            unfinished,
        };
        let cases = [
            (usage(0, 60, 0), true),
            (usage(0, 59, 0), false),
            (usage(1, 600, 0), false),
            (usage(0, 600, 1), false),
        ];
        for (usage, expect) in cases {
            assert_eq!(may_end(usage), expect, "{usage:?}");
        }
    }
}
