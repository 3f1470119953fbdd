//! Texts and lists that are as long as a request may be. The sizes are such that a pass for each of their
//! parts would take minutes.

use serde_json::{Value, json};

use crate::{Compiler, FINDINGS_MAX, duplicate_fields};

/// Each repetition was compared with all that were found before it, and each path was written anew:
/// any of these took minutes.
#[test]
fn many_fields_that_are_there_twice_cost_no_more_than_their_bytes() {
    let doubled: Vec<String> = (0..500_000)
        .map(|it| format!(r#""{it}":1,"{it}":2"#))
        .collect();
    let doubled = doubled.join(",");
    let found = duplicate_fields(format!("{{{doubled}}}").as_bytes());
    assert_eq!(found.len(), FINDINGS_MAX, "as many as upstream tells");
    assert_eq!(found[99], "99");
    let one = r#""a":1,"#.repeat(500_000);
    let found = duplicate_fields(format!(r#"{{{one}"b":1}}"#).as_bytes());
    assert_eq!(found, ["a"]);
    let long = "n".repeat(3_000_000);
    let found = duplicate_fields(format!(r#"{{"{long}":{{{doubled}}}}}"#).as_bytes());
    assert_eq!(
        found.len(),
        1,
        "what is too long to be told apart is told once"
    );
    assert!(found[0].len() < 5_000);
}

/// Each item looked for its old one among all.
#[test]
fn a_long_list_with_keys_is_compared_with_an_old_one_in_one_pass() {
    let schema = Compiler::default().compile(&json!({ "type": "object", "properties": { "l": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {
            "type": "object", "required": ["k"],
            "properties": { "k": { "type": "string", "maxLength": 9 }, "n": { "type": "integer" } },
            "x-kubernetes-validations": [{ "rule": "self.n >= oldSelf.n", "message": "shrinks" }],
        },
    } } }));
    let list = |count: u32, n: u32| -> Value {
        let items: Vec<_> = (0..count)
            .rev()
            .map(|k| json!({ "k": k.to_string(), "n": n }))
            .collect();
        json!({ "l": items })
    };
    let (old, new) = (list(40_000, 2), list(40_000, 2));
    assert_eq!(schema.validate(&new, Some(&old)).len(), 0);
    let problems = schema.validate(&list(3, 1), Some(&list(3, 2)));
    assert_eq!(
        problems.len(),
        3,
        "each is compared with its own: {problems:?}"
    );
}

/// One name of a megabyte was copied for each of the many that stand below it.
#[test]
fn a_long_name_is_not_copied_for_each_of_those_below_it() {
    let schema = Compiler::default().compile(&json!({ "type": "object", "properties": {
        "m": { "type": "object", "additionalProperties": {
            "type": "object", "additionalProperties": { "type": "integer" },
        } },
    } }));
    let many: serde_json::Map<String, Value> =
        (0..300_000).map(|it| (it.to_string(), json!(1))).collect();
    let mut object = json!({ "m": { "n".repeat(2_000_000): many } });
    assert_eq!(schema.prune(&mut object), [""; 0]);
    assert_eq!(schema.validate(&object, None).len(), 0);
}
