//! Manifests that once ended the control plane, or held it for minutes, at each start anew: each is
//! refused by name or waits with a reason, others go on, a killed control plane comes up again, and
//! everything can be deleted.

use std::fs;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::plane::{PODS, Plane};
use crate::process::{stderr, sundown};

const EVENTS: &str = "/api/v1/namespaces/default/events";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Whether pods can run on this machine.
fn pods_can_run() -> Result<bool> {
    let home = tempfile::tempdir()?;
    let file = home.path().join("probe.yaml");
    fs::write(
        &file,
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: probe}\nspec:\n  backoffLimit: 0\n  \
         template:\n    spec:\n      restartPolicy: Never\n      containers:\n      \
         - {name: main, image: busybox, command: [\"true\"]}\n",
    )?;
    let file = file.display().to_string();
    let output = sundown_testing::output(&mut sundown(home.path(), &["run", &file]))?;
    let ended = sundown_testing::output(&mut sundown(home.path(), &["down"]))?;
    if output.status.success() {
        ensure!(ended.status.success(), "{}", stderr(&ended));
        return Ok(true);
    }
    let said = stderr(&output);
    if said.contains("namespaces") {
        eprintln!("skipped, pods cannot run here: {said}");
        return Ok(false);
    }
    bail!("a first job fails: {said}");
}

/// What these tests ask of a control plane beside what all do.
impl Plane {
    async fn create(&self, pod: &Value) -> Result<()> {
        self.send("POST", PODS, pod).await.map(drop)
    }

    /// Waits until the container of a pod says why it waits.
    async fn waits(&self, name: &str, reasons: &[&str], message: &str) -> Result<()> {
        let what = format!("{name} to wait because of {message:?}");
        let path = format!("{PODS}/{name}");
        self.until_object(&path, &what, |pod| {
            let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
            let said = waiting["message"].as_str().unwrap_or_default();
            reasons.iter().any(|it| waiting["reason"] == *it) && said.contains(message)
        })
        .await
    }

    /// Waits until an Event about a pod says something.
    async fn is_told(&self, name: &str, message: &str) -> Result<()> {
        let what = format!("an Event about {name} that says {message:?}");
        self.until_object(EVENTS, &what, |events| {
            let all = events["items"].as_array().into_iter().flatten();
            let mut own = all.filter(|it| it["involvedObject"]["name"] == name);
            own.any(|it| {
                it["message"]
                    .as_str()
                    .is_some_and(|it| it.contains(message))
            })
        })
        .await
    }

    /// A pod that asks for nothing strange runs to its end.
    async fn works(&self, name: &str) -> Result<()> {
        self.create(&pod(name, "busybox", json!({ "command": ["true"] })))
            .await?;
        let path = format!("{PODS}/{name}");
        let has_ended = |pod: &Value| pod["status"]["phase"] == "Succeeded";
        self.until_object(&path, &format!("{name} to end well"), has_ended)
            .await
    }

    async fn remove_all(&self) -> Result<()> {
        for path in [PODS, JOBS, CONFIG_MAPS] {
            self.send("DELETE", path, &Value::Null).await?;
        }
        for path in [PODS, JOBS] {
            self.until_empty(path).await?;
        }
        Ok(())
    }

    /// What each of the pods waits for, or that it does not.
    async fn each_settles(&self) -> Result<()> {
        let pull = ["ErrImagePull", "ImagePullBackOff"];
        for (name, message) in [
            ("tag-300", "300 characters, and 64 is the most"),
            ("tag-3000", "3015 characters, and 512 is the most"),
            ("tag-100000", "100015 characters, and 512 is the most"),
        ] {
            self.waits(name, &pull, message).await?;
        }
        let message = "env \"A16\" is too large";
        self.waits("doubles", &["CreateContainerConfigError"], message)
            .await?;
        for (number, _) in SECRETS.iter().enumerate() {
            let message = "cannot be the name of a secret";
            self.is_told(&format!("secret-{number}"), message).await?;
        }
        let path = format!("{PODS}/digits");
        self.until_object(&path, "40 digits to be too many", |pod| {
            let conditions = pod["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|it| it["reason"] == "Unschedulable")
        })
        .await?;
        for name in ["small", "zeros"] {
            let path = format!("{PODS}/{name}");
            let has_ended = |pod: &Value| pod["status"]["phase"] == "Succeeded";
            self.until_object(&path, &format!("{name} to end well"), has_ended)
                .await?;
        }
        Ok(())
    }
}

const SECRETS: [&str; 4] = ["?watch=true", "a/b", "..%2f..", "x#y"];

/// A pod of one container, with further fields.
fn pod(name: &str, image: &str, further: Value) -> Value {
    let mut container = json!({ "name": "main", "image": image });
    if let (Some(container), Value::Object(further)) = (container.as_object_mut(), further) {
        container.extend(further);
    }
    json!({
        "metadata": { "name": name },
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
            "containers": [container],
        },
    })
}

/// All pods that are stored though nobody can run them, and two that look so.
fn pods() -> Vec<Value> {
    let mut all = Vec::new();
    for length in [300, 3_000, 100_000] {
        let image = format!("rayproject/ray:{}", "1".repeat(length));
        let mut pod = pod(&format!("tag-{length}"), &image, json!({}));
        // Placed already: the scheduler lets only so many pods of Ray start at once.
        pod["spec"]["nodeName"] = json!("sundown");
        all.push(pod);
    }
    let mut env = vec![json!({ "name": "A0", "value": "xx" })];
    for number in 1..60 {
        let value = format!("$(A{0})$(A{0})", number - 1);
        env.push(json!({ "name": format!("A{number}"), "value": value }));
    }
    let command = json!({ "command": ["true"], "env": env });
    all.push(pod("doubles", "busybox", command));
    for (number, secret) in SECRETS.iter().enumerate() {
        let name = format!("secret-{number}");
        let mut pod = pod(&name, "busybox", json!({ "command": ["true"] }));
        pod["spec"]["volumes"] = json!([{ "name": "v", "secret": { "secretName": secret } }]);
        all.push(pod);
    }
    let (digits, zeros) = ("9".repeat(40), format!("1.{}", "0".repeat(40)));
    for (name, amount) in [
        ("digits", &*digits),
        ("small", "1.5e-2147483648"),
        ("zeros", &zeros),
    ] {
        let resources = json!({ "requests": { "cpu": amount } });
        let further = json!({ "command": ["true"], "resources": resources });
        all.push(pod(name, "busybox", further));
    }
    all
}

/// A job that does not start, whose status names a hundred thousand indexes a hundred thousand times.
async fn indexes(plane: &Plane) -> Result<()> {
    let job = json!({
        "metadata": { "name": "indexes" },
        "spec": {
            "completionMode": "Indexed", "completions": 3, "parallelism": 1, "suspend": true,
            "template": pod("of-job", "busybox", json!({ "command": ["true"] })),
        },
    });
    plane.send("POST", JOBS, &job).await?;
    let text = "0-100000,".repeat(110_000);
    let status = json!({ "status": { "completedIndexes": text } });
    let path = format!("{JOBS}/indexes/status");
    let answer = plane.send("PATCH", &path, &status).await;
    // Upstream's server knows that this is no list of indexes; storing it does no harm either.
    if let Err(error) = answer {
        ensure!(error.to_string().contains("completedIndexes"), "{error}");
    }
    Ok(())
}

/// Bodies of one to three mebibytes that name fields again and again.
async fn duplicates(plane: &Plane) -> Result<()> {
    let one = r#""k":"v","#.repeat(380_000);
    let many: Vec<String> = (0..100_000)
        .map(|number| format!(r#""{number}":"","{number}":"","#))
        .collect();
    let many = many.concat();
    for (name, members) in [("one", one), ("many", many)] {
        let body = format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{{members}"last":""}}}}"#);
        ensure!(
            body.len() > 1 << 20 && body.len() < 3 << 20,
            "{}",
            body.len()
        );
        let strict = format!("{CONFIG_MAPS}?fieldValidation=Strict");
        let refused = plane.send_text("POST", &strict, body.clone()).await;
        let message = refused
            .err()
            .context("a strict server takes it")?
            .to_string();
        ensure!(message.contains("duplicate field \"data."), "{message}");
        ensure!(message.len() < 10_000, "{} bytes of refusal", message.len());
        // A hundred warnings are more headers than this client takes.
        let silent = format!("{CONFIG_MAPS}?fieldValidation=Ignore");
        plane.send_text("POST", &silent, body).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_is_stored_ends_the_control_plane() -> Result<()> {
    if !pods_can_run()? {
        return Ok(());
    }
    let home = tempfile::tempdir()?;
    let plane = Plane::start(home.path()).await?;
    for pod in pods() {
        plane.create(&pod).await.context(pod["metadata"].clone())?;
    }
    indexes(&plane).await?;
    duplicates(&plane).await?;
    plane.each_settles().await?;
    plane.works("after").await?;
    // Killed; what is stored is there again.
    drop(plane);
    let plane = Plane::start(home.path()).await?;
    plane.works("again").await?;
    plane.each_settles().await?;
    plane.remove_all().await?;
    assert_eq!(plane.up.terminate()?, Some(0));
    Ok(())
}
