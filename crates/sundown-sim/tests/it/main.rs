//! The stories are lived as told; the mutants that every build knows are found.

use sundown_sim::{Mutation, Scenario, Stage, explore, hunt, rerun, scenarios, swarm};

#[test]
fn no_fault_at_any_effect_breaks_an_invariant() {
    let is_short = |it: &Scenario| it.stage != Stage::Ray;
    for scenario in scenarios().into_iter().filter(is_short) {
        let explored = explore(&scenario, None);
        assert!(explored.found.is_empty(), "{:#?}", explored.found.first());
        assert!(explored.effect_points > 0, "{} has effects", scenario.name);
    }
}

/// Every fault at every effect of these is tried by `sundown sim`: their lives are long.
#[test]
fn stories_with_ray_come_to_their_ends() {
    for scenario in scenarios().iter().filter(|it| it.stage == Stage::Ray) {
        let (_, violations) = rerun(scenario, None, None);
        assert!(violations.is_empty(), "{}: {violations:#?}", scenario.name);
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
