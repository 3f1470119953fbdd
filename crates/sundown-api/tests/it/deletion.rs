//! Finalizers and DELETE: A01 to A09, A13, A14, A17 and A21 of the acceptance list.

use serde_json::{Value, json};
use sundown_api::Config;

use crate::world::{CM, JOBS, PODS, SUNJOBS, World, cm, held, job, pod, sunjob};

/// The finalizers after a DELETE with these options; None if the object is gone.
fn after_delete(stored: &[&str], options: &Value) -> Option<Value> {
    let mut world = World::new();
    let before = world.post(CM, &held("a", stored)).ok().uid();
    world.delete(&format!("{CM}/a"), options).ok();
    let left = world.get(&format!("{CM}/a"));
    if left.code == 404 {
        return None;
    }
    assert_eq!(left.uid(), before, "the same incarnation is left");
    assert!(left.metadata("deletionTimestamp").is_string());
    Some(left.metadata("finalizers").clone())
}

#[test]
fn adds_the_finalizer_that_the_policy_needs() {
    let policy = |policy: &str| json!({ "propagationPolicy": policy });
    assert_eq!(
        after_delete(&[], &policy("Foreground")),
        Some(json!(["foregroundDeletion"]))
    );
    assert_eq!(
        after_delete(&[], &policy("Orphan")),
        Some(json!(["orphan"]))
    );
    assert_eq!(after_delete(&[], &policy("Background")), None);
    assert_eq!(after_delete(&[], &Value::Null), None);
}

#[test]
fn lets_options_override_the_finalizers_that_are_there() {
    let policy = |policy: &str| json!({ "propagationPolicy": policy });
    for stored in ["orphan", "foregroundDeletion"] {
        let foreground = after_delete(&[stored], &policy("Foreground"));
        assert_eq!(foreground, Some(json!(["foregroundDeletion"])), "{stored}");
        assert_eq!(
            after_delete(&[stored], &policy("Orphan")),
            Some(json!(["orphan"])),
            "{stored}"
        );
        assert_eq!(
            after_delete(&[stored], &policy("Background")),
            None,
            "{stored}"
        );
        assert_eq!(
            after_delete(&[stored], &Value::Null),
            Some(json!([stored])),
            "{stored}"
        );
    }
}

#[test]
fn reads_orphan_dependents_as_upstream_does() {
    let orphan = |orphan: bool| json!({ "orphanDependents": orphan });
    let others = "example.com/x";
    let kept = Some(json!([others]));
    assert_eq!(after_delete(&[], &orphan(true)), Some(json!(["orphan"])));
    assert_eq!(after_delete(&[], &orphan(false)), None);
    assert_eq!(
        after_delete(&["orphan"], &orphan(true)),
        Some(json!(["orphan"]))
    );
    assert_eq!(after_delete(&["orphan"], &orphan(false)), None);
    assert_eq!(
        after_delete(&[others], &orphan(true)),
        Some(json!([others, "orphan"]))
    );
    assert_eq!(after_delete(&[others], &orphan(false)), kept);
    assert_eq!(after_delete(&["orphan", others], &orphan(false)), kept);
    // Equal as a set: the order of the clients stays.
    let same = after_delete(&["orphan", others], &orphan(true));
    assert_eq!(same, Some(json!(["orphan", others])));
    assert_eq!(after_delete(&["orphan", others], &json!({})), same);
    assert_eq!(after_delete(&["orphan", others], &Value::Null), same);
    let switched = after_delete(
        &["orphan", others],
        &json!({ "propagationPolicy": "Foreground" }),
    );
    assert_eq!(switched, Some(json!([others, "foregroundDeletion"])));
}

#[test]
fn orphans_the_pods_of_a_job_by_default_and_warns() {
    let mut world = World::new();
    for (name, options, finalizers) in [
        ("a", Value::Null, json!(["orphan"])),
        (
            "b",
            json!({ "propagationPolicy": "Orphan" }),
            json!(["orphan"]),
        ),
        (
            "c",
            json!({ "propagationPolicy": "Foreground" }),
            json!(["foregroundDeletion"]),
        ),
    ] {
        world.post(JOBS, &job(name)).ok();
        let reply = world.delete(&format!("{JOBS}/{name}"), &options).ok();
        let warns = !reply.warnings.is_empty();
        assert_eq!(warns, options.is_null(), "{name}: {:?}", reply.warnings);
        assert_eq!(reply.metadata("finalizers"), &finalizers, "{name}");
    }
    world.post(JOBS, &job("d")).ok();
    let reply = world.delete(&format!("{JOBS}/d"), &Value::Null).ok();
    assert_eq!(
        reply.warnings,
        [
            "child pods are preserved by default when jobs are deleted; set \
          propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress \
          this warning"
        ]
    );
}

