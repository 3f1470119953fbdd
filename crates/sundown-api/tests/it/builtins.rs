//! Built-in kinds: what is read, filled in, refused, and told about them.

use serde_json::{Value, json};
use sundown_api::{Method, Request};

use crate::world::{CM, JOBS, PODS, World, cm, pod, request};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn template() -> Value {
    json!({
        "metadata": { "labels": { "app": "a" } },
        "spec": { "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i:1" }] },
    })
}

fn job(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": { "template": template() } })
}

/// A length-delimited field.
fn part(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).expect("short fields only");
    [&[number << 3 | 2, length], bytes].concat()
}

fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [part(1, api_version.as_bytes()), part(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), part(1, &type_meta), part(2, raw)].concat()
}

fn send(world: &mut World, path: &str, body: Vec<u8>) -> crate::world::Reply {
    let plain = request(Method::Post, path, &Value::Null);
    world.send(&Request {
        content_type: Some(PROTOBUF.into()),
        body,
        ..plain
    })
}

#[test]
fn reads_protobuf_and_leaves_zero_values_out() {
    let mut world = World::new();
    // Go writes every string of the metadata, empty ones too.
    let metadata = [part(1, b"s"), part(2, b""), part(3, b"")].concat();
    let entry = [part(1, b"k"), part(2, b"value")].concat();
    let raw = [part(1, &metadata), part(2, &entry), part(3, b"Opaque")].concat();
    let path = "/api/v1/namespaces/default/secrets";
    let reply = send(&mut world, path, envelope("v1", "Secret", &raw)).ok();
    assert_eq!(reply.json["data"], json!({ "k": "dmFsdWU=" }));
    assert_eq!(reply.json["type"], "Opaque");
    assert_eq!(reply.json["metadata"]["name"], "s");
    assert!(reply.metadata("generateName").is_null());
}

#[test]
fn refuses_protobuf_that_is_cut_off_or_of_another_kind() {
    let mut world = World::new();
    let whole = envelope("v1", "ConfigMap", &part(1, &part(1, b"a")));
    for length in 0..whole.len() {
        let reply = send(&mut world, CM, whole[..length].to_vec());
        assert!([400, 422].contains(&reply.code), "{length}: {}", reply.text);
    }
    let other = envelope("v1", "Secret", &part(1, &part(1, b"a")));
    assert_eq!(send(&mut world, CM, other).code, 400);
    assert_eq!(send(&mut world, CM, whole).code, 201);
}

#[test]
fn tells_unknown_and_duplicate_fields_as_asked() {
    let mut world = World::new();
    let mut body = cm("a");
    body["bogus"] = json!(1);
    let strict = format!("{CM}?fieldValidation=Strict");
    let reply = world.post(&strict, &body);
    let text = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding \
                error: unknown field \"bogus\"";
    assert_eq!((reply.code, reply.message()), (400, text));
    let reply = world.post(CM, &body).ok();
    assert_eq!(reply.warnings, ["unknown field \"bogus\""]);
    assert!(reply.json.get("bogus").is_none());
    body["metadata"]["name"] = "b".into();
    let reply = world.post(&format!("{CM}?fieldValidation=Ignore"), &body);
    assert!(reply.ok().warnings.is_empty());
    let twice = br#"{"metadata":{"name":"c"},"data":{"k":"1","k":"2"}}"#;
    let reply = world.send(&Request {
        body: twice.to_vec(),
        ..request(Method::Post, CM, &Value::Null)
    });
    assert_eq!(reply.warnings, ["duplicate field \"data.k\""]);
}

#[test]
fn refuses_a_field_of_another_type_in_the_words_of_go() {
    let mut world = World::new();
    let mut body = job("a");
    body["spec"]["parallelism"] = json!("two");
    let text = "Job in version \"v1\" cannot be handled as a Job: json: cannot unmarshal string \
                into Go struct field JobSpec.spec.parallelism of type int32";
    let reply = world.post(JOBS, &body);
    assert_eq!((reply.code, reply.message()), (400, text));
}

