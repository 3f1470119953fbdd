//! Named steps, timed, in order; the first failure ends the run.
//!
//! It knows how a gate is reported, not what a gate checks.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// One step of a gate.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) run: fn() -> Result<()>,
}

/// Runs the steps in order, prints each with its duration and a table at the end.
pub(crate) fn run(steps: &[Step]) -> Result<()> {
    let mut durations: Vec<(&str, Duration)> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        println!("\n=== {} ({} of {})", step.name, index + 1, steps.len());
        let started_at = Instant::now();
        let result = (step.run)();
        let duration = started_at.elapsed();
        durations.push((step.name, duration));
        if let Err(error) = result {
            println!("\n{}", table(&durations, Some(step.name)));
            return Err(error).with_context(|| format!("step `{}` failed", step.name));
        }
        println!("=== {} ok, {}", step.name, seconds(duration));
    }
    println!("\n{}", table(&durations, None));
    Ok(())
}

fn table(durations: &[(&str, Duration)], failed: Option<&str>) -> String {
    let mut lines = vec![row("step", "duration")];
    for (name, duration) in durations {
        let mark = if failed == Some(*name) {
            "  FAILED"
        } else {
            ""
        };
        lines.push(row(name, &seconds(*duration)) + mark);
    }
    let total = durations.iter().map(|(_, duration)| *duration).sum();
    lines.push(row("total", &seconds(total)));
    lines.join("\n")
}

fn row(name: &str, duration: &str) -> String {
    format!("{name:<16} {duration:>9}")
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_stops_and_is_named() {
        let steps = [
            Step {
                name: "fine",
                run: || Ok(()),
            },
            Step {
                name: "broken",
                run: || anyhow::bail!("a reason"),
            },
            Step {
                name: "never",
                run: || panic!("must not be reached"),
            },
        ];
        let error = run(&steps).expect_err("the second step fails");
        assert_eq!(format!("{error:#}"), "step `broken` failed: a reason");
    }

    #[test]
    fn the_table_marks_the_failed_step() {
        let durations = [
            ("fmt", Duration::from_millis(1_240)),
            ("tidy", Duration::from_millis(60)),
        ];
        assert_eq!(
            table(&durations, Some("tidy")),
            "step              duration\n\
             fmt                  1.2 s\n\
             tidy                 0.1 s  FAILED\n\
             total                1.3 s"
        );
    }
}