#[test]
fn marks_an_object_that_stays() {
    let mut world = World::with_sunjobs();
    let mut body = sunjob("a");
    body["metadata"]["finalizers"] = json!(["example.com/x"]);
    let created = world.post(SUNJOBS, &body).ok();
    assert_eq!(created.metadata("generation"), 1);
    let reply = world.delete(&format!("{SUNJOBS}/a"), &Value::Null).ok();
    assert_eq!(reply.code, 200);
    assert_eq!(reply.metadata("deletionTimestamp"), "2026-01-01T00:00:00Z");
    assert_eq!(reply.metadata("deletionGracePeriodSeconds"), 0);
    assert_eq!(reply.metadata("generation"), 2);
    assert_ne!(reply.rv(), created.rv());

    world.pass(100);
    let again = world.delete(&format!("{SUNJOBS}/a"), &Value::Null).ok();
    assert_eq!(
        again.metadata("deletionTimestamp"),
        "2026-01-01T00:00:00Z",
        "never postponed"
    );
    assert_eq!(again.metadata("generation"), 2, "counted once");
    assert_eq!(again.rv(), reply.rv(), "nothing was written");
}

#[test]
fn keeps_an_object_until_its_last_finalizer_is_taken() {
    for collector in [true, false] {
        let mut world = World::with(Config {
            garbage_collector: collector,
            ..Config::default()
        });
        world
            .post(CM, &held("a", &["example.com/x", "example.com/y"]))
            .ok();
        let path = format!("{CM}/a");
        world.delete(&path, &Value::Null).ok();
        let one = json!({ "metadata": { "finalizers": ["example.com/y"] } });
        world.merge(&path, &one).ok();
        assert!(world.exists(&path));
        let mut body = world.get(&path).json;
        body["metadata"]["labels"] = json!({ "still": "here" });
        world.put(&path, &body).ok();
        assert!(
            world.exists(&path),
            "an update that keeps the finalizer keeps the object"
        );

        let rv = world.get(CM).rv();
        let mut watch = world.watch(&format!("{CM}?watch=1&resourceVersion={rv}"));
        let none = json!({ "metadata": { "finalizers": null } });
        let last = world.merge(&path, &none).ok();
        assert_eq!(
            (last.code, last.json["kind"].as_str()),
            (200, Some("ConfigMap"))
        );
        assert_eq!(
            last.metadata("finalizers"),
            &Value::Null,
            "the object as submitted"
        );
        assert!(!world.exists(&path));
        let (events, _) = world.poll(&mut watch);
        assert_eq!(events.len(), 1);
        assert_eq!(events[0]["type"], "DELETED");
        assert_eq!(
            events[0]["object"]["metadata"]["finalizers"],
            json!(["example.com/y"])
        );
    }
}

#[test]
fn removes_a_terminating_object_once_a_delete_leaves_it_without_finalizers() {
    let mut world = World::new();
    world.post(CM, &cm("a")).ok();
    let path = format!("{CM}/a");
    world
        .delete(&path, &json!({ "propagationPolicy": "Foreground" }))
        .ok();
    assert!(world.exists(&path));
    let reply = world
        .delete(&path, &json!({ "propagationPolicy": "Background" }))
        .ok();
    assert_eq!(reply.json["status"], "Success");
    assert!(!world.exists(&path));
}

#[test]
fn deletes_in_background_with_one_write() {
    let mut world = World::new();
    world.post(CM, &cm("a")).ok();
    let before = world.server.revision().number();
    world.delete(&format!("{CM}/a"), &Value::Null).ok();
    assert_eq!(world.server.revision().number(), before + 1);
}

#[test]
fn honours_uid_and_revision_preconditions() {
    let mut world = World::new();
    let created = world.post(CM, &cm("a")).ok();
    let path = format!("{CM}/a");
    let reply = world.delete(&path, &json!({ "preconditions": { "uid": "wrong" } }));
    assert_eq!((reply.code, reply.reason()), (409, "Conflict"));
    assert_eq!(
        reply.message(),
        format!(
            "Operation cannot be fulfilled on ConfigMap \"a\": the UID in the precondition (wrong) \
             does not match the UID in record ({}). The object might have been deleted and then \
             recreated",
            created.uid()
        )
    );
    assert_eq!(reply.json["details"]["kind"], "ConfigMap");
    let reply = world.delete(
        &path,
        &json!({ "preconditions": { "resourceVersion": "1" } }),
    );
    assert_eq!(reply.code, 409);
    assert_eq!(world.get(&path).uid(), created.uid());
    let right =
        json!({ "preconditions": { "uid": created.uid(), "resourceVersion": created.rv() } });
    world.delete(&path, &right).ok();
    assert!(!world.exists(&path));
}

