//! Rules of before of the jobs of Ray: their names, what comes of them, and where that shows.

use sundown_decide::ray_job::Lapse;

use crate::fault::Variant;

/// The name of a rule of before, and what comes of it.
pub(super) fn told(lapse: Lapse) -> (&'static str, &'static str) {
    match lapse {
        Lapse::GivesUpUntried => (
            "gives-up-untried",
            "a job runs on for ever, because its time was over before the stop was tried",
        ),
        Lapse::BeginsBesidePods => (
            "begins-beside-pods",
            "an attempt begins while the pods of the last one still run",
        ),
        Lapse::ObeysFlaws => ("obeys-flaws", "an edit that is refused ends a job"),
        Lapse::SuspendsUnasked => (
            "suspends-unasked",
            "a result is thrown away, and the job runs again",
        ),
        Lapse::ForgetsInteractive => (
            "forgets-interactive",
            "what the user submitted runs on after its RayJob is gone",
        ),
        Lapse::BelievesOneFailure => (
            "believes-one-failure",
            "a job that ended well while the machine slept has failed, by one lost answer",
        ),
        Lapse::BelievesOneSubmission => (
            "believes-one-submission",
            "a job is given up by the first busy answer after a sleep",
        ),
        Lapse::AwaitsSubmitter => (
            "awaits-submitter",
            "a full disk keeps a deadline from being obeyed",
        ),
        Lapse::ServiceHoldsUp => (
            "service-holds-up",
            "the end of a job is seen a minute late, because its service cannot be made",
        ),
        Lapse::TrustsSelector => (
            "trusts-selector",
            "a job rests beside its cluster, because a selector was added",
        ),
        Lapse::LosesGuests => (
            "loses-guests",
            "a job whose selector is taken away runs on while the next attempt begins",
        ),
        Lapse::JudgesMended => (
            "judges-mended",
            "a job that ran is stopped, because it did not begin in time",
        ),
        Lapse::WaitsWithoutCluster => (
            "waits-without-cluster",
            "an interactive job waits for ever for a cluster that is gone",
        ),
        Lapse::ReadsNoName => (
            "reads-no-name",
            "a RayJob whose status was emptied is never let go",
        ),
    }
}

/// The story in which a rule of before shows, and the fault that it takes.
pub(super) fn place(lapse: Lapse) -> (&'static str, Variant) {
    let story = match lapse {
        Lapse::GivesUpUntried => "ray-deleted-away",
        Lapse::BeginsBesidePods => "ray-cluster-deleted",
        Lapse::ObeysFlaws => "ray-suspend-refused",
        Lapse::SuspendsUnasked => "ray-suspended-late",
        Lapse::ForgetsInteractive => "ray-interactive-deleted",
        Lapse::BelievesOneFailure => return ("ray-silent-asleep", Variant::NotSent),
        Lapse::BelievesOneSubmission => return ("ray-busy-asleep", Variant::NotSent),
        Lapse::AwaitsSubmitter => "ray-deadline-full-disk",
        Lapse::ServiceHoldsUp => "ray-without-service",
        Lapse::TrustsSelector => "ray-selects-late",
        Lapse::LosesGuests => "ray-deselected",
        Lapse::JudgesMended => "ray-mended-late",
        Lapse::WaitsWithoutCluster => "ray-interactive-alone",
        Lapse::ReadsNoName => "ray-without-name",
    };
    (story, Variant::CrashBefore)
}
