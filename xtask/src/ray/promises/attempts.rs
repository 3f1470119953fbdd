//! The user deletes the cluster under a running job, and its head takes its time: the next attempt begins only
//! when nothing of the last one is left.

use anyhow::{Result, ensure};

use super::super::home::{Home, until};
use super::{Counts, STATE};

pub(super) fn all(home: &mut Home) -> Result<()> {
    let counts = Counts::with(
        home,
        "attempts",
        &[("attempt.py", include_str!("attempt.py"))],
    )?;
    home.create("attempts", &counts.manifest(include_str!("attempts.yaml")))?;
    counts.await_word("runs")?;
    home.kubectl(&["delete", "rayclusters", "--all", "--wait=false"])?;
    until("the second attempt begins", || {
        home.look();
        Ok(counts.read("runs").lines().count() > 1)
    })?;
    counts.say_enough()?;
    home.until_told("rayjob/attempts", STATE, "Complete SUCCEEDED")?;
    let runs = counts.read("runs");
    let runs: Vec<&str> = runs.lines().collect();
    ensure!(
        runs == ["begun", "begun", "ended"],
        "the job noted {runs:?}"
    );
    println!("the job noted {runs:?}");
    home.kubectl(&["delete", "rayjob/attempts", "--timeout=120s"])?;
    Ok(())
}
