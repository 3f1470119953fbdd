//! Texts and order of what is refused.

use serde_json::{Value, json};

use super::*;
use crate::testing::a_job;

#[track_caller]
fn check(changes: &[(&str, Value)], expected: &str) {
    check_with(&Gates::default(), changes, expected);
}

#[track_caller]
fn check_with(gates: &Gates, changes: &[(&str, Value)], expected: &str) {
    let told = validate_spec(&a_job(changes), gates);
    assert_eq!(told.err().map(|it| it.0).unwrap_or_default(), expected);
}

fn prefixed(text: &str) -> String {
    format!("The RayJob spec is invalid: {text}")
}

fn selector() -> (&'static str, Value) {
    ("/spec/clusterSelector", json!({"ray.io/cluster": "shared"}))
}

fn autoscaling() -> (&'static str, Value) {
    ("/spec/rayClusterSpec/enableInTreeAutoscaling", json!(true))
}

fn shutdown() -> (&'static str, Value) {
    ("/spec/shutdownAfterJobFinishes", json!(true))
}

fn rules(rules: &Value) -> (&'static str, Value) {
    ("/spec/deletionStrategy", json!({"deletionRules": rules}))
}

fn legacy(on_success: &str, on_failure: &str) -> (&'static str, Value) {
    let strategy =
        json!({"onSuccess": {"policy": on_success}, "onFailure": {"policy": on_failure}});
    ("/spec/deletionStrategy", strategy)
}

fn rule(policy: &str, status: &str, ttl: i32) -> Value {
    json!({"policy": policy, "condition": {"jobStatus": status, "ttlSeconds": ttl}})
}

fn deployment_rule(policy: &str, ttl: i32) -> Value {
    json!({"policy": policy, "condition": {"jobDeploymentStatus": "Failed", "ttlSeconds": ttl}})
}

#[test]
fn a_name_of_47_characters_is_taken_and_one_of_48_is_not() {
    let named = |length: usize| Metadata {
        name: "j".repeat(length),
        ..Metadata::default()
    };
    assert_eq!(validate_metadata(&named(47)), Ok(()));
    assert_eq!(
        validate_metadata(&named(48)).unwrap_err().0,
        "The RayJob metadata is invalid: RayJob name should be no more than 47 characters"
    );
    let told = validate_metadata(&Metadata {
        name: "A".into(),
        ..Metadata::default()
    });
    let told = told.unwrap_err().0;
    let expected =
        "The RayJob metadata is invalid: RayJob name should be a valid DNS1035 label: [a DNS";
    assert!(told.starts_with(expected), "{told}");
}

#[test]
fn a_plain_job_is_fine() {
    check(&[], "");
}

#[test]
fn suspension_needs_a_cluster_that_may_go() {
    let suspend = ("/spec/suspend", json!(true));
    check(
        std::slice::from_ref(&suspend),
        &prefixed(
            "a RayJob with shutdownAfterJobFinishes set to false is not allowed to be suspended",
        ),
    );
    check(
        &[suspend.clone(), shutdown(), selector()],
        &prefixed("the ClusterSelector mode doesn't support the suspend operation"),
    );
    check(&[suspend, shutdown()], "");
}

#[test]
fn a_time_to_live_is_not_negative_and_needs_a_shutdown() {
    check(
        &[("/spec/ttlSecondsAfterFinished", json!(-1))],
        &prefixed("TTLSecondsAfterFinished must be a non-negative integer"),
    );
    check(
        &[("/spec/ttlSecondsAfterFinished", json!(5))],
        &prefixed(
            "a RayJob with shutdownAfterJobFinishes set to false cannot have TTLSecondsAfterFinished",
        ),
    );
    check(
        &[("/spec/ttlSecondsAfterFinished", json!(5)), shutdown()],
        "",
    );
}

#[test]
fn a_strategy_is_of_one_kind_and_not_empty() {
    let gates = Gates {
        ray_job_deletion_policy: false,
        ..Gates::default()
    };
    let one = rules(&json!([rule("DeleteSelf", "SUCCEEDED", 0)]));
    check_with(
        &gates,
        std::slice::from_ref(&one),
        "RayJobDeletionPolicy feature gate must be enabled to use DeletionStrategy",
    );
    check(
        &[one.clone(), shutdown()],
        &prefixed(
            "spec.shutdownAfterJobFinishes and spec.deletionStrategy.deletionRules are mutually exclusive",
        ),
    );
    check(
        &[one, ("/spec/deletionStrategy/onSuccess", json!({}))],
        &prefixed(
            "Cannot use both legacy onSuccess/onFailure fields and deletionRules simultaneously",
        ),
    );
    for empty in [json!({}), json!({"deletionRules": []})] {
        check(
            &[("/spec/deletionStrategy", empty)],
            &prefixed(
                "DeletionStrategy requires either BOTH onSuccess and onFailure, OR the deletionRules \
                 field (cannot be empty)",
            ),
        );
    }
}

