//! Whether a control plane that was started for a `run` may end: nothing runs, and nobody has been
//! there for a while.

use std::time::Duration;

use sundown_embedded::{Local, Usage};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::objects;

/// Long enough that the next `run` of a person at work finds it up.
const UNUSED_TIME_MAX: Duration = Duration::from_mins(1);
/// How often it is looked whether something still runs, while nobody is there.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// What is known about the use of a control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Idle {
    clients: usize,
    /// Since the last client went, the last request came over HTTPS, or since the start.
    unused: Duration,
    /// Pods that wait or run, and jobs that have not come to their end.
    unfinished: usize,
}

/// Whether nobody would miss it.
fn may_end(idle: Idle) -> bool {
    idle.clients == 0 && idle.unfinished == 0 && idle.unused >= UNUSED_TIME_MAX
}

/// Whether anything was asked between two looks, or is followed right now: kubectl is a client as good as `run`.
fn is_used(before: Usage, now: Usage) -> bool {
    now.is_followed || now.requests != before.requests
}

/// Returns when nobody would miss the control plane any more.
pub(crate) async fn until_unused(local: &Local, mut clients: watch::Receiver<usize>) {
    let mut unused_since = Instant::now();
    let mut before = local.usage();
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
                let now = local.usage();
                if is_used(before, now) {
                    unused_since = Instant::now();
                }
                before = now;
                let unused = unused_since.elapsed();
                if unused < UNUSED_TIME_MAX {
                    continue;
                }
                // What cannot be told runs: an end by mistake would be worse than a late one.
                let unfinished = objects::unfinished(&local.client()).await;
                let unfinished = unfinished.map_or(1, |found| found.len());
                let clients = *clients.borrow();
                if may_end(Idle { clients, unused, unfinished }) {
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
        let idle = |clients, seconds, unfinished| Idle {
            clients,
            unused: Duration::from_secs(seconds),
            unfinished,
        };
        let cases = [
            (idle(0, 60, 0), true),
            (idle(0, 59, 0), false),
            (idle(1, 600, 0), false),
            (idle(0, 600, 1), false),
        ];
        for (idle, expect) in cases {
            assert_eq!(may_end(idle), expect, "{idle:?}");
        }
    }

    /// kubectl was not seen, and lost its server a minute after the last `run`.
    #[test]
    fn requests_and_whoever_follows_something_are_a_use() {
        let usage = |requests, is_followed| Usage {
            requests,
            is_followed,
        };
        assert!(!is_used(usage(3, false), usage(3, false)));
        assert!(is_used(usage(3, false), usage(4, false)));
        assert!(is_used(usage(3, true), usage(3, true)));
        assert!(!is_used(usage(3, true), usage(3, false)));
    }
}
