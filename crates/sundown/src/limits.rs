//! What the process of a control plane may use, and what becomes of its memory if it dies.

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};

/// More than a control plane uses: it holds at most a few thousand connections. Programs that close all
/// descriptors one by one are slow above it.
const DESCRIPTOR_COUNT_MAX: u64 = 65_536;

/// Takes as many descriptors as it may, because the usual soft limit is made for programs that use `select`;
/// and keeps keys and tokens out of core dumps and away from debuggers of the same user. What is started
/// from here is not affected by the latter: a new program can be dumped again.
pub(crate) fn set() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: descriptor_limit(limit.current, limit.maximum),
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "raise the limit of descriptors");
    }
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "forbid core dumps");
    }
}

/// The soft limit that is taken, of soft and hard limit; None: no limit.
fn descriptor_limit(soft: Option<u64>, hard: Option<u64>) -> Option<u64> {
    let wanted = hard.map_or(DESCRIPTOR_COUNT_MAX, |hard| hard.min(DESCRIPTOR_COUNT_MAX));
    soft.map(|soft| soft.max(wanted))
}

#[cfg(test)]
mod tests {
    use super::{DESCRIPTOR_COUNT_MAX, descriptor_limit};

    #[test]
    fn the_soft_limit_of_descriptors_goes_up_to_the_hard_one_within_reason() {
        let many = Some(DESCRIPTOR_COUNT_MAX);
        for (soft, hard, expect) in [
            (Some(1024), Some(4096), Some(4096)),
            (Some(1024), Some(524_288), many),
            (Some(1024), None, many),
            (Some(1_000_000), Some(1_000_000), Some(1_000_000)),
            (None, None, None),
        ] {
            assert_eq!(descriptor_limit(soft, hard), expect, "{soft:?} {hard:?}");
        }
    }
}
