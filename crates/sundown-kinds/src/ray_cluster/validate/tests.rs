//! Texts and order of what is refused.

use serde_json::{Value, json};

use super::*;
use crate::testing::a_cluster;

#[track_caller]
fn check(changes: &[(&str, Value)], expected: &str) {
    check_with(&Gates::default(), changes, expected);
}

#[track_caller]
fn check_with(gates: &Gates, changes: &[(&str, Value)], expected: &str) {
    let cluster = a_cluster(changes);
    let told = validate_spec(&cluster.spec, &cluster.metadata, gates);
    assert_eq!(told.err().map(|it| it.0).unwrap_or_default(), expected);
}

const HEAD: &str = "/spec/headGroupSpec";
const GROUP: &str = "/spec/workerGroupSpecs/0";

fn head(path: &str) -> String {
    format!("{HEAD}{path}")
}

fn group(path: &str) -> String {
    format!("{GROUP}{path}")
}

fn env(name: &str, value: &str) -> Value {
    json!([{"name": name, "value": value}])
}

#[test]
fn names_are_short_labels_that_begin_with_a_letter() {
    for (name, expected) in [
        ("c".repeat(53), ""),
        (
            "c".repeat(54),
            "RayCluster name should be no more than 53 characters",
        ),
        (
            "9lives".into(),
            "RayCluster name should be a valid DNS1035 label: [a DNS-1035 label must consist of lower \
             case alphanumeric characters or '-', start with an alphabetic character, and end with an \
             alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
             '[a-z]([-a-z0-9]*[a-z0-9])?')]",
        ),
    ] {
        let metadata = Metadata {
            name,
            ..Metadata::default()
        };
        let told = validate_metadata(&metadata).err().map(|it| it.0);
        assert_eq!(told.unwrap_or_default(), expected);
    }
}

#[test]
fn a_plain_cluster_is_fine() {
    check(&[], "");
}

#[test]
fn groups_need_containers_and_bounds() {
    check(
        &[(&head("/template/spec/containers"), json!([]))],
        "headGroupSpec should have at least one container",
    );
    check(
        &[(&group("/template/spec/containers"), json!([]))],
        "workerGroupSpec should have at least one container",
    );
    check(
        &[(&group("/minReplicas"), json!(null))],
        "worker group small must set both minReplicas and maxReplicas when autoscaling is disabled",
    );
    check(
        &[(&group("/minReplicas"), json!(-1))],
        "worker group small has negative minReplicas -1",
    );
    check(
        &[(&group("/maxReplicas"), json!(-2))],
        "worker group small has negative maxReplicas -2",
    );
    check(
        &[(&group("/minReplicas"), json!(9))],
        "worker group small has minReplicas 9 greater than maxReplicas 5",
    );
    let scaling = ("/spec/enableInTreeAutoscaling", json!(true));
    check(&[scaling, (&group("/minReplicas"), json!(null))], "");
}

#[test]
fn resources_and_labels_are_said_once() {
    check(
        &[
            (&head("/rayStartParams"), json!({"num-cpus": "1"})),
            (&head("/resources"), json!({"cpu": "1"})),
        ],
        "resource fields should not be set in both rayStartParams and Resources for Head group; please \
         use only one",
    );
    check(
        &[(&group("/rayStartParams"), json!({"labels": ""}))],
        "rayStartParams['labels'] is not supported for small group; please use the top-level Labels \
         field instead",
    );
    let cluster = a_cluster(&[(&head("/labels"), json!({"a b": "c", "ok": "no!"}))]);
    let told = validate_spec(&cluster.spec, &cluster.metadata, &Gates::default())
        .unwrap_err()
        .0;
    let parts: Vec<&str> = told.split("; ").collect();
    assert!(
        parts[0].starts_with("invalid label key for Head group: 'a b', error: name part"),
        "{told}"
    );
    assert!(
        parts[1].starts_with("invalid label value for key 'ok' in Head group: 'no!', error: "),
        "{told}"
    );
}

