//! What is refused by name, what is done, and what may stand in a manifest.

use serde_json::{Value, json};
use sundown_model::node::{Call, RunAs};

use super::life::{Life, a_pod, run, signals, starts};
use crate::pod::Reason;
use crate::testing::A;

fn with_container(members: &Value) -> A {
    let mut container = json!({ "name": "main", "image": "i" });
    for (name, value) in members.as_object().unwrap() {
        container[name] = value.clone();
    }
    a_pod().with("/spec/containers", json!([container]))
}

fn with_spec(members: &Value) -> A {
    let members = members.as_object().unwrap().iter();
    members.fold(a_pod(), |pod, (name, value)| {
        pod.with(&format!("/spec/{name}"), value.clone())
    })
}

/// The pod stays without a place, and its container says why.
fn is_refused(pod: A, field: &str) {
    let mut life = Life::of(pod);
    assert!(life.settle(0).is_empty(), "{field}: nothing is done");
    let waiting = life.status("/containerStatuses/0/state/waiting");
    assert_eq!(waiting["reason"], "CreateContainerConfigError", "{field}");
    let message = waiting["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains(field), "{message} names {field}");
    assert_eq!(life.status("/phase"), "Pending");
    let told = life.notes(0).join("\n");
    assert!(
        told.contains(&format!("Failed: Error: {message}")),
        "{told}"
    );
    assert_eq!(life.decide(0).reason, Reason::Unsupported { message });
}

fn runs(pod: A) -> Vec<Call> {
    let mut life = Life::of(pod);
    let calls = life.settle(0);
    assert_eq!(starts(&calls), [("main".to_owned(), 0)], "{calls:?}");
    calls
}

#[test]
fn what_a_pod_asks_for_in_vain_is_refused_by_name() {
    for (spec, field) in [
        (json!({ "hostNetwork": true }), "spec.hostNetwork"),
        (json!({ "hostPID": true }), "spec.hostPID"),
        (json!({ "hostIPC": true }), "spec.hostIPC"),
        (json!({ "hostUsers": false }), "spec.hostUsers"),
        (
            json!({ "shareProcessNamespace": true }),
            "spec.shareProcessNamespace",
        ),
        (
            json!({ "setHostnameAsFQDN": true }),
            "spec.setHostnameAsFQDN",
        ),
        (
            json!({ "runtimeClassName": "kata" }),
            "spec.runtimeClassName",
        ),
        (
            json!({ "resourceClaims": [{ "name": "gpu" }] }),
            "spec.resourceClaims",
        ),
        (
            json!({ "ephemeralContainers": [{ "name": "debug" }] }),
            "spec.ephemeralContainers",
        ),
        (json!({ "dnsPolicy": "None" }), "spec.dnsPolicy"),
        (
            json!({ "dnsConfig": { "nameservers": ["1.1.1.1"] } }),
            "spec.dnsConfig.nameservers",
        ),
        (
            json!({ "securityContext": { "sysctls": [{ "name": "a", "value": "1" }] } }),
            "sysctls",
        ),
        (
            json!({ "securityContext": { "runAsUser": 7, "supplementalGroups": [8] } }),
            "spec.securityContext.supplementalGroups",
        ),
        (
            json!({
                "securityContext": { "runAsUser": 7, "fsGroup": 8 },
                "volumes": [{ "name": "s", "secret": { "secretName": "s", "defaultMode": 0o400 } }],
            }),
            "spec.securityContext.fsGroup",
        ),
        (
            json!({ "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "c" } }] }),
            "persistentVolumeClaim",
        ),
        (
            json!({ "volumes": [{ "name": "v", "nfs": { "path": "/" } }] }),
            "nfs",
        ),
    ] {
        is_refused(with_spec(&spec), field);
    }
}

#[test]
fn what_a_container_asks_for_in_vain_is_refused_by_name() {
    let exec = json!({ "exec": { "command": ["true"] } });
    for (container, field) in [
        (
            json!({ "securityContext": { "privileged": true } }),
            "securityContext.privileged",
        ),
        (
            json!({ "lifecycle": { "postStart": exec } }),
            "lifecycle.postStart",
        ),
        (
            json!({ "lifecycle": { "preStop": { "sleep": { "seconds": 1 } } } }),
            "preStop.sleep",
        ),
        (
            json!({ "ports": [{ "containerPort": 80, "hostPort": 80 }] }),
            "ports.hostPort",
        ),
        (
            json!({ "volumeDevices": [{ "name": "v", "devicePath": "/dev/x" }] }),
            "volumeDevices",
        ),
        (
            json!({ "restartPolicyRules": [{ "action": "Restart" }] }),
            "restartPolicyRules",
        ),
        (
            json!({ "livenessProbe": { "grpc": { "port": 1 } } }),
            "livenessProbe.grpc",
        ),
        (
            json!({ "readinessProbe": { "httpGet": { "host": "h", "port": 1 } } }),
            "readinessProbe.httpGet.host",
        ),
        (
            json!({ "startupProbe": { "tcpSocket": { "port": "nameless" } } }),
            "startupProbe",
        ),
        (
            json!({ "volumeMounts": [{ "name": "v", "mountPath": "/v", "subPathExpr": "$(A)" }] }),
            "volumeMounts.subPathExpr",
        ),
        (
            json!({ "volumeMounts": [
                { "name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional" } ] }),
            "volumeMounts.mountPropagation",
        ),
    ] {
        is_refused(with_container(&container), field);
    }
}

#[test]
fn a_refused_container_is_named_before_the_turn_of_its_init_containers() {
    let main = json!([{ "name": "main", "image": "i", "securityContext": { "privileged": true } }]);
    let init = json!([{ "name": "first", "image": "i" }]);
    let pod = a_pod()
        .with("/spec/containers", main)
        .with("/spec/initContainers", init);
    is_refused(pod, "securityContext.privileged");
}

#[test]
fn what_changes_nothing_on_one_machine_may_stand_in_a_manifest() {
    for spec in [
        json!({ "securityContext": {} }),
        json!({ "securityContext": { "fsGroup": 100, "supplementalGroups": [5] } }),
        json!({ "securityContext": { "runAsUser": 1000, "fsGroup": 100 } }),
        json!({ "securityContext": { "seccompProfile": { "type": "RuntimeDefault" } } }),
        json!({ "hostNetwork": false, "hostPID": false, "hostUsers": true }),
        json!({ "dnsPolicy": "ClusterFirst" }),
        json!({ "dnsPolicy": "Default", "dnsConfig": { "options": [{ "name": "ndots" }] } }),
        json!({ "shareProcessNamespace": false, "ephemeralContainers": [] }),
    ] {
        runs(with_spec(&spec));
    }
    runs(with_container(&json!({
        "securityContext": {
            "allowPrivilegeEscalation": false, "privileged": false,
            "capabilities": { "drop": ["ALL"], "add": ["SYS_PTRACE"] },
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "resources": { "limits": { "cpu": "1", "memory": "2Gi" } },
        "ports": [{ "containerPort": 6379, "name": "gcs" }],
        "lifecycle": { "preStop": { "exec": { "command": ["/bin/sh", "-c", "ray stop"] } } },
        "livenessProbe": { "exec": { "command": ["true"] } },
        "startupProbe": { "httpGet": { "port": "gcs" } },
    })));
}

#[test]
fn the_user_is_the_containers_own_else_that_of_the_pod() {
    let pod = with_container(&json!({ "securityContext": { "runAsUser": 7 } })).with(
        "/spec/securityContext",
        json!({ "runAsUser": 1, "runAsGroup": 2, "runAsNonRoot": true }),
    );
    let calls = runs(pod);
    let Some(Call::Start(launch)) = calls.last() else {
        panic!("the start comes last: {calls:?}");
    };
    let expect = RunAs {
        user: Some(7),
        group: Some(2),
        not_root: true,
    };
    assert_eq!(launch.run_as, expect);
}

#[test]
fn searches_of_a_manifest_follow_those_of_the_cluster() {
    let spec = json!({ "dnsConfig": { "searches": ["corp.example"] } });
    let calls = runs(with_spec(&spec));
    let Call::Prepare(sandbox) = &calls[0] else {
        panic!("a place first");
    };
    assert_eq!(sandbox.search.last().unwrap(), "corp.example");
}

fn with_hook() -> Life {
    let hook = json!({ "preStop": { "exec": { "command": ["ray", "stop"] } } });
    let mut life = Life::of(with_container(&json!({ "lifecycle": hook })));
    life.settle(0);
    life
}

#[test]
fn the_last_command_runs_before_the_end_is_told_and_within_the_grace() {
    let mut life = with_hook();
    life.delete(40, 30);
    let (_, calls) = life.turn(10);
    let [
        Call::Hook {
            run: of,
            command,
            timeout_seconds,
        },
    ] = &calls[..]
    else {
        panic!("the command first: {calls:?}");
    };
    assert_eq!((of, timeout_seconds), (&run(0), &30));
    assert_eq!(command[..], ["ray", "stop"]);
    assert_eq!(signals(&life.turn(20).1), [15]);
    assert!(life.turn(30).1.is_empty());
    assert_eq!(signals(&life.turn(40).1), [9]);
}

#[test]
fn a_last_command_that_fails_is_told_and_the_end_follows() {
    use sundown_model::{DeedOutcome, DeedRefusal, Subject};
    let mut life = with_hook();
    life.delete(40, 30);
    let refusal = DeedRefusal {
        missing: None,
        reason: "FailedPreStopHook".to_owned(),
        message: "command exited with 1".to_owned(),
    };
    let outcome = DeedOutcome::Refused(refusal);
    life.scene = life.scene.clone().done(Subject::Hook(run(0)), 11, outcome);
    let told = life.notes(12).join("\n");
    assert!(
        told.contains("FailedPreStopHook: PreStopHook failed: command exited"),
        "{told}"
    );
    assert_eq!(signals(&life.turn(12).1), [15]);
}

#[test]
fn without_grace_there_is_no_last_command() {
    let mut life = with_hook();
    life.delete(10, 0);
    assert_eq!(signals(&life.turn(10).1), [9]);
}
