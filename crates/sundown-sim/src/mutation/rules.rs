//! Rules of before, of the collector, of namespaces, of the TTL and of the engine: their names, what comes of them, and the
//! stories in which they show.

use sundown_decide::{namespace, owner_gc, ttl};

/// A rule of the collector that is wrong.
pub(super) fn collects_told(lapse: owner_gc::Lapse) -> (&'static str, &'static str) {
    match lapse {
        owner_gc::Lapse::UidOnly => (
            "kubernetes#92743",
            "an owner in another namespace counts by its uid alone",
        ),
        owner_gc::Lapse::WaitsInCircles => (
            "waits-in-circles",
            "owners that wait for each other stay for ever",
        ),
        owner_gc::Lapse::TrustsCatalog => (
            "trusts-catalog",
            "an instance goes with an owner that was to orphan it, as its kind was new",
        ),
    }
}

/// A rule of namespaces that is wrong.
pub(super) fn empties_told(lapse: namespace::Lapse) -> (&'static str, &'static str) {
    match lapse {
        namespace::Lapse::AnyOrder => (
            "any-order",
            "what a pod needs goes with the namespace while the pod is still there",
        ),
        namespace::Lapse::TrustsCatalog => (
            "trusts-catalog-of-namespace",
            "a namespace goes while an instance of a new kind is in it",
        ),
        namespace::Lapse::HeadOfLine => (
            "head-of-line",
            "one object that may not be deleted keeps all others of its namespace",
        ),
        namespace::Lapse::TellsAtOnce => (
            "tells-at-once",
            "a namespace that empties is written as often as an object goes",
        ),
    }
}

/// Where it shows.
pub(super) fn empties_story(lapse: namespace::Lapse) -> &'static str {
    match lapse {
        namespace::Lapse::AnyOrder => "namespace-held-and-made-again",
        namespace::Lapse::TrustsCatalog => "namespace-of-a-new-kind",
        namespace::Lapse::HeadOfLine => "namespace-with-something-kept",
        namespace::Lapse::TellsAtOnce => "namespace-bit-by-bit",
    }
}

/// A rule of the TTL that is wrong.
pub(super) fn hurries_told(lapse: ttl::Lapse) -> (&'static str, &'static str) {
    match lapse {
        ttl::Lapse::GuessesFinishTime => (
            "guesses-finish-time",
            "a job whose finish time is missing goes as if it had finished now",
        ),
        ttl::Lapse::ForgetsTtl => ("forgets-ttl", "a job goes as soon as it has finished"),
    }
}

/// Where it shows.
pub(super) fn hurries_story(lapse: ttl::Lapse) -> &'static str {
    match lapse {
        ttl::Lapse::GuessesFinishTime => "ttl-without-a-finish-time",
        ttl::Lapse::ForgetsTtl => "volcano-finishes",
    }
}

/// A rule of the engine that is wrong.
pub(super) fn fails_told(lapse: sundown_engine::Lapse) -> (&'static str, &'static str) {
    match lapse {
        sundown_engine::Lapse::CountsEachEffect => (
            "counts-each-effect",
            "one decision that fails as a whole waits as if it had failed many times",
        ),
        sundown_engine::Lapse::BelievesAnswers => (
            "believes-answers",
            "a change that is accepted and ignored is sent again at once, for ever",
        ),
        sundown_engine::Lapse::WaitsEndRows => (
            "waits-end-rows",
            "a status that is lost each time is sent again each second, for ever",
        ),
    }
}

/// Where it shows.
pub(super) fn fails_story(lapse: sundown_engine::Lapse) -> &'static str {
    match lapse {
        sundown_engine::Lapse::CountsEachEffect => "crowd-in-a-short-trouble",
        sundown_engine::Lapse::BelievesAnswers => "tree-of-ignored-changes",
        sundown_engine::Lapse::WaitsEndRows => "namespace-told-in-vain",
    }
}
