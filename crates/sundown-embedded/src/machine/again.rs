//! Work that goes on for ever, and goes on after a panic: a bug in it costs what it was doing, not the
//! control plane.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;

/// How long to wait before what panicked begins again.
const PAUSE: Duration = Duration::from_secs(1);

/// Does something to its end; whenever it panics, it begins again after a pause.
pub(crate) async fn over_panics<T, F>(what: &str, mut begin: impl FnMut() -> F) -> T
where
    F: Future<Output = T>,
{
    loop {
        if let Some(end) = caught(what, begin()).await {
            return end;
        }
    }
}

/// Does something once; None after a panic, and a pause.
pub(crate) async fn caught<T>(what: &str, work: impl Future<Output = T>) -> Option<T> {
    let done = AssertUnwindSafe(work).catch_unwind().await.ok();
    if done.is_none() {
        tracing::error!(what, "panicked, and begins again");
        tokio::time::sleep(PAUSE).await;
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_panics_begins_again() {
        let mut times = 0;
        let end = over_panics("a test", || {
            times += 1;
            let is_first = times == 1;
            async move {
                assert!(!is_first, "injected");
                "done"
            }
        });
        assert_eq!(end.await, "done");
        assert_eq!(times, 2);
    }
}
