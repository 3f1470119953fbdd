//! Lives in the simulator: every fault at every effect, random lives, known bugs put back.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use sundown_sim::{
    Exploration, Found, Mutation, Scenario, Swarm, Variant, Violation, explore, hunt, invariants,
    rerun, retell, scenarios, swarm,
};

use crate::arguments::{Output, Sim};
use crate::complaint::Complaint;
use crate::output;

/// How many random lives are lived when nobody says how many.
const SEEDS: u64 = 200;
/// How many random lives a known bug may hide in.
const HUNT_SEEDS_MAX: u64 = 2_000;

/// Lives what the arguments ask for.
pub(super) fn run(arguments: &Sim, output: Output) -> Result<ExitCode, Complaint> {
    let mutation = arguments.mutant.as_deref().map(mutation).transpose()?;
    if let Some(seed) = arguments.seed {
        return tell(&retell(seed, mutation), output);
    }
    let chosen = chosen(arguments.scenario.as_deref())?;
    if let (Some(effect), [scenario]) = (arguments.effect, chosen.as_slice()) {
        let fault = fault(arguments.fault.as_deref())?.map(|variant| (effect, variant));
        return tell(&rerun(scenario, mutation, fault), output);
    }
    match mutation {
        Some(mutation) => find(mutation, output),
        None => prove(&chosen, arguments, output),
    }
}

/// Tries everything; any violation is a failure.
fn prove(chosen: &[Scenario], arguments: &Sim, output: Output) -> Result<ExitCode, Complaint> {
    let started_at = Instant::now();
    let mut total = Exploration::default();
    for (scenario, explored) in chosen.iter().zip(explore_all(chosen)) {
        if output == Output::Text {
            output::print(&format!(
                "{:<26} {:>4} effect points  {:>5} executions  {} violations\n",
                scenario.name,
                explored.effect_points,
                explored.executions,
                explored.found.len(),
            ))?;
        }
        total.add(explored);
    }
    let explored_in = started_at.elapsed();
    let seeds = arguments.seeds.unwrap_or(if arguments.scenario.is_some() {
        0
    } else {
        SEEDS
    });
    let started_at = Instant::now();
    let lived = swarm(0..seeds, None);
    report(&total, explored_in, &lived, started_at.elapsed(), output)?;
    let is_sound = total.found.is_empty() && lived.found.is_empty();
    Ok(if is_sound {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Explores stories on all cores; what comes of each is the same on one.
fn explore_all(chosen: &[Scenario]) -> Vec<Exploration> {
    let next = AtomicUsize::new(0);
    let explored: Vec<OnceLock<Exploration>> = chosen.iter().map(|_| OnceLock::new()).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                // The longest stories are the last: whoever is free begins with those.
                while let Some(index) = last(chosen.len(), next.fetch_add(1, Ordering::Relaxed)) {
                    explored[index].get_or_init(|| explore(&chosen[index], None));
                }
            });
        }
    });
    let done = |it: OnceLock<Exploration>| it.into_inner().expect("every story was explored");
    explored.into_iter().map(done).collect()
}

/// The index of something from the end; None when there is no more.
fn last(count: usize, from_end: usize) -> Option<usize> {
    count.checked_sub(from_end + 1)
}

fn report(
    total: &Exploration,
    explored_in: Duration,
    lived: &Swarm,
    lived_in: Duration,
    output: Output,
) -> Result<(), Complaint> {
    let rate = per_second(total.executions, explored_in);
    if output == Output::Json {
        return Ok(output::print_json(&json!({
            "exhaustive": total, "executionsPerSecond": rate, "random": lived,
            "invariants": invariants().len(),
        }))?);
    }
    let mut text = format!(
        "\n{} scenarios, {} effect points, {} executions (each twice), {} steps: {} violations of {} \
         invariants\n{rate} executions/s, {:.1} s\n",
        total.scenarios,
        total.effect_points,
        total.executions,
        total.steps,
        total.found.len(),
        invariants().len(),
        explored_in.as_secs_f64(),
    );
    if lived.seeds > 0 {
        let _ = writeln!(
            text,
            "{} seeds (each twice), {} steps, {} writes, {} virtual hours: {} violations, {:.1} s",
            lived.seeds,
            lived.steps,
            lived.writes,
            lived.hours,
            lived.found.len(),
            lived_in.as_secs_f64(),
        );
    }
    for found in &total.found {
        tell_found(&mut text, found, None);
    }
    for seeded in &lived.found {
        let _ = writeln!(text, "\nseed {} after {} steps", seeded.seed, seeded.steps);
        tell_violations(&mut text, &seeded.violations);
        let _ = writeln!(text, "  again: sundown sim --seed {}", seeded.seed);
    }
    Ok(output::print(&text)?)
}

