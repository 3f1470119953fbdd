//! Discovery documents: what is served, in which version, and when nothing is known for certain.

use serde_json::{Value, json};
use sundown_engine::Failure;
use sundown_engine::wire::{Method, Reply, discovered, discovery_calls};
use sundown_model::{Catalog, Resolved, Resource, Verb};

fn ok(groups: &[Value]) -> Reply {
    let body = json!({ "kind": "APIGroupDiscoveryList", "items": groups });
    Reply::Answered {
        code: 200,
        body: body.to_string().into_bytes(),
    }
}

fn group(name: &str, versions: &[Value]) -> Value {
    json!({ "metadata": { "name": name }, "versions": versions })
}

fn version(name: &str, resources: &[Value]) -> Value {
    json!({ "version": name, "freshness": "Current", "resources": resources })
}

fn resource(plural: &str, kind: &str, scope: &str, verbs: &[&str]) -> Value {
    json!({
        "resource": plural, "scope": scope, "verbs": verbs,
        "responseKind": { "group": "", "version": "", "kind": kind },
        "subresources": [{ "subresource": "status", "verbs": ["get"] }],
    })
}

const ALL: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

fn core() -> Value {
    json!({ "metadata": {}, "versions": [version("v1", &[
        resource("pods", "Pod", "Namespaced", ALL),
        resource("nodes", "Node", "Cluster", ALL),
        resource("bindings", "Binding", "Namespaced", &["create"]),
    ])] })
}

fn read(core: &[Value], groups: &[Value]) -> Result<Catalog, Failure> {
    discovered([ok(core), ok(groups)])
}

#[test]
fn two_requests_ask_for_aggregated_documents() {
    let calls = discovery_calls();
    assert_eq!(
        calls.each_ref().map(|call| call.path.as_str()),
        ["/api", "/apis"]
    );
    for call in calls {
        assert_eq!(call.method, Method::Get);
        assert_eq!(
            call.accept,
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
        );
    }
}

#[test]
fn reads_scope_kind_and_verbs_of_what_is_served() {
    let catalog = read(&[core()], &[]).unwrap();
    let pods = catalog.get(&Resource::new("", "pods")).unwrap();
    assert_eq!((&*pods.kind, pods.namespaced), ("Pod", true));
    assert_eq!(pods.api_version(), "v1");
    let verbs = [
        Verb::Get,
        Verb::List,
        Verb::Watch,
        Verb::Create,
        Verb::Patch,
        Verb::Delete,
    ];
    assert_eq!(pods.verbs, verbs.into());
    assert!(pods.is_collectable());
    assert!(!catalog.get(&Resource::new("", "nodes")).unwrap().namespaced);
    let bindings = catalog.get(&Resource::new("", "bindings")).unwrap();
    assert!(!bindings.is_collectable());
    assert_eq!(catalog.iter().count(), 3, "subresources are no resources");
}

#[test]
fn the_first_version_that_has_a_resource_is_spoken_and_all_are_known() {
    let toys = resource("toys", "Toy", "Namespaced", ALL);
    let old = resource("relics", "Relic", "Namespaced", ALL);
    let group = group(
        "toys.io",
        &[
            version("v2", std::slice::from_ref(&toys)),
            version("v1", &[toys.clone(), old]),
        ],
    );
    let catalog = read(&[], &[group]).unwrap();
    let toys = catalog.get(&Resource::new("toys.io", "toys")).unwrap();
    assert_eq!(toys.api_version(), "toys.io/v2");
    assert_eq!(toys.served, ["v1".into(), "v2".into()].into());
    let relics = catalog.get(&Resource::new("toys.io", "relics")).unwrap();
    assert_eq!(relics.api_version(), "toys.io/v1");
    let found = Resolved::Known(toys.clone());
    assert_eq!(catalog.resolve("toys.io/v1", "Toy"), found);
    assert_eq!(catalog.resolve("toys.io/v2", "Relic"), Resolved::Unknown);
    assert_eq!(catalog.resolve("toys.io/v3", "Toy"), Resolved::Unknown);
}

#[test]
fn a_group_that_is_stale_makes_the_whole_answer_worthless() {
    let stale = json!({ "version": "v1beta1", "freshness": "Stale", "resources": [] });
    let failure = read(&[core()], &[group("metrics.k8s.io", &[stale])]).unwrap_err();
    assert_eq!(
        failure.to_string(),
        "discovery of metrics.k8s.io v1beta1 is stale"
    );
}

#[test]
fn half_an_answer_is_none() {
    let bad = |code, body: &str| Reply::Answered {
        code,
        body: body.as_bytes().to_vec(),
    };
    for reply in [
        bad(503, "{}"),
        bad(200, "not json"),
        // A server that does not aggregate answers with another document.
        bad(200, r#"{"kind":"APIVersions","versions":["v1"]}"#),
        Reply::NotSent("refused".to_owned()),
        Reply::Lost("reset".to_owned()),
    ] {
        let result = discovered([ok(&[core()]), reply.clone()]);
        assert!(result.is_err(), "{reply:?} became {result:?}");
        let result = discovered([reply, ok(&[])]);
        assert!(result.is_err());
    }
}
