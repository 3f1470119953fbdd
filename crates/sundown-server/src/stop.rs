//! The wish to stop, as a value that everybody who has to hear it holds. Whether all have stopped
//! is known to the owner of the tasks.

use tokio::sync::watch;

/// A signal that is given once and heard by every clone, also by those who listen later.
#[derive(Debug, Clone)]
pub struct Stop(watch::Sender<bool>);

impl Stop {
    /// A signal that was not given yet.
    pub fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Gives the signal. Giving it again changes nothing.
    pub fn ask(&self) {
        self.0.send_replace(true);
    }

    /// Whether the signal was given.
    pub fn is_asked(&self) -> bool {
        *self.0.borrow()
    }

    /// Resolves once the signal is given.
    pub async fn asked(&self) {
        self.0
            .subscribe()
            .wait_for(|asked| *asked)
            .await
            .expect("self holds the sender");
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}
