//! What the memory of a pod means to its volumes, its `/dev/shm` and to Ray.

use serde_json::{Value, json};
use sundown_model::node::{Call, Content, Launch, Sandbox, Variable, Volume};

use super::life::{Life, a_pod};
use crate::testing::A;

const STORE: &str = "RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES";

fn pod(containers: Value) -> A {
    let volumes = json!([
        { "name": "memory", "emptyDir": { "medium": "Memory" } },
        { "name": "large", "emptyDir": { "medium": "Memory", "sizeLimit": "4Gi" } },
        { "name": "small", "emptyDir": { "medium": "Memory", "sizeLimit": "1Mi" } },
        { "name": "disk", "emptyDir": {} },
    ]);
    a_pod()
        .with("/spec/volumes", volumes)
        .with("/spec/containers", containers)
}

fn container(resources: &Value) -> Value {
    json!({ "name": "main", "image": "i", "resources": resources })
}

fn lived(pod: A) -> (Sandbox, Launch) {
    let calls = Life::of(pod).settle(0);
    let mut lived = (None, None);
    for call in calls {
        if let Call::Prepare(sandbox) = call {
            lived.0 = Some((*sandbox).clone());
        } else if let Call::Start(launch) = call {
            lived.1 = Some((*launch).clone());
        }
    }
    let (sandbox, launch) = lived;
    (sandbox.expect("a place"), launch.expect("a run"))
}

/// All values that a variable gets, in order: the last one counts.
fn values(launch: &Launch, wanted: &str) -> Vec<String> {
    let own = |it: &Variable| {
        if let Variable::Text { name, value } = it
            && name == wanted
        {
            return Some(value.clone());
        }
        None
    };
    launch.variables.iter().filter_map(own).collect()
}

fn sizes(sandbox: &Sandbox) -> Vec<Option<u64>> {
    let own = |it: &Volume| {
        if let Content::Empty { size_bytes, .. } = it.content {
            return Some(size_bytes);
        }
        None
    };
    sandbox.volumes.iter().filter_map(own).collect()
}

/// An object store of 14 GB was made in a pod of 1Gi.
#[test]
fn ray_is_told_how_large_its_object_store_may_be() {
    let store = |resources: Value| {
        let (_, launch) = lived(pod(json!([container(&resources)])));
        values(&launch, STORE)
    };
    let gigabyte = (1_u64 << 30) * 3 / 10;
    let expect = [gigabyte.to_string()];
    assert_eq!(store(json!({ "limits": { "memory": "1Gi" } })), expect);
    assert_eq!(store(json!({ "requests": { "memory": "1Gi" } })), expect);
    let both = json!({ "requests": { "memory": "1Mi" }, "limits": { "memory": "1Gi" } });
    assert_eq!(store(both), expect, "the limit counts");
    let least = [(75_u64 << 20).to_string()];
    assert_eq!(store(json!({ "limits": { "memory": "100Mi" } })), least);
    assert!(store(json!({})).is_empty(), "nothing is known");
    assert!(store(json!({ "limits": { "memory": "0" } })).is_empty());
}

#[test]
fn what_the_user_says_to_ray_counts() {
    let with = |name: &str, value: &str| {
        let mut main = container(&json!({ "limits": { "memory": "1Gi" } }));
        main["env"] = json!([{ "name": name, "value": value }]);
        values(&lived(pod(json!([main]))).1, STORE)
    };
    assert_eq!(with(STORE, "7").last().map(String::as_str), Some("7"));
    let half = (1_u64 << 29).to_string();
    let proportion = "RAY_DEFAULT_OBJECT_STORE_MEMORY_PROPORTION";
    assert_eq!(with(proportion, "0.5"), [half]);
    let usual = ((1_u64 << 30) * 3 / 10).to_string();
    assert_eq!(with(proportion, "a lot"), [usual], "Ray will complain");
}

#[test]
fn volumes_in_memory_are_no_larger_than_the_pod_may_be() {
    let one = container(&json!({ "limits": { "memory": "1Gi" } }));
    let (sandbox, _) = lived(pod(json!([one, one])));
    let two = Some(2 << 30);
    assert_eq!(sizes(&sandbox), [two, two, Some(1 << 20), None]);
    assert_eq!(sandbox.shared_memory_bytes, two);
    let without = container(&json!({}));
    let (sandbox, _) = lived(pod(json!([one, without])));
    assert_eq!(
        sizes(&sandbox),
        [None, Some(4 << 30), Some(1 << 20), None],
        "one container without a limit may use everything"
    );
    assert_eq!(sandbox.shared_memory_bytes, None);
}

#[test]
fn dev_shm_is_no_smaller_than_with_container_runtimes() {
    let small = container(&json!({ "limits": { "memory": "8Mi" } }));
    let (sandbox, _) = lived(pod(json!([small])));
    assert_eq!(sandbox.shared_memory_bytes, Some(64 << 20));
}
