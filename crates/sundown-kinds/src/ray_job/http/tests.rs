//! The body of a submission.

use serde_json::json;

use super::*;
use crate::testing::a_job;

#[test]
fn empty_members_are_left_out() {
    let body = submission(&a_job(&[])).unwrap();
    assert_eq!(
        body,
        json!({"entrypoint": "python count.py", "submission_id": "counter-bc9bc"})
    );
}

#[test]
fn everything_is_sent_as_it_was_meant() {
    let body = submission(&a_job(&[
        (
            "/spec/runtimeEnvYAML",
            json!("env_vars: {A: \"$HOME\"}\nworking_dir: /x\n"),
        ),
        ("/spec/metadata", json!({"a": "b"})),
        ("/spec/entrypointNumCpus", json!(0.5)),
        ("/spec/entrypointNumGpus", json!(1.0)),
        (
            "/spec/entrypointResources",
            json!("{\"Custom\": 2, \"Half\": 0.5}"),
        ),
    ]));
    assert_eq!(
        body.unwrap(),
        json!({
            "entrypoint": "python count.py",
            "submission_id": "counter-bc9bc",
            "runtime_env": {"env_vars": {"A": "$HOME"}, "working_dir": "/x"},
            "metadata": {"a": "b"},
            "entrypoint_num_cpus": 0.5,
            "entrypoint_num_gpus": 1,
            "entrypoint_resources": {"Custom": 2, "Half": 0.5},
        })
    );
}

#[test]
fn malformed_resources_are_told() {
    for text in ["[1]", "{\"a\": \"b\"}", "{"] {
        let told = submission(&a_job(&[("/spec/entrypointResources", json!(text))]));
        assert!(matches!(told, Err(SubmitError::Resources(_))), "{text}");
    }
}
