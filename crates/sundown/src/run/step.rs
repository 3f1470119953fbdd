//! What a run does next, given how far everything is. Pure.

use std::time::Duration;

use super::logs::Reading;
use super::patience::OTHERS_TIME_MAX;

/// How long nothing may come of the logs of a job that has ended. On a machine that does a hundred things
/// at once a log takes seconds to be opened; that nothing comes of any of them for so long does not
/// happen unless somebody is stuck.
const QUIET_TIME_MAX: Duration = Duration::from_secs(10);

/// How long what goes on running is listened to.
const LISTEN_TIME_MAX: Duration = Duration::from_secs(5);

/// How far everything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "observations that stand for themselves"
)]
pub(super) struct Sight {
    /// How long ago the end was seen; None: not yet.
    pub(super) ended: Option<Duration>,
    pub(super) reading: Reading,
    /// Whether the clean-up waits until the logs are read.
    pub(super) is_held: bool,
    /// Whether the policy of the manifest has been carried out as far as it is now.
    pub(super) is_settled: bool,
    /// Whether all that was applied shall go.
    pub(super) removes: bool,
    /// Whether somebody asked to stop.
    pub(super) is_stopping: bool,
    /// The request that is under way.
    pub(super) asks: Option<Errand>,
    /// Whether the deletion was asked for.
    pub(super) is_deleted: bool,
    /// What of the job is still there.
    pub(super) left: Left,
    /// What goes beside the job and is still there.
    pub(super) beside: usize,
    /// Whether the deletion of that was begun.
    pub(super) is_removing: bool,
}

/// What is there of a job that was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Nothing,
    Going,
    /// Only others can let it go, for so long.
    Held(Duration),
}

impl Left {
    /// Whether it keeps what stands beside it no longer.
    fn frees_the_rest(self) -> bool {
        match self {
            Self::Nothing | Self::Held(_) => true,
            Self::Going => false,
        }
    }

    /// Whether it is waited for no longer.
    fn is_over(self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Going => false,
            Self::Held(time) => time >= OTHERS_TIME_MAX,
        }
    }
}

/// What the server is asked for, and may take long to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Errand {
    /// To know that the logs are read.
    Release,
    /// To delete the job.
    Delete,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Wait,
    /// Say which logs are not complete, and wait for them no more.
    GiveUp,
    /// Say that the logs are read.
    Release,
    /// Delete the job with all that it owns.
    Delete,
    /// Begin to delete what stands beside it.
    Remove,
    Finish,
}

/// Decides.
pub(super) fn next(sight: Sight) -> Step {
    let logs = sight.ended.map(|since| logs(sight.reading, since));
    let has_ended = logs == Some(Logs::Done);
    let shall_go = sight.is_stopping || (sight.removes && has_ended);
    match (sight.is_deleted, shall_go) {
        (true, _) if sight.left.is_over() && sight.beside == 0 => Step::Finish,
        (true, _) if sight.left.frees_the_rest() && sight.beside > 0 && !sight.is_removing => {
            Step::Remove
        }
        (false, _) if sight.asks == Some(Errand::Delete) => Step::Wait,
        (false, true) => Step::Delete,
        (false, false) if logs == Some(Logs::InVain) => Step::GiveUp,
        (false, false) if sight.asks == Some(Errand::Release) => Step::Wait,
        (false, false) if has_ended && sight.is_held => Step::Release,
        (false, false) if has_ended && sight.is_settled => Step::Finish,
        (true | false, _) => Step::Wait,
    }
}

/// Whether logs are worth waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Logs {
    Done,
    Come,
    InVain,
}

