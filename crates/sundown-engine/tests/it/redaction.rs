//! No secret stands in a line of a record: a text is hidden unless it is on the list of what is shown.

use serde_json::{Value, json};
use sundown_engine::Input;
use sundown_engine::flight::{Record, Replayed, Veil, replay};
use sundown_model::node::{self, Launch, ProbeKind, Variable};
use sundown_model::{DeedOutcome, DeedRefusal, Reply, is_redacted, ray};

use crate::rig::{Rig, at, mark, toy, veil};

const SECRET: &str = "hunter2";

fn hidden(mut json: Value) -> Value {
    Veil::new(mark).over_fields(&mut json);
    json
}

#[test]
fn hides_every_text_that_is_not_on_the_list() {
    for json in [
        json!({ "env": [{ "name": "PASS", "value": SECRET }] }),
        json!({ "env": { "PASS": SECRET, "name": SECRET } }),
        json!({ "data": { "key": SECRET, "name": SECRET } }),
        json!({ "stringData": { "key": SECRET } }),
        json!({ "binaryData": { "key": SECRET } }),
        json!({ "data": [SECRET, { "deep": [SECRET] }] }),
        json!({ "spec": { "containers": [{ "env": [{ "value": SECRET }] }] } }),
        json!({ "redisPassword": { "value": SECRET } }),
        json!({ "apiKey": SECRET, "passphrase": SECRET, "dsn": SECRET, "authorization": SECRET }),
        json!({ "command": ["sh", "-c", SECRET], "args": [SECRET] }),
        json!({ "entrypoint": SECRET }),
        json!({ "httpGet": { "path": SECRET, "httpHeaders": [{ "name": "A", "value": SECRET }] } }),
        json!({ "terminated": { "message": SECRET } }),
        json!({ "status": { "message": SECRET } }),
        json!({ "kind": "Event", "message": SECRET }),
        json!({ "spec": { "metadata": { "name": SECRET } } }),
        json!({ "rayStartParams": { "redis-password": SECRET } }),
        json!({ "runtimeEnvYAML": format!("env_vars: {{KEY: {SECRET}}}") }),
        json!({ "runtime_env": { "env_vars": { "KEY": SECRET } } }),
        json!({ "env_vars": { "KEY": SECRET } }),
        json!({ "annotations": { "kubectl.kubernetes.io/last-applied-configuration": SECRET } }),
        json!({ "annotations": { "name": SECRET } }),
        json!({ "annotations": { "ray.io/upgrade-strategy-recreate-hash": SECRET } }),
        json!({ "labels": { "team": SECRET } }),
        json!({ "matchExpressions": [{ "key": "team", "operator": "In", "values": [SECRET] }] }),
    ] {
        let shown = hidden(json.clone()).to_string();
        assert!(!shown.contains(SECRET), "{json} became {shown}");
        assert!(shown.contains("redacted"), "{shown}");
        let again = hidden(hidden(json.clone()));
        assert_eq!(again, hidden(json), "hidden twice is hidden once");
    }
}

#[test]
fn leaves_what_is_on_the_list_as_it_is() {
    for json in [
        json!({ "metadata": { "name": "a", "uid": "b" }, "spec": { "replicas": 3 } }),
        json!({ "env": [{ "name": "HOME" }] }),
        json!({ "env": [{ "name": "RAY_enable_autoscaler_v2", "value": "1" }] }),
        json!({ "secrets": { "position": 7 }, "automountServiceAccountToken": true }),
        json!({ "command": [], "runtime_env": null, "runtimeEnvYAML": "", "entrypoint": "" }),
        json!({ "labels": { "ray.io/cluster": "a" }, "limits": { "memory": "4Gi" } }),
        json!({ "conditions": [{ "type": "Ready", "status": "False", "message": "Starting" }] }),
        json!({ "rayStartParams": { "num-cpus": "4" } }),
        json!({ "matchExpressions": [
            { "key": "kubernetes.io/hostname", "operator": "In", "values": ["here"] },
        ] }),
        json!([1, null, true]),
    ] {
        assert_eq!(hidden(json.clone()), json);
    }
}

