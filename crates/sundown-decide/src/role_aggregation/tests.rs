//! When an aggregated role is written, and with which rules.

use serde_json::{Value, json};
use sundown_model::{
    Action, Cache, Change, Controller, Decision, Explain, Facts, Patch, Sight, Write,
};

use super::{Reason, RoleAggregation};
use crate::kinds::CLUSTER_ROLE;
use crate::testing::{A, Scene, a};

fn role(name: &str) -> A {
    a("clusterrole", name)
}

fn rule(resource: &str) -> Value {
    json!({ "apiGroups": [""], "resources": [resource], "verbs": ["get"] })
}

/// A role that others may select.
fn part(name: &str, rules: &[&str]) -> A {
    let rules: Vec<Value> = rules.iter().map(|it| rule(it)).collect();
    let labels = json!({ "to-whole": "true" });
    let role = role(name).with("/metadata/labels", labels);
    role.with("/rules", rules.into())
}

fn whole(rules: &[&str]) -> A {
    let selector = json!({ "matchLabels": { "to-whole": "true" } });
    let rules: Vec<Value> = rules.iter().map(|it| rule(it)).collect();
    let role = role("whole").with("/rules", rules.into());
    role.with(
        "/aggregationRule",
        json!({ "clusterRoleSelectors": [selector] }),
    )
}

fn decide(scene: &Scene<RoleAggregation>, role: &A) -> Decision<Reason> {
    let decision = scene.decide(&role.key(), 0);
    assert!(!decision.reason.code().is_empty() && !decision.reason.sentence().is_empty());
    decision
}

fn written(decision: &Decision<Reason>) -> Value {
    assert_eq!(decision.reason, Reason::Aggregates);
    let [
        Action::Api(Write::Patch {
            patch: Patch::Merge(patch),
            ..
        }),
    ] = &decision.actions[..]
    else {
        panic!("one patch: {decision:?}");
    };
    patch["rules"].clone()
}

#[test]
fn a_role_gets_the_rules_of_those_it_selects_each_once_in_their_order() {
    let scene = Scene::new(RoleAggregation::default())
        .seeing(&whole(&[]))
        .seeing(&part("b", &["pods", "secrets"]))
        .seeing(&part("a", &["nodes", "pods"]))
        .seeing(&role("other").with("/rules", json!([rule("services")])));
    let expect = json!([rule("nodes"), rule("pods"), rule("secrets")]);
    assert_eq!(written(&decide(&scene, &whole(&[]))), expect);
}

#[test]
fn a_role_that_is_up_to_date_is_left_alone() {
    let own = whole(&["pods"]);
    let scene = Scene::new(RoleAggregation::default())
        .seeing(&own)
        .seeing(&part("a", &["pods"]));
    assert_eq!(decide(&scene, &own), Decision::idle(Reason::UpToDate));
    let empty = Scene::new(RoleAggregation::default()).seeing(&whole(&[]));
    assert_eq!(decide(&empty, &own), Decision::idle(Reason::UpToDate));
}

#[test]
fn a_rule_goes_with_the_role_that_brought_it() {
    let own = whole(&["pods", "secrets"]);
    let gone = part("b", &["secrets"]);
    let scene = Scene::new(RoleAggregation::default())
        .seeing(&own)
        .seeing(&part("a", &["pods"]))
        .seeing(&gone)
        .seeing_the_end_of(&gone);
    assert_eq!(written(&decide(&scene, &own)), json!([rule("pods")]));
}

/// It would otherwise keep every rule that it ever had.
#[test]
fn a_role_does_not_gather_its_own_rules() {
    let own = whole(&["pods"]).with("/metadata/labels", json!({ "to-whole": "true" }));
    let scene = Scene::new(RoleAggregation::default()).seeing(&own);
    assert_eq!(written(&decide(&scene, &own)), json!([]));
}