#[test]
fn idle_timeouts_and_priorities_need_the_second_autoscaler() {
    check(
        &[(&group("/idleTimeoutSeconds"), json!(-1))],
        "worker group small: idleTimeoutSeconds must be non-negative, got -1",
    );
    check(
        &[(&group("/idleTimeoutSeconds"), json!(1))],
        "worker group small: idleTimeoutSeconds is set, but autoscaler v2 is not enabled. Please set \
         .spec.autoscalerOptions.version to 'v2' (or set RAY_enable_autoscaler_v2 environment variable \
         to 'true' in the head pod if using KubeRay < 1.4.0)",
    );
    let priority = (group("/priority"), json!(1));
    let priority = (priority.0.as_str(), priority.1);
    check(
        std::slice::from_ref(&priority),
        "worker group small: priority is set, but minimum Ray version is 2.56.0, got 2.55.0",
    );
    check(
        &[priority.clone(), ("/spec/rayVersion", json!("2.56.0"))],
        "worker group small: priority is set to 1, but autoscaler v2 is not enabled. Priority is only \
         supported with autoscaler v2 enabled",
    );
    check(
        &[
            priority,
            ("/spec/rayVersion", json!("2.56.0")),
            ("/spec/enableInTreeAutoscaling", json!(true)),
            ("/spec/autoscalerOptions/version", json!("v2")),
        ],
        "",
    );
}

#[test]
fn fault_tolerance_is_asked_for_in_one_place() {
    let options = (
        "/spec/gcsFaultToleranceOptions",
        json!({"redisAddress": "redis:6379"}),
    );
    let head_env = head("/template/spec/containers/0/env");
    let tail = |field: &str| {
        format!(
            " when GcsFaultToleranceOptions is enabled - use GcsFaultToleranceOptions.{field} instead"
        )
    };
    check(
        &[
            options.clone(),
            (
                "/metadata/annotations",
                json!({"ray.io/ft-enabled": "false"}),
            ),
        ],
        "ray.io/ft-enabled annotation and GcsFaultToleranceOptions are both set. Please use only \
         GcsFaultToleranceOptions to configure GCS fault tolerance",
    );
    check(
        &[(&head_env, env("RAY_REDIS_ADDRESS", "r"))],
        "RAY_REDIS_ADDRESS is set which implicitly enables GCS fault tolerance, but \
         GcsFaultToleranceOptions is not set. Please set GcsFaultToleranceOptions to enable GCS fault \
         tolerance",
    );
    check(
        &[
            options.clone(),
            (&head("/rayStartParams"), json!({"redis-password": "p"})),
        ],
        &format!(
            "cannot set `redis-password` in rayStartParams{}",
            tail("RedisPassword")
        ),
    );
    check(
        &[options.clone(), (&head_env, env("REDIS_PASSWORD", "p"))],
        &format!(
            "cannot set `REDIS_PASSWORD` env var in head Pod{}",
            tail("RedisPassword")
        ),
    );
    check(
        &[options.clone(), (&head_env, env("RAY_REDIS_ADDRESS", "p"))],
        &format!(
            "cannot set `RAY_REDIS_ADDRESS` env var in head Pod{}",
            tail("RedisAddress")
        ),
    );
    let namespace = json!({"ray.io/external-storage-namespace": "x"});
    check(
        &[options.clone(), ("/metadata/annotations", namespace)],
        &format!(
            "cannot set `ray.io/external-storage-namespace` annotation{}",
            tail("ExternalStorageNamespace")
        ),
    );
    check(
        &[(&head_env, env("REDIS_USERNAME", "u"))],
        "cannot set redis username in rayStartParams or environment variables - use \
         GcsFaultToleranceOptions.RedisUsername instead",
    );
    check(&[options], "");
    check(&[("/spec/gcsFaultToleranceOptions", json!({}))], "");
}

#[test]
fn the_embedded_backend_is_gated_and_takes_nothing_of_redis() {
    let backend = ("/spec/gcsFaultToleranceOptions/backend", json!("rocksdb"));
    check(
        std::slice::from_ref(&backend),
        "the embedded RocksDB GCS fault tolerance backend (GcsFaultToleranceOptions.Backend: 'rocksdb') \
         requires the GCSFaultToleranceEmbeddedStorage feature gate to be enabled",
    );
    let gates = Gates {
        gcs_fault_tolerance_embedded_storage: true,
        ..Gates::default()
    };
    check_with(&gates, std::slice::from_ref(&backend), "");
    check_with(
        &gates,
        &[
            backend.clone(),
            ("/spec/gcsFaultToleranceOptions/redisAddress", json!("r")),
        ],
        "cannot set GcsFaultToleranceOptions.RedisAddress when backend is 'rocksdb'",
    );
    check_with(
        &gates,
        &[
            backend,
            (
                "/spec/gcsFaultToleranceOptions/storage",
                json!({"claimName": "c", "size": "1Gi"}),
            ),
        ],
        "GcsFaultToleranceOptions.Storage.ClaimName is mutually exclusive with size, storageClassName, \
         and accessModes",
    );
    check(
        &[("/spec/gcsFaultToleranceOptions/storage", json!({}))],
        "cannot set GcsFaultToleranceOptions.Storage when backend is 'redis' - it only applies to the \
         'rocksdb' backend",
    );
}

