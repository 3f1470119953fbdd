//! Jobs as real processes, run by the shipped binary: results, clean-up, a control plane that is killed
//! meanwhile, and the ways to end it. As root and without; where no kind of namespace may be made,
//! each test says so and is over.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use sundown_testing::{BOUND, Lines, TestBound};

use crate::process::{stderr, stdout, sundown};

/// A home with a data directory; what still runs there is ended with it.
struct Home {
    directory: tempfile::TempDir,
    _bound: TestBound,
}

impl Home {
    /// None: pods cannot run on this machine.
    fn new() -> Result<Option<Self>> {
        let home = Self {
            directory: tempfile::tempdir()?,
            _bound: TestBound::of_this_test(),
        };
        let script = home.job("probe", "exit 0")?;
        let output = home.run(&[&script])?;
        if output.status.success() {
            ensure!(
                stderr(&output).contains("job/probe succeeded"),
                "{}",
                stderr(&output)
            );
            return Ok(Some(home));
        }
        let said = stderr(&output);
        if said.contains("namespaces") {
            eprintln!("skipped, pods cannot run here: {said}");
            return Ok(None);
        }
        bail!("a first job fails: {said}{}", stdout(&output));
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn data(&self) -> PathBuf {
        self.path().join(".local/state/sundown")
    }

    fn call(&self, arguments: &[&str]) -> Result<Output> {
        sundown_testing::output(&mut sundown(self.path(), arguments))
    }

    fn run(&self, arguments: &[&str]) -> Result<Output> {
        let mut all = vec!["run"];
        all.extend(arguments);
        self.call(&all)
    }

    fn begin(&self, arguments: &[&str]) -> Result<Begun> {
        let mut command = sundown(self.path(), &["run", "-o", "json"]);
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn()?;
        let lines = Lines::of(child.stdout.take().context("stdout is piped")?);
        let log = Vec::new();
        Ok(Begun { child, lines, log })
    }

    /// Writes a manifest with a `ConfigMap` and a Job that runs a shell script.
    fn job(&self, name: &str, script: &str) -> Result<String> {
        let path = self.path().join(format!("{name}.yaml"));
        let script = serde_json::to_string(script)?;
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n---\n\
             apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}}}\nspec:\n  backoffLimit: 0\n  \
             template:\n    spec:\n      restartPolicy: Never\n      \
             terminationGracePeriodSeconds: 1\n      containers:\n      \
             - {{name: main, image: busybox, command: [sh, -c, {script}]}}\n"
        );
        fs::write(&path, text)?;
        Ok(path.display().to_string())
    }

    fn status(&self) -> Result<Value> {
        let output = self.call(&["status", "-o", "json"])?;
        serde_json::from_slice(&output.stdout).context(stderr(&output))
    }

    /// Processes and mounts of the node; files of pods that have ended are none.
    fn alive(&self) -> Result<Vec<String>> {
        let left = sundown_node::leftovers(&self.data().join("state"))?;
        let is_alive = |it: &String| it.starts_with("process ") || it.starts_with("mount");
        Ok(left.into_iter().filter(is_alive).collect())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Already down: nothing is left either way.
        let _ = self.call(&["down"]);
    }
}

/// A run under way.
struct Begun {
    child: Child,
    lines: Lines,
    /// What the job wrote, as far as it was read.
    log: Vec<String>,
}

impl Begun {
    /// Reads on until an event is as wanted.
    fn until(&mut self, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        let begun_at = Instant::now();
        let mut last = String::new();
        while begun_at.elapsed() < BOUND {
            let line = self.lines.next(what)?;
            last = line.with_context(|| format!("the run ended before {what}; last was {last}"))?;
            let event: Value = serde_json::from_str(&last)?;
            if event["event"] == "log" {
                self.log.extend(event["line"].as_str().map(str::to_owned));
            }
            if is_wanted(&event) {
                return Ok(event);
            }
        }
        bail!("waited {BOUND:?} for {what}; last was {last}")
    }

    /// A job is told to run only after what it runs in is told to be there.
    fn until_running(&mut self) -> Result<()> {
        let is_done = |it: &Value| it["stage"] == "environment" && it["state"] == "done";
        let runs = |it: &Value| it["stage"] == "job" && it["text"] == "runs";
        let first = self.until("an environment or a job", |it| is_done(it) || runs(it))?;
        ensure!(is_done(&first), "the job runs without an environment");
        self.until("a job that runs", runs)?;
        Ok(())
    }

    fn signal(&self, signal: &str) -> Result<()> {
        kill(signal, &self.child.id().to_string())
    }

    fn code(mut self) -> Result<Option<i32>> {
        while self.lines.next("the end of a run")?.is_some() {}
        let ended = sundown_testing::end(&mut self.child, "the end of a run")?;
        Ok(ended.code())
    }
}

fn kill(signal: &str, pid: &str) -> Result<()> {
    let status = Command::new("kill").args([signal, pid]).status()?;
    ensure!(status.success(), "kill {signal} {pid}");
    Ok(())
}

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
    assert!(stderr(&again).contains("job/good has run already: succeeded"));
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
    run.until("a run that stops", |it| is_note(it, "stopping"))?;
    run.signal("-INT")?;
    let left = run.until("what is left", |it| is_note(it, "left as it is"))?;
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
