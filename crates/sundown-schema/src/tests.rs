//! What schemas keep, fill in and refuse; the texts are those of a kube-apiserver 1.37.

mod hostile;
mod large;
mod linear;

use serde_json::{Value, json};

use crate::{Compiler, JsonPath, Schema, check, duplicate_fields};

fn schema(spec: &Value) -> Schema {
    let whole = json!({ "type": "object", "properties": { "spec": spec } });
    assert_eq!(check(&whole, "s", false), crate::Problems::default());
    Compiler::default().compile(&whole)
}

#[track_caller]
fn told(spec: &Value, new: &Value, old: Option<&Value>) -> Vec<String> {
    let problems = schema(spec).validate(
        &json!({ "spec": new }),
        old.map(|old| json!({ "spec": old })).as_ref(),
    );
    problems.iter().map(ToString::to_string).collect()
}

fn field(schema: &Value) -> Value {
    json!({ "type": "object", "properties": { "x": schema } })
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of all messages")]
fn tells_what_is_wrong_in_the_words_of_upstream() {
    for (own, value, expect) in [
        (
            json!({ "type": "integer" }),
            json!("q"),
            r#"spec.x: Invalid value: "string": spec.x in body must be of type integer: "string""#,
        ),
        (
            json!({ "x-kubernetes-int-or-string": true }),
            json!(true),
            r#"spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean""#,
        ),
        (
            json!({ "type": "number", "minimum": 0.5 }),
            json!(0.1),
            "spec.x: Invalid value: 0.1: spec.x in body should be greater than or equal to 0.5",
        ),
        (
            json!({ "type": "integer", "maximum": 5, "exclusiveMaximum": true }),
            json!(5),
            "spec.x: Invalid value: 5: spec.x in body should be less than 5",
        ),
        (
            json!({ "type": "integer", "multipleOf": 2 }),
            json!(5),
            "spec.x: Invalid value: 5: spec.x in body should be a multiple of 2",
        ),
        (
            json!({ "type": "string", "minLength": 2 }),
            json!("A"),
            r#"spec.x: Invalid value: "A": spec.x in body should be at least 2 chars long"#,
        ),
        (
            json!({ "type": "string", "maxLength": 2 }),
            json!("AAA"),
            "spec.x: Too long: may not be more than 2 bytes",
        ),
        (
            json!({ "type": "string", "pattern": "^a" }),
            json!("b"),
            r#"spec.x: Invalid value: "b": spec.x in body should match '^a'"#,
        ),
        (
            json!({ "type": "string", "enum": ["a", "b"] }),
            json!("c"),
            r#"spec.x: Unsupported value: "c": supported values: "a", "b""#,
        ),
        (
            json!({ "type": "integer", "enum": [1, 2] }),
            json!(7),
            r#"spec.x: Unsupported value: 7: supported values: "1", "2""#,
        ),
        (
            json!({ "type": "string", "format": "date-time" }),
            json!("yesterday"),
            r#"spec.x: Invalid value: "yesterday": spec.x in body must be of type date-time: "yesterday""#,
        ),
        (
            json!({ "type": "string", "format": "ipv4" }),
            json!("1.2"),
            r#"spec.x: Invalid value: "1.2": spec.x in body must be of type ipv4: "1.2""#,
        ),
        (
            json!({ "type": "array", "maxItems": 1, "items": { "type": "integer" } }),
            json!([1, 2]),
            "spec.x: Too many: 2: must have at most 1 items",
        ),
        (
            json!({ "type": "object", "minProperties": 1 }),
            json!({}),
            "spec.x: Invalid value: 0: spec.x in body should have at least 1 properties",
        ),
        (
            json!({ "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "set" }),
            json!(["a", "a"]),
            r#"spec.x[1]: Duplicate value: "a""#,
        ),
        (
            json!({ "type": "string", "not": { "enum": ["x"] } }),
            json!("x"),
            r#"<nil>: Invalid value: "": "spec.x" must not validate the schema (not)"#,
        ),
    ] {
        assert_eq!(told(&field(&own), &json!({ "x": value }), None), [expect]);
        assert!(
            check(
                &json!({ "type": "object", "properties": { "x": own } }),
                "s",
                false
            )
            .is_empty()
        );
    }
}

#[test]
fn joins_alternatives_as_upstream() {
    let one = json!({
        "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
        "oneOf": [{ "required": ["a"] }, { "required": ["b"] }],
    });
    assert_eq!(
        told(&one, &json!({}), None),
        [
            r#"<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid"#,
            "spec.a: Required value",
        ]
    );
    assert_eq!(told(&one, &json!({ "a": "" }), None), [""; 0]);
    let all = json!({ "type": "integer", "allOf": [{ "minimum": 3 }, { "maximum": 5 }] });
    assert_eq!(
        told(&field(&all), &json!({ "x": 9 }), None),
        [
            "spec.x: Invalid value: 9: spec.x in body should be less than or equal to 5",
            r#"<nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf)"#,
        ]
    );
}

#[test]
fn does_not_judge_again_what_stays() {
    let short = json!({ "type": "object", "properties": {
        "x": { "type": "string", "maxLength": 2 }, "y": { "type": "string" },
    } });
    let old = json!({ "x": "long", "y": "1" });
    let new = json!({ "x": "long", "y": "2" });
    assert_eq!(told(&short, &new, Some(&old)), [""; 0]);
    assert_eq!(told(&short, &new, None).len(), 1);
}

#[test]
fn prunes_and_fills_in() {
    let schema = schema(&json!({ "type": "object", "properties": {
        "n": { "type": "integer", "default": 3 },
        "nu": { "type": "string", "nullable": true, "default": "q" },
        "open": { "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": { "in": { "type": "object", "properties": {} } } },
        "list": { "type": "array", "items": { "type": "object", "properties": {} } },
    } }));
    let mut value = json!({
        "kind": "K", "metadata": { "name": "a" },
        "spec": { "n": null, "nu": null, "bad": 1, "open": { "any": 1, "in": { "x": 1 } },
            "list": [{ "z": 1 }] },
        "status": {},
    });
    let pruned = schema.prune(&mut value);
    assert_eq!(
        pruned,
        ["spec.bad", "spec.list[0].z", "spec.open.in.x", "status"]
    );
    schema.default(&mut value);
    let expect = json!({
        "kind": "K", "metadata": { "name": "a" },
        "spec": { "n": 3, "nu": null, "open": { "any": 1, "in": {} }, "list": [{}] },
    });
    assert_eq!(value, expect);
}

#[test]
fn rules_look_at_the_old_state_too() {
    let spec = json!({
        "type": "object",
        "properties": {
            "n": { "type": "integer" }, "s": { "type": "string" },
            "tags": { "type": "array", "maxItems": 9, "items": { "type": "string" } },
        },
        "x-kubernetes-validations": [
            { "rule": "!has(self.n) || self.n <= 10 || (has(self.s) && self.s == 'root')", "message": "more than 10 need root" },
            { "rule": "self.n >= oldSelf.n", "fieldPath": ".n", "reason": "FieldValueForbidden",
              "messageExpression": "'from %d to %d'.format([oldSelf.n, self.n])" },
            { "rule": "!has(self.tags) || self.tags.all(t, t.startsWith('a'))" },
        ],
    });
    assert_eq!(told(&spec, &json!({ "n": 11, "s": "root" }), None), [""; 0]);
    assert_eq!(
        told(&spec, &json!({ "n": 11, "tags": ["b"] }), None),
        [
            "spec: Invalid value: more than 10 need root",
            "spec: Invalid value: failed rule: !has(self.tags) || self.tags.all(t, t.startsWith('a'))",
        ]
    );
    assert_eq!(
        told(&spec, &json!({ "n": 5 }), Some(&json!({ "n": 9 }))),
        ["spec.n: Forbidden: from 9 to 5"]
    );
    assert_eq!(
        told(&spec, &json!({ "s": "x" }), Some(&json!({ "n": 9 }))),
        [r#"spec: Invalid value: "object": no such key: n evaluating rule: self.n >= oldSelf.n"#]
    );
}

#[test]
fn evaluates_expressions() {
    for rule in [
        "self.x.size() == 3 && size(self.x) == 3",
        "self.x.exists_one(i, i == 2) && !self.x.exists(i, i > 3)",
        "self.x.map(i, i * 2).filter(i, i > 2) == [4, 6]",
        "2 in self.x && self.x[0] == 1 && self.x.sum() == 6 && self.x.max() == 3",
        "'a-b'.split('-') == ['a', 'b'] && ['a', 'b'].size() == 2 && 'abc'.matches('^[a-c]+$')",
        "self.?y.orValue(7) == 7 && !self.?y.hasValue()",
        "1.5 + 1.5 == 3.0 && 7 / 2 == 3 && -7 % 4 == -3 && (true ? 'a' : 'b') == 'a'",
        "sets.contains([1, 2], [1]) && self.x.all(i, v, v == i + 1)",
        "duration('1h') > duration('59m') && {'a': 1}['a'] == 1",
        "true || self.y == 1",
        "quantity('1Gi').isGreaterThan(quantity('1G')) && cidr('10.0.0.0/8').containsIP('10.1.2.3')",
        "url('https://a.b:80/c').getPort() == '80' && semver('1.2.3').minor() == 2",
        "!format.dns1123Label().validate('a-b').hasValue() && '%d%%'.format([5]) == '5%'",
    ] {
        let spec = json!({
            "type": "object", "properties": {
                "x": { "type": "array", "maxItems": 9, "items": { "type": "integer" } },
                "y": { "type": "integer" },
            },
            "x-kubernetes-validations": [{ "rule": rule }],
        });
        assert_eq!(
            told(&spec, &json!({ "x": [1, 2, 3] }), None),
            [""; 0],
            "{rule}"
        );
    }
}

#[test]
fn refuses_rules_that_do_not_compile_or_cost_too_much() {
    let own = |rule: &str| {
        json!({ "type": "object", "x-kubernetes-validations": [{ "rule": rule }],
            "properties": { "x": { "type": "array", "items": { "type": "string" } } } })
    };
    let told = |rule: &str| {
        check(&own(rule), "s", false)
            .kept()
            .first()
            .map(ToString::to_string)
            .unwrap_or_default()
    };
    assert!(told("self.x ==").contains("compilation failed: ERROR: <input>:1:10: Syntax error"));
    let unknown = told("foo(self.x)");
    assert!(unknown.ends_with("ERROR: <input>:1:4: undeclared reference to 'foo' (in container '')\n | foo(self.x)\n | ...^"), "{unknown}");
    assert!(
        told("self.x.all(a, self.x.all(b, a == b))").contains("estimated rule cost exceeds budget")
    );
}

#[test]
fn refuses_what_is_not_structural() {
    for (own, expect) in [
        (
            json!({}),
            "s.type: Required value: must not be empty at the root",
        ),
        (
            json!({ "type": "string" }),
            r#"s.type: Invalid value: "string": must be object at the root"#,
        ),
        (
            json!({ "type": "object", "properties": { "x": {} } }),
            "s.properties[x].type: Required value: must not be empty for specified object fields",
        ),
        (
            json!({ "type": "object", "properties": { "x": { "type": "array" } } }),
            "s.properties[x].items: Required value: must be specified",
        ),
        (
            json!({ "type": "object", "anyOf": [{ "type": "object" }] }),
            "s.anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (
            json!({ "type": "object", "properties": { "x": { "type": "integer", "default": "a" } } }),
            r#"s.properties[x].default: Invalid value: "string":  in body must be of type integer: "string""#,
        ),
    ] {
        let found: Vec<String> = check(&own, "s", false)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, [expect]);
    }
}

#[test]
fn finds_fields_that_are_there_twice() {
    let json = br#"{"a":{"b":1,"b":2},"l":[{"x":1},{"x":1,"x":"\"}"}],"a":3}"#;
    assert_eq!(duplicate_fields(json), ["a.b", "l[1].x", "a"]);
    let json = br#"{"a":1,"b":[{"c":1,"c":2,"c":3}],"a":2}"#;
    assert_eq!(duplicate_fields(json), ["b[0].c", "a"]);
    let again = br#"{"a":{"c":1,"c":2},"a":{"c":1,"c":2}}"#;
    assert_eq!(duplicate_fields(again), ["a.c", "a"]);
    assert_eq!(duplicate_fields(b"{\"a\":"), [""; 0]);
}

#[test]
fn follows_json_paths() {
    let value = json!({ "status": { "conditions": [
        { "type": "Ready", "status": "True" }, { "type": "Other", "status": "False" },
    ], "a.b": [1, 2, 3] } });
    let find = |path: &str| {
        JsonPath::parse(path)
            .unwrap()
            .find(&value)
            .into_iter()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        find(".status.conditions[?(@.type==\"Ready\")].status"),
        [json!("True")]
    );
    assert_eq!(
        find(".status.conditions[*].type"),
        [json!("Ready"), json!("Other")]
    );
    assert_eq!(find(".status['a.b'][-1]"), [json!(3)]);
    assert_eq!(find(".spec.none"), [Value::Null; 0]);
}

#[test]
fn keeps_equal_parts_once() {
    let part = json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } } });
    let whole = json!({ "type": "object", "properties": { "x": part, "y": part } });
    assert_eq!(Compiler::default().compile(&whole).node_count(), 3);
}
