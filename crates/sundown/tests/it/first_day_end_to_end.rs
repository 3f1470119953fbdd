//! What a new user meets on the first day, by the shipped binary: each test is a fault that was met.

use std::fs;
use std::process::{ChildStdout, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use sundown_testing::BOUND;

use crate::home::{Home, kill};
use crate::plane::PAUSE;
use crate::process::{stderr, stdout, sundown};

const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n\
                       spec: {selector: {app: web}, ports: [{port: 80}]}\n";
const HELD: &str = "apiVersion: v1\nkind: ConfigMap\n\
                    metadata: {name: held, finalizers: [example.com/hold]}\n";

fn with(file: &str, document: &str) -> Result<()> {
    let text = fs::read_to_string(file)?;
    Ok(fs::write(file, format!("{document}---\n{text}"))?)
}

fn is_note(event: &Value, word: &str) -> bool {
    event["text"].as_str().is_some_and(|it| it.contains(word))
}

/// It waited for the Service without end, and counted it twice.
#[test]
fn rm_ends_when_the_file_holds_a_service() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let file = home.job("brief", "true")?;
    with(&file, SERVICE)?;
    let said = stderr(&home.run(&["--rm", &file])?);
    let removed =
        "removed: job/brief, 1 pod, configmap/brief, service/web (4 objects); nothing is left";
    assert!(said.contains(removed), "{said}");
    Ok(())
}

/// A clean-up that waited said nothing about it, and did not end by SIGTERM.
#[test]
fn a_clean_up_that_waits_says_for_what_and_a_second_signal_ends_it() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let file = home.job("brief", "true")?;
    // The Service goes last of all, and does not wait for what is held.
    with(&file, HELD)?;
    with(&file, SERVICE)?;
    let mut run = home.begin(&["--rm", &file])?;
    run.until("what is waited for", |it| {
        it["stage"] == "clean-up"
            && is_note(
                it,
                "waiting for finalizer example.com/hold of configmap/held to be removed",
            )
    })?;
    run.signal("-TERM")?;
    run.until("a warning", |it| is_note(it, "already deleting"))?;
    run.signal("-TERM")?;
    let left = run.until("what is left", |it| is_note(it, "not deleted: "))?;
    assert_eq!(left["text"], "not deleted: configmap/held");
    assert_eq!(run.code()?, Some(130));
    Ok(())
}

/// It said that nothing is left.
#[test]
fn who_stops_a_run_is_told_what_stays_of_the_file() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let file = home.job("endless", "sleep 1000")?;
    with(&file, SERVICE)?;
    let mut run = home.begin(&[&file])?;
    run.until_running()?;
    run.signal("-INT")?;
    let removed = run.until("what is removed", |it| it["event"] == "removed")?;
    assert_eq!(removed["objects"][0], "job/endless");
    let kept = run.until("what is kept", |it| it["event"] == "kept")?;
    let expect = serde_json::json!(["service/web", "configmap/endless"]);
    assert_eq!(kept["objects"], expect);
    let how = kept["remove"].as_str().unwrap_or_default();
    assert!(
        how.ends_with("delete -n default service/web configmap/endless"),
        "{how}"
    );
    assert_eq!(run.code()?, Some(130));
    Ok(())
}

const CLUSTER: &str = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: bad}\nspec:\n  \
    headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: h, image: busybox}]}}}\n  \
    workerGroupSpecs: [{groupName: g, minReplicas: 2, maxReplicas: 1, rayStartParams: {},\n    \
    template: {spec: {containers: [{name: w, image: busybox}]}}}]\n";

const SELECTS: &str = "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: selects}\n\
                       spec: {entrypoint: 'true', clusterSelector: {ray.io/cluster: nowhere}}\n";

/// It was waited for without end, and nothing told why.
#[test]
fn a_cluster_that_is_invalid_ends_a_run() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let file = home.path().join("cluster.yaml");
    fs::write(&file, CLUSTER)?;
    let output = home.run(&[&file.display().to_string()])?;
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let why = "worker group g has minReplicas 2 greater than maxReplicas 1";
    assert!(said.contains(&format!("cluster: failed: {why}")), "{said}");
    Ok(())
}

/// Nothing was shown.
#[test]
fn a_job_whose_cluster_is_not_there_says_so() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let file = home.path().join("selects.yaml");
    fs::write(&file, SELECTS)?;
    let mut run = home.begin(&[&file.display().to_string()])?;
    run.until("the cluster that is missing", |it| {
        it["stage"] == "cluster"
            && is_note(it, "raycluster/nowhere (from clusterSelector) not found")
    })?;
    run.signal("-INT")?;
    assert_eq!(run.code()?, Some(130));
    Ok(())
}

/// An octal was sent as a text.
#[test]
fn a_file_is_read_as_kubectl_reads_it() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let file = home.job("octal", "stat -Lc %a /c/run.sh")?;
    let text = fs::read_to_string(&file)?;
    let text = text.replace(
        "]}\n",
        "], volumeMounts: [{name: c, mountPath: /c}]}\n      volumes: \
        [{name: c, configMap: {name: octal, defaultMode: 0777}}]\n",
    );
    let text = text.replacen(
        "metadata: {name: octal}\n",
        "metadata: {name: octal}\ndata: {run.sh: 'true'}\n",
        1,
    );
    fs::write(&file, text)?;
    let output = home.run(&["--rm", &file])?;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "777\n");
    Ok(())
}

