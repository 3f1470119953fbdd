//! `sundown explain` asks those who decide: the controllers of the control plane that is up, with what the node
//! told them.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sundown_testing::eventually;

use crate::plane::{PODS, Plane, a_pod};
use crate::process::{call, stderr, stdout};

const RAY_JOBS: &str = "/apis/ray.io/v1/namespaces/default/rayjobs";

/// What is said of an object as soon as it says this.
async fn until_it_says(home: &Path, arguments: &[&str], wanted: &str) -> Result<String> {
    let mut all = vec!["explain"];
    all.extend(arguments);
    let what = format!("`sundown {}` says {wanted:?}", all.join(" "));
    let mut said = String::new();
    let told = eventually(what, || match call(home, &all) {
        Ok(output) => {
            said = stdout(&output) + &stderr(&output);
            said.contains(wanted)
        }
        Err(error) => {
            said = error.to_string();
            false
        }
    });
    told.await.with_context(|| format!("it said: {said}"))?;
    Ok(said)
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_asks_the_controllers_that_run() -> Result<()> {
    let home = tempfile::tempdir()?;
    let plane = Plane::start(home.path()).await?;

    let mut big = a_pod("big", "busybox", &["true"]);
    big["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": "10000" } });
    plane.send("POST", PODS, &big).await?;
    let said = until_it_says(home.path(), &["pods/big"], "Insufficient cpu").await?;
    assert!(said.contains("schedule: "), "{said}");

    let mut held = a_pod("held", "busybox", &["true"]);
    held["metadata"]["finalizers"] = json!(["example.com/mine"]);
    plane.send("POST", PODS, &held).await?;
    let path = format!("{PODS}/held");
    plane.send("DELETE", &path, &Value::Null).await?;
    let finalizer = "blocked by   finalizer example.com/mine on pods/default/held";
    let said = until_it_says(home.path(), &["pods/held"], finalizer).await?;
    let stuck = said.find("blocked by").unwrap_or(usize::MAX);
    assert!(said.find("owner_gc").unwrap_or(0) < stuck, "{said}");

    let job = json!({
        "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": { "name": "rests" },
        "spec": {
            "suspend": true, "entrypoint": "true", "shutdownAfterJobFinishes": true,
            "rayClusterSpec": { "headGroupSpec": {
                "rayStartParams": {},
                "template": { "spec": { "containers": [{ "name": "head", "image": "rayproject/ray:2.52.0" }] } },
            } },
        },
    });
    plane.send("POST", RAY_JOBS, &job).await?;
    until_it_says(home.path(), &["rayjobs/rests"], "ray_job: ").await?;

    // Named by its kubeconfig it is the same control plane, which is asked by its socket.
    let named = ["pods/big", "--kubeconfig", plane.up.kubeconfig()];
    until_it_says(home.path(), &named, "Insufficient cpu").await?;

    let missing = stderr(&call(home.path(), &["explain", "pods/none"])?);
    let hint = format!("kubectl --kubeconfig {} get", plane.up.kubeconfig());
    assert!(missing.contains(&hint), "{hint} in {missing}");

    let json = call(home.path(), &["explain", "pods/held", "-o", "json"])?;
    let json: Value = serde_json::from_slice(&json.stdout)?;
    let blocker = &json["explanations"][0]["blockers"][0];
    assert_eq!(blocker["finalizer"], "example.com/mine", "{json}");

    let release = json!({ "metadata": { "finalizers": null } });
    plane.send("PATCH", &path, &release).await?;
    plane.end().await
}