#[test]
fn fills_in_a_job_and_selects_its_pods_by_uid() {
    let mut world = World::new();
    let reply = world.post(JOBS, &job("a")).ok();
    let (uid, spec) = (reply.uid(), &reply.json["spec"]);
    assert_eq!(spec["parallelism"], 1);
    assert_eq!(spec["completions"], 1);
    assert_eq!(spec["backoffLimit"], 6);
    let label = "batch.kubernetes.io/controller-uid";
    assert_eq!(spec["selector"]["matchLabels"][label], *uid);
    assert_eq!(spec["template"]["metadata"]["labels"][label], *uid);
    assert_eq!(spec["template"]["spec"]["dnsPolicy"], "ClusterFirst");
    assert_eq!(reply.warnings.len(), 1, "no controller acts on it yet");
    let mut changed = reply.json.clone();
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "i:2".into();
    let reply = world.put(&format!("{JOBS}/a"), &changed);
    assert_eq!(reply.code, 422, "{}", reply.text);
    assert!(reply.message().ends_with("field is immutable"));
}

#[test]
fn fills_in_webhooks_and_the_port_of_an_aggregated_api() {
    let mut world = World::new();
    let group = "/apis/admissionregistration.k8s.io/v1";
    for (resource, reinvocation) in [
        ("mutatingwebhookconfigurations", json!("Never")),
        ("validatingwebhookconfigurations", Value::Null),
    ] {
        let body = json!({ "metadata": { "name": "a" }, "webhooks": [{
            "name": "a.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": { "service": { "namespace": "default", "name": "s" } },
            "rules": [{ "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"] }],
        }]});
        let reply = world.post(&format!("{group}/{resource}"), &body).ok();
        let webhook = &reply.json["webhooks"][0];
        assert_eq!(webhook["failurePolicy"], "Fail");
        assert_eq!(webhook["matchPolicy"], "Equivalent");
        assert_eq!(webhook["namespaceSelector"], json!({}));
        assert_eq!(webhook["objectSelector"], json!({}));
        assert_eq!(webhook["timeoutSeconds"], 10);
        assert_eq!(webhook["reinvocationPolicy"], reinvocation);
        assert_eq!(webhook["rules"][0]["scope"], "*");
        assert_eq!(webhook["clientConfig"]["service"]["port"], 443);
    }
    let body = json!({ "metadata": { "name": "v1.a.example.com" }, "spec": {
        "group": "a.example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
        "insecureSkipTLSVerify": true, "service": { "namespace": "default", "name": "s" },
    }});
    let path = "/apis/apiregistration.k8s.io/v1/apiservices";
    let reply = world.post(path, &body).ok();
    assert_eq!(reply.json["spec"]["service"]["port"], 443);
}

#[test]
fn fills_in_both_directions_of_an_autoscaler_that_says_one() {
    let mut world = World::new();
    let down = json!({ "type": "Percent", "value": 10, "periodSeconds": 60 });
    let body = json!({ "metadata": { "name": "a" }, "spec": {
        "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "d" },
        "maxReplicas": 5, "behavior": { "scaleDown": { "policies": [down] } },
    }});
    let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    let behavior = world.post(path, &body).ok().json["spec"]["behavior"].clone();
    let up = json!({
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [
            { "type": "Pods", "value": 4, "periodSeconds": 15 },
            { "type": "Percent", "value": 100, "periodSeconds": 15 },
        ],
    });
    assert_eq!(behavior["scaleUp"], up);
    let down = json!({ "selectPolicy": "Max", "policies": [down] });
    assert_eq!(behavior["scaleDown"], down);
}

#[test]
fn fills_in_a_deployment_and_keeps_its_selector() {
    let mut world = World::new();
    let body = json!({
        "metadata": { "name": "d" },
        "spec": {
            "selector": { "matchLabels": { "app": "a" } },
            "template": {
                "metadata": { "labels": { "app": "a" } },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            },
        },
    });
    let reply = world.post(DEPLOYMENTS, &body).ok();
    let spec = &reply.json["spec"];
    let rolling = json!({ "maxSurge": "25%", "maxUnavailable": "25%" });
    assert_eq!(
        spec["strategy"],
        json!({ "type": "RollingUpdate", "rollingUpdate": rolling })
    );
    assert_eq!(
        spec["template"]["spec"]["containers"][0]["imagePullPolicy"],
        "Always"
    );
    assert_eq!(reply.json["status"], json!({}));
    let path = format!("{DEPLOYMENTS}/d");
    let change = json!({ "spec": { "selector": { "matchLabels": { "app": "b" } } } });
    assert_eq!(world.merge(&path, &change).code, 422);
    let again = world.put(&path, &reply.json).ok();
    assert_eq!(again.rv(), reply.rv(), "the same object changes nothing");
}

