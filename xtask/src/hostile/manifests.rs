//! Objects that would do lasting damage: they are stored, so whatever they break is broken at each start.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Test;
use super::place::{Place, Plane, until};
use crate::process::Done;

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
        // Placed already: the scheduler lets only so many pods of Ray start at once.
        all.push(pod(
            &format!("tag-{length}"),
            &json!({ "image": image }),
            &json!({ "nodeName": "sundown" }),
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

/// Bodies that name one field, or each of many, again and again.
fn repeated() -> [(&'static str, String); 2] {
    let body = |name: &str, members: &str| {
        format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{{members}"last":""}}}}"#)
    };
    let one = r#""a":"","#.repeat(200_000);
    let many: Vec<String> = (0..100_000)
        .map(|number| format!(r#""{number}":"","{number}":"","#))
        .collect();
    let many = many.concat();
    [("one", body("one", &one)), ("many", body("many", &many))]
}

/// How much of the processor's time an answer may take. Not of the clock's: other work of the machine would be
/// counted as well.
pub(super) const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);

/// As the kernel counts for programs, on every machine that Sundown runs on.
const TICKS_PER_SECOND: u64 = 100;

/// Sends bodies as they are, and looks what each answer costs the control plane.
struct Timed<'a> {
    up: &'a Plane<'a>,
    slowest: Duration,
}

impl Timed<'_> {
    fn post(&mut self, path: &str, name: &str, body: &str) -> Result<Done> {
        self.call(&["create", "--raw", path, "-f", "-"], name, body)
    }

    fn call(&mut self, words: &[&str], name: &str, body: &str) -> Result<Done> {
        let before = processor_time(self.up.id())?;
        let done = self.up.kubectl_with(words, body)?;
        let took = processor_time(self.up.id())?.saturating_sub(before);
        self.slowest = self.slowest.max(took);
        ensure!(took < ANSWER_TIME_MAX, "{name} took {took:?}");
        Ok(done)
    }
}

/// What a process has taken of the processor's time so far.
pub(super) fn processor_time(process: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, after) = stat.rsplit_once(')').context("a name in parentheses")?;
    // In its own code and in the kernel: fields 14 and 15, of which the first here is field 3.
    let ticks = after.split_whitespace().skip(11).take(2);
    let ticks: Result<Vec<u64>, _> = ticks.map(str::parse).collect();
    let ticks: u64 = ticks.context("a number of ticks")?.iter().sum();
    Ok(Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND))
}

const PODS: &str = "/api/v1/namespaces/default/pods";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn nothing_that_is_stored_ends_the_control_plane(place: &Place) -> Result<()> {
    let up = place.up(&[])?;
    let mut timed = Timed {
        up: &up,
        slowest: Duration::ZERO,
    };
    let mut kept = Vec::new();
    for object in hostile() {
        let name = object["metadata"]["name"].as_str().context("a name")?;
        let done = timed.post(PODS, name, &object.to_string())?;
        let said: String = done.said.chars().take(1_000).collect();
        // Refused with the name of the field, or kept.
        ensure!(done.succeeded || said.contains("spec."), "{name}: {said}");
        if done.succeeded {
            kept.push(name.to_owned());
        }
    }
    for (name, body) in repeated() {
        let strict = format!("{CONFIG_MAPS}?fieldValidation=Strict");
        let done = timed.post(&strict, name, &body)?;
        let is_named = done.said.contains(r#"duplicate field "data."#);
        ensure!(!done.succeeded && is_named, "{name} is not refused");
        ensure!(done.said.len() < 100_000, "{} bytes", done.said.len());
        let silent = format!("{CONFIG_MAPS}?fieldValidation=Ignore");
        let done = timed.post(&silent, name, &body)?;
        let said: String = done.said.chars().take(200).collect();
        ensure!(done.succeeded, "{name}: {said}");
    }
    indexes(&mut timed)?;
    println!(
        "  kept {}; the dearest answer took {:?} of the processor",
        kept.len(),
        timed.slowest
    );
    for name in &kept {
        settles(&up, name)?;
    }
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

/// A pod comes to its end, or says why it does not.
fn settles(up: &Plane<'_>, name: &str) -> Result<()> {
    let mut last = String::new();
    until(&format!("pod {name} ends or says why it waits"), || {
        let status = up.ask(&["get", "pod", name, "-o", "jsonpath={.status}"])?;
        let is_over = ["\"Succeeded\"", "\"Failed\"", "\"message\""];
        let about = format!("involvedObject.name={name},type=Warning");
        let events = up.ask(&["get", "events", "--field-selector", &about, "-o", "name"])?;
        last = status;
        Ok(is_over.iter().any(|it| last.contains(it)) || !events.is_empty())
    })
    .context(last)
}

/// A Job whose status says a megabyte of completed indexes.
fn indexes(timed: &mut Timed<'_>) -> Result<()> {
    timed.up.create(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: indexed}\nspec:\n  completionMode: Indexed\n  completions: 100000\n  \
         parallelism: 1\n  suspend: true\n  template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox, command: ['true']}]}}\n",
    )?;
    let text = "0-99999,".repeat(100_000);
    let patch = json!({ "status": { "completedIndexes": text } }).to_string();
    let file = timed.up.file("patch.json", &patch)?;
    let words = [
        "patch",
        "job",
        "indexed",
        "--subresource=status",
        "--type=merge",
        "--patch-file",
        &file,
    ];
    let done = timed.call(&words, "a megabyte of indexes", "")?;
    // Upstream's server knows that this is no list of indexes; storing it does no harm either.
    let said: String = done.said.chars().take(1_000).collect();
    ensure!(
        done.succeeded || done.said.contains("completedIndexes"),
        "{said}"
    );
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
