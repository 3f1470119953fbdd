//! Services, their slices and the table of names.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sundown_model::node::{Call, Names, Report};
use sundown_model::{
    Action, Change, Controller as _, Decision, DeedFact, DeedOutcome, Patch, Step, What, Write,
};

use super::{Key, Reason, ServiceNames};
use crate::testing::{A, Scene, a, at};

fn a_service() -> A {
    a("service", "web")
        .with("/spec/selector", json!({ "app": "x" }))
        .with("/spec/clusterIP", json!("None"))
        .with(
            "/spec/ports",
            json!([{ "name": "http", "port": 80, "targetPort": "web" }]),
        )
}

fn a_pod(name: &str, last: u8) -> A {
    let ports = json!([{ "name": "web", "containerPort": 8080 }]);
    a("pod", name)
        .with("/metadata/labels", json!({ "app": "x" }))
        .with(
            "/spec/containers",
            json!([{ "name": "main", "ports": ports }]),
        )
        .with("/spec/nodeName", json!("sundown"))
        .with("/status/podIP", json!(format!("10.0.0.{last}")))
        .with("/status/phase", json!("Running"))
        .with(
            "/status/conditions",
            json!([{ "type": "Ready", "status": "True" }]),
        )
}

fn unready(pod: A) -> A {
    pod.with(
        "/status/conditions",
        json!([{ "type": "Ready", "status": "False" }]),
    )
}

fn scene(all: &[&A]) -> Scene<ServiceNames> {
    let scene = Scene::new(ServiceNames).reported(Report::All(Vec::new()));
    all.iter().fold(scene, |scene, it| scene.seeing(it))
}

fn table(scene: &Scene<ServiceNames>) -> Names {
    let decision = scene.decide(&Key::Names, 0);
    let [Action::Do(deed)] = &decision.actions[..] else {
        panic!("announces: {decision:?}");
    };
    let What::Node(Call::Names(names)) = &deed.what else {
        panic!("names: {deed:?}");
    };
    (**names).clone()
}

fn slice(decision: &Decision<Reason>) -> Value {
    match &decision.actions[..] {
        [Action::Api(Write::Create(draft))] => draft.body.clone(),
        [Action::Api(Write::Patch { patch, .. })] => {
            let Patch::Merge(patch) = patch;
            patch.clone()
        }
        other => panic!("one write: {other:?}"),
    }
}

fn service_key() -> Key {
    Key::Service(a_service().key())
}

#[test]
fn a_slice_lists_the_pods_that_a_service_means() {
    let stranger = a_pod("d", 4).with("/metadata/labels", json!({ "app": "y" }));
    let over = a_pod("e", 5).with("/status/phase", json!("Succeeded"));
    let (first, second) = (a_pod("b", 2), unready(a_pod("c", 3)));
    let scene = scene(&[&a_service(), &first, &second, &stranger, &over]);
    let decision = scene.decide(&service_key(), 0);
    assert_eq!(decision.reason, Reason::Lists { endpoints: 2 });
    let body = slice(&decision);
    assert_eq!(body["endpoints"][0]["addresses"], json!(["10.0.0.2"]));
    assert_eq!(body["endpoints"][0]["conditions"]["ready"], true);
    assert_eq!(body["endpoints"][1]["conditions"]["ready"], false);
    assert_eq!(body["ports"][0]["port"], 8080);
    assert_eq!(
        body["metadata"]["labels"]["kubernetes.io/service-name"],
        "web"
    );
    assert_eq!(body["metadata"]["ownerReferences"][0]["uid"], "uid-web");
}

#[test]
fn a_slice_that_stands_is_left_and_one_that_does_not_is_changed() {
    let pod = a_pod("b", 2);
    let before = scene(&[&a_service(), &pod]);
    let body = slice(&before.decide(&service_key(), 0));
    let mut made = a("endpointslice", body["metadata"]["name"].as_str().unwrap());
    made.json["endpoints"] = body["endpoints"].clone();
    made.json["ports"] = body["ports"].clone();
    let scene = before.seeing(&made);
    let still = scene.decide(&service_key(), 0);
    assert_eq!(still.reason, Reason::Listed { endpoints: 1 });
    assert!(still.actions.is_empty());
    let scene = scene.seeing(&unready(pod).rv(2));
    let changed = slice(&scene.decide(&service_key(), 0));
    assert_eq!(changed["endpoints"][0]["conditions"]["ready"], false);
}

