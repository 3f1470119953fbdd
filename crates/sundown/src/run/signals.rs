//! The signals that stop a run, and whether a person sent them.

use std::io::{self, IsTerminal as _};

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::interrupt::Sender;
use crate::complaint::Complaint;

/// Ctrl-C and the request of a service manager.
#[derive(Debug)]
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    is_attended: bool,
    /// Whether one was sent.
    is_heard: bool,
}

impl Signals {
    /// Somebody can be asked only where a question is seen.
    pub(super) fn listen(is_live: bool) -> Result<Self, Complaint> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Complaint::new("cannot listen for signals").because(&error))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            is_attended: is_live && io::stdin().is_terminal(),
            is_heard: false,
        })
    }

    /// Whether one was sent since the start.
    pub(super) fn is_heard(&self) -> bool {
        self.is_heard
    }

    /// The next one. Cancel-safe.
    pub(super) async fn next(&mut self) -> Sender {
        let sender = tokio::select! {
            _ = self.interrupt.recv() => {
                if self.is_attended { Sender::Person } else { Sender::Process }
            }
            _ = self.terminate.recv() => Sender::Process,
        };
        self.is_heard = true;
        sender
    }
}
