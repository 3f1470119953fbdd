//! Time as the engine is told it. Deadlines of the transport are not its business: sockets live in
//! real time.

use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;

/// The longest that [`SystemClock`] sleeps at once.
///
/// The sleep is monotonic and stands still while a laptop is suspended; after each step the wall
/// clock is read again, so that a timer is late by no more than this after a resume.
const STEP_MAX: Duration = Duration::from_secs(30);

/// Where "now" comes from and how to wait for an instant.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The current instant.
    fn now(&self) -> Timestamp;
    /// Resolves once [`Clock::now`] has reached `at`.
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()>;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            // A negative span does not convert: the instant has passed.
            while let Ok(rest) = Duration::try_from(at.duration_since(Timestamp::now())) {
                if rest.is_zero() {
                    break;
                }
                tokio::time::sleep(rest.min(STEP_MAX)).await;
            }
        })
    }
}