#[test]
fn groups_are_suspended_only_where_nothing_scales_them() {
    let suspended = (group("/suspend"), json!(true));
    let suspended = (suspended.0.as_str(), suspended.1);
    check(std::slice::from_ref(&suspended), "");
    let gates = Gates {
        ray_job_deletion_policy: false,
        ..Gates::default()
    };
    check_with(
        &gates,
        std::slice::from_ref(&suspended),
        "worker group small can be suspended only when the RayJobDeletionPolicy feature gate is enabled",
    );
    check(
        &[suspended, ("/spec/enableInTreeAutoscaling", json!(true))],
        "worker group small cannot be suspended with Autoscaler enabled",
    );
}

#[test]
fn autoscalers_are_asked_for_in_one_way() {
    let on = ("/spec/enableInTreeAutoscaling", json!(true));
    let v2 = ("/spec/autoscalerOptions/version", json!("v2"));
    let head_env = head("/template/spec/containers/0/env");
    let asks = (head_env.as_str(), env("RAY_enable_autoscaler_v2", "true"));
    check(
        std::slice::from_ref(&asks),
        "environment variable RAY_enable_autoscaler_v2 cannot be set to 'true' when \
         enableInTreeAutoscaling is false. Please set enableInTreeAutoscaling: true to use autoscaler v2",
    );
    check(
        &[on.clone(), v2.clone(), asks],
        "both .spec.autoscalerOptions.version and head Pod env var RAY_enable_autoscaler_v2 are set, \
         please only use the former",
    );
    check(
        &[
            on.clone(),
            v2.clone(),
            (&head("/template/spec/restartPolicy"), json!("Always")),
        ],
        "restartPolicy for head Pod should be Never or unset when using autoscaler V2",
    );
    check(
        &[
            on,
            v2,
            (&group("/template/spec/restartPolicy"), json!("OnFailure")),
        ],
        "restartPolicy for worker group small should be Never or unset when using autoscaler V2",
    );
    check(
        &[("/spec/autoscalerOptions/idleTimeoutSeconds", json!(-3))],
        "autoscalerOptions.idleTimeoutSeconds must be non-negative, got -3",
    );
}

#[test]
fn tokens_need_a_ray_that_knows_them() {
    let token = ("/spec/authOptions/mode", json!("token"));
    let review = ("/spec/authOptions/enableK8sTokenAuth", json!(true));
    let version = |text: &str| ("/spec/rayVersion", json!(text));
    check(std::slice::from_ref(&token), "");
    check(
        &[token.clone(), version("")],
        "authOptions.mode is 'token' but RayVersion was not specified. Ray version 2.52.0 or later is \
         required",
    );
    check(
        &[token.clone(), version("2.51.0")],
        "authOptions.mode is 'token' but minimum Ray version is 2.52.0, got 2.51.0",
    );
    check(
        &[token.clone(), review.clone(), version("2.54.0")],
        "authOptions.enableK8sTokenAuth is enabled but minimum Ray version is 2.55.0, got 2.54.0",
    );
    check(
        &[
            token,
            review.clone(),
            ("/spec/authOptions/secretName", json!("s")),
        ],
        "authOptions.enableK8sTokenAuth is enabled and authOptions.secretName is also set",
    );
    check(
        &[review],
        "authOptions.enableK8sTokenAuth is enabled but authOptions.mode not set to 'token'",
    );
}

