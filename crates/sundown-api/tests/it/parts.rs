//! Parts of built-in kinds and what lies between kinds: scale, binding, eviction, addresses,
//! protected storage, one event in two groups.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sundown_api::{Cx, Method, Request, Server, Verdict};

use crate::world::{JOBS, PODS, World, pod, request};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const OLD_EVENTS: &str = "/api/v1/namespaces/default/events";
const NEW_EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

fn deployment(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": {
        "selector": { "matchLabels": { "app": "a" } },
        "template": {
            "metadata": { "labels": { "app": "a" } },
            "spec": { "containers": [{ "name": "c", "image": "i:1" }] },
        },
    } })
}

fn running_pod(world: &mut World, name: &str) {
    let mut object = pod(name);
    object["metadata"]["labels"] = json!({ "app": "a" });
    object["spec"]["nodeName"] = "n".into();
    world.post(PODS, &object).ok();
    let ready = json!({ "status": {
        "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }],
    } });
    world.merge(&format!("{PODS}/{name}/status"), &ready).ok();
}

fn budget(world: &mut World, allowed: u32) {
    let body = json!({ "metadata": { "name": "b" }, "spec": {
        "minAvailable": 1, "selector": { "matchLabels": { "app": "a" } },
    } });
    world.post(BUDGETS, &body).ok();
    let status = json!({ "status": {
        "observedGeneration": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2,
        "disruptionsAllowed": allowed,
    } });
    world.merge(&format!("{BUDGETS}/b/status"), &status).ok();
}

fn eviction(name: &str) -> Request {
    let body = json!({ "metadata": { "name": name } });
    request(Method::Post, &format!("{PODS}/{name}/eviction"), &body)
}

#[test]
fn scaling_is_an_update_of_the_object() {
    let mut world = World::new();
    world.post(DEPLOYMENTS, &deployment("d")).ok();
    let path = format!("{DEPLOYMENTS}/d/scale");
    let scale = world.get(&path).ok();
    assert_eq!(scale.json["kind"], "Scale");
    assert_eq!(scale.json["spec"]["replicas"], 1);
    assert_eq!(scale.json["status"]["selector"], "app=a");
    let mut asked = scale.json.clone();
    asked["spec"]["replicas"] = json!(3);
    let answer = world.put(&path, &asked).ok();
    assert_eq!(
        (&answer.json["kind"], &answer.json["spec"]["replicas"]),
        (&json!("Scale"), &json!(3))
    );
    let object = world.get(&format!("{DEPLOYMENTS}/d"));
    assert_eq!(object.json["spec"]["replicas"], 3);
    assert_eq!(object.metadata("generation"), 2);
    assert_eq!(
        world.put(&path, &asked).code,
        409,
        "the revision is an old one"
    );
}

#[test]
fn a_pod_is_bound_once() {
    let mut world = World::new();
    world.post(PODS, &pod("p")).ok();
    let path = format!("{PODS}/p/binding");
    let to = |node: &str| json!({ "metadata": { "name": "p" }, "target": { "name": node } });
    assert_eq!(world.post(&path, &to("one")).code, 201);
    let reply = world.post(&path, &to("other"));
    assert_eq!((reply.code, reply.reason()), (409, "Conflict"));
    let bound = world.get(&format!("{PODS}/p"));
    assert_eq!(bound.json["spec"]["nodeName"], "one");
    assert_eq!(
        bound.json["status"]["conditions"][0]["type"],
        "PodScheduled"
    );
}

#[test]
fn an_eviction_spends_the_budget_or_is_refused() {
    let mut world = World::new();
    running_pod(&mut world, "a");
    running_pod(&mut world, "b");
    budget(&mut world, 1);
    assert_eq!(world.send(&eviction("a")).code, 201);
    let reply = world.send(&eviction("b"));
    assert_eq!((reply.code, reply.reason()), (429, "TooManyRequests"));
    assert!(
        world
            .get(&format!("{PODS}/b"))
            .metadata("deletionTimestamp")
            .is_null()
    );
    let evicted = world.get(&format!("{PODS}/a"));
    assert!(!evicted.metadata("deletionTimestamp").is_null());
    let spent = world.get(&format!("{BUDGETS}/b")).json;
    assert!(spent["status"]["disruptedPods"]["a"].is_string());
}

