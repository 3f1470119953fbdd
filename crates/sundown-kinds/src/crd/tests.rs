//! The definitions as a server judges them, and what their schemas take and refuse.

use serde_json::{Value, json};
use sundown_schema::{Compiler, Schema, check};

use crate::testing::{cluster_json, job_json, with};

fn ray_job() -> Value {
    serde_json::from_str(&super::ray_job()).unwrap()
}

fn ray_cluster() -> Value {
    serde_json::from_str(&super::ray_cluster()).unwrap()
}

fn schemas(definition: &Value) -> Vec<(String, Value)> {
    let versions = definition["spec"]["versions"].as_array().unwrap().iter();
    versions
        .map(|version| {
            let name = version["name"].as_str().unwrap().to_owned();
            (name, version["schema"]["openAPIV3Schema"].clone())
        })
        .collect()
}

fn schema_of(definition: &Value) -> Schema {
    Compiler::default().compile(&definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
}

/// What the schema says to an object, defaults filled in before.
fn problems(schema: &Schema, object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut object = object.clone();
    schema.default(&mut object);
    let problems = schema.validate(&object, old);
    problems
        .iter()
        .map(|problem| format!("{}: {}", problem.field, problem.text))
        .collect()
}

#[test]
fn every_version_is_structural_and_its_rules_compile() {
    for definition in [ray_job(), ray_cluster()] {
        for (version, schema) in schemas(&definition) {
            let wrong = check(&schema, "openAPIV3Schema", true);
            assert!(wrong.is_empty(), "{version}: {wrong:?}");
        }
    }
}

#[test]
fn the_old_version_is_served_with_a_warning_and_stored_as_the_new_one() {
    let definition = ray_job();
    let versions = &definition["spec"]["versions"];
    assert_eq!(versions[0]["storage"], true);
    assert_eq!(versions[1]["served"], true);
    assert_eq!(versions[1]["storage"], false);
    assert_eq!(
        versions[1]["deprecationWarning"],
        "ray.io/v1alpha1 RayJob is deprecated; use ray.io/v1 RayJob. v1alpha1 receives no new fields \
         and will be unavailable in KubeRay 1.9."
    );
}

#[test]
fn a_plain_job_and_cluster_are_taken_and_completed() {
    let schema = schema_of(&ray_job());
    assert_eq!(problems(&schema, &job_json(), None), [""; 0]);
    let mut job = job_json();
    schema.default(&mut job);
    assert_eq!(job["spec"]["submissionMode"], "K8sJobMode");
    assert_eq!(job["spec"]["backoffLimit"], 0);
    let group = &job["spec"]["rayClusterSpec"]["workerGroupSpecs"][0];
    assert_eq!(group["priority"], 0);
    let schema = schema_of(&ray_cluster());
    assert_eq!(problems(&schema, &cluster_json(), None), [""; 0]);
}

#[test]
fn templates_keep_five_members_of_their_metadata() {
    let schema = schema_of(&ray_cluster());
    let metadata = json!({"name": "n", "labels": {"a": "b"}, "generateName": "x", "uid": "y"});
    let template = "/spec/headGroupSpec/template/metadata";
    let mut cluster = with(cluster_json(), &[(template, metadata)]);
    let pruned = schema.prune(&mut cluster);
    let base = "spec.headGroupSpec.template.metadata";
    assert_eq!(
        pruned,
        [format!("{base}.generateName"), format!("{base}.uid")]
    );
}

#[test]
fn wrong_jobs_are_refused_with_the_words_of_the_rules() {
    let schema = schema_of(&ray_job());
    let rule = json!({"policy": "DeleteSelf", "condition": {"jobStatus": "FAILED"}});
    let strategy = "/spec/deletionStrategy";
    for (path, value, expected) in [
        (
            "/spec/managedBy",
            json!("someone"),
            "the managedBy field value must be either 'ray.io/kuberay-operator' or \
             'kueue.x-k8s.io/multikueue'",
        ),
        (
            strategy,
            json!({"onSuccess": {"policy": "DeleteSelf"}, "deletionRules": [rule]}),
            "legacy policies (onSuccess/onFailure) and deletionRules cannot be used together within the \
             same deletionStrategy",
        ),
        (
            strategy,
            json!({"onSuccess": {"policy": "DeleteSelf"}}),
            "deletionStrategy requires either BOTH onSuccess and onFailure, OR the deletionRules field \
             (cannot be empty)",
        ),
        (
            strategy,
            json!({"deletionRules": [{"policy": "DeleteSelf", "condition": {}}]}),
            "the deletion condition requires either the JobStatus or the JobDeploymentStatus field.",
        ),
        (
            strategy,
            json!({"deletionRules": [{"policy": "DeleteSelf", "condition":
                {"jobStatus": "FAILED", "jobDeploymentStatus": "Failed"}}]}),
            "JobStatus and JobDeploymentStatus cannot be used together within the same deletion \
             condition.",
        ),
    ] {
        let told = problems(&schema, &with(job_json(), &[(path, value)]), None);
        assert!(
            told.iter().any(|text| text.contains(expected)),
            "{expected}: {told:?}"
        );
    }
    let fine = json!({"deletionRules": [rule]});
    assert_eq!(
        problems(&schema, &with(job_json(), &[(strategy, fine)]), None),
        [""; 0]
    );
}

#[test]
fn jobs_are_refused_for_values_out_of_bounds() {
    let schema = schema_of(&ray_job());
    let strategy = "/spec/deletionStrategy";
    for (path, value, expected) in [
        (
            strategy,
            json!({"deletionRules": []}),
            "should have at least 1 items",
        ),
        (
            strategy,
            json!({"deletionRules": [{"policy": "Delete", "condition": {"jobStatus": "FAILED"}}]}),
            "Unsupported value",
        ),
        (
            strategy,
            json!({"deletionRules": [{"policy": "DeleteSelf", "condition":
                {"jobStatus": "FAILED", "ttlSeconds": -1}}]}),
            "greater than or equal to 0",
        ),
        (
            "/spec/preRunningDeadlineSeconds",
            json!(0),
            "greater than or equal to 1",
        ),
        (
            "/spec/rayClusterSpec/headGroupSpec/template",
            json!(null),
            "Required value",
        ),
    ] {
        let told = problems(&schema, &with(job_json(), &[(path, value)]), None);
        assert!(
            told.iter().any(|text| text.contains(expected)),
            "{expected}: {told:?}"
        );
    }
}

#[test]
fn what_is_immutable_stays_as_it_is() {
    let path = "/spec/managedBy";
    let old = with(job_json(), &[(path, json!("kueue.x-k8s.io/multikueue"))]);
    let new = with(job_json(), &[(path, json!("ray.io/kuberay-operator"))]);
    let told = problems(&schema_of(&ray_job()), &new, Some(&old));
    assert!(
        told[0].ends_with("the managedBy field is immutable"),
        "{told:?}"
    );
    let path = "/spec/gcsFaultToleranceOptions/backend";
    let old = with(cluster_json(), &[(path, json!("redis"))]);
    let new = with(cluster_json(), &[(path, json!("rocksdb"))]);
    let told = problems(&schema_of(&ray_cluster()), &new, Some(&old));
    assert!(
        told[0].ends_with("gcsFaultToleranceOptions.backend is immutable"),
        "{told:?}"
    );
}