#[test]
fn reads_options_from_the_query_only_without_a_body() {
    let mut world = World::new();
    world.post(CM, &cm("a")).ok();
    world
        .delete(
            &format!("{CM}/a?propagationPolicy=Foreground"),
            &Value::Null,
        )
        .ok();
    assert!(world.exists(&format!("{CM}/a")));
    world.post(CM, &cm("b")).ok();
    let options = json!({ "kind": "DeleteOptions", "apiVersion": "v1" });
    world
        .delete(&format!("{CM}/b?propagationPolicy=Foreground"), &options)
        .ok();
    assert!(!world.exists(&format!("{CM}/b")));
}

#[test]
fn leaves_gc_finalizers_alone_without_a_collector() {
    let mut world = World::with(Config {
        garbage_collector: false,
        ..Config::default()
    });
    world.post(CM, &cm("a")).ok();
    world
        .delete(
            &format!("{CM}/a"),
            &json!({ "propagationPolicy": "Foreground" }),
        )
        .ok();
    assert!(!world.exists(&format!("{CM}/a")));
    world.post(CM, &held("b", &["orphan"])).ok();
    let options = json!({ "propagationPolicy": "Background" });
    let reply = world.delete(&format!("{CM}/b"), &options).ok();
    assert_eq!(reply.metadata("finalizers"), &json!(["orphan"]));
}

#[test]
fn strips_gc_finalizers_from_events() {
    let events = "/api/v1/namespaces/default/events";
    let mut world = World::new();
    let body = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": { "name": name, "finalizers": ["orphan"] },
        })
    };
    for (name, options) in [
        ("a", Value::Null),
        ("b", json!({ "propagationPolicy": "Foreground" })),
    ] {
        world.post(events, &body(name)).ok();
        world.delete(&format!("{events}/{name}"), &options).ok();
        assert!(!world.exists(&format!("{events}/{name}")), "{name}");
    }
}

#[test]
fn answers_a_status_with_the_uid_or_the_object_by_type() {
    let mut world = World::with_sunjobs();
    let uid = world.post(SUNJOBS, &sunjob("a")).ok().uid();
    let reply = world.delete(&format!("{SUNJOBS}/a"), &Value::Null).ok();
    let details = json!({ "name": "a", "group": "sundown.dev", "kind": "sunjobs", "uid": uid });
    assert_eq!(reply.json["status"], "Success");
    assert_eq!(reply.json["details"], details);
    assert_eq!(reply.json.get("code"), None);

    let uid = world.post(PODS, &pod("p")).ok().uid();
    let reply = world.delete(&format!("{PODS}/p"), &Value::Null).ok();
    assert_eq!(
        (reply.json["kind"].as_str(), reply.uid()),
        (Some("Pod"), uid)
    );
}

#[test]
fn answers_accepted_only_to_an_explicit_false() {
    let mut world = World::new();
    for (name, options, code) in [
        ("a", json!({ "orphanDependents": false }), 202),
        ("b", json!({ "propagationPolicy": "Background" }), 200),
    ] {
        world.post(CM, &held(name, &["example.com/x"])).ok();
        assert_eq!(
            world.delete(&format!("{CM}/{name}"), &options).code,
            code,
            "{name}"
        );
    }
}

#[test]
fn changes_nothing_in_a_dry_run() {
    let mut world = World::new();
    world.post(CM, &cm("a")).ok();
    let before = world.server.revision();
    let reply = world
        .delete(&format!("{CM}/a"), &json!({ "dryRun": ["All"] }))
        .ok();
    assert_eq!(reply.json["status"], "Success");
    let options = json!({ "dryRun": ["All"], "propagationPolicy": "Foreground" });
    let reply = world.delete(&format!("{CM}/a"), &options).ok();
    assert_eq!(reply.metadata("finalizers"), &json!(["foregroundDeletion"]));
    assert_eq!(world.server.revision(), before);
    assert_eq!(
        world.get(&format!("{CM}/a")).metadata("finalizers"),
        &Value::Null
    );
}

#[test]
fn refuses_contradicting_or_unknown_options() {
    let mut world = World::new();
    world.post(CM, &cm("a")).ok();
    let path = format!("{CM}/a");
    let both = json!({ "orphanDependents": true, "propagationPolicy": "Orphan" });
    let reply = world.delete(&path, &both);
    assert_eq!((reply.code, reply.reason()), (422, "Invalid"));
    assert_eq!(
        reply.message(),
        "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Orphan\": \
         orphanDependents and deletionPropagation cannot be both set"
    );
    let reply = world.delete(&path, &json!({ "propagationPolicy": "Never" }));
    assert_eq!(
        reply.json["details"]["causes"][0]["reason"],
        "FieldValueNotSupported"
    );
    assert_eq!(
        world.delete(&path, &json!({ "dryRun": ["Some"] })).code,
        422
    );
    assert_eq!(
        world
            .delete(&path, &json!({ "gracePeriodSeconds": "soon" }))
            .code,
        400
    );
    assert!(world.exists(&path));
}
