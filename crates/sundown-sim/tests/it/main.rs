//! The stories are lived as told; the mutants that every build knows are found.

use sundown_sim::{Mutation, explore, hunt, scenarios, swarm};

#[test]
fn no_fault_at_any_effect_breaks_an_invariant() {
    for scenario in scenarios() {
        let explored = explore(&scenario, None);
        assert!(explored.found.is_empty(), "{:#?}", explored.found.first());
        assert!(explored.effect_points > 0, "{} has effects", scenario.name);
    }
}

#[test]
fn random_lives_come_right() {
    let lived = swarm(0..40, None);
    assert!(lived.found.is_empty(), "{:#?}", lived.found.first());
}

#[test]
fn every_mutant_is_found() {
    for mutation in Mutation::ALL {
        let (explored, swarmed) = hunt(*mutation, 200);
        let by_seed = swarmed.is_some_and(|swarm| !swarm.found.is_empty());
        assert!(
            !explored.found.is_empty() || by_seed,
            "{} was not found",
            mutation.expected().name
        );
    }
}
