//! What Ctrl-C means, the first time and after. Pure: signals and time come from outside.

use std::time::Duration;

/// How long the second Ctrl-C may take to be an answer to the question.
pub(super) const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Where a run stands with regard to being stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Interrupt {
    #[default]
    None,
    /// Asked, so long after the start of the run.
    Asked {
        at: Duration,
    },
    Stopping,
}

/// What is done about a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Say what would happen, and ask.
    Ask,
    /// Delete the job and wait until it is gone.
    Stop,
    /// Say that this is under way already, and that once more ends it.
    Warn,
    /// End at once and say what is left.
    Leave,
}

/// Who sent it matters only in so far as somebody can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    /// Ctrl-C at a terminal.
    Person,
    /// A signal of another process, or nobody is there to answer.
    Process,
}

impl Interrupt {
    /// Takes a signal; `now` counts from the start of the run. `is_going`: what was applied is being
    /// deleted already, so that there is nothing to ask.
    pub(super) fn on_signal(self, sender: Sender, now: Duration, is_going: bool) -> (Self, Act) {
        match (self, sender) {
            (Self::Stopping, _) => (Self::Stopping, Act::Leave),
            (Self::None | Self::Asked { .. }, _) if is_going => (Self::Stopping, Act::Warn),
            (Self::None | Self::Asked { .. }, Sender::Process) => (Self::Stopping, Act::Stop),
            (Self::Asked { at }, Sender::Person) if now.saturating_sub(at) <= ANSWER_TIME_MAX => {
                (Self::Stopping, Act::Stop)
            }
            (Self::None | Self::Asked { .. }, Sender::Person) => {
                (Self::Asked { at: now }, Act::Ask)
            }
        }
    }

    /// Whether the run is being stopped.
    pub(super) fn is_stopping(self) -> bool {
        self == Self::Stopping
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_once_stops_then_and_leaves_at_last() {
        let at = Duration::from_secs;
        let asked = Interrupt::Asked { at: at(5) };
        let cases = [
            (Interrupt::None, Sender::Person, 5, asked, Act::Ask),
            (asked, Sender::Person, 15, Interrupt::Stopping, Act::Stop),
            (
                asked,
                Sender::Person,
                16,
                Interrupt::Asked { at: at(16) },
                Act::Ask,
            ),
            (asked, Sender::Process, 99, Interrupt::Stopping, Act::Stop),
            (
                Interrupt::None,
                Sender::Process,
                5,
                Interrupt::Stopping,
                Act::Stop,
            ),
            (
                Interrupt::Stopping,
                Sender::Person,
                5,
                Interrupt::Stopping,
                Act::Leave,
            ),
            (
                Interrupt::Stopping,
                Sender::Process,
                5,
                Interrupt::Stopping,
                Act::Leave,
            ),
        ];
        for (before, sender, now, after, act) in cases {
            assert_eq!(
                before.on_signal(sender, at(now), false),
                (after, act),
                "{before:?} {now}"
            );
        }
    }

    #[test]
    fn a_second_signal_ends_a_clean_up_that_waits() {
        let now = Duration::from_secs(5);
        for sender in [Sender::Person, Sender::Process] {
            let (after, act) = Interrupt::None.on_signal(sender, now, true);
            assert_eq!((after, act), (Interrupt::Stopping, Act::Warn));
            for next in [Sender::Person, Sender::Process] {
                assert_eq!(after.on_signal(next, now, true).1, Act::Leave);
            }
        }
    }
}
