//! One order for the stages of a run. They are read from objects of several kinds, whose watches tell of one
//! event in any order: a job may be known to run before its workers are known to be ready. What comes
//! too early is held back for a moment; what stays that way is told as it is.

use std::time::Duration;

use super::progress::{Name, Stage, State};

/// How long a stage waits for those before it. Watches are apart by milliseconds; what lasts longer is so, such as a
/// worker that is lost while its job runs.
pub(super) const HOLD_TIME_MAX: Duration = Duration::from_secs(1);

/// The stages as they are told, and whether something was held back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) stages: Vec<Stage>,
    pub(super) is_holding: bool,
}

/// Keeps what was told of a stage before, as long as an earlier one has not come to its end.
pub(super) fn in_order(before: &[Stage], stages: Vec<Stage>, held_for: Duration) -> Told {
    let mut told = Told {
        stages: Vec::with_capacity(stages.len()),
        is_holding: false,
    };
    let mut is_open = false;
    for stage in stages {
        let is_progress = matches!(stage.state, State::Active | State::Done);
        let is_news = is_progress && !before.contains(&stage);
        let is_early = is_news && is_open && held_for < HOLD_TIME_MAX;
        is_open |= match stage.state {
            State::Waiting => true,
            // The pods of a Job are active as long as it runs.
            State::Active => stage.name != Name::Pods,
            State::Stuck | State::Done | State::Failed => false,
        };
        told.is_holding |= is_early;
        told.stages.push(if is_early {
            let last = before.iter().find(|it| it.name == stage.name);
            last.cloned()
                .unwrap_or_else(|| Stage::new(stage.name, State::Waiting, ""))
        } else {
            stage
        });
    }
    told
}

#[cfg(test)]
mod tests {
    use super::super::progress::Name::{Cluster, Environment, Job, Pods};
    use super::*;
    use State::{Active, Done, Failed, Stuck, Waiting};

    fn stages(all: &[(Name, State)]) -> Vec<Stage> {
        let one = |(name, state): &(Name, State)| Stage::new(*name, *state, "");
        all.iter().map(one).collect()
    }

    fn check(before: &[(Name, State)], now: &[(Name, State)], expect: &[(Name, State)]) {
        let told = in_order(&stages(before), stages(now), Duration::ZERO);
        assert_eq!(told.stages, stages(expect));
        assert_eq!(told.is_holding, now != expect);
        let later = in_order(&stages(before), stages(now), HOLD_TIME_MAX);
        assert_eq!(later.stages, stages(now), "what stays so is told");
        assert!(!later.is_holding);
    }

    #[test]
    fn a_stage_is_told_after_those_before_it() {
        let (none, some) = ([], [(Environment, Active), (Job, Waiting)]);
        check(&none, &some, &some);
        let early = [(Environment, Active), (Job, Active)];
        check(&some, &early, &some);
        let both = [(Environment, Done), (Job, Active)];
        check(&some, &both, &both);
        let unknown = [(Environment, Waiting), (Cluster, Waiting), (Job, Waiting)];
        let early = [(Environment, Done), (Cluster, Active), (Job, Done)];
        let told = [(Environment, Done), (Cluster, Active), (Job, Waiting)];
        check(&unknown, &early, &told);
    }

    #[test]
    fn a_job_runs_while_its_pods_do() {
        let before = [(Environment, Done), (Pods, Waiting), (Job, Waiting)];
        let now = [(Environment, Done), (Pods, Active), (Job, Active)];
        check(&before, &now, &now);
    }

    #[test]
    fn trouble_is_told_at_once_and_holds_nothing_back() {
        let before = [(Environment, Active), (Job, Waiting)];
        for state in [Stuck, Failed] {
            let now = [(Environment, Active), (Job, state)];
            check(&before, &now, &now);
            let now = [(Environment, state), (Job, Active)];
            check(&before, &now, &now);
        }
    }

    #[test]
    fn what_was_told_stays_told_when_an_earlier_stage_goes_back() {
        let before = [(Cluster, Done), (Job, Active)];
        let now = [(Cluster, Active), (Job, Active)];
        check(&before, &now, &now);
    }
}