#[test]
fn the_same_text_is_hidden_as_the_same_and_another_as_another() {
    let json = hidden(json!({ "args": ["one", "one", "two", ""] }));
    assert_eq!(json["args"][0], json["args"][1]);
    assert_ne!(json["args"][0], json["args"][2]);
    assert!(is_redacted(json["args"][0].as_str().unwrap()));
    assert_eq!(json["args"][3], "");
}

#[test]
fn nothing_that_ray_or_the_node_is_told_or_says_is_shown() {
    let text = || SECRET.to_owned();
    let run = node::Run {
        pod: "uid".into(),
        container: "main".into(),
        attempt: 0,
    };
    let launch = Launch {
        run: run.clone(),
        image: "busybox".into(),
        command: vec![text()],
        args: vec![text()],
        variables: vec![Variable::Text {
            name: "PASS".to_owned(),
            value: text(),
        }],
        directory: text(),
        mounts: Vec::new(),
        read_only_root: false,
        run_as: node::RunAs::default(),
        dropped: vec![text()],
    };
    let probe = node::Probe {
        how: ProbeKind::Http {
            port: 80,
            path: text(),
            tls: false,
            headers: vec![("Authorization".to_owned(), text())],
        },
        timeout_seconds: 1,
    };
    let submission = ray::Submission {
        submission_id: "id".into(),
        entrypoint: text(),
        runtime_env: Some(json!({ "env_vars": { "PASS": SECRET } })),
        metadata: [("name".to_owned(), text())].into(),
        entrypoint_num_cpus: None,
        entrypoint_num_gpus: None,
        entrypoint_resources: None,
    };
    let said = [
        json!(veil_over(&launch)),
        json!(veil_over(&node::Query::Probe { run, probe })),
        json!(veil_over(&submission)),
        json!(veil_over(&Reply::Node(Ok(node::Answer::Probe {
            trouble: Some(text())
        })))),
        json!(veil_over(&DeedOutcome::Refused(
            DeedRefusal::new(ray::Refused::Invalid, "").quoting(text())
        ))),
    ];
    for json in said {
        let json = json.to_string();
        assert!(!json.contains(SECRET), "{json}");
        assert!(json.contains("redacted"), "{json}");
    }
}

/// Anything as it would stand in a line.
fn veil_over(it: &impl serde::Serialize) -> Value {
    veil().over(it)
}

#[test]
fn no_line_of_a_record_holds_a_secret_that_an_object_brought() {
    let loaded = toy("a").spec(
        "template",
        json!({
            "env": [{ "name": "PASS", "value": SECRET }],
            "data": { "key": SECRET },
            "apiToken": SECRET,
        }),
    );
    let patching = toy("b").spec("patches", json!({ "data": { "key": SECRET } }));
    let mut rig = Rig::settled(&[&loaded, &patching]);
    rig.turn();
    let begin = Record::begin(&rig.engine, at(0), &veil()).line(&veil());
    let lines = rig.turns.iter().map(|it| it.line(&veil()));
    let turns: String = lines.collect();
    for text in [begin, turns] {
        assert!(!text.contains(SECRET), "{text}");
        assert!(text.contains("[redacted ") && text.contains("uid-a"));
    }
}

#[test]
fn a_secret_does_not_count_as_a_difference() {
    let patching = toy("b").spec("patches", json!({ "data": { "key": SECRET } }));
    let mut rig = Rig::settled(&[]);
    rig.sees(&patching.rv(20));
    let effects = rig.turn();
    assert_eq!(effects.len(), 1);
    let mut engine = Rig::new(sundown_engine::Config::default()).engine;
    for record in &rig.turns {
        let read: Record = serde_json::from_str(&record.line(&veil())).unwrap();
        if let Record::Turn { inputs, .. } = &read {
            let is_clean = |input: &Input| !format!("{input:?}").contains(SECRET);
            assert!(inputs.iter().all(is_clean));
        }
        let replayed = replay(&mut engine, read).unwrap();
        assert!(
            matches!(replayed, Some(Replayed::Same { .. })),
            "{replayed:?}"
        );
    }
}