#[test]
fn keeps_what_is_immutable() {
    let mut world = World::new();
    let mut body = cm("a");
    body["immutable"] = json!(true);
    body["data"] = json!({ "k": "1" });
    world.post(CM, &body).ok();
    let reply = world.merge(&format!("{CM}/a"), &json!({ "data": { "k": "2" } }));
    assert_eq!(reply.code, 422);
    assert!(
        reply
            .message()
            .contains("field is immutable when `immutable` is set")
    );
}

#[test]
fn refuses_containers_without_image_or_name() {
    let mut world = World::new();
    let body = json!({ "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "C_" }] } });
    let reply = world.post(PODS, &body);
    assert_eq!(reply.code, 422);
    assert!(
        reply
            .message()
            .contains("spec.containers[0].image: Required value")
    );
}

#[test]
fn publishes_schemas_with_list_types_and_no_loose_ends() {
    let mut world = World::new();
    let document = world.get("/openapi/v3/apis/batch/v1").ok().json;
    let schemas = &document["components"]["schemas"];
    let spec = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(spec["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(spec["x-kubernetes-list-map-keys"], json!(["name"]));
    let kind = &schemas["io.k8s.api.batch.v1.Job"]["x-kubernetes-group-version-kind"][0]["kind"];
    assert_eq!(kind, "Job");
    let text = document.to_string();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap_or("");
        assert!(
            schemas.get(name).is_some(),
            "{name} is referred to, but not there"
        );
    }
}

#[test]
fn only_kinds_that_nobody_acts_on_are_called_so() {
    let pods = sundown_model::Resource::new("", "pods");
    let mut world = World::with(sundown_api::Config {
        acted_on: vec![pods],
        ..sundown_api::Config::default()
    });
    assert_eq!(world.post(PODS, &pod("a")).ok().warnings, [""; 0]);
    let warnings = world.post(JOBS, &job("a")).ok().warnings;
    assert_eq!(
        warnings,
        ["Job is stored, but no controller of this server acts on it yet"]
    );
}

/// `kubectl replace` of a pod by its own manifest was refused: what creation fills in was missing.
#[test]
fn a_pod_is_replaced_by_its_own_manifest() {
    let mut world = World::new();
    let created = world.post(PODS, &pod("a")).ok();
    let path = format!("{PODS}/a");
    let replaced = world.put(&path, &pod("a")).ok();
    assert_eq!(replaced.json, created.json, "nothing has changed");
    let mut other = pod("a");
    other["spec"]["priority"] = json!(7);
    assert_eq!(world.put(&path, &other).code, 422);
    let mut tolerant = pod("a");
    tolerant["spec"]["tolerations"] = json!([{ "key": "k", "operator": "Exists" }]);
    let replaced = world.put(&path, &tolerant).ok();
    let tolerations = replaced.json["spec"]["tolerations"].as_array();
    assert_eq!(tolerations.map(Vec::len), Some(3));
    assert_eq!(
        world.put(&path, &pod("a")).code,
        422,
        "a toleration that was chosen is not taken away"
    );
}

/// Kubelets register with their status.
#[test]
fn a_node_keeps_the_status_that_it_is_created_with() {
    let mut world = World::new();
    let nodes = "/api/v1/nodes";
    let node = |cpu: &str| json!({ "metadata": { "name": "n" }, "status": { "capacity": { "cpu": cpu } } });
    let created = world.post(nodes, &node("4")).ok();
    assert_eq!(created.json["status"]["capacity"], json!({ "cpu": "4" }));
    assert_eq!(created.json["status"]["allocatable"], json!({ "cpu": "4" }));
    let replaced = world.put("/api/v1/nodes/n", &node("9")).ok();
    assert_eq!(replaced.json["status"], created.json["status"]);
    let pod = world.post(PODS, &pod("a")).ok();
    assert_eq!(
        pod.json["status"]["phase"], "Pending",
        "others begin with theirs"
    );
}
