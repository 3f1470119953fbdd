//! What is refused by name, what is done, and what may stand in a manifest.

use serde_json::{Value, json};
use sundown_model::node::{self, CAPABILITIES, Call, RunAs};

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
fn rights_and_profiles_that_cannot_be_had_are_refused_by_name() {
    for (container, field) in [
        (
            json!({ "securityContext": { "capabilities": { "add": ["CHOWN", "CAP_NET_RAW"] } } }),
            "securityContext.capabilities.add: NET_RAW",
        ),
        (
            json!({ "securityContext": { "capabilities": { "add": ["ALL"] } } }),
            "securityContext.capabilities.add: ALL",
        ),
        (
            json!({ "securityContext": { "seccompProfile": { "type": "Localhost" } } }),
            "securityContext.seccompProfile.type: Localhost",
        ),
        (
            json!({ "securityContext": { "appArmorProfile": { "type": "Localhost" } } }),
            "securityContext.appArmorProfile.type: Localhost",
        ),
        (
            json!({ "securityContext": { "procMount": "Unmasked" } }),
            "securityContext.procMount: Unmasked",
        ),
        (
            json!({ "securityContext": { "seLinuxOptions": { "level": "s0" } } }),
            "securityContext.seLinuxOptions",
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
            "capabilities": { "drop": ["ALL"], "add": ["NET_BIND_SERVICE"] },
            "procMount": "Default",
            "appArmorProfile": { "type": "Unconfined" },
            "seccompProfile": { "type": "Unconfined" },
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

fn dropped(capabilities: &Value) -> Vec<String> {
    let context = json!({ "securityContext": { "capabilities": capabilities } });
    let calls = runs(with_container(&context));
    let Some(Call::Start(launch)) = calls.last() else {
        panic!("the start comes last: {calls:?}");
    };
    launch.dropped.clone()
}

#[test]
fn rights_that_a_container_gives_up_are_told_to_the_node() {
    let all = CAPABILITIES.map(str::to_owned);
    let none: [String; 0] = [];
    assert_eq!(dropped(&json!({})), none);
    assert_eq!(dropped(&json!({ "drop": ["ALL"] })), all);
    assert_eq!(dropped(&json!({ "drop": ["all"] })), all);
    let some = dropped(&json!({ "drop": ["CAP_CHOWN", "NET_RAW", "kill"], "add": ["KILL"] }));
    assert_eq!(some, ["CHOWN", "KILL"], "what is not there cannot go");
    let but_one = dropped(&json!({ "drop": ["ALL"], "add": ["NET_BIND_SERVICE"] }));
    assert_eq!(but_one.len(), all.len() - 1);
    assert!(!but_one.contains(&"NET_BIND_SERVICE".to_owned()));
}

fn told_until_it_runs(pod: A) -> String {
    let mut life = Life::of(pod);
    let mut told = Vec::new();
    for _ in 0..10 {
        told.extend(life.notes(0));
        for call in life.turn(0).1 {
            life.carry_out(&call, 0);
        }
    }
    told.join("\n")
}

#[test]
fn what_common_manifests_carry_and_is_not_done_is_told() {
    let profile = json!({ "type": "RuntimeDefault" });
    let of_pod = with_spec(&json!({ "securityContext": { "seccompProfile": profile } }));
    let of_container = with_container(&json!({ "securityContext": { "seccompProfile": profile } }));
    let ptrace = json!({ "capabilities": { "add": ["SYS_PTRACE"] } });
    let ptrace = with_container(&json!({ "securityContext": ptrace }));
    for (pod, words) in [
        (of_pod, "seccompProfile: RuntimeDefault is not enforced"),
        (
            of_container,
            "seccompProfile: RuntimeDefault is not enforced",
        ),
        (ptrace, "SYS_PTRACE is not given to container main"),
    ] {
        let told = told_until_it_runs(pod);
        assert!(
            told.contains("NotEnforced: ") && told.contains(words),
            "{told}"
        );
    }
    let own = json!({ "securityContext": { "seccompProfile": { "type": "Unconfined" } } });
    let pod = with_container(&own).with("/spec/securityContext/seccompProfile", profile);
    assert!(!told_until_it_runs(pod).contains("NotEnforced"));
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
    let refusal = DeedRefusal::new(node::Refused::FailedPreStopHook, "command exited with 1");
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

/// The first word of the container about what keeps it from starting.
fn waits_because(pod: A) -> String {
    let mut life = Life::of(pod);
    let calls = life.settle(0);
    assert!(starts(&calls).is_empty(), "{calls:?}");
    let waiting = life.status("/containerStatuses/0/state/waiting");
    waiting["message"].as_str().unwrap_or_default().to_owned()
}

/// Thirty thousand lines that each named one annotation asked for 15 GB in every decision.
#[test]
fn a_field_that_many_variables_name_is_not_copied_for_each() {
    let named = |bytes: usize, times: usize| {
        let source = json!({ "fieldRef": { "fieldPath": "metadata.annotations['x']" } });
        let variable = |it: usize| json!({ "name": format!("A{it}"), "valueFrom": source });
        let variables: Vec<Value> = (0..times).map(variable).collect();
        with_container(&json!({ "env": variables }))
            .with("/metadata/annotations", json!({ "x": "$".repeat(bytes) }))
    };
    let message = waits_because(named(200_000, 30_000));
    assert!(message.contains("env \"A0\" is too large"), "{message}");
    let message = waits_because(named(100_000, 30_000));
    assert!(message.contains("env \"A10\" is too large"), "{message}");
    runs(named(100_000, 10));
}

#[test]
fn a_field_that_many_files_name_is_not_copied_for_each() {
    let named = |times: usize| {
        let field = json!({ "fieldPath": "metadata.annotations['x']" });
        let item = |it: usize| json!({ "path": format!("f{it}"), "fieldRef": field });
        let items: Vec<Value> = (0..times).map(item).collect();
        with_spec(&json!({ "volumes": [{ "name": "v", "downwardAPI": { "items": items } }] }))
            .with("/metadata/annotations", json!({ "x": "x".repeat(200_000) }))
    };
    let mut life = Life::of(named(10_000));
    life.settle(0);
    let told = life.notes(0).join("\n") + &life.status("").to_string();
    assert!(
        told.contains("downward API item \"f20\" is too large"),
        "{}",
        told.chars().take(2_000).collect::<String>()
    );
    runs(named(20));
}

/// Each mount looked through all volumes, in every decision.
#[test]
fn mounts_are_found_among_many_volumes() {
    let all = 40_000;
    let volume = |it: usize| json!({ "name": format!("v{it}"), "emptyDir": {} });
    let volumes: Vec<Value> = (0..all).map(volume).collect();
    let last = format!("v{}", all - 1);
    let mount = |it: usize| json!({ "name": last, "mountPath": format!("/m{it}") });
    let mounts: Vec<Value> = (0..all).map(mount).collect();
    runs(with_container(&json!({ "volumeMounts": mounts })).with("/spec/volumes", json!(volumes)));
}
