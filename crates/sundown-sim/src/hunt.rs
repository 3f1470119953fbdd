//! The hunt for a mutant: where it is known to show first, then everywhere.

use crate::explore::{Exploration, explore, explore_with};
use crate::mutation::Mutation;
use crate::scenarios;
use crate::swarm::{Swarm, swarm};

/// Looks for a mutation where it is known to show, then in every scenario, then in seeds; gives what was
/// found, if so.
pub fn hunt(mutation: Mutation, seeds_max: u64) -> (Exploration, Option<Swarm>) {
    let mut total = Exploration::default();
    let mut all = scenarios::all();
    if let Some((name, fault)) = mutation.place() {
        for scenario in all.iter().filter(|it| it.name == name) {
            total.add(explore_with(scenario, mutation, fault));
        }
        // Stories with Ray are long, and nothing else shows there that does not show elsewhere.
        let stage = all.iter().find(|it| it.name == name).map(|it| it.stage);
        all.retain(|it| Some(it.stage) == stage);
    }
    for scenario in all {
        if !total.found.is_empty() {
            return (total, None);
        }
        total.add(explore(&scenario, Some(mutation)));
    }
    if !total.found.is_empty() {
        return (total, None);
    }
    (total, Some(swarm(0..seeds_max, Some(mutation))))
}