#[test]
fn two_evictions_never_spend_one_disruption() {
    let mut world = World::new();
    running_pod(&mut world, "a");
    running_pod(&mut world, "b");
    budget(&mut world, 1);
    let decide = |server: &Server, request: &Request| {
        let now = world.now;
        server.handle(
            request,
            &mut Cx {
                now,
                entropy: &mut || 7,
            },
        )
    };
    let first = decide(&world.server, &eviction("a"));
    let second = decide(&world.server, &eviction("b"));
    let (Verdict::Commit(first), Verdict::Commit(second)) = (first, second) else {
        panic!("both may go, each by itself");
    };
    assert!(world.server.commit(&first, world.now).is_ok());
    assert!(
        world.server.commit(&second, world.now).is_err(),
        "the budget has changed"
    );
}

#[test]
fn services_have_addresses_and_ports_of_their_own() {
    let mut world = World::new();
    let (mut addresses, mut ports) = (BTreeSet::new(), BTreeSet::new());
    for index in 0..100 {
        let body = json!({ "metadata": { "name": format!("s-{index}") }, "spec": {
            "type": "NodePort", "ports": [{ "port": 80 }, { "name": "b", "port": 81 }],
        } });
        let mut body = body;
        body["spec"]["ports"][0]["name"] = "a".into();
        let spec = world.post(SERVICES, &body).ok().json["spec"].clone();
        assert!(addresses.insert(spec["clusterIP"].to_string()));
        assert_eq!(spec["clusterIP"], spec["clusterIPs"][0]);
        for port in spec["ports"].as_array().unwrap() {
            assert!(ports.insert(port["nodePort"].as_i64().unwrap()));
        }
    }
    let kept = world.get(&format!("{SERVICES}/s-1")).json;
    let put = json!({ "metadata": { "name": "s-1" }, "spec": { "ports": [{ "port": 90 }] } });
    let spec = world.put(&format!("{SERVICES}/s-1"), &put).ok().json["spec"].clone();
    assert_eq!(
        spec["clusterIP"], kept["spec"]["clusterIP"],
        "what is not named stays"
    );
    assert_eq!(spec["type"], "ClusterIP");
}

#[test]
fn a_deleted_claim_waits_for_its_protection_to_be_taken_off() {
    let mut world = World::new();
    let claim = json!({ "metadata": { "name": "c" }, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1024Mi" } },
    } });
    let made = world.post(CLAIMS, &claim).ok();
    assert_eq!(
        made.metadata("finalizers"),
        &json!(["kubernetes.io/pvc-protection"])
    );
    assert_eq!(made.json["spec"]["resources"]["requests"]["storage"], "1Gi");
    let path = format!("{CLAIMS}/c");
    world.delete(&path, &Value::Null).ok();
    world.delete(&path, &Value::Null).ok();
    assert!(world.exists(&path), "that is for a controller to do");
    let free = json!({ "metadata": { "finalizers": null } });
    world.merge(&path, &free).ok();
    assert!(!world.exists(&path));
}

#[test]
fn an_event_is_one_object_in_two_groups() {
    let mut world = World::new();
    let mut watch = world.watch(&format!("{NEW_EVENTS}?watch=true"));
    let event = json!({
        "metadata": { "name": "e" }, "note": "n", "reason": "R", "type": "Normal", "action": "a",
        "eventTime": "2020-01-01T00:00:00.000001Z", "reportingController": "x.dev/c",
        "reportingInstance": "i", "regarding": { "kind": "Pod", "namespace": "default" },
    });
    let made = world.post(NEW_EVENTS, &event).ok();
    assert_eq!(made.json["apiVersion"], "events.k8s.io/v1");
    let old = world.get(&format!("{OLD_EVENTS}/e"));
    assert_eq!(
        (&old.json["message"], &old.json["kind"]),
        (&json!("n"), &json!("Event"))
    );
    assert_eq!((old.uid(), old.rv()), (made.uid(), made.rv()));
    let (seen, _) = world.poll(&mut watch);
    assert_eq!(seen[0]["object"]["regarding"]["kind"], "Pod");
    let selected = world.get(&format!("{NEW_EVENTS}?fieldSelector=regarding.kind=Pod"));
    assert_eq!(selected.json["items"][0]["note"], "n");
    let table = world.get_as(NEW_EVENTS, TABLE).json;
    assert_eq!(table["rows"][0]["cells"][6], "n");
    world.delete(&format!("{NEW_EVENTS}/e"), &Value::Null).ok();
    assert!(!world.exists(&format!("{OLD_EVENTS}/e")));
}

