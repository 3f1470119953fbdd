//! Merges of maps and lists, with what upstream makes of them.

use serde_json::json;

use super::*;

fn merged(old: Vec<Value>, patch: Vec<Value>, rule: ListRule) -> Vec<Value> {
    merge_list(old, patch, rule, Place::NOWHERE, &mut Budget::default()).unwrap_or_default()
}

#[test]
fn elements_are_found_by_their_key_also_after_deletions() {
    let by_name = ListRule::ByKey("name");
    let old = vec![
        json!({ "name": "a", "x": 1 }),
        json!({ "name": "b" }),
        json!({ "name": "c" }),
    ];
    let patch = vec![
        json!({ "name": "a", "$patch": "delete" }),
        json!({ "name": "c", "y": 2 }),
        json!({ "name": "d" }),
        json!({ "name": "a", "z": 3 }),
        json!({ "name": "d", "z": 4 }),
    ];
    let expect = [
        json!({ "name": "b" }),
        json!({ "name": "c", "y": 2 }),
        json!({ "name": "d", "z": 4 }),
        json!({ "name": "a", "z": 3 }),
    ];
    assert_eq!(merged(old, patch, by_name), expect);
}

/// Each element was looked for among all others, and all ranks once more for each comparison of a
/// sort: hours for a body of 3 MiB, in the one thread that decides requests.
#[test]
fn long_lists_are_merged_in_one_pass() {
    let texts = |from: u32| -> Vec<Value> { (from..from + 200_000).map(|it| json!(it)).collect() };
    let found = merged(texts(0), texts(100_000), ListRule::Set);
    assert_eq!(found.len(), 300_000);
    let keyed = |from: u32| -> Vec<Value> {
        (from..from + 100_000)
            .map(|it| json!({ "k": it }))
            .collect()
    };
    let found = merged(keyed(0), keyed(50_000), ListRule::ByKey("k"));
    assert_eq!(found.len(), 150_000);
    let values = json!(texts(0));
    let mut object = Map::from_iter([("l".to_owned(), values.clone())]);
    let directive = format!("{DELETE_FROM}l");
    let done = apply_list_directive(
        &mut object,
        &directive,
        &values,
        Place::NOWHERE,
        &BTreeMap::new(),
    );
    assert!(done.is_ok() && object["l"] == json!([]));
}

fn pod_patched(old: &Value, patch: &Value) -> Result<Value, Failure> {
    let fact = facts().kind("", "v1", "Pod").expect("a built-in kind");
    let mut value = old.clone();
    apply(fact, &mut value, patch.to_string().as_bytes()).map(|()| value)
}

/// As upstream: `mergeSliceWithoutSpecialElements` merges each into what the ones before it made.
#[test]
fn patches_of_one_element_are_merged_one_after_the_other() {
    let containers = |list: Value| json!({ "spec": { "containers": list } });
    let old = containers(json!([{ "name": "a", "image": "1", "env": [{ "name": "x" }] }]));
    let patch = containers(json!([
        { "name": "a", "image": "2", "env": [{ "name": "y", "value": "1" }] },
        { "name": "a", "image": null, "env": [{ "name": "y", "value": "2" }, { "name": "z" }] },
        { "name": "b", "image": "3" },
        { "name": "b", "env": [{ "name": "x", "$patch": "delete" }] },
    ]));
    let found = pod_patched(&old, &patch).ok();
    let expect = containers(json!([
        { "name": "a", "env": [{ "name": "y", "value": "2" }, { "name": "z" }, { "name": "x" }] },
        { "name": "b", "image": "3", "env": [] },
    ]));
    assert_eq!(found, Some(expect));
}

/// Each of them copied and indexed the whole list anew: hours for 3 MiB.
#[test]
fn a_patch_that_names_one_element_over_and_over_is_refused_by_name() {
    let env: Vec<Value> = (0..60_000).map(|_| json!({ "name": "v1" })).collect();
    let mut containers = vec![json!({ "name": "a", "env": env })];
    containers.extend((0..50_000).map(|_| json!({ "name": "a", "env": [{ "name": "x" }] })));
    let patch = json!({ "spec": { "containers": containers } });
    let refused = pod_patched(
        &json!({ "spec": { "containers": [{ "name": "a", "env": env }] } }),
        &patch,
    );
    let status = refused.expect_err("it costs too much").status();
    assert_eq!(status["reason"], "RequestEntityTooLarge");
    assert_eq!(
        status["message"],
        "Request entity too large: the patch names the same elements of lists too often: limit \
         is 16777216 bytes of repeated elements"
    );
    let many: Vec<Value> = (0..5_000)
        .map(|it| json!({ "name": "a", "image": it.to_string() }))
        .collect();
    let found = pod_patched(&json!({}), &json!({ "spec": { "containers": many } })).ok();
    let expect = json!({ "spec": { "containers": many } });
    assert_eq!(
        found,
        Some(expect),
        "where there was nothing, the patch is taken as it is"
    );
    let one = json!({ "spec": { "containers": [{ "name": "a" }] } });
    let found = pod_patched(&one, &json!({ "spec": { "containers": many } })).ok();
    let expect = json!({ "spec": { "containers": [{ "name": "a", "image": "4999" }] } });
    assert_eq!(found, Some(expect), "small ones may be many");
}

