//! Time as the server sees it, so that a test can jump thirty days. Deadlines of the transport (a
//! handshake, a drain) are not its business: sockets live in real time.

use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::watch;

/// The longest that [`SystemClock`] sleeps at once.
///
/// The sleep is monotonic and stands still while a laptop is suspended or its clock is set; after
/// each step the wall clock is read again. Bookmarks wake watches once a minute anyway, so a
/// longer step would save nothing.
const STEP_MAX: Duration = Duration::from_mins(1);

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

/// A clock that moves only when told to.
#[derive(Debug)]
pub struct ManualClock {
    now: watch::Sender<Timestamp>,
}

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

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self {
            now: watch::Sender::new(now),
        }
    }

    /// Moves the clock forward and wakes everyone whose instant was reached. Stops at the end of time.
    pub fn advance(&self, by: Duration) {
        self.now
            .send_modify(|now| *now = now.checked_add(by).unwrap_or(Timestamp::MAX));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.now.borrow()
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        let mut now = self.now.subscribe();
        Box::pin(async move {
            if now.wait_for(|now| *now >= at).await.is_err() {
                // The clock is gone: its time will never come.
                std::future::pending::<()>().await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;
    use jiff::Timestamp;

    use super::{Clock, ManualClock};

    #[test]
    fn wakes_sleepers_exactly_when_their_instant_is_reached() {
        let clock = ManualClock::new(Timestamp::UNIX_EPOCH);
        let mut due = clock.sleep_until(Timestamp::constant(10, 0));
        clock.advance(Duration::from_secs(9));
        assert_eq!((&mut due).now_or_never(), None);
        clock.advance(Duration::from_secs(1));
        assert_eq!(due.now_or_never(), Some(()));
    }

    #[test]
    fn stands_still_at_the_end_of_time() {
        let clock = ManualClock::new(Timestamp::MAX);
        clock.advance(Duration::from_secs(1));
        assert_eq!(clock.now(), Timestamp::MAX);
    }
}