#[test]
fn workloads_without_containers_are_refused() {
    let mut world = World::new();
    let empty = json!({ "metadata": { "name": "a" }, "spec": {} });
    for path in [PODS, JOBS, DEPLOYMENTS] {
        let reply = world.post(path, &empty);
        assert_eq!(reply.code, 422, "{path}");
        assert!(
            reply.message().contains("containers: Required value"),
            "{}",
            reply.message()
        );
    }
}

#[test]
fn a_table_has_a_cell_for_each_column() {
    let mut world = World::new();
    world.post(PODS, &pod("p")).ok();
    world.post(DEPLOYMENTS, &deployment("d")).ok();
    let groups = world.get("/apis").json["groups"].clone();
    let groups = groups.as_array().unwrap().iter();
    let mut roots: Vec<String> = groups
        .map(|group| {
            format!(
                "/apis/{}",
                group["preferredVersion"]["groupVersion"].as_str().unwrap()
            )
        })
        .collect();
    roots.push("/api/v1".into());
    for root in roots {
        for resource in world.get(&root).json["resources"]
            .as_array()
            .unwrap()
            .clone()
        {
            let has_list = resource["verbs"]
                .as_array()
                .unwrap()
                .contains(&json!("list"));
            if !has_list {
                continue;
            }
            let path = format!("{root}/{}", resource["name"].as_str().unwrap());
            let table = world.get_as(&path, TABLE).json;
            let columns = table["columnDefinitions"].as_array().unwrap().len();
            assert!(columns >= 2, "{path}");
            for row in table["rows"].as_array().unwrap() {
                assert_eq!(row["cells"].as_array().unwrap().len(), columns, "{path}");
            }
        }
    }
}

#[test]
fn bodies_may_be_yaml() {
    let mut world = World::new();
    let body = "metadata:\n  name: p\nspec:\n  containers:\n  - {name: c, image: 'i:1'}\n";
    let plain = request(Method::Post, PODS, &Value::Null);
    let reply = world.send(&Request {
        content_type: Some("application/yaml".into()),
        body: body.as_bytes().to_vec(),
        ..plain.clone()
    });
    assert_eq!(reply.ok().json["spec"]["containers"][0]["image"], "i:1");
    let reply = world.send(&Request {
        content_type: Some("application/yaml".into()),
        body: b"a: [".to_vec(),
        ..plain
    });
    assert_eq!(reply.code, 400);
}

/// As `sigs.k8s.io/yaml` reads it: octals were texts, and what is given twice was refused always.
#[test]
fn bodies_in_yaml_are_those_of_upstream() {
    let mut world = World::new();
    let body = "metadata: {name: p}\nmetadata: {name: q}\nspec:\n  containers: [{name: c, image: i}]\n  \
                volumes: [{name: v, configMap: {name: m, defaultMode: 0777}}]\n";
    let plain = request(Method::Post, PODS, &Value::Null);
    let sent = |validation: &str| Request {
        content_type: Some("application/yaml".into()),
        body: body.as_bytes().to_vec(),
        query: vec![("fieldValidation".into(), validation.into())],
        ..plain.clone()
    };
    let refused = world.send(&sent("Strict"));
    assert_eq!(refused.code, 400);
    let message = refused.json["message"].as_str().unwrap();
    assert!(
        message.contains("line 2: key \"metadata\" already set in map"),
        "{message}"
    );
    let reply = world.send(&sent("Ignore"));
    let pod = &reply.ok().json;
    assert_eq!(pod["metadata"]["name"], "q");
    assert_eq!(pod["spec"]["volumes"][0]["configMap"]["defaultMode"], 511);
}