/// How it stands about the logs so long after the end. As long as something comes there is no bound:
/// what a job wrote has an end.
fn logs(reading: Reading, since_end: Duration) -> Logs {
    match reading {
        Reading::Done => Logs::Done,
        // A silence before the end says nothing.
        Reading::Open { quiet } if quiet.min(since_end) >= QUIET_TIME_MAX => Logs::InVain,
        Reading::Endless if since_end >= LISTEN_TIME_MAX => Logs::Done,
        Reading::Open { .. } | Reading::Endless => Logs::Come,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNNING: Sight = Sight {
        ended: None,
        reading: Reading::Done,
        is_held: false,
        is_settled: true,
        removes: false,
        is_stopping: false,
        asks: None,
        is_deleted: false,
        left: Left::Going,
        beside: 0,
        is_removing: false,
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
        check(ENDED, |it| it.is_settled = false, Step::Wait);
        check(ENDED, |it| it.is_held = true, Step::Release);
        check(RUNNING, |it| it.is_held = true, Step::Wait);
    }

    /// It was waited for nothing else until the server had answered, signals included.
    #[test]
    fn a_request_is_made_once_and_a_deletion_does_not_wait_for_another_one() {
        let releasing = Sight {
            is_held: true,
            asks: Some(Errand::Release),
            ..ENDED
        };
        check(releasing, |_| {}, Step::Wait);
        check(releasing, |it| it.is_stopping = true, Step::Delete);
        check(releasing, |it| it.asks = None, Step::Release);
        let deleting = Sight {
            is_stopping: true,
            asks: Some(Errand::Delete),
            ..ENDED
        };
        check(deleting, |_| {}, Step::Wait);
        check(deleting, |it| it.removes = true, Step::Wait);
    }

    #[test]
    fn logs_are_waited_for_as_long_as_something_comes() {
        const SHORT: Duration = QUIET_TIME_MAX.saturating_sub(Duration::from_millis(1));
        let cases = [
            (Duration::ZERO, SHORT, Step::Wait),
            // 120 pods, and a minute of lines.
            (Duration::from_mins(1), SHORT, Step::Wait),
            (Duration::from_mins(1), QUIET_TIME_MAX, Step::GiveUp),
            // A job that wrote nothing for an hour and then has ended.
            (Duration::ZERO, Duration::from_hours(1), Step::Wait),
            (QUIET_TIME_MAX, Duration::from_hours(1), Step::GiveUp),
        ];
        for (since_end, quiet, expect) in cases {
            let change = |it: &mut Sight| {
                it.ended = Some(since_end);
                it.reading = Reading::Open { quiet };
            };
            for removes in [false, true] {
                let from = Sight { removes, ..ENDED };
                check(from, change, expect);
                check(
                    Sight {
                        is_held: true,
                        ..from
                    },
                    change,
                    expect,
                );
            }
        }
        let open = Reading::Open { quiet: SHORT };
        check(RUNNING, |it| it.reading = open, Step::Wait);
        let in_vain = |it: &mut Sight| {
            it.reading = Reading::Open {
                quiet: QUIET_TIME_MAX,
            };
        };
        check(RUNNING, in_vain, Step::Wait);
    }

    #[test]
    fn what_goes_on_running_is_listened_to_for_a_moment_and_nothing_is_told_as_missing() {
        check(ENDED, |it| it.reading = Reading::Endless, Step::Wait);
        let late = Sight {
            ended: Some(LISTEN_TIME_MAX),
            ..ENDED
        };
        check(late, |it| it.reading = Reading::Endless, Step::Finish);
    }

    #[test]
    fn who_stops_a_run_does_not_wait_for_logs() {
        let change = |it: &mut Sight| {
            it.is_stopping = true;
            it.reading = Reading::Open {
                quiet: Duration::ZERO,
            };
        };
        check(ENDED, change, Step::Delete);
        check(RUNNING, change, Step::Delete);
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
        check(deleted, |it| it.left = Left::Nothing, Step::Finish);
    }

    /// A Service of the file was waited for before it was deleted, without end.
    #[test]
    fn what_stands_beside_the_job_is_deleted_after_it_and_waited_for_then() {
        let deleted = Sight {
            is_deleted: true,
            removes: true,
            beside: 2,
            ..ENDED
        };
        check(deleted, |_| {}, Step::Wait);
        check(deleted, |it| it.left = Left::Nothing, Step::Remove);
        let removing = Sight {
            left: Left::Nothing,
            is_removing: true,
            ..deleted
        };
        check(removing, |_| {}, Step::Wait);
        check(removing, |it| it.beside = 0, Step::Finish);
    }

    /// Neither was ever reached: what stood beside the job was never asked to go, and the run had no end.
    #[test]
    fn a_job_that_others_hold_keeps_nothing_else_and_is_given_up() {
        const LONG: Duration = OTHERS_TIME_MAX;
        const SHORT: Duration = LONG.saturating_sub(Duration::from_millis(1));
        let held = |time| Sight {
            is_deleted: true,
            left: Left::Held(time),
            ..ENDED
        };
        check(held(SHORT), |_| {}, Step::Wait);
        check(held(LONG), |_| {}, Step::Finish);
        check(held(Duration::ZERO), |it| it.beside = 1, Step::Remove);
        let removing = |it: &mut Sight| (it.beside, it.is_removing) = (1, true);
        check(held(LONG), removing, Step::Wait);
        check(held(SHORT), |it| it.is_removing = true, Step::Wait);
        check(held(LONG), |it| it.is_removing = true, Step::Finish);
    }
}