/// Finds a known bug; not to find it is the failure.
fn find(mutation: Mutation, output: Output) -> Result<ExitCode, Complaint> {
    let expected = mutation.expected();
    let (explored, swarmed) = hunt(mutation, HUNT_SEEDS_MAX);
    let seeded = swarmed.as_ref().and_then(|swarm| swarm.found.first());
    let is_found = !explored.found.is_empty() || seeded.is_some();
    if output == Output::Json {
        output::print_json(&json!({
            "mutant": expected.name, "found": is_found, "exhaustive": explored, "random": swarmed,
        }))?;
    } else {
        let mut text = format!("{}: {}\n", expected.name, expected.story);
        match (explored.found.first(), seeded) {
            (Some(found), _) => tell_found(&mut text, found, Some(expected.name)),
            (None, Some(seeded)) => {
                let _ = writeln!(
                    text,
                    "found by seed {} after {} steps",
                    seeded.seed, seeded.steps
                );
                tell_violations(&mut text, &seeded.violations);
                let name = expected.name;
                let _ = writeln!(
                    text,
                    "  again: sundown sim --mutant '{name}' --seed {}",
                    seeded.seed
                );
            }
            (None, None) => text.push_str("NOT FOUND: the simulator is blind to it\n"),
        }
        output::print(&text)?;
    }
    Ok(if is_found {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn tell_found(text: &mut String, found: &Found, mutant: Option<&str>) {
    let (effect, fault) = (found.effect.unwrap_or(0), found.fault.unwrap_or("none"));
    let _ = writeln!(
        text,
        "\nfound after {} executions, {} steps: scenario {}, effect {effect}, fault {fault}",
        found.executions, found.steps, found.scenario,
    );
    tell_violations(text, &found.violations);
    let mutant = mutant
        .map(|name| format!(" --mutant '{name}'"))
        .unwrap_or_default();
    let _ = writeln!(
        text,
        "  again: sundown sim{mutant} --scenario {} --effect {effect} --fault {fault}",
        found.scenario,
    );
}

fn tell_violations(text: &mut String, violations: &[Violation]) {
    for violation in violations {
        let _ = writeln!(text, "  {}: {}", violation.invariant, violation.text);
    }
}

/// Tells one life line by line; a violation in it is a failure.
fn tell(life: &(Vec<String>, Vec<Violation>), output: Output) -> Result<ExitCode, Complaint> {
    let (lines, violations) = life;
    if output == Output::Json {
        output::print_json(&json!({ "steps": lines, "violations": violations }))?;
    } else {
        let mut text = lines.join("\n");
        let _ = writeln!(
            text,
            "\n\n{} steps, {} violations",
            lines.len(),
            violations.len()
        );
        tell_violations(&mut text, violations);
        output::print(&text)?;
    }
    Ok(if violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn chosen(name: Option<&str>) -> Result<Vec<Scenario>, Complaint> {
    let mut all = scenarios();
    let Some(name) = name else { return Ok(all) };
    let names: Vec<_> = all.iter().map(|scenario| scenario.name).collect();
    all.retain(|scenario| scenario.name == name);
    if all.is_empty() {
        let complaint = Complaint::usage(format!("no scenario is named {name}")).at("--scenario");
        return Err(complaint.help(format!("there are {}", names.join(", "))));
    }
    Ok(all)
}

fn mutation(name: &str) -> Result<Mutation, Complaint> {
    Mutation::named(name).ok_or_else(|| {
        let names: Vec<_> = Mutation::ALL.iter().map(|it| it.expected().name).collect();
        Complaint::usage(format!("no mutant is named {name}"))
            .at("--mutant")
            .help(format!("there are {}", names.join(", ")))
            .help("mutated rules are not in the binary: cargo xtask repro NAME")
    })
}

fn fault(name: Option<&str>) -> Result<Option<Variant>, Complaint> {
    let Some(name) = name.filter(|name| *name != "none") else {
        return Ok(None);
    };
    Variant::all()
        .find(|variant| variant.name() == name)
        .map(Some)
        .ok_or_else(|| {
            let names: Vec<_> = Variant::all().map(Variant::name).collect();
            Complaint::usage(format!("no fault is named {name}"))
                .at("--fault")
                .help(format!("there are {}", names.join(", ")))
        })
}

fn per_second(count: usize, duration: Duration) -> u128 {
    let millis = duration.as_millis().max(1);
    u128::try_from(count)
        .unwrap_or(u128::MAX)
        .saturating_mul(1_000)
        / millis
}
