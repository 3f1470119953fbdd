//! What a new user meets on the first day, by the shipped binary: each test is a fault that was met.

use std::fs;

use anyhow::Result;
use serde_json::Value;

use crate::home::Home;
use crate::process::{stderr, stdout};

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
    with(&file, HELD)?;
    let mut run = home.begin(&["--rm", &file])?;
    run.until("what is waited for", |it| {
        it["stage"] == "clean-up"
            && is_note(
                it,
                "configmap/held waits until its finalizer example.com/hold is removed",
            )
    })?;
    run.signal("-TERM")?;
    run.until("a warning", |it| is_note(it, "is being deleted already"))?;
    run.signal("-TERM")?;
    let left = run.until("what is left", |it| is_note(it, "left as it is"))?;
    assert_eq!(left["text"], "left as it is: configmap/held");
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
        it["stage"] == "cluster" && is_note(it, "waits for raycluster/nowhere")
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
