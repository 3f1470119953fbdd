//! What is written, held against the facts: our own reader took the same mistake for granted, and a
//! Go client refused every answer with `illegal tag 0`.

use serde_json::{Map, Value, json};

use super::*;

/// Deep enough for an object in a list in an object in a template; schemas contain themselves.
const FILLED_DEPTH: usize = 9;

/// A value in which every field of the type is set.
fn filled(shape: &Shape, depth: usize) -> Value {
    match shape {
        Shape::String => "text".into(),
        Shape::Bool => true.into(),
        Shape::Int32 | Shape::Int64 => (-7).into(),
        Shape::Double => 0.5.into(),
        Shape::Bytes => "AP8=".into(),
        Shape::Quantity => "500m".into(),
        Shape::IntOrString => "80%".into(),
        Shape::Time => "2026-01-02T03:04:05Z".into(),
        Shape::MicroTime => "2026-01-02T03:04:05.678901Z".into(),
        Shape::Duration => "1h0m5s".into(),
        Shape::Raw(_) => json!({ "apiVersion": "v1", "kind": "Any", "n": [1, null] }),
        Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrStrings => {
            filled(&Shape::Object(SCHEMA), depth)
        }
        Shape::Wrapped(inner) => filled(inner, depth),
        Shape::List(inner) if depth > 0 => json!([filled(inner, depth - 1)]),
        Shape::Map(inner) if depth > 0 => json!({ "key": filled(inner, depth - 1) }),
        Shape::Object(name) if depth > 0 => {
            let members = facts().named(name).members.iter();
            let members = members.map(|it| (it.json.to_owned(), filled(&it.shape, depth - 1)));
            Value::Object(members.filter(|(_, value)| !is_empty(value)).collect())
        }
        Shape::List(_) => json!([]),
        Shape::Map(_) | Shape::Object(_) => json!({}),
    }
}

/// No message tells an empty list or map from none.
fn is_empty(value: &Value) -> bool {
    *value == json!([]) || *value == json!({})
}

/// Follows a message as Go's decoder does: every number is that of a field, on each level.
fn check_numbers(fact: &Fact, raw: &[u8], at: &str) {
    for part in parts(raw) {
        let (number, wire) = part.unwrap_or_else(|why| panic!("{at}: {why}"));
        let field = fact.fields.iter().find(|field| field.number == number);
        let field = field.filter(|_| number > 0);
        let field = field.unwrap_or_else(|| panic!("{at}: illegal tag {number}"));
        let Wire::Bytes(inner) = wire else { continue };
        check_shape(&field.shape, inner, &format!("{at}.{}", field.json));
    }
}

fn check_shape(shape: &Shape, raw: &[u8], at: &str) {
    match shape {
        Shape::Object(name) => check_numbers(facts().named(name), raw, at),
        Shape::List(inner) => check_shape(inner, raw, at),
        Shape::Map(inner) => {
            let value = parts(raw).flatten().find(|(number, _)| *number == 2);
            if let Some((_, Wire::Bytes(value))) = value {
                check_shape(inner, value, at);
            }
        }
        Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrStrings => {
            let schema = parts(raw).flatten().find_map(|(_, wire)| match wire {
                Wire::Bytes(schema) => Some(schema),
                Wire::Varint(_) | Wire::Fixed64(_) | Wire::Fixed32 => None,
            });
            check_numbers(facts().named(SCHEMA), schema.unwrap_or_default(), at);
        }
        Shape::String
        | Shape::Bool
        | Shape::Int32
        | Shape::Int64
        | Shape::Double
        | Shape::Bytes
        | Shape::Quantity
        | Shape::IntOrString
        | Shape::Time
        | Shape::MicroTime
        | Shape::Duration
        | Shape::Raw(_)
        | Shape::Wrapped(_) => {}
    }
}

/// Every kind of the table, as group, version and kind, with all fields set.
fn every_kind() -> impl Iterator<Item = (String, String, &'static Fact, Value)> {
    facts().kinds().map(|(key, fact)| {
        let (api_version, kind) = key.rsplit_once('/').expect("group, version and kind");
        let api_version = api_version.trim_start_matches('/').to_owned();
        let mut value = filled(&Shape::Object(fact.name), FILLED_DEPTH);
        value["apiVersion"] = api_version.as_str().into();
        value["kind"] = kind.into();
        (api_version, kind.to_owned(), fact, value)
    })
}

