//! The text that starts Ray.

use serde_json::{Value, json};

use super::*;
use crate::testing::a_cluster;

/// The command of a head with these parameters and limits.
fn head(params: &Value, limits: &Value) -> String {
    let cluster = a_cluster(&[("/spec/headGroupSpec/rayStartParams", params.clone())]);
    let container = json!({"resources": {"limits": limits}});
    command(NodeType::Head, &head_params(&cluster), &container)
}

/// The flags without those that every head has.
fn own_flags(text: &str) -> Vec<String> {
    const USUAL: [&str; 4] = [
        "--block",
        "--dashboard-agent-listen-port=52365",
        "--dashboard-host=0.0.0.0",
        "--metrics-export-port=8080",
    ];
    let flags = text
        .strip_prefix("ray start --head ")
        .unwrap()
        .split_whitespace();
    flags
        .filter(|flag| !USUAL.contains(flag))
        .map(str::to_owned)
        .collect()
}

#[test]
fn flags_are_sorted_and_have_a_space_on_either_side() {
    assert_eq!(
        head(&json!({}), &json!({})),
        "ray start --head  --block  --dashboard-agent-listen-port=52365  --dashboard-host=0.0.0.0  \
         --metrics-export-port=8080 "
    );
    let cluster = a_cluster(&[]);
    let params = worker_params(&cluster.spec.worker_groups[0], "head.ns.svc", "6379");
    assert_eq!(
        command(NodeType::Worker, &params, &json!({})),
        "ray start  --address=head.ns.svc:6379  --block  --dashboard-agent-listen-port=52365  \
         --metrics-export-port=8080 "
    );
}

#[test]
fn switches_have_no_value_except_the_three_that_do() {
    let params = json!({
        "a": "TRUE", "b": "false", "log-color": "true", "include-dashboard": "False",
        "include-log-monitor": "false", "block": "false",
    });
    let expected = [
        "--a",
        "--include-dashboard=False",
        "--include-log-monitor=false",
        "--log-color=true",
    ];
    assert_eq!(own_flags(&head(&params, &json!({}))), expected);
}

#[test]
fn limits_say_what_parameters_do_not() {
    let limits = json!({"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "2"});
    let expected = ["--memory=1073741824", "--num-cpus=2", "--num-gpus=2"];
    assert_eq!(own_flags(&head(&json!({}), &limits)), expected);
    let params = json!({"num-cpus": "0", "memory": "1", "num-gpus": "9"});
    let expected = ["--memory=1", "--num-cpus=0", "--num-gpus=9"];
    assert_eq!(own_flags(&head(&params, &limits)), expected);
}

#[test]
fn a_request_for_processors_counts_where_there_is_no_limit_and_one_for_memory_does_not() {
    let container = json!({"resources": {"requests": {"cpu": "2", "memory": "1Gi"}}});
    let text = command(NodeType::Head, &head_params(&a_cluster(&[])), &container);
    assert_eq!(own_flags(&text), ["--num-cpus=2"]);
}

#[test]
fn accelerators_become_resources_of_ray() {
    for (params, limits, expected) in [
        (
            json!({}),
            json!({"nvidia.com/mig-2g.32gb": "3"}),
            vec!["--num-gpus=3"],
        ),
        (
            json!({}),
            json!({"google.com/tpu": "8"}),
            vec![r#"--resources='{"TPU":8}'"#],
        ),
        (
            json!({}),
            json!({"aws.amazon.com/neuroncore": "4", "google.com/tpu": "8", "x/gpu": 0}),
            vec![r#"--resources='{"neuron_cores":4}'"#],
        ),
        (
            json!({"resources": "'{\"custom\":1}'"}),
            json!({"google.com/tpu": "8"}),
            vec![r#"--resources='{"TPU":8,"custom":1}'"#],
        ),
        (
            json!({"resources": "\"{\"TPU\":2}\""}),
            json!({"google.com/tpu": "8"}),
            vec![r#"--resources="{"TPU":2}""#],
        ),
        (
            json!({"resources": "nonsense"}),
            json!({"google.com/tpu": "8"}),
            vec!["--resources=nonsense"],
        ),
        (
            json!({}),
            json!({"amd.com/gpu": "1", "nvidia.com/gpu": "2"}),
            vec!["--num-gpus=1"],
        ),
    ] {
        assert_eq!(own_flags(&head(&params, &limits)), expected);
    }
}

#[test]
fn resources_and_labels_of_a_group_become_parameters() {
    let resources = json!({
        "CPU": "1500m", "memory": "1Ki", "nvidia.com/gpu": "1", "custom": "0.5", "whole": "2",
        "broken": "x",
    });
    let cluster = a_cluster(&[
        ("/spec/headGroupSpec/resources", resources),
        ("/spec/headGroupSpec/labels", json!({"b": "2", "a": "1"})),
    ]);
    let text = command(NodeType::Head, &head_params(&cluster), &json!({}));
    assert_eq!(
        own_flags(&text),
        [
            "--labels=a=1,b=2",
            "--memory=1024",
            "--num-cpus=2",
            "--num-gpus=1",
            r#"--resources='{"custom":0.5,"whole":2}'"#,
        ]
    );
}

#[test]
fn a_cluster_that_scales_itself_has_no_monitor() {
    let cluster = a_cluster(&[("/spec/enableInTreeAutoscaling", json!(true))]);
    let text = command(NodeType::Head, &head_params(&cluster), &json!({}));
    assert_eq!(own_flags(&text), ["--no-monitor"]);
}
