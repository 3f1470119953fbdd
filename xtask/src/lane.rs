//! A table of named things to run, and what to say when a name is not in it.

use anyhow::{Result, bail};

/// A lane of acceptance or a benchmark.
pub(crate) struct Lane {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: fn() -> Result<()>,
}

/// Runs the one lane that the arguments name.
///
/// Errors: no name, an unknown name or more than one; each lists what exists.
pub(crate) fn run(what: &str, lanes: &[Lane], arguments: &[String]) -> Result<()> {
    let [name] = arguments else {
        bail!("name one {what}; {}", existing(lanes));
    };
    match lanes.iter().find(|lane| lane.name == name) {
        Some(lane) => (lane.run)(),
        None => bail!("no {what} is called `{name}`; {}", existing(lanes)),
    }
}

fn existing(lanes: &[Lane]) -> String {
    if lanes.is_empty() {
        return "there are none yet".to_owned();
    }
    let line = |lane: &Lane| format!("\n  {:<12} {}", lane.name, lane.about);
    format!("there are:{}", lanes.iter().map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANES: &[Lane] = &[Lane {
        name: "kill",
        about: "200 rounds",
        run: || Ok(()),
    }];

    #[test]
    fn an_unknown_lane_is_answered_with_the_existing_ones() {
        let error = run("lane", LANES, &["oracel".to_owned()]).expect_err("a typing error");
        assert_eq!(
            error.to_string(),
            "no lane is called `oracel`; there are:\n  kill         200 rounds"
        );
    }

    #[test]
    fn a_missing_name_is_asked_for() {
        let error = run("benchmark", &[], &[]).expect_err("nothing is named");
        assert_eq!(error.to_string(), "name one benchmark; there are none yet");
    }

    #[test]
    fn an_existing_lane_runs() {
        run("lane", LANES, &["kill".to_owned()]).expect("it exists");
    }
}