#[test]
fn a_service_without_selector_is_somebody_elses() {
    let by_hand = a("service", "web");
    let decision = scene(&[&by_hand]).decide(&service_key(), 0);
    assert_eq!(decision.reason, Reason::NoSelector);
    let gone = scene(&[]).decide(&service_key(), 0);
    assert_eq!(gone.reason, Reason::Gone);
}

#[test]
fn names_lead_to_ready_pods_and_hosts_of_their_subdomain() {
    let head = a_pod("b", 2)
        .with("/spec/hostname", json!("head"))
        .with("/spec/subdomain", json!("web"));
    let table = table(&scene(&[&a_service(), &head, &unready(a_pod("c", 3))]));
    let of = |name: &str| table.get(name).map(Vec::len);
    assert_eq!(of("web.here.svc.cluster.local"), Some(1));
    assert_eq!(of("head.web.here.svc.cluster.local"), Some(1));
    assert_eq!(table.len(), 2);
}

#[test]
fn a_service_that_shows_the_unready_leads_to_them() {
    let service = a_service().with("/spec/publishNotReadyAddresses", json!(true));
    let table = table(&scene(&[&service, &unready(a_pod("c", 3))]));
    assert_eq!(table["web.here.svc.cluster.local"].len(), 1);
}

#[test]
fn a_service_without_selector_leads_where_its_slices_say() {
    let mut made = a("endpointslice", "by-hand").with(
        "/metadata/labels",
        json!({ "kubernetes.io/service-name": "web" }),
    );
    made.json["endpoints"] = json!([
        { "addresses": ["10.9.9.9"] },
        { "addresses": ["10.9.9.8"], "conditions": { "ready": false } },
    ]);
    let table = table(&scene(&[&a("service", "web"), &made]));
    assert_eq!(table["web.here.svc.cluster.local"].len(), 1);
}

#[test]
fn a_table_is_announced_when_it_is_not_the_last_one() {
    let mut scene = scene(&[&a_service(), &a_pod("b", 2)]);
    let announces = scene.decide(&Key::Names, 0);
    assert_eq!(announces.reason, Reason::Announces { names: 1 });
    let told = table(&scene);
    let what = What::Node(Call::Names(std::sync::Arc::new(told)));
    let fact = DeedFact {
        asked: Step::default(),
        ended_at: at(0),
        outcome: DeedOutcome::Done,
        failures: 0,
    };
    scene.facts.set_deed(&what, fact);
    let still = scene.decide(&Key::Names, 0);
    assert_eq!(still.reason, Reason::Announced { names: 1 });
    assert!(still.actions.is_empty());
    let scene = scene.reported(Report::All(Vec::new()));
    assert_eq!(
        scene.decide(&Key::Names, 0),
        announces,
        "another node knows nothing"
    );
    let message = "down".to_owned();
    let scene = scene.reported(Report::Away { message });
    assert_eq!(scene.decide(&Key::Names, 0).reason, Reason::NodeAway);
}

#[test]
fn a_pod_that_no_service_means_touches_nothing() {
    let scene = scene(&[&a_service()]);
    let touched = |change: Change| {
        let mut touched = BTreeSet::new();
        ServiceNames.observe(&change, &scene.cache, &mut touched);
        touched
    };
    let pod = a_pod("one", 1);
    let other = pod.clone().with("/metadata/labels", json!({ "app": "y" }));
    assert!(touched(Change::Added(other.build())).is_empty());
    let all = BTreeSet::from([Key::Service(a_service().key()), Key::Names]);
    assert_eq!(touched(Change::Added(pod.build())), all);
    let leaves = Change::Updated {
        old: pod.build(),
        new: other.build(),
    };
    assert_eq!(touched(leaves), all, "it was meant until now");
}
