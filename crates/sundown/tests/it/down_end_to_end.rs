//! What `sundown down` says of what stays, and how `--delete` ends, by the shipped binary.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::Result;
use http::Method;
use serde_json::json;
use sundown_testing::TestBound;

use crate::home::Home;
use crate::process::{Up, call, stderr, stdout, sundown};

/// Its head does not start, which makes it no less a cluster that comes back.
const CLUSTER: &str = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: demo}\nspec:\n  \
    headGroupSpec: {rayStartParams: {}, template: {spec: {terminationGracePeriodSeconds: 1,\n    \
    containers: [{name: h, image: busybox}]}}}\n";

/// Clusters came back without a word. `--delete` waited up to five minutes for each object in silence, and left
/// everything up if one of them did not go.
#[test]
fn down_names_what_comes_back_and_goes_down_though_something_cannot_be_deleted() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let file = home.job("endless", "sleep 1000")?;
    let text = fs::read_to_string(&file)?;
    let text = text.replace("backoffLimit: 0", "backoffLimit: 6").replace(
        "kind: Job\nmetadata: {name: endless}",
        "kind: Job\nmetadata: {name: endless, finalizers: [example.com/hold]}",
    );
    assert!(text.contains("example.com/hold"), "{text}");
    fs::write(&file, format!("{CLUSTER}---\n{text}"))?;
    let mut run = home.begin(&[&file])?;
    run.until_running()?;
    run.signal("-KILL")?;
    assert_eq!(run.code()?, None);

    let said = stdout(&home.call(&["down"])?);
    assert!(
        said.contains("  job/endless -n default  Running\n"),
        "{said}"
    );
    assert!(said.contains("  raycluster/demo -n default\n"), "{said}");

    // Starts a control plane, with which both go on.
    let brief = home.job("brief", "true")?;
    let output = home.run(&[&brief])?;
    assert!(output.status.success(), "{}", stderr(&output));

    let output = home.call(&["down", "--delete"])?;
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{said}{}", stderr(&output));
    assert!(said.contains("raycluster/demo deleted\n"), "{said}");
    let waits = "waiting for job/endless: finalizer example.com/hold is not removed\n";
    assert_eq!(said.matches(waits).count(), 1, "{said}");
    let left =
        "Not deleted:\n  job/endless -n default  finalizer example.com/hold is not removed\n";
    assert!(said.contains(left), "{said}");
    assert!(!said.contains("will be recreated"), "{said}");
    assert!(
        said.contains("the control plane and its pods have stopped"),
        "{said}"
    );
    assert_eq!(home.alive()?, Vec::<String>::new());
    Ok(())
}

/// A control plane without pods, with two jobs that never end.
async fn with_two_jobs(home: &Path) -> Result<Up> {
    let up = Up::start_durable(home, &[])?;
    let client = sundown_driver::connect(Some(Path::new(up.kubeconfig()))).await?;
    for name in ["one", "two"] {
        let pods = json!({"spec": {"restartPolicy": "Never",
            "containers": [{"name": "main", "image": "busybox"}]}});
        let job = json!({"metadata": {"name": name}, "spec": {"template": pods}});
        let request = http::Request::builder()
            .method(Method::POST)
            .uri("/apis/batch/v1/namespaces/default/jobs")
            .header("content-type", "application/json");
        let request = request.body(job.to_string().into_bytes())?;
        client.client.request_text(request).await?;
    }
    Ok(up)
}

/// It ended at the first word that was not read, with success, and everything stayed up.
#[tokio::test(flavor = "multi_thread")]
async fn down_goes_to_its_end_when_its_reader_leaves() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let home = tempfile::tempdir()?;
    let mut up = with_two_jobs(home.path()).await?;
    let mut command = sundown(home.path(), &["down", "--delete"]);
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    drop(child.stdout.take());
    let ended = sundown_testing::end(&mut child, "the end of `sundown down --delete`")?;
    assert!(up.has_ended()?, "the control plane is up: {ended}");
    Ok(())
}

/// An API server that did not answer the first question kept everything up.
#[tokio::test(flavor = "multi_thread")]
async fn down_goes_to_its_end_when_nothing_can_be_listed_or_deleted() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let good = "server: https://127.0.0.1:";
    for (bad, code, why) in [
        ("server: https://127.0.0.1:1/", 1, "cannot be listed"),
        ("server: [", 1, "cannot be listed"),
        (good, 0, "stopped"),
    ] {
        let home = tempfile::tempdir()?;
        let mut up = with_two_jobs(home.path()).await?;
        let kubeconfig = fs::read_to_string(up.kubeconfig())?;
        assert!(kubeconfig.contains(good), "{kubeconfig}");
        fs::write(up.kubeconfig(), kubeconfig.replace(good, bad))?;
        let output = call(home.path(), &["down", "--delete"])?;
        let said = stdout(&output);
        assert!(up.has_ended()?, "{bad}: {said}{}", stderr(&output));
        assert_eq!(output.status.code(), Some(code), "{bad}: {said}");
        assert!(said.contains(why), "{bad}: {said}");
    }
    Ok(())
}
