//! No secret stands in a line of a record.

use serde_json::{Value, json};
use sundown_engine::Input;
use sundown_engine::flight::{Record, redact};

use crate::rig::{Rig, at, toy};

const SECRET: &str = "hunter2";

fn redacted(mut json: Value) -> Value {
    redact(&mut json);
    json
}

#[test]
fn hides_what_environments_data_and_credentials_hold() {
    for json in [
        json!({ "env": [{ "name": "PASS", "value": SECRET }] }),
        json!({ "env": { "PASS": SECRET } }),
        json!({ "data": { "key": SECRET } }),
        json!({ "stringData": { "key": SECRET } }),
        json!({ "binaryData": { "key": SECRET } }),
        json!({ "data": [SECRET, { "deep": [SECRET] }] }),
        json!({ "spec": { "containers": [{ "env": [{ "value": SECRET }] }] } }),
        json!({ "redisPassword": SECRET }),
        json!({ "authToken": SECRET }),
        json!({ "TOKEN": SECRET }),
        json!({ "clientSecret": SECRET }),
        json!({ "awsCredentials": SECRET }),
        json!({ "tokens": [SECRET] }),
        json!({ "runtimeEnvYAML": format!("env_vars: {{KEY: {SECRET}}}") }),
        json!({ "runtime_env": { "env_vars": { "KEY": SECRET } } }),
        json!({ "env_vars": { "KEY": SECRET } }),
        json!({ "args": [format!("ray job submit --runtime-env-json '{SECRET}' -- true")] }),
        json!({ "annotations": { "kubectl.kubernetes.io/last-applied-configuration": SECRET } }),
    ] {
        let shown = redacted(json.clone()).to_string();
        assert!(!shown.contains(SECRET), "{json} became {shown}");
        assert!(shown.contains("[redacted]"), "{shown}");
    }
}

#[test]
fn leaves_everything_else_as_it_is() {
    for json in [
        json!({ "metadata": { "name": "a", "uid": "b" }, "spec": { "replicas": 3 } }),
        json!({ "env": [{ "name": "HOME" }] }),
        json!({ "secrets": { "position": 7, "objects": ["x"] } }),
        json!({ "automountServiceAccountToken": true }),
        json!({ "args": ["ray start --head"], "runtime_env": null, "runtimeEnvYAML": "" }),
        json!([1, null, "text"]),
    ] {
        assert_eq!(redacted(json.clone()), json);
    }
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
    let begin = Record::begin(&rig.engine, at(0)).line();
    let turns: String = rig.turns.iter().map(Record::line).collect();
    for text in [begin, turns] {
        assert!(!text.contains(SECRET), "{text}");
        assert!(text.contains("[redacted]") && text.contains("uid-a"));
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
        let read: Record = serde_json::from_str(&record.line()).unwrap();
        if let Record::Turn { inputs, .. } = &read {
            let is_clean = |input: &Input| !format!("{input:?}").contains(SECRET);
            assert!(inputs.iter().all(is_clean));
        }
        let replayed = sundown_engine::flight::replay(&mut engine, read).unwrap();
        assert!(
            matches!(
                replayed,
                Some(sundown_engine::flight::Replayed::Same { .. })
            ),
            "{replayed:?}"
        );
    }
}
