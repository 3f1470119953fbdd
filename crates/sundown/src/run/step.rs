//! What a run does next, given how far everything is. Pure.

use std::time::Duration;

/// How long the logs of a job that has ended may take to arrive.
pub(super) const LOG_TIME_MAX: Duration = Duration::from_secs(5);

/// How far everything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "observations that stand for themselves"
)]
pub(super) struct Sight {
    /// How long ago the end was seen; None: not yet.
    pub(super) ended: Option<Duration>,
    pub(super) are_logs_read: bool,
    /// Whether the clean-up waits until the logs are read.
    pub(super) is_held: bool,
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
    /// Say that the logs are read.
    Release,
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
        (false, true) => Step::Delete,
        (false, false) if has_ended && sight.is_held => Step::Release,
        (false, false) if has_ended && sight.is_settled => Step::Finish,
        (true | false, _) => Step::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNNING: Sight = Sight {
        ended: None,
        are_logs_read: true,
        is_held: false,
        is_settled: true,
        removes: false,
        is_stopping: false,
        is_deleted: false,
        left: 3,
    };
    const ENDED: Sight = Sight {
        ended: Some(Duration::ZERO),
        ..RUNNING
    };

    fn check(from: Sight, change: impl Fn(&mut Sight), expect: Step) {
        let mut sight = from;
        change(&mut sight);
        assert_eq!(next(sight), expect, "{sight:?}");
    }

    #[test]
    fn a_run_waits_for_logs_and_policy() {
        check(RUNNING, |_| {}, Step::Wait);
        check(ENDED, |_| {}, Step::Finish);
        check(ENDED, |it| it.are_logs_read = false, Step::Wait);
        check(ENDED, |it| it.is_settled = false, Step::Wait);
        check(ENDED, |it| it.is_held = true, Step::Release);
        check(RUNNING, |it| it.is_held = true, Step::Wait);
        let late = Sight {
            ended: Some(LOG_TIME_MAX),
            are_logs_read: false,
            ..ENDED
        };
        check(late, |_| {}, Step::Finish);
    }

    #[test]
    fn a_run_deletes_when_it_shall_and_waits_until_all_is_gone() {
        check(RUNNING, |it| it.removes = true, Step::Wait);
        check(ENDED, |it| it.removes = true, Step::Delete);
        let stopping = Sight {
            is_stopping: true,
            ..RUNNING
        };
        check(stopping, |_| {}, Step::Delete);
        check(stopping, |it| it.is_deleted = true, Step::Wait);
        let deleted = Sight {
            is_deleted: true,
            ..stopping
        };
        check(deleted, |it| it.left = 0, Step::Finish);
    }
}