/// Each directive looked for its list among all: an hour for these.
#[test]
fn many_orders_of_lists_are_found_at_once() {
    let mut patch = Map::new();
    for number in 0..70_000 {
        patch.insert(format!("l{number}"), json!([1]));
        patch.insert(format!("{ELEMENT_ORDER}l{number}"), json!([]));
    }
    let mut object = Map::new();
    let done = merge_map(&mut object, patch, Place::NOWHERE, &mut Budget::default());
    assert!(done.is_ok() && object.len() == 70_000);
}

fn config_patched(old: &Value, patch: &Value) -> Value {
    let fact = facts()
        .kind("", "v1", "ConfigMap")
        .expect("a built-in kind");
    let mut value = old.clone();
    let done = apply(fact, &mut value, patch.to_string().as_bytes());
    assert!(done.is_ok(), "{patch}");
    value
}

/// A null in a map that is not there was stored, as an empty text.
#[test]
fn a_null_removes_nothing_where_there_is_nothing() {
    let patch = json!({ "data": { "a": null, "b": "1" }, "metadata": { "labels": { "x": null } } });
    let expect = json!({ "data": { "b": "1" }, "metadata": { "labels": {} } });
    assert_eq!(config_patched(&json!({}), &patch), expect);
    let mismatched = json!({ "data": "text", "metadata": { "labels": [] } });
    assert_eq!(config_patched(&mismatched, &patch), expect);
    let there = json!({ "data": { "a": "0" } });
    let patch = json!({ "data": { "a": null, "c": null } });
    assert_eq!(config_patched(&there, &patch), json!({ "data": {} }));
}

#[test]
fn nulls_and_directives_in_a_new_list_are_left_out() {
    let patch = json!({ "spec": {
        "nodeSelector": { "a": null },
        "containers": [
            { "name": "a", "resources": { "limits": { "cpu": null, "memory": "1" } }, "env": [
                { "name": "x", "$patch": "delete" }, { "name": "y", "value": null },
            ] },
            { "name": "b", "$patch": "delete" },
            { "lifecycle": { "$patch": "replace", "preStop": {} } },
        ],
    } });
    let expect = json!({ "spec": {
        "nodeSelector": {},
        "containers": [
            { "name": "a", "resources": { "limits": { "memory": "1" } }, "env": [{ "name": "y" }] },
            {},
        ],
    } });
    assert_eq!(pod_patched(&json!({}), &patch).ok(), Some(expect));
}

/// Upstream appends them as they are.
#[test]
fn a_new_element_of_a_list_that_is_there_keeps_its_nulls() {
    let containers = |list: Value| json!({ "spec": { "containers": list } });
    let new = json!({ "name": "b", "resources": { "limits": { "cpu": null } } });
    let found = pod_patched(
        &containers(json!([{ "name": "a" }])),
        &containers(json!([new])),
    );
    assert_eq!(found.ok(), Some(containers(json!([new, { "name": "a" }]))));
}

#[test]
fn deletions_in_a_list_come_first_wherever_they_stand() {
    let by_name = ListRule::ByKey("name");
    let old = vec![json!({ "name": "a", "x": 1 }), json!({ "name": "b" })];
    let delete = json!({ "name": "a", "$patch": "delete" });
    let patch = vec![json!({ "name": "a", "y": 2 }), delete.clone()];
    let expect = [json!({ "name": "a", "y": 2 }), json!({ "name": "b" })];
    assert_eq!(merged(old.clone(), patch, by_name), expect);
    let replace = json!({ "name": "b", "$patch": "replace" });
    let patch = vec![json!({ "name": "c" }), replace, delete];
    assert_eq!(merged(old, patch, by_name), [json!({ "name": "c" })]);
}

#[test]
fn a_map_is_emptied_or_replaced_by_its_directive() {
    let old = json!({ "data": { "a": "1" } });
    let delete = json!({ "data": { "$patch": "delete", "b": "2" } });
    assert_eq!(config_patched(&old, &delete), json!({ "data": {} }));
    let replace = json!({ "data": { "$patch": "replace", "b": null, "c": "3" } });
    let expect = json!({ "data": { "b": null, "c": "3" } });
    assert_eq!(
        config_patched(&old, &replace),
        expect,
        "as it is, nulls and all"
    );
    assert_eq!(
        config_patched(&json!({}), &replace),
        json!({}),
        "nothing to replace"
    );
}