#[test]
fn legacy_policies_come_in_pairs_and_fit_the_cluster() {
    check(
        &[(
            "/spec/deletionStrategy",
            json!({"onSuccess": {"policy": "DeleteSelf"}}),
        )],
        "both DeletionStrategy.OnSuccess and DeletionStrategy.OnFailure must be set when using the \
         legacy deletion policy fields of DeletionStrategy",
    );
    check(
        &[(
            "/spec/deletionStrategy",
            json!({"onSuccess": {"policy": "DeleteSelf"}, "onFailure": {}}),
        )],
        "the DeletionPolicyType field of DeletionStrategy.OnFailure cannot be unset when \
         DeletionStrategy is enabled",
    );
    check(
        &[selector(), legacy("DeleteSelf", "DeleteWorkers")],
        "the ClusterSelector mode doesn't support DeletionStrategy=DeleteWorkers on failure",
    );
    check(
        &[autoscaling(), legacy("DeleteWorkers", "DeleteSelf")],
        "DeletionStrategy=DeleteWorkers currently does not support RayCluster with autoscaling enabled",
    );
    check(
        &[shutdown(), legacy("DeleteNone", "DeleteSelf")],
        &prefixed("shutdownAfterJobFinshes is set to 'true' while deletion policy is 'DeleteNone'"),
    );
    check(&[shutdown(), legacy("DeleteCluster", "DeleteSelf")], "");
}

#[test]
fn each_rule_is_judged_by_itself_and_all_faults_are_told() {
    let told = "deletionRules[0]: cannot set both JobStatus and JobDeploymentStatus at the same time\n\
                deletionRules[1]: exactly one of JobStatus and JobDeploymentStatus must be set\n\
                deletionRules[2]: TTLSeconds must be non-negative\n\
                deletionRules[4]: duplicate rule for DeletionPolicyType 'DeleteSelf' and JobStatus 'FAILED'\n\
                deletionRules[6]: duplicate rule for DeletionPolicyType 'DeleteSelf' and \
                JobDeploymentStatus 'Failed'";
    let both = json!({"jobStatus": "FAILED", "jobDeploymentStatus": "Failed"});
    check(
        &[rules(&json!([
            {"policy": "DeleteSelf", "condition": both},
            {"policy": "DeleteSelf", "condition": {}},
            rule("DeleteSelf", "FAILED", -1),
            rule("DeleteSelf", "FAILED", 1),
            rule("DeleteSelf", "FAILED", 2),
            deployment_rule("DeleteSelf", 1),
            deployment_rule("DeleteSelf", 2),
        ]))],
        told,
    );
    check(
        &[
            selector(),
            rules(&json!([
                rule("DeleteCluster", "FAILED", 0),
                rule("DeleteSelf", "FAILED", 0)
            ])),
        ],
        "deletionRules[0]: DeletionPolicyType 'DeleteCluster' not supported when ClusterSelector is set",
    );
    check(
        &[
            autoscaling(),
            rules(&json!([rule("DeleteWorkers", "FAILED", 0)])),
        ],
        "deletionRules[0]: DeletionPolicyType 'DeleteWorkers' not supported with autoscaling enabled",
    );
}

#[test]
fn what_has_more_impact_does_not_come_earlier() {
    check(
        &[rules(&json!([
            rule("DeleteCluster", "SUCCEEDED", 10),
            rule("DeleteWorkers", "SUCCEEDED", 20),
            rule("DeleteSelf", "SUCCEEDED", 5),
            rule("DeleteNone", "SUCCEEDED", 0),
        ]))],
        "for JobStatus 'SUCCEEDED': DeleteCluster TTL (10) must be >= DeleteWorkers TTL (20)\n\
         for JobStatus 'SUCCEEDED': DeleteSelf TTL (5) must be >= DeleteCluster TTL (10)",
    );
    check(
        &[rules(&json!([
            deployment_rule("DeleteWorkers", 9),
            deployment_rule("DeleteSelf", 8)
        ]))],
        "for JobDeploymentStatus 'Failed': DeleteSelf TTL (8) must be >= DeleteWorkers TTL (9)",
    );
    // Conditions of the two kinds are not compared with each other; equal times are fine.
    check(
        &[rules(&json!([
            rule("DeleteWorkers", "FAILED", 15),
            rule("DeleteCluster", "FAILED", 15),
            deployment_rule("DeleteSelf", 1),
        ]))],
        "",
    );
}

