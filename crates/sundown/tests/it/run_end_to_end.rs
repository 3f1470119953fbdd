//! Jobs as real processes, run by the shipped binary: results, clean-up, a control plane that is killed
//! meanwhile, and the ways to end it. As root and without; where no kind of namespace may be made,
//! each test says so and is over.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::Value;
use sundown_testing::BOUND;

use crate::home::{Home, kill};
use crate::process::{stderr, stdout};

#[test]
fn a_job_gives_its_exit_code_and_its_log() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let good = home.job("good", "echo one; echo two")?;
    let output = home.run(&[&good])?;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("kept: job/good, 1 pod, configmap/good"));
    let again = home.run(&[&good])?;
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("job/good already exists and has finished (succeeded)"));
    let bad = home.job("bad", "exit 7")?;
    let output = home.run(&[&bad])?;
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(
        said.contains("error: job/bad failed: BackoffLimitExceeded"),
        "{said}"
    );
    assert!(
        said.contains("container main ended with exit code 7"),
        "{said}"
    );
    home.job("bad", "exit 8")?;
    let said = stderr(&home.run(&[&bad])?);
    assert!(
        said.contains("job/bad already exists with different content"),
        "{said}"
    );
    assert!(said.contains("containers[0].command"), "{said}");
    Ok(())
}

#[test]
fn rm_leaves_nothing_and_a_reset_neither() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let file = home.job("brief", "true")?;
    let output = home.run(&["--rm", &file])?;
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let removed = "removed: job/brief, 1 pod, configmap/brief (3 objects); nothing is left";
    assert!(said.contains(removed), "{said}");
    let status = home.status()?;
    assert_eq!(status["up"], true);
    assert_eq!(status["runs"], serde_json::json!([]));
    assert!(status["node"]["reason"].is_string(), "{status}");
    let stranger = home.data().join("thesis.txt");
    fs::write(&stranger, "mine")?;
    let output = home.call(&["reset", "--yes"])?;
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}", stderr(&output));
    assert!(
        said.contains("kept, not made by Sundown: thesis.txt"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&stranger)?, "mine");
    assert_eq!(fs::read_dir(home.data())?.count(), 1);
    assert_eq!(home.alive()?, Vec::<String>::new());
    Ok(())
}

#[test]
fn a_run_goes_on_when_its_control_plane_is_killed() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    // The job ends when the file appears, and not before.
    let gate = home.path().join("gate");
    fs::create_dir(&gate)?;
    let file = home.job(
        "survivor",
        "i=0; while [ ! -e /gate/open ]; do i=$((i+1)); echo $i; sleep 0.1; done; exit 5",
    )?;
    let text = fs::read_to_string(&file)?;
    let mount = "volumeMounts: [{name: gate, mountPath: /gate}]}";
    let volumes = format!("volumes: [{{name: gate, hostPath: {{path: {gate:?}}}}}]");
    let text = text.replace("]}\n", &format!("], {mount}\n      {volumes}\n"));
    fs::write(&file, text)?;
    let mut run = home.begin(&[&file])?;
    run.until_running()?;
    let second = home.begin(&[&file])?;
    let pid = home.status()?["pid"].to_string();
    kill("-9", &pid)?;
    let back = run.until("a new control plane", |it| {
        it["event"] == "controlPlane" && it["state"] == "back"
    })?;
    assert_ne!(back["pid"].to_string(), pid);
    let seen = run.log.len();
    run.until("a line of the log", |it| it["event"] == "log")?;
    assert_eq!(run.log.len(), seen + 1);
    fs::write(gate.join("open"), "")?;
    let result = run.until("the result", |it| it["event"] == "result")?;
    assert_eq!(result["exitCode"], 5);
    let all: Vec<String> = (1..=run.log.len()).map(|it| it.to_string()).collect();
    assert_eq!(run.log, all, "each line once, over the restart");
    assert_eq!(run.code()?, Some(5));
    // The one that joined tells the same.
    assert_eq!(second.code()?, Some(5));
    Ok(())
}

/// It was heard only when a control plane was up again.
#[test]
fn a_signal_is_heard_while_the_control_plane_is_away() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let file = home.job("endless", "sleep 1000")?;
    let mut run = home.begin(&[&file])?;
    run.until_running()?;
    let pid = home.status()?["pid"].to_string();
    run.signal("-STOP")?;
    kill("-9", &pid)?;
    let begun_at = Instant::now();
    // Whoever holds the directory keeps the run from starting another one.
    let hold = loop {
        if let Ok(hold) = sundown_disk::Hold::take(&home.data()) {
            break hold;
        }
        ensure!(begun_at.elapsed() < BOUND, "the directory is not free");
    };
    run.signal("-CONT")?;
    run.until("a lost control plane", |it| {
        it["event"] == "controlPlane" && it["state"] == "lost"
    })?;
    run.signal("-INT")?;
    let is_note = |it: &Value, word: &str| it["text"].as_str().is_some_and(|it| it.contains(word));
    run.until("a run that stops", |it| is_note(it, "deleting"))?;
    run.signal("-INT")?;
    let left = run.until("what is left", |it| is_note(it, "not deleted: "))?;
    assert!(is_note(&left, "job/endless"), "{left}");
    assert_eq!(run.code()?, Some(130));
    drop(hold);
    // The one that it had started meanwhile may come up now.
    let begun_at = Instant::now();
    while is_starting(&home.data())? {
        ensure!(begun_at.elapsed() < BOUND, "a control plane stays");
        home.call(&["down"])?;
    }
    Ok(())
}

/// Whether a control plane that a run started is up or on its way.
fn is_starting(data: &Path) -> Result<bool> {
    let data = data.display().to_string();
    for entry in fs::read_dir("/proc")? {
        // A process that has just ended has no command line.
        let line = fs::read(entry?.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        if line.contains("--while-used") && line.contains(&data) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[test]
fn a_signal_deletes_the_job_and_waits_until_it_is_gone() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let file = home.job("endless", "sleep 1000")?;
    let mut run = home.begin(&[&file])?;
    run.until_running()?;
    run.signal("-INT")?;
    run.until("what is removed", |it| it["event"] == "removed")?;
    assert_eq!(run.code()?, Some(130));
    assert_eq!(home.status()?["runs"], serde_json::json!([]));
    Ok(())
}

#[test]
fn down_ends_pods_with_a_control_plane_and_without() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let file = home.job("endless", "sleep 1000")?;
    let mut run = home.begin(&[&file])?;
    run.until_running()?;
    let output = home.call(&["down"])?;
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}", stderr(&output));
    assert!(said.contains("job/endless -n default"), "{said}");
    assert_eq!(home.alive()?, Vec::<String>::new());
    assert_eq!(
        run.code()?,
        Some(1),
        "it is told that the control plane ends"
    );

    let file = home.job("again", "sleep 1000")?;
    let mut run = home.begin(&[&file])?;
    run.until_running()?;
    let status = home.status()?;
    run.child.kill()?;
    run.child.wait()?;
    kill("-9", &status["pid"].to_string())?;
    let begun_at = Instant::now();
    while home.status()?["up"] == true {
        ensure!(begun_at.elapsed() < BOUND, "a killed control plane answers");
    }
    assert!(
        !home.alive()?.is_empty(),
        "the node outlives its control plane"
    );
    let output = home.call(&["down"])?;
    let said = stdout(&output);
    assert!(
        said.contains("no control plane was up; its pods have ended"),
        "{said}"
    );
    assert_eq!(home.alive()?, Vec::<String>::new());
    Ok(())
}
