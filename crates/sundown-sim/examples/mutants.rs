//! The lab: puts famous bugs back in, one at a time, and shows how each is found.
//!
//! It is an example and not a part of the binary, because mutated rules must never ship.
#![allow(clippy::print_stdout, reason = "the lab reports on stdout")]
#![allow(
    clippy::disallowed_methods,
    reason = "the lab is a program: it has arguments"
)]

use std::process::ExitCode;

use sundown_sim::{Mutation, hunt};

/// How many random lives may be lived before a mutant counts as not found.
const SEEDS_MAX: u64 = 2_000;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let known: Vec<_> = Mutation::ALL.iter().map(|it| it.expected().name).collect();
    if let Some(name) = wanted.iter().find(|name| Mutation::named(name).is_none()) {
        println!(
            "error: no mutant is named {name}; there are {}",
            known.join(", ")
        );
        return ExitCode::from(2);
    }
    let chosen = Mutation::ALL
        .iter()
        .filter(|it| wanted.is_empty() || wanted.iter().any(|name| name == it.expected().name));
    let (mut found, mut all) = (0, 0);
    for mutation in chosen {
        all += 1;
        found += u32::from(show(*mutation));
    }
    println!("{found} of {all} mutants found");
    if found == all {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Hunts one mutant and tells how it went.
fn show(mutation: Mutation) -> bool {
    let expected = mutation.expected();
    let (explored, swarmed) = hunt(mutation, SEEDS_MAX);
    let name = expected.name;
    if let Some(found) = explored.found.first() {
        let broken = &found.violations[0];
        let (at, fault) = (found.effect.unwrap_or(0), found.fault.unwrap_or("none"));
        println!(
            "{name:<20} found after {} executions, {} steps: scenario {}, effect {at}, fault {fault}\n{:<20} {}: {}",
            found.executions, found.steps, found.scenario, "", broken.invariant, broken.text,
        );
        if mutation.is_shipped() {
            println!(
                "{:<20} again: sundown sim --mutant '{name}' --scenario {} --effect {at} --fault {fault}",
                "", found.scenario,
            );
        } else {
            println!("{:<20} again: cargo xtask repro '{name}'", "");
        }
        return true;
    }
    let Some(found) = swarmed.as_ref().and_then(|swarm| swarm.found.first()) else {
        println!("{name:<20} NOT FOUND: {}", expected.story);
        return false;
    };
    let (broken, seeds) = (
        &found.violations[0],
        swarmed.as_ref().map_or(0, |swarm| swarm.seeds),
    );
    println!(
        "{name:<20} found after {} executions and {seeds} seeds, {} steps: seed {}\n{:<20} {}: {}",
        explored.executions, found.steps, found.seed, "", broken.invariant, broken.text,
    );
    true
}