#[test]
fn nothing_is_written_about_roles_that_are_gone_going_plain_or_not_all_known() {
    let scene = Scene::new(RoleAggregation::default());
    assert_eq!(decide(&scene, &whole(&[])).reason, Reason::Gone);
    let plain = part("a", &["pods"]);
    assert_eq!(
        decide(&scene.clone().seeing(&plain), &plain).reason,
        Reason::OwnRules
    );
    let going = whole(&["pods"]).deleting(&["example.com/x"]);
    assert_eq!(
        decide(&scene.seeing(&going), &going).reason,
        Reason::Terminating
    );
    let mut cache = Cache::default();
    cache.put(whole(&["pods"]).build(), sundown_model::Step::default());
    let sight = Sight {
        cache: &cache,
        facts: &Facts::default(),
        now: crate::testing::at(0),
    };
    let decision = RoleAggregation::default().decide(&whole(&[]).key(), sight);
    assert_eq!(decision, Decision::idle(Reason::AwaitsRoles));
}

/// The names of the roles that a change touches.
fn touched(scene: &Scene<RoleAggregation>, change: &Change) -> Vec<String> {
    let mut touched = std::collections::BTreeSet::new();
    let mut controller = scene.controller.clone();
    controller.observe(change, &scene.cache, &mut touched);
    touched.iter().map(|key| key.name.to_string()).collect()
}

#[test]
fn a_role_touches_those_that_selected_it_or_select_it_now() {
    let own = part("a", &["pods"]);
    let scene = Scene::new(RoleAggregation::default())
        .seeing(&whole(&[]))
        .seeing(&own);
    let plain = role("a").rv(2);
    let taken = Change::Updated {
        old: own.build(),
        new: plain.build(),
    };
    for change in [Change::Deleted(own.build()), taken] {
        assert_eq!(touched(&scene, &change), ["a", "whole"], "{change:?}");
    }
    let fresh = Change::Freshness(CLUSTER_ROLE.resource());
    assert_eq!(touched(&scene, &fresh), ["whole"]);
    let other = Change::Added(role("b").build());
    assert_eq!(touched(&scene, &other), ["b"]);
}

/// Each change of any role used to ask every aggregated role, each of which looked at all roles.
#[test]
fn a_change_costs_what_it_concerns_however_many_roles_there_are() {
    let selector = |label: &str| json!({ "matchLabels": { "to": label } });
    let mut scene = Scene::new(RoleAggregation::default());
    for number in 0..50 {
        let label = format!("group-{number}");
        let gathers = json!({ "clusterRoleSelectors": [selector(&label)] });
        let labels = json!({ "to": label, "app": "x" });
        scene = scene
            .seeing(&role(&format!("whole-{number}")).with("/aggregationRule", gathers))
            .seeing(&role(&format!("part-{number}")).with("/metadata/labels", labels));
    }
    let changed = role("part-7").with("/metadata/labels", json!({ "to": "group-7" }));
    let change = Change::Updated {
        old: scene.cache.get(&changed.key()).unwrap().clone(),
        new: changed.clone().rv(2).build(),
    };
    assert_eq!(touched(&scene, &change), ["part-7", "whole-7"]);
    let index = &scene.controller.index;
    let candidates = index.candidates(&selector("group-7"), &scene.cache);
    assert_eq!(candidates, [changed.key()]);
}

#[test]
fn a_selector_without_pairs_of_labels_is_tried_on_all_roles() {
    let rule_of = json!([{ "matchExpressions": [{ "key": "to-whole", "operator": "Exists" }] }]);
    let own = role("whole").with(
        "/aggregationRule",
        json!({ "clusterRoleSelectors": rule_of }),
    );
    let scene = Scene::new(RoleAggregation::default())
        .seeing(&own)
        .seeing(&role("other"))
        .seeing(&part("a", &["pods"]));
    assert_eq!(written(&decide(&scene, &own)), json!([rule("pods")]));
    let change = Change::Deleted(part("a", &["pods"]).build());
    assert_eq!(touched(&scene, &change), ["a", "whole"]);
}

#[test]
fn what_is_followed_change_by_change_is_what_the_cache_shows() {
    let own = part("a", &["pods"]);
    let scene = Scene::new(RoleAggregation::default())
        .seeing(&whole(&[]))
        .seeing(&own)
        .seeing(&role("a").rv(2))
        .seeing(&part("b", &["pods"]))
        .seeing_the_end_of(&whole(&[]));
    assert_eq!(scene.controller.audit(&scene.cache), Ok(()));
    let stranger = RoleAggregation::default();
    assert!(stranger.audit(&scene.cache).is_err(), "it saw nothing");
}