#[test]
fn history_policies_and_tls_are_gated_and_consistent() {
    check(
        &[("/spec/historyServerOptions", json!({}))],
        "RayClusterHistoryServer feature gate is not enabled",
    );
    check(
        &[("/spec/networkPolicy", json!({}))],
        "spec.networkPolicy requires the RayClusterNetworkPolicy feature gate to be enabled",
    );
    check(
        &[("/spec/tlsOptions", json!({"enabled": false}))],
        "spec.tlsOptions requires the RayClusterMTLS feature gate to be enabled",
    );
    let gates = Gates {
        ray_cluster_history_server: true,
        ray_cluster_network_policy: true,
        ray_cluster_mtls: true,
        ..Gates::default()
    };
    let collector = json!({"collectorOptions": {"image": "i", "env": [
        {"name": "STORAGE_BACKEND", "value": "s3"}]}});
    check_with(
        &gates,
        &[("/spec/historyServerOptions", collector)],
        "S3_REGION environment variable must be set when STORAGE_BACKEND is S3",
    );
    check_with(
        &gates,
        &[(
            "/spec/networkPolicy",
            json!({"mode": "DenyAllEgress", "head": {"ingressRules": [{}]}}),
        )],
        "networkPolicy.head.ingressRules cannot be set when mode is \"DenyAllEgress\" (ingress is not \
         restricted)",
    );
    check_with(
        &gates,
        &[(
            "/spec/networkPolicy",
            json!({"workerGroups": [{"groupName": "big"}]}),
        )],
        "networkPolicy.workerGroups[\"big\"] does not match any group name in workerGroupSpecs",
    );
    check_with(
        &gates,
        &[
            ("/spec/tlsOptions", json!({"enabled": true})),
            (
                &group("/template/spec/containers/0/env"),
                env("RAY_USE_TLS", "1"),
            ),
        ],
        "cannot set RAY_USE_TLS environment variable in worker group \"small\" when tlsOptions is set - \
         the operator manages TLS configuration automatically",
    );
}

#[test]
fn only_a_cluster_of_a_user_says_how_it_is_upgraded() {
    let recreate = ("/spec/upgradeStrategy/type", json!("Recreate"));
    let of_job = (
        "/metadata/labels",
        json!({"ray.io/originated-from-crd": "RayJob"}),
    );
    assert_eq!(
        validate_upgrade(&a_cluster(std::slice::from_ref(&recreate))),
        Ok(())
    );
    let told = validate_upgrade(&a_cluster(&[recreate, of_job])).unwrap_err();
    assert_eq!(
        told.0,
        "upgradeStrategy cannot be set when RayCluster is created by RayJob"
    );
}

#[test]
fn a_cluster_is_not_suspending_and_suspended_at_once() {
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": kind, "message": "",
               "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let both = json!([
        condition("RayClusterSuspending"),
        condition("RayClusterSuspended")
    ]);
    let told = validate_status(&a_cluster(&[("/status/conditions", both)])).unwrap_err();
    assert_eq!(
        told.0,
        "invalid RayCluster State: rayv1.RayClusterSuspending and rayv1.RayClusterSuspended conditions \
         should not be both true"
    );
}

#[test]
fn at_admission_groups_must_have_names_of_their_own() {
    let spec = a_cluster(&[]).spec.raw["workerGroupSpecs"][0].clone();
    let twice = ("/spec/workerGroupSpecs", json!([spec, spec]));
    let told = validate_admission(&a_cluster(&[twice])).unwrap_err();
    assert_eq!(told.0, "worker group names must be unique");
}

#[test]
fn what_cannot_be_read_names_its_field() {
    let broken = [
        (
            "/spec/headGroupSpec/rayStartParams",
            json!({"a": 1}),
            "spec.headGroupSpec.rayStartParams",
        ),
        (
            "/spec/workerGroupSpecs",
            json!([1]),
            "spec.workerGroupSpecs[0]",
        ),
        (
            "/spec/workerGroupSpecs/0/replicas",
            json!("x"),
            "spec.workerGroupSpecs[0].replicas",
        ),
        (
            "/status/lastUpdateTime",
            json!("noon"),
            "status.lastUpdateTime",
        ),
        ("/spec", json!(7), "spec"),
    ];
    for (path, value, field) in broken {
        let json = crate::testing::with(crate::testing::cluster_json(), &[(path, value)]);
        assert_eq!(RayCluster::read(&json).unwrap_err().field, field);
    }
}