/// The object that was held hid the result, and what would have gone after it stayed without a word.
#[test]
fn what_cannot_be_deleted_hides_neither_the_result_nor_the_rest() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let file = home.job("fails", "exit 3")?;
    with(&file, HELD)?;
    with(&file, SERVICE)?;
    let output = home.run(&["--rm", &file])?;
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("error: job/fails failed"), "{said}");
    let removed = "removed: job/fails, 1 pod, configmap/fails, service/web (4 objects)\n";
    assert!(said.contains(removed), "{said}");
    let kept = said.lines().find(|it| it.starts_with("kept: "));
    let kept = kept.unwrap_or_default();
    assert!(
        kept.starts_with("kept: configmap/held; to remove: kubectl --kubeconfig "),
        "{said}"
    );
    assert!(kept.ends_with("delete -n default configmap/held"), "{said}");
    Ok(())
}

/// Its deletion was waited for, and no signal was read meanwhile.
#[test]
fn a_signal_is_heard_while_the_control_plane_hangs() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let file = home.job("endless", "sleep 1000")?;
    let mut run = home.begin(&[&file])?;
    run.until_running()?;
    let plane = Stopped::new(home.status()?["pid"].to_string())?;
    run.signal("-TERM")?;
    run.until("a run that stops", |it| is_note(it, "deleting job/endless"))?;
    run.signal("-TERM")?;
    let left = run.until("what is left", |it| is_note(it, "not deleted: "))?;
    assert!(is_note(&left, "job/endless"), "{left}");
    assert_eq!(run.code()?, Some(130));
    drop(plane);
    Ok(())
}

/// A process that is stopped as long as this lives.
struct Stopped(String);

impl Stopped {
    fn new(pid: String) -> Result<Self> {
        kill("-STOP", &pid)?;
        Ok(Self(pid))
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // It has ended meanwhile, or is continued.
        let _ = kill("-CONT", &self.0);
    }
}

/// A job that writes without end.
const NOISY: &str = "while :; do echo a line that is written again and again; done";

/// The run waited in a write, and heard nothing. Then it heard, and its last words were lost behind that write.
#[test]
fn a_signal_is_heard_while_nobody_reads() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let file = home.job("noisy", NOISY)?;
    let said = home.path().join("said");
    let mut command = sundown(home.path(), &["run", "--rm", &file]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(fs::File::create(&said)?)
        .spawn()?;
    let pipe = child.stdout.take().context("stdout is piped")?;
    until_full(&pipe)?;
    kill("-TERM", &child.id().to_string())?;
    let ended = sundown_testing::end(&mut child, "the end of a run that nobody reads")?;
    assert_eq!(ended.code(), Some(130));
    drop(pipe);
    let said = fs::read_to_string(&said)?;
    assert!(said.contains("deleting job/noisy"), "{said}");
    assert!(
        said.contains("removed: job/noisy, 1 pod, configmap/noisy"),
        "{said}"
    );
    assert_eq!(home.status()?["runs"], serde_json::json!([]));
    Ok(())
}

/// Waits until a pipe takes nothing more: two looks show the same, and more than half of what it can hold.
fn until_full(pipe: &ChildStdout) -> Result<()> {
    const HALF: u64 = 32 * 1024;
    let begun_at = Instant::now();
    let mut before = 0;
    loop {
        let held = rustix::io::ioctl_fionread(pipe)?;
        if held > HALF && held == before {
            return Ok(());
        }
        before = held;
        ensure!(begun_at.elapsed() < BOUND, "the pipe holds {held}");
        std::thread::sleep(PAUSE);
    }
}

/// It ended with success as soon as its reader had left, while the job ran.
#[test]
fn a_reader_that_leaves_does_not_end_the_run() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let file = home.job(
        "loud",
        "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo $i; done; exit 4",
    )?;
    let said = home.path().join("said");
    let mut command = sundown(home.path(), &["run", &file]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(fs::File::create(&said)?)
        .spawn()?;
    drop(child.stdout.take());
    let ended = sundown_testing::end(&mut child, "the end of a run without a reader")?;
    let said = fs::read_to_string(&said)?;
    assert_eq!(ended.code(), Some(4), "{said}");
    assert!(
        said.contains("standard output was closed by its reader"),
        "{said}"
    );
    assert!(said.contains("error: job/loud failed"), "{said}");
    Ok(())
}

/// Of two runs that share a `ConfigMap`, the first to end deleted it under the other.
#[test]
fn rm_keeps_what_was_there_before() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let service = home.path().join("service.yaml");
    fs::write(&service, SERVICE)?;
    let output = home.run(&[&service.display().to_string()])?;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let file = home.job("brief", "true")?;
    with(&file, SERVICE)?;
    let said = stderr(&home.run(&["--rm", &file])?);
    let removed = "removed: job/brief, 1 pod, configmap/brief (3 objects)\nkept: service/web\n";
    assert!(said.contains(removed), "{said}");
    Ok(())
}

/// The job was told to stay, with a directory that was gone.
#[test]
fn a_run_whose_data_directory_is_gone_says_so() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let file = home.job("endless", "sleep 1000")?;
    let said = home.path().join("said");
    let mut run = home.begin_saying(&[&file], fs::File::create(&said)?.into())?;
    run.until_running()?;
    fs::rename(home.data(), home.path().join("moved"))?;
    assert_eq!(run.code()?, Some(1));
    let said = fs::read_to_string(&said)?;
    assert!(said.contains("the data directory was removed"), "{said}");
    assert!(!said.contains("is kept"), "{said}");
    Ok(())
}
