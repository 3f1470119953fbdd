//! Levels 1 and 2: every effect of a story, with every fault that fits it, each in a future of its
//! own that is lived to the end.

use std::collections::BTreeMap;

use serde::Serialize;
use sundown_model::ObjectKey;

use crate::checks::Violation;
use crate::fault::Variant;
use crate::mutation::Mutation;
use crate::scenario::Scenario;
use crate::world::World;

/// How many findings are kept; one is enough to fail, a few help to understand.
const FOUND_MAX: usize = 10;

/// Of so many lives with Ray one is lived twice.
const TWINS_EVERY: usize = 8;

/// What came of trying everything.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Exploration {
    pub scenarios: usize,
    /// Places at which something can go wrong.
    pub effect_points: usize,
    /// Lives lived to the end.
    pub executions: usize,
    /// Steps over all lives.
    pub steps: u64,
    pub found: Vec<Found>,
}

/// A life that broke an invariant, with what it takes to live it again.
#[derive(Debug, Clone, Serialize)]
pub struct Found {
    pub scenario: String,
    /// None: without any fault.
    pub effect: Option<usize>,
    pub fault: Option<&'static str>,
    pub violations: Vec<Violation>,
    /// After how many executions it was found.
    pub executions: usize,
    /// How many steps that life had.
    pub steps: u64,
}

impl Exploration {
    /// Adds up two explorations.
    pub fn add(&mut self, other: Self) {
        self.scenarios += other.scenarios;
        self.effect_points += other.effect_points;
        let before = self.executions;
        self.executions += other.executions;
        self.steps += other.steps;
        let found = other.found.into_iter().map(|found| Found {
            executions: found.executions + before,
            ..found
        });
        self.found.extend(found);
        self.found.truncate(FOUND_MAX);
    }

    fn judge(&mut self, scenario: &Scenario, world: &World, fault: Option<(usize, Variant)>) {
        self.executions += 1;
        self.steps += world.trace.steps();
        if !world.violations.is_empty() && self.found.len() < FOUND_MAX {
            self.found.push(Found {
                scenario: scenario.name.to_owned(),
                effect: fault.map(|(at, _)| at),
                fault: fault.map(|(_, variant)| variant.name()),
                violations: world.violations.clone(),
                executions: self.executions,
                steps: world.trace.steps(),
            });
        }
    }
}

/// Which faults at which effects are tried.
type Choice<'a> = &'a dyn Fn(usize, Variant) -> bool;

/// Lives a story once as told, and once more for every fault at every effect. With a mutation, it stops
/// when that is found.
pub fn explore(scenario: &Scenario, mutation: Option<Mutation>) -> Exploration {
    explore_some(scenario, mutation, &|_, _| true)
}

/// The same with one fault only.
pub(crate) fn explore_with(scenario: &Scenario, mutation: Mutation, fault: Variant) -> Exploration {
    explore_some(scenario, Some(mutation), &|_, variant| variant == fault)
}

fn explore_some(
    scenario: &Scenario,
    mutation: Option<Mutation>,
    is_chosen: Choice<'_>,
) -> Exploration {
    let mut total = Exploration {
        scenarios: 1,
        ..Exploration::default()
    };
    let mut reference = live(scenario, mutation, None, false);
    if live(scenario, mutation, None, false).trace.hash() != reference.trace.hash() {
        let text = "two runs without faults differ";
        reference.violations.push(Violation::new("D1", text));
    }
    total.judge(scenario, &reference, None);
    if mutation.is_some() && !total.found.is_empty() {
        return total;
    }
    let end = reference.end_state();
    let mut points = 0;
    let mut world = World::new(scenario, mutation);
    world.run(&mut |before, effect| {
        points += 1;
        let at = before.effects + 1;
        for variant in before.faults(effect) {
            let is_enough = mutation.is_some() && !total.found.is_empty();
            if is_enough || !is_chosen(at, variant) {
                continue;
            }
            let live_on = || {
                let mut future = before.clone();
                future.fault = Some((at, variant));
                future.run(&mut |_, _| {});
                future
            };
            let mut future = live_on();
            // Lives with Ray are long: of those one in so many is lived twice.
            let is_doubled =
                !scenario.stage.has_ray() || total.executions.is_multiple_of(TWINS_EVERY);
            if is_doubled && live_on().trace.hash() != future.trace.hash() {
                let text = "the same future was lived in two ways";
                future.violations.push(Violation::new("D1", text));
            }
            if !future.meddled && future.violations.is_empty() && future.end_state() != end {
                let text = difference(&future.end_state(), &end);
                future.violations.push(Violation::new("Q3", text));
            }
            total.judge(scenario, &future, Some((at, variant)));
        }
    });
    total.effect_points += points;
    total
}

/// What one end has and another has not.
fn difference(is: &BTreeMap<ObjectKey, String>, was: &BTreeMap<ObjectKey, String>) -> String {
    let only = |one: &BTreeMap<ObjectKey, String>, other: &BTreeMap<ObjectKey, String>| {
        let mut all = one.clone();
        all.retain(|key, text| other.get(key) != Some(text));
        all
    };
    format!("left {:?} instead of {:?}", only(is, was), only(was, is))
}

/// Lives one life again and tells it line by line.
pub fn rerun(
    scenario: &Scenario,
    mutation: Option<Mutation>,
    fault: Option<(usize, Variant)>,
) -> (Vec<String>, Vec<Violation>) {
    let world = live(scenario, mutation, fault, true);
    (world.trace.lines().to_vec(), world.violations)
}

fn live(
    scenario: &Scenario,
    mutation: Option<Mutation>,
    fault: Option<(usize, Variant)>,
    keep: bool,
) -> World {
    let mut world = World::new(scenario, mutation);
    if keep {
        world.trace.keep();
    }
    world.fault = fault;
    world.run(&mut |_, _| {});
    world
}
