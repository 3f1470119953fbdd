//! A marker in every text of a pod, a job and a `RayJob` is in no line of a record, and what is hidden
//! decides nothing: every story is the same when its record is flown again.

use serde_json::{Map, Value, json};

use super::record;
use crate::op::{Op, it};
use crate::scenario::Scenario;
use crate::scenarios;
use crate::scenarios::node::{allocatable, node, welcoming};

const MARKER: &str = "hunter2-in-the-clear";

/// What keeps its text because the server, the node or Ray would make nothing of the marker. Everything
/// here is on the list of what a record shows, but for the paths.
const KEPT: &[&str] = &[
    "apiVersion",
    "cpu",
    "fieldPath",
    "groupName",
    "image",
    "key",
    "kind",
    "memory",
    "mountPath",
    "name",
    "nodeName",
    "operator",
    "rayVersion",
    "restartPolicy",
    "secretName",
    "submissionMode",
    "effect",
    "num-cpus",
    "ip",
    "hostnames",
];

/// The same manifest with the marker in every text that is not kept.
fn marked(name: &str, json: Value) -> Value {
    match json {
        Value::String(text) if text.is_empty() => Value::String(text),
        Value::String(_) if name == "path" => format!("/{MARKER}").into(),
        Value::String(_) if name == "subPath" => MARKER.into(),
        Value::String(text) if name == "runtimeEnvYAML" => {
            format!("{text}: {{a: {MARKER}}}").into()
        }
        Value::String(text) if KEPT.contains(&name) => text.into(),
        Value::String(_) => MARKER.into(),
        Value::Array(items) => items.into_iter().map(|item| marked(name, item)).collect(),
        Value::Object(map) => {
            let below = |(name, value): (String, Value)| {
                let value = marked(&name, value);
                (name, value)
            };
            Value::Object(map.into_iter().map(below).collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => json,
    }
}

fn template() -> Value {
    json!({
        "metadata": {
            "labels": { "team": "x" },
            "annotations": { "note": "x", "kubectl.kubernetes.io/last-applied-configuration": "x" },
        },
        "spec": {
            "nodeName": "sundown", "restartPolicy": "Never",
            "hostAliases": [{ "ip": "10.1.2.3", "hostnames": ["elsewhere"] }],
            "tolerations": [{ "key": "team", "operator": "Equal", "value": "x", "effect": "NoSchedule" }],
            "volumes": [
                { "name": "keys", "secret": { "secretName": "keys", "items": [{ "key": "a", "path": "x" }] } },
                { "name": "config", "configMap": { "name": "config" } },
                { "name": "about", "downwardAPI": { "items": [
                    { "path": "x", "fieldRef": { "fieldPath": "metadata.labels" } },
                ] } },
            ],
            "containers": [{
                "name": "main", "image": "none", "command": ["x"], "args": ["x", "x"], "workingDir": "x",
                "env": [
                    { "name": "PASS", "value": "x" },
                    { "name": "TEAM", "valueFrom": { "fieldRef": { "fieldPath": "metadata.labels['team']" } } },
                    { "name": "KEY", "valueFrom": { "secretKeyRef": { "name": "keys", "key": "a" } } },
                ],
                "resources": { "limits": { "memory": "1Gi", "cpu": "1" } },
                "volumeMounts": [{ "name": "keys", "mountPath": "/keys", "subPath": "x" }],
                "readinessProbe": { "exec": { "command": ["x"] }, "periodSeconds": 1 },
                "livenessProbe": {
                    "httpGet": { "path": "x", "port": 80, "httpHeaders": [{ "name": "Authorization", "value": "x" }] },
                    "failureThreshold": 9,
                },
                "lifecycle": { "preStop": { "exec": { "command": ["x"] } } },
            }],
        },
    })
}

fn a_pod() -> Scenario {
    let pod = it("Pod", "p");
    let mut long = marked("", template());
    // It runs long enough for its probes, and hears no signal before its hook was run.
    long["spec"]["containers"][0]["command"] = json!(["exit", "3", "20"]);
    long["spec"]["containers"][0]["args"] = json!([]);
    Scenario::new("a pod with markers")
        .with_node()
        .start()
        .settle()
        .does(Op::create(pod, &long))
        .settle()
        .delete(pod, "Background")
        .settle()
        .does(Op::create(it("Pod", "q"), &marked("", template())))
        .settle()
}

/// What a hook says of its failure is the pod's.
fn a_pod_whose_hook_fails() -> Scenario {
    let pod = it("Pod", "p");
    let mut long = marked("", template());
    let container = &mut long["spec"]["containers"][0];
    container["command"] = json!(["exit", "3", "120"]);
    container["args"] = json!([]);
    container["lifecycle"]["preStop"]["exec"]["command"] = json!(["fail", MARKER]);
    Scenario::new("a pod with a hook that fails")
        .with_node()
        .does(Op::create(pod, &long))
        .start()
        .work(30)
        .delete(pod, "Background")
        .settle()
}

fn a_job() -> Scenario {
    let spec = json!({ "completions": 2, "parallelism": 1, "template": template() });
    let body = json!({
        "metadata": { "labels": { "team": "x" }, "annotations": { "note": "x" } },
        "spec": spec,
    });
    Scenario::new("a job with markers")
        .with_node()
        .does(Op::create(it("Job", "work"), &marked("", body)))
        .start()
        .settle()
}

fn a_ray_job(mode: &str) -> Scenario {
    ray_job(mode, MARKER, 0)
        .settle()
        .delete(it("RayJob", "train"), "Background")
        .settle()
}

/// What Ray said of an attempt that failed stays in the status while the next one begins.
fn a_retried_ray_job() -> Scenario {
    ray_job("HTTPMode", "exit 1 0", 1).settle()
}

/// The same with a job that is suspended while it runs.
fn a_suspended_ray_job() -> Scenario {
    ray_job("HTTPMode", "exit 0 120", 0)
        .work(30)
        .patch(
            it("RayJob", "train"),
            &json!({ "spec": { "suspend": true } }),
        )
        .settle()
}

fn ray_job(mode: &str, entrypoint: &str, backoff_limit: u32) -> Scenario {
    let mut head = template();
    head["spec"]["containers"][0]["name"] = json!("ray-head");
    for gone in ["nodeName", "restartPolicy"] {
        head["spec"].as_object_mut().unwrap().remove(gone);
    }
    for gone in ["command", "args", "readinessProbe", "livenessProbe"] {
        head["spec"]["containers"][0]
            .as_object_mut()
            .unwrap()
            .remove(gone);
    }
    let body = json!({
        "metadata": { "labels": { "team": "x" }, "annotations": { "note": "x" } },
        "spec": {
            "submissionMode": mode, "entrypoint": "x", "runtimeEnvYAML": "env_vars",
            "metadata": { "name": "x" },
            "shutdownAfterJobFinishes": true,
            "rayClusterSpec": {
                "rayVersion": "2.52.0",
                "headGroupSpec": {
                    "rayStartParams": { "num-cpus": "1", "redis-password": "x" },
                    "template": head,
                },
            },
        },
    });
    let mut body = marked("", body);
    body["spec"]["submissionMode"] = json!(mode);
    body["spec"]["entrypoint"] = json!(entrypoint);
    body["spec"]["backoffLimit"] = json!(backoff_limit);
    // A name that is the user's map, and not the name of anything.
    body["spec"]["metadata"]["name"] = json!(MARKER);
    Scenario::new("a ray job with markers")
        .with_ray()
        .does(node())
        .does(allocatable())
        .does(welcoming())
        .does(Op::create(it("RayJob", "train"), &body))
        .start()
}

/// Fails with the first line that holds the marker, and what stands around it.
#[track_caller]
fn holds_no_marker(lines: &[String]) {
    for line in lines {
        let Some(at) = line.find(MARKER) else {
            continue;
        };
        let from = line.floor_char_boundary(at.saturating_sub(300));
        let to = line.floor_char_boundary(at + 100);
        panic!("...{}...", &line[from..to]);
    }
}

#[test]
fn a_marker_in_every_text_is_in_no_line_and_decides_nothing() {
    for (scenario, expect) in [
        (a_pod(), r#""trouble":"[redacted "#),
        (a_pod_whose_hook_fails(), "FailedPreStopHook"),
        (a_job(), "Completed"),
        (a_ray_job("HTTPMode"), "SUCCEEDED"),
        (a_ray_job("K8sJobMode"), "SUCCEEDED"),
        (a_retried_ray_job(), "Retrying"),
        (a_suspended_ray_job(), "Suspended"),
    ] {
        let recording = record(&scenario, Some(MARKER));
        let reached = recording.lines.iter().any(|line| line.contains(expect));
        assert!(reached, "{}: {expect} is in the record", scenario.name);
        let hidden = recording
            .lines
            .iter()
            .filter(|line| line.contains("[redacted "));
        assert!(hidden.count() > 5, "{}: something is hidden", scenario.name);
        holds_no_marker(&recording.lines);
        assert_eq!(recording.differences.first(), None, "{}", scenario.name);
    }
}

#[test]
fn every_story_is_the_same_when_its_record_is_flown_again() {
    for scenario in scenarios::all() {
        let recording = record(&scenario, None);
        assert_eq!(recording.differences.first(), None, "{}", scenario.name);
    }
}
