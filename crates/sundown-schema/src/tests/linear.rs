//! Texts and lists that are as long as a request may be. The sizes are such that a pass for each of their
//! parts would take minutes.

use serde_json::{Value, json};

use crate::{Compiler, ERRORS_MAX, FINDINGS_MAX, check, duplicate_fields};

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

/// Each value was compared with all choices: hours for two lists as long as requests may be.
#[test]
fn a_long_list_of_values_is_looked_up_in_a_long_list_of_choices_in_one_pass() {
    let choices: Vec<String> = (0..200_000).map(|it| format!("{it:08}")).collect();
    let schema = Compiler::default().compile(&json!({ "type": "object", "properties": {
        "l": { "type": "array", "items": { "type": "string", "enum": choices } },
    } }));
    let last_first: Vec<&String> = choices.iter().rev().collect();
    assert_eq!(schema.validate(&json!({ "l": last_first }), None).len(), 0);
    let problems = schema.validate(&json!({ "l": ["00000001", "1"] }), None);
    assert_eq!(problems.len(), 1, "what is not listed is refused");
}

/// What is wrong under an alternative that does not count was put into words for each value, with all choices.
#[test]
fn alternatives_that_do_not_fit_cost_no_words() {
    let choices: Vec<String> = (0..100_000).map(|it| format!("{it:08}")).collect();
    let listed = json!({ "enum": choices });
    let items = |item: Value| {
        let list = json!({ "type": "array", "items": item });
        let schema = json!({ "type": "object", "properties": { "l": list } });
        let values = json!({ "l": vec!["a"; 200_000] });
        Compiler::default()
            .compile(&schema)
            .validate(&values, None)
            .len()
    };
    let fits = json!({ "enum": ["a"] });
    let any = json!({ "type": "string", "anyOf": [listed, fits] });
    assert_eq!(items(any), 0, "each is the one of the second");
    let one = json!({ "type": "string", "oneOf": [listed, fits] });
    assert_eq!(items(one), 0);
    let not = json!({ "type": "string", "not": listed });
    assert_eq!(items(not), 0);
    let neither = json!({ "type": "string", "anyOf": [listed, { "enum": ["b"] }] });
    assert_eq!(items(neither), 400_000, "that, and what is closest");
    let all = json!({ "type": "string", "allOf": [listed, fits] });
    assert_eq!(items(all), 400_000);
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

/// Each fault was kept, with its path and its value or, worse, with all values that are supported.
#[test]
fn a_million_faults_are_counted_and_a_thousand_are_told() {
    let choices: Vec<String> = (0..20_000).map(|it| format!("choice-{it}")).collect();
    let item = json!({ "type": "object", "required": ["k"], "properties": {
        "e": { "type": "string", "maxLength": 1, "enum": choices },
    } });
    let schema = json!({ "type": "object", "properties": {
        "l": { "type": "array", "items": item },
        "any": { "type": "array", "items": { "anyOf": [{ "required": ["a"] }, { "required": ["b", "c"] }] } },
        "set": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "integer" } },
    } });
    let compiled = Compiler::default().compile(&schema);
    let told = |object: Value| {
        let problems = compiled.validate(&object, None);
        let bytes: usize = problems.iter().map(|it| it.to_string().len()).sum();
        assert!(bytes < 2_000_000, "{bytes} bytes");
        assert!(problems.kept().len() <= ERRORS_MAX);
        problems.len()
    };
    assert_eq!(told(json!({ "l": vec![json!({}); 1_000_000] })), 1_000_000);
    assert_eq!(told(json!({ "any": vec![json!({}); 100_000] })), 200_000);
    let twice: Vec<u32> = (0..100_000).chain(0..100_000).collect();
    assert_eq!(told(json!({ "set": twice })), 100_000);
    // Each of them lists all choices.
    let wrong = vec![json!({ "k": 1, "e": "" }); 5_000];
    assert_eq!(told(json!({ "l": wrong })), 5_000);
    let bad = vec![json!({ "type": "nothing" }); 100_000];
    let names = (0..100_000).map(|it| it.to_string()).zip(bad);
    let names: serde_json::Map<String, Value> = names.collect();
    let problems = check(
        &json!({ "type": "object", "properties": names }),
        "s",
        false,
    );
    assert!(problems.len() >= 100_000 && problems.kept().len() <= 2 * ERRORS_MAX);
}

/// Only the rule was charged: a message could cost as much again at each of a million places.
#[test]
fn messages_of_rules_cost_of_the_budget_of_all_rules() {
    let schema = Compiler::default().compile(&json!({ "type": "object", "properties": { "o": {
        "type": "array", "items": {
            "type": "object",
            "properties": { "l": { "type": "array", "items": { "type": "integer" } } },
            "x-kubernetes-validations": [{
                "rule": "false",
                "messageExpression": "string(self.l.map(x, self.l.filter(y, y == x)).size())",
            }],
        },
    } } }));
    let numbers: Vec<u32> = (0..300).collect();
    let object = json!({ "o": vec![json!({ "l": numbers }); 100] });
    let problems = schema.validate(&object, None);
    assert!(problems.len() < 100, "{} messages", problems.len());
    let (first, last) = (problems.kept().first(), problems.kept().last());
    assert!(
        first.is_some_and(|it| it.text.ends_with(": 300")),
        "{first:?}"
    );
    let why = "messageExpression evaluation failed due to running out of cost budget, no further \
               validation rules will be run";
    assert!(last.is_some_and(|it| it.text.ends_with(why)), "{last:?}");
}
