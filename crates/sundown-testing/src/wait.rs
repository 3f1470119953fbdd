//! Waits for futures and conditions, and the bound of a whole test.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::{BOUND, TEST_BOUND};

/// Between two looks at a condition that nothing announces.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits for a future.
///
/// Errors: the bound is reached; the error names what was waited for.
pub async fn within<T>(what: impl Display, future: impl Future<Output = T>) -> Result<T> {
    bounded(BOUND, &what.to_string(), future).await
}

async fn bounded<T>(bound: Duration, what: &str, future: impl Future<Output = T>) -> Result<T> {
    let _under_way = UnderWay::begin(what);
    let waited = tokio::time::timeout(bound, future).await;
    waited.with_context(|| format!("waited {bound:?} for {what}"))
}

/// Waits until a condition holds. Whatever can announce itself is awaited by [`within`] instead.
///
/// Errors: the bound is reached; the error names what was waited for.
pub async fn eventually(what: impl Display, mut holds: impl FnMut() -> bool) -> Result<()> {
    let what = what.to_string();
    let _under_way = UnderWay::begin(&what);
    let begun_at = Instant::now();
    while !holds() {
        ensure!(begun_at.elapsed() < BOUND, "waited {BOUND:?} for {what}");
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Ends the process if the test that holds this is not over in time: a hang in code that no wait
/// surrounds would keep the run waiting for ever.
#[derive(Debug)]
pub struct TestBound {
    /// Dropped at the end of the test, which the watching thread hears.
    _end: mpsc::Sender<()>,
}

impl TestBound {
    /// Bounds the test of this thread, which the harness names after it.
    pub fn of_this_test() -> Self {
        let test = thread::current().name().unwrap_or("a test").to_owned();
        let (end, ended) = mpsc::channel();
        thread::spawn(move || {
            if ended.recv_timeout(TEST_BOUND) == Err(RecvTimeoutError::Timeout) {
                eprintln!("test {test} is not over after {TEST_BOUND:?}; {}", waits());
                std::process::abort();
            }
        });
        Self { _end: end }
    }
}

/// The waits under way in this process, by their number.
static WAITS: Mutex<BTreeMap<u64, String>> = Mutex::new(BTreeMap::new());
static NEXT: AtomicU64 = AtomicU64::new(0);

fn waits() -> String {
    let waits = WAITS.lock().unwrap_or_else(PoisonError::into_inner);
    let all: Vec<&str> = waits.values().map(String::as_str).collect();
    match all.as_slice() {
        [] => "no wait is under way".to_owned(),
        all => format!("waits under way: {}", all.join("; ")),
    }
}

/// A wait that a reader of [`waits`] is told of.
pub(crate) struct UnderWay(u64);

impl UnderWay {
    pub(crate) fn begin(what: &str) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut waits = WAITS.lock().unwrap_or_else(PoisonError::into_inner);
        waits.insert(number, what.to_owned());
        Self(number)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut waits = WAITS.lock().unwrap_or_else(PoisonError::into_inner);
        waits.remove(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_wait_that_reaches_its_bound_says_for_what() {
        let error = bounded(Duration::ZERO, "a letter", std::future::pending::<()>()).await;
        let said = error.expect_err("nothing comes").to_string();
        assert_eq!(said, "waited 0ns for a letter");
    }

    #[tokio::test]
    async fn a_wait_under_way_is_told_and_one_that_is_over_is_not() -> Result<()> {
        let seen = within("the question itself", async { waits() }).await?;
        assert!(seen.contains("the question itself"), "{seen}");
        assert!(!waits().contains("the question itself"));
        Ok(())
    }

    #[tokio::test]
    async fn a_condition_is_looked_at_until_it_holds() -> Result<()> {
        let mut looks = 0;
        eventually("the third look", || {
            looks += 1;
            looks == 3
        })
        .await
    }
}
