//! Objects that would do lasting damage: they are stored, so whatever they break is broken at each start.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Test;
use super::place::{Place, Plane};

pub(super) const TESTS: &[Test] = &[
    (
        "nothing_that_is_stored_ends_the_control_plane",
        nothing_that_is_stored_ends_the_control_plane,
    ),
    (
        "credentials_of_an_index_are_in_no_container",
        credentials_of_an_index_are_in_no_container,
    ),
];

fn pod(name: &str, container: &Value, more: &Value) -> Value {
    let mut main = json!({ "name": "main", "image": "busybox", "command": ["true"] });
    merge(&mut main, container);
    let mut spec = json!({ "restartPolicy": "Never", "containers": [main] });
    merge(&mut spec, more);
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": spec })
}

fn merge(into: &mut Value, more: &Value) {
    let members = more.as_object().into_iter().flatten();
    for (name, value) in members {
        into[name] = value.clone();
    }
}

fn hostile() -> Vec<Value> {
    let none = json!({});
    let mut all = Vec::new();
    for length in [300, 3_000, 100_000] {
        let image = format!("rayproject/ray:{}", "1".repeat(length));
        all.push(pod(
            &format!("tag-{length}"),
            &json!({ "image": image }),
            &none,
        ));
    }
    let doubles = |number: usize| match number {
        0 => json!({ "name": "A0", "value": "xx" }),
        _ => {
            json!({ "name": format!("A{number}"), "value": format!("$(A{0})$(A{0})", number - 1) })
        }
    };
    let env: Vec<Value> = (0..60).map(doubles).collect();
    all.push(pod(
        "doubles",
        &json!({ "env": env, "args": ["$(A59)"] }),
        &none,
    ));
    for (number, name) in ["?watch=true", "a/b", "..%2f..", "x#y"].iter().enumerate() {
        let volumes = json!({ "volumes": [{ "name": "v", "secret": { "secretName": name } }] });
        let mounts = json!({ "volumeMounts": [{ "name": "v", "mountPath": "/v" }] });
        all.push(pod(&format!("secret-{number}"), &mounts, &volumes));
        let from = json!({ "envFrom": [{ "configMapRef": { "name": name } }] });
        all.push(pod(&format!("map-{number}"), &from, &none));
    }
    let digits = "9".repeat(40);
    let zeros = format!("1.{}", "0".repeat(40));
    for (number, cpu) in ["1.5e-2147483648", "1e2147483647", &digits, &zeros]
        .iter()
        .enumerate()
    {
        let resources = json!({ "resources": { "requests": { "cpu": cpu } } });
        all.push(pod(&format!("quantity-{number}"), &resources, &none));
    }
    all
}

/// Two hundred thousand members of one name.
fn repeated() -> String {
    let members = r#""a":"","#.repeat(200_000);
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"repeated"}},"data":{{{members}"b":""}}}}"#
    )
}

fn nothing_that_is_stored_ends_the_control_plane(place: &Place) -> Result<()> {
    let up = place.up(&[])?;
    let mut kept = Vec::new();
    for object in hostile() {
        let name = object["metadata"]["name"]
            .as_str()
            .context("a name")?
            .to_owned();
        let done = up.kubectl_with(&["create", "-f", "-"], &object.to_string())?;
        let said = done.said.chars().take(200).collect::<String>();
        ensure!(
            done.succeeded || said.contains("Invalid") || said.contains("invalid"),
            "{name}: {said}"
        );
        if done.succeeded {
            kept.push(name);
        }
    }
    let repeated = up.kubectl_with(&["create", "--validate=ignore", "-f", "-"], &repeated())?;
    println!(
        "  kept {}; repeated names: {}",
        kept.len(),
        repeated.said.chars().take(80).collect::<String>()
    );
    indexes(&up)?;
    lives(&up)?;
    // Killed, and started on what is stored.
    up.kill()?;
    let up = place.up(&[])?;
    lives(&up)?;
    for name in &kept {
        up.ask(&["delete", "pod", name, "--timeout=60s"])?;
    }
    up.ask(&["delete", "job", "indexed", "--timeout=60s"])?;
    Ok(())
}

/// A Job whose status says a megabyte of completed indexes.
fn indexes(up: &Plane<'_>) -> Result<()> {
    up.create(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: indexed}\nspec:\n  completionMode: Indexed\n  completions: 100000\n  \
         parallelism: 1\n  suspend: true\n  template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox, command: ['true']}]}}\n",
    )?;
    let text = "0-99999,".repeat(100_000);
    let patch = json!({ "status": { "completedIndexes": text } }).to_string();
    let file = up.file("patch.json", &patch)?;
    let words = [
        "patch",
        "job",
        "indexed",
        "--subresource=status",
        "--type=merge",
        "--patch-file",
        &file,
    ];
    // Taken or refused, what counts is that the server lives.
    up.kubectl(&words)?;
    Ok(())
}

fn lives(up: &Plane<'_>) -> Result<()> {
    let said = up.script("lives", "busybox", "echo well")?;
    ensure!(said == "well", "{said}");
    Ok(())
}

fn credentials_of_an_index_are_in_no_container(place: &Place) -> Result<()> {
    let index = "https://someone:hunter2-of-the-index@127.0.0.1:1/simple";
    let script = format!(
        "PIP_INDEX_URL={index} PIP_EXTRA_INDEX_URL={index} UV_INDEX_URL={index} exec \"$0\" up"
    );
    let up = place.up_behind(&script)?;
    let said = up.script("env", "busybox", "env")?;
    ensure!(said.contains("PATH="), "{said}");
    ensure!(!said.contains("hunter2"), "{said}");
    Ok(())
}
