//! Level 7: random lives. Each seed draws which faults happen and how often, lets everything be
//! late and out of step, then stops the faults and expects everything to come right.

use std::ops::Range;

use fastrand::Rng;
use jiff::SignedDuration;
use serde::Serialize;
use sundown_api::Config;
use sundown_engine::{Effect, Input};

use crate::checks::Violation;
use crate::fault::Variant;
use crate::mutation::Mutation;
use crate::scenario::Scenario;
use crate::workload;
use crate::world::World;

/// How many steps the unsafe part of a life has, at least and at most.
const STEPS: Range<usize> = 100..600;
/// How many findings are kept.
const FOUND_MAX: usize = 10;

/// What came of many seeds.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Swarm {
    pub seeds: u64,
    pub steps: u64,
    pub writes: usize,
    /// Virtual hours lived.
    pub hours: i64,
    pub found: Vec<Seeded>,
}

/// A seed that broke an invariant.
#[derive(Debug, Clone, Serialize)]
pub struct Seeded {
    pub seed: u64,
    pub violations: Vec<Violation>,
    pub steps: u64,
}

/// Lives the lives of these seeds. With a mutation, it stops at the first that is found.
pub fn swarm(seeds: Range<u64>, mutation: Option<Mutation>) -> Swarm {
    let mut total = Swarm::default();
    for seed in seeds {
        let (mut world, hash) = (
            life(seed, mutation, false),
            life(seed, mutation, false).trace.hash(),
        );
        if world.trace.hash() != hash {
            world
                .violations
                .push(Violation::new("D1", "the same seed lived two lives"));
        }
        total.seeds += 1;
        total.steps += world.trace.steps();
        total.writes += world.writes;
        total.hours += world.now.duration_since(World::birth()).as_hours();
        if !world.violations.is_empty() {
            let (violations, steps) = (world.violations, world.trace.steps());
            total.found.push(Seeded {
                seed,
                violations,
                steps,
            });
            if mutation.is_some() || total.found.len() >= FOUND_MAX {
                return total;
            }
        }
    }
    total
}

/// Lives the life of one seed and tells it line by line.
pub fn retell(seed: u64, mutation: Option<Mutation>) -> (Vec<String>, Vec<Violation>) {
    let world = life(seed, mutation, true);
    (world.trace.lines().to_vec(), world.violations)
}

/// What is under way between an operator and its server.
#[derive(Debug, Default)]
struct Air {
    outgoing: Vec<Effect>,
    incoming: Vec<Input>,
}

/// How wild a life is; drawn once per seed.
#[derive(Debug)]
struct Temper {
    /// One in this many effects goes wrong.
    fault_every: Option<u32>,
    /// One in this many steps the operator dies.
    crash_every: Option<u32>,
    /// How often users act, compared with everything else.
    users: u32,
    /// How often lines of watches arrive.
    lines: u32,
}

impl Temper {
    fn draw(rng: &mut Rng) -> Self {
        let mut maybe = |range: Range<u32>| rng.bool().then(|| rng.u32(range));
        let (fault_every, crash_every) = (maybe(3..30), maybe(40..300));
        Self {
            fault_every,
            crash_every,
            users: rng.u32(1..6),
            lines: rng.u32(1..12),
        }
    }
}

fn life(seed: u64, mutation: Option<Mutation>, keep: bool) -> World {
    let mut rng = Rng::with_seed(seed);
    let temper = Temper::draw(&mut rng);
    let mut config = Config::default();
    if rng.bool() {
        // A short memory: watches fall off the history.
        config.history.events_min = rng.usize(4..64);
        config.history.age_max_seconds = 0;
    }
    let mut world = World::with(&Scenario::new("swarm"), mutation, config, seed);
    if keep {
        world.trace.keep();
    }
    world.user(&workload::definition());
    world.started = true;
    let mut air = Air::default();
    for _ in 0..rng.usize(STEPS) {
        turn(&mut world, &mut air, &temper, &mut rng);
        if !world.violations.is_empty() {
            return world;
        }
    }
    // Faults stop. What was under way arrives or is lost with its operator.
    for effect in std::mem::take(&mut air.outgoing) {
        air.incoming.extend(world.execute(&effect, None));
    }
    for input in air.incoming {
        world.take(input);
    }
    world.advance(SignedDuration::from_secs(1_000));
    world.run(&mut |_, _| {});
    world
}

/// One thing happens.
fn turn(world: &mut World, air: &mut Air, temper: &Temper, rng: &mut Rng) {
    if world.operator.is_none() {
        world.connect();
        *air = Air::default();
    }
    if temper
        .crash_every
        .is_some_and(|every| rng.u32(0..every) == 0)
    {
        world.crash();
        return;
    }
    match rng.u32(0..temper.users + temper.lines + 12) {
        0..=3 => {
            let now = world.now;
            let engine = world.operator.as_mut().map(|operator| &mut operator.engine);
            air.outgoing
                .extend(engine.and_then(|engine| engine.next(now)));
        }
        4..=6 if !air.outgoing.is_empty() => {
            let effect = air.outgoing.swap_remove(rng.usize(0..air.outgoing.len()));
            world.effects += 1;
            let faulty = temper
                .fault_every
                .is_some_and(|every| rng.u32(0..every) == 0);
            let fault = if faulty {
                fault(world, &effect, rng)
            } else {
                None
            };
            air.incoming.extend(world.execute(&effect, fault));
            world.after(fault);
        }
        7..=9 if !air.incoming.is_empty() => {
            let input = air.incoming.swap_remove(rng.usize(0..air.incoming.len()));
            world.take(input);
        }
        10 => {
            let seconds = [1, 5, 30, 90, 400][rng.usize(0..5)];
            world.advance(SignedDuration::from_secs(seconds));
        }
        roll if roll >= 12 + temper.lines => {
            let told = workload::act(world, rng);
            world.tell(&told);
        }
        _ => {
            let watches = world
                .operator
                .iter()
                .flat_map(|it| it.watches.keys().copied());
            let watches: Vec<_> = watches.collect();
            if !watches.is_empty() {
                world.deliver(watches[rng.usize(0..watches.len())]);
            }
        }
    }
}

fn fault(world: &World, effect: &Effect, rng: &mut Rng) -> Option<Variant> {
    let fitting: Vec<_> = world.faults(effect);
    (!fitting.is_empty()).then(|| fitting[rng.usize(0..fitting.len())])
}
