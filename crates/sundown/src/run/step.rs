//! What a run does next, given how far everything is. Pure.

use std::time::Duration;

/// How long the logs of a job that has ended may take to arrive.
pub(super) const LOG_TIME_MAX: Duration = Duration::from_secs(5);

/// How far everything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sight {
    /// How long ago the end was seen; None: not yet.
    pub(super) ended: Option<Duration>,
    pub(super) are_logs_read: bool,
    /// Whether the policy of the manifest has been carried out as far as it is now.
    pub(super) is_settled: bool,
    /// Whether all that was applied shall go.
    pub(super) removes: bool,
    /// Whether somebody asked to stop.
    pub(super) is_stopping: bool,
    /// Whether the deletion was asked for.
    pub(super) is_deleted: bool,
    /// What of it is still there.
    pub(super) left: usize,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Wait,
    /// Delete the job with all that it owns.
    Delete,
    Finish,
}

/// Decides.
pub(super) fn next(sight: Sight) -> Step {
    let are_logs_done = sight.are_logs_read || sight.ended.is_some_and(|it| it >= LOG_TIME_MAX);
    let has_ended = sight.ended.is_some() && are_logs_done;
    let shall_go = sight.is_stopping || (sight.removes && has_ended);
    match (sight.is_deleted, shall_go) {
        (true, _) if sight.left == 0 => Step::Finish,
        (true, _) => Step::Wait,
        (false, true) => Step::Delete,
        (false, false) if has_ended && sight.is_settled => Step::Finish,
        (false, false) => Step::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_waits_for_logs_and_policy_and_deletes_when_it_shall() {
        let running = Sight {
            ended: None,
            are_logs_read: true,
            is_settled: true,
            removes: false,
            is_stopping: false,
            is_deleted: false,
            left: 3,
        };
        let ended = Sight {
            ended: Some(Duration::ZERO),
            ..running
        };
        let unread = Sight {
            are_logs_read: false,
            ..ended
        };
        let cases = [
            (running, Step::Wait),
            (ended, Step::Finish),
            (unread, Step::Wait),
            (
                Sight {
                    ended: Some(LOG_TIME_MAX),
                    ..unread
                },
                Step::Finish,
            ),
            (
                Sight {
                    is_settled: false,
                    ..ended
                },
                Step::Wait,
            ),
            (
                Sight {
                    removes: true,
                    ..running
                },
                Step::Wait,
            ),
            (
                Sight {
                    removes: true,
                    is_settled: false,
                    ..ended
                },
                Step::Delete,
            ),
            (
                Sight {
                    is_stopping: true,
                    ..running
                },
                Step::Delete,
            ),
            (
                Sight {
                    is_stopping: true,
                    is_deleted: true,
                    ..running
                },
                Step::Wait,
            ),
            (
                Sight {
                    is_stopping: true,
                    is_deleted: true,
                    left: 0,
                    ..running
                },
                Step::Finish,
            ),
        ];
        for (sight, expect) in cases {
            assert_eq!(next(sight), expect, "{sight:?}");
        }
    }
}