#[test]
fn a_job_runs_on_a_cluster_of_its_own_or_on_a_named_one() {
    check(
        &[("/spec/rayClusterSpec", json!(null))],
        &prefixed("one of RayClusterSpec or ClusterSelector must be set"),
    );
    check(
        &[("/spec/clusterSelector", json!({"other": "x"}))],
        "cluster name in ClusterSelector should not be empty",
    );
    let sidecar = ("/spec/submissionMode", json!("SidecarMode"));
    check(
        &[selector(), sidecar],
        "ClusterSelector is not supported in SidecarMode",
    );
    check(
        &[selector(), ("/spec/backoffLimit", json!(1))],
        &prefixed("BackoffLimit is incompatible with ClusterSelector mode"),
    );
    check(&[selector(), ("/spec/rayClusterSpec", json!(null))], "");
}

#[test]
fn modes_take_what_they_can_do() {
    let mode = |mode: &str| ("/spec/submissionMode", json!(mode));
    check(
        &[mode("InteractiveMode"), ("/spec/backoffLimit", json!(1))],
        &prefixed("BackoffLimit is incompatible with InteractiveMode"),
    );
    check(
        &[
            mode("SidecarMode"),
            ("/spec/submitterPodTemplate", json!({"spec": {}})),
        ],
        "Currently, SidecarMode doesn't support SubmitterPodTemplate",
    );
    check(
        &[
            mode("SidecarMode"),
            ("/spec/submitterConfig", json!({"backoffLimit": 1})),
        ],
        "Currently, SidecarMode doesn't support SubmitterConfig",
    );
    let policy = "/spec/rayClusterSpec/headGroupSpec/template/spec/restartPolicy";
    check(
        &[mode("SidecarMode"), (policy, json!("Always"))],
        "restartPolicy for head Pod should be Never or unset when using SidecarMode",
    );
    check(&[mode("SidecarMode"), (policy, json!("Never"))], "");
}

/// Upstream takes any text as a mode; such a job reaches Running and hangs there for ever.
#[test]
fn a_mode_that_nobody_knows_is_refused() {
    check(
        &[("/spec/submissionMode", json!("HttpMode"))],
        &prefixed(
            "submissionMode must be K8sJobMode, HTTPMode, InteractiveMode or SidecarMode, got \"HttpMode\"",
        ),
    );
}

#[test]
fn the_cluster_is_judged_with_the_annotations_of_the_job() {
    check(
        &[(
            "/spec/rayClusterSpec/authOptions/enableK8sTokenAuth",
            json!(true),
        )],
        &prefixed("K8s token auth mode is currently not supported for RayJob"),
    );
    check(
        &[("/spec/rayClusterSpec/upgradeStrategy/type", json!("None"))],
        &prefixed("upgradeStrategy cannot be set when RayCluster is created by RayJob"),
    );
    check(
        &[
            ("/spec/rayClusterSpec/gcsFaultToleranceOptions", json!({})),
            (
                "/metadata/annotations",
                json!({"ray.io/ft-enabled": "true"}),
            ),
        ],
        &prefixed(
            "ray.io/ft-enabled annotation and GcsFaultToleranceOptions are both set. Please use only \
             GcsFaultToleranceOptions to configure GCS fault tolerance",
        ),
    );
}

#[test]
fn a_runtime_environment_is_a_mapping() {
    for (text, found) in [("- a\n- b", "array"), ("word", "string"), ("7", "number")] {
        check(
            &[("/spec/runtimeEnvYAML", json!(text))],
            &format!(
                "failed to unmarshal RuntimeEnvYAML: error unmarshaling JSON: while decoding \
                 JSON: json: cannot unmarshal {found} into Go value of type types.RuntimeEnvType"
            ),
        );
    }
    check(&[("/spec/runtimeEnvYAML", json!("env_vars: {A: b}"))], "");
    check(&[("/spec/runtimeEnvYAML", json!("# nothing\n"))], "");
}

#[test]
fn deadlines_and_retries_are_positive() {
    for (field, value) in [
        ("activeDeadlineSeconds", 0),
        ("preRunningDeadlineSeconds", 0),
        ("backoffLimit", -1),
    ] {
        let path = format!("/spec/{field}");
        check(
            &[(path.as_str(), json!(value))],
            &prefixed(&format!("{field} must be a positive integer")),
        );
    }
    check(&[("/spec/backoffLimit", json!(0))], "");
}

#[test]
fn only_interactive_jobs_wait() {
    let waits = ("/status/jobDeploymentStatus", json!("Waiting"));
    assert_eq!(
        validate_status(&a_job(std::slice::from_ref(&waits)))
            .unwrap_err()
            .0,
        "The RayJob status is invalid: JobDeploymentStatus cannot be `Waiting` when SubmissionMode is \
         not InteractiveMode"
    );
    let interactive = ("/spec/submissionMode", json!("InteractiveMode"));
    assert_eq!(validate_status(&a_job(&[waits, interactive])), Ok(()));
}