/// What an embedded object says of its type is in no message.
fn remove_types(fact: &Fact, value: &mut Value) {
    let Some(map) = value.as_object_mut() else {
        return;
    };
    if fact.fields.iter().any(|field| field.number == 0) {
        map.remove("apiVersion");
        map.remove("kind");
    }
    for member in &fact.members {
        let Some(value) = map.get_mut(member.json) else {
            continue;
        };
        if let Shape::Object(name) = &member.shape {
            remove_types(facts().named(name), value);
        } else if let (Shape::List(inner), Value::Array(list)) = (&member.shape, value)
            && let Shape::Object(name) = &**inner
        {
            for item in list {
                remove_types(facts().named(name), item);
            }
        }
    }
}

#[test]
fn no_message_has_a_field_of_number_0() {
    let mut count = 0;
    for (api_version, kind, fact, value) in every_kind() {
        let body = envelope(&value).expect("every kind of the table has a message");
        let opened = open(&body).expect("what was written is read");
        assert_eq!((&opened.api_version, &opened.kind), (&api_version, &kind));
        check_numbers(fact, opened.raw, &kind);
        count += 1;
    }
    assert!(count > 40, "only {count} kinds");
}

#[test]
fn lists_and_events_have_no_field_of_number_0_either() {
    for (api_version, kind, fact, value) in every_kind().filter(|it| it.1 != "Status") {
        let list = json!({
            "apiVersion": api_version, "kind": format!("{kind}List"),
            "metadata": { "resourceVersion": "7" }, "items": [value.clone()],
        });
        let body = envelope(&list).expect("lists have messages");
        for part in parts(open(&body).expect("it is read").raw) {
            match part.expect("a field") {
                (1, Wire::Bytes(meta)) => check_numbers(facts().named(LIST_META), meta, &kind),
                (2, Wire::Bytes(item)) => check_numbers(fact, item, &kind),
                (number, _) => panic!("{kind}List: illegal tag {number}"),
            }
        }
        let framed = frame(&json!({ "type": "ADDED", "object": value })).expect("a frame");
        let event: Vec<_> = parts(&framed[4..])
            .collect::<Result<_, _>>()
            .expect("one event");
        let [(1, Wire::Bytes(b"ADDED")), (2, Wire::Bytes(object))] = event[..] else {
            panic!("{kind}: {event:?}");
        };
        let object: Vec<_> = parts(object).collect::<Result<_, _>>().expect("an object");
        let [(1, Wire::Bytes(body))] = object[..] else {
            panic!("{kind}: {object:?}");
        };
        assert_eq!(Some(body), envelope(&value).as_deref(), "{kind}");
    }
}

#[test]
fn a_refusal_keeps_its_message_and_its_details() {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 404,
        "message": "pods \"a\" not found", "reason": "NotFound",
        "details": { "name": "a", "kind": "pods", "causes": [{ "reason": "R", "field": "f" }] },
    });
    let body = envelope(&status).expect("it has a message");
    let opened = open(&body).expect("what was written is read");
    check_numbers(
        facts().named("io.k8s.apimachinery.pkg.apis.meta.v1.Status"),
        opened.raw,
        "Status",
    );
    let fact = facts().kind("", "v1", "Status").expect("in the table");
    let mut read = message(fact, opened.raw).expect("what was written is read");
    read.insert("kind".into(), "Status".into());
    read.insert("apiVersion".into(), "v1".into());
    assert_eq!(Value::Object(read), status);
}

/// Beyond the numbers: every field comes back with its value.
#[test]
fn every_field_of_every_kind_comes_back() {
    for (_, kind, fact, value) in every_kind() {
        let body = envelope(&value).expect("every kind of the table has a message");
        let raw = open(&body).expect("what was written is read").raw;
        let read = message(fact, raw).expect("what was written is read");
        let mut expect = value.clone();
        remove_types(fact, &mut expect);
        assert!(
            Value::Object(read) == expect,
            "{kind} comes back as another"
        );
    }
}

#[test]
fn a_body_with_a_field_of_number_0_is_refused_as_go_does() {
    let fact = facts().kind("", "v1", "ConfigMap").expect("in the table");
    let refused = message(fact, &[0x02, 0x00]);
    assert_eq!(
        refused.map_err(|why| why.to_string()),
        Err::<Map<_, _>, _>("proto: illegal tag 0".to_owned())
    );
}

#[test]
fn durations_are_read_and_written_as_go_prints_them() {
    for (nanos, text) in [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5µs"),
        (-200_000_000, "-200ms"),
        (1_100_000, "1.1ms"),
        (1_500_000_000, "1.5s"),
        (90_000_000_000, "1m30s"),
        (3_605_000_000_000, "1h0m5s"),
    ] {
        assert_eq!(duration(nanos), text);
        assert_eq!(write::nanoseconds(text), nanos, "{text}");
    }
}
