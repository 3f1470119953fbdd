//! What is read, against what kubectl reads: `documents.jsonl` holds the texts, `kubectl.jsonl` what kubectl made
//! of them (`kubectl create --dry-run=client -o json`). `cargo xtask accept yaml` asks kubectl again, `accept
//! record-yaml` writes its answers anew.

use std::collections::BTreeMap;

use serde_json::Value;
use sundown_yaml::{YamlError, documents, read};

const DOCUMENTS: &str = include_str!("documents.jsonl");
const KUBECTL: &str = include_str!("kubectl.jsonl");

/// Where the grammar of YAML 1.2 differs from that of 1.1: `[-]`, `[::1]`, `"\/"`, a block that begins with a tab,
/// and a line break that is none of ASCII.
const OF_THE_GRAMMAR: [&str; 5] = ["block-19", "dash-list", "flow-32", "nel", "quoted-08"];

fn lines(text: &str) -> BTreeMap<String, Value> {
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("one document a line"));
    lines
        .map(|it| (it["id"].as_str().unwrap_or_default().to_owned(), it))
        .collect()
}

/// The objects of a file; None where kubectl would not take it either: it cannot be read, or what is read is no
/// object.
fn objects(text: &str) -> Result<Option<Vec<Value>>, YamlError> {
    let mut all: Vec<Value> = Vec::new();
    for document in documents(text)? {
        flatten(document.value, &mut all);
    }
    let is_object = |it: &Value| {
        let is_name = it["metadata"]["name"].is_string();
        it["apiVersion"].is_string() && it["kind"].is_string() && is_name
    };
    Ok(Some(all).filter(|all| !all.is_empty() && all.iter().all(is_object)))
}

/// A list stands for its items, as kubectl takes it.
fn flatten(value: Value, into: &mut Vec<Value>) {
    let kind = value["kind"].as_str().unwrap_or_default().to_owned();
    match (kind.strip_suffix("List"), value["items"].as_array()) {
        (Some(of), Some(items)) => {
            for item in items {
                let mut item = item.clone();
                if item["kind"].is_null() && !of.is_empty() {
                    item["kind"] = of.into();
                    item["apiVersion"] = value["apiVersion"].clone();
                }
                into.push(item);
            }
        }
        (Some(_) | None, _) => into.push(value),
    }
}

/// What kubectl printed, with numbers as a client has them.
fn printed(answer: &Value) -> Option<Vec<Value>> {
    let objects = answer["objects"].as_array()?.iter();
    let text: String = objects.map(Value::to_string).collect();
    let all = documents(&text).expect("kubectl prints JSON").into_iter();
    Some(all.map(|it| it.value).collect())
}

#[test]
fn a_file_is_read_as_kubectl_reads_it() {
    let (texts, answers) = (lines(DOCUMENTS), lines(KUBECTL));
    assert!(texts.len() >= 200, "{}", texts.len());
    assert!(
        texts.keys().eq(answers.keys()),
        "cargo xtask accept record-yaml"
    );
    let mut differ = Vec::new();
    for (id, text) in &texts {
        let text = text["text"].as_str().unwrap();
        let expect = printed(&answers[id]);
        let found = objects(text);
        let is_known = OF_THE_GRAMMAR.contains(&&**id);
        if is_known != (found.clone().ok().flatten() != expect) {
            let refused = &answers[id]["refused"];
            differ.push(format!(
                "{id}: {text:?}\n  kubectl {expect:?} {refused}\n  found   {found:?}"
            ));
        }
    }
    assert!(
        differ.is_empty(),
        "{} differ:\n{}",
        differ.len(),
        differ.join("\n")
    );
}

fn check(text: &str, expect: &str) {
    let error = documents(text).expect_err(expect);
    assert_eq!(error.to_string(), expect, "{text}");
}

#[test]
fn what_is_wrong_is_told_with_line_column_and_field() {
    check(
        "a: 1\n---\nspec:\n  replicas: .inf\n",
        "line 4, column 13, in spec.replicas: JSON has no such number: `.inf`",
    );
    check(
        "spec:\n  list:\n  - a\n  - !!int x\n",
        "line 4, column 11, in spec.list[1]: a !!str cannot be decoded as a !!int: `x`",
    );
    let error = documents("spec:\n  a: [1,\n").unwrap_err();
    assert_eq!(error.field, "spec.a[1]", "{error}");
    let error = read("password: !!int secret").unwrap_err().without_text();
    assert!(!error.to_string().contains("secret"), "{error}");
    assert!(!error.to_string().contains("password"), "{error}");
}

#[test]
fn what_is_given_twice_is_told_and_the_last_counts() {
    let found = documents("x: 1\n---\nspec:\n  a: 1\n  b: 2\n  a: 3\n").unwrap();
    assert_eq!(found[1].value["spec"]["a"], 3);
    let twice = &found[1].duplicates[0];
    assert_eq!((twice.line, &*twice.field, &*twice.key), (6, "spec.a", "a"));
    assert!(!twice.is_merged);
}

#[test]
fn what_overrides_a_merged_key_is_told_apart_from_what_is_given_twice() {
    let text = "base: &base {a: 1, b: 2}\nspec:\n  <<: *base\n  a: 3\n  b: 4\n  b: 5\n";
    let found = read(text).unwrap().duplicates;
    let found: Vec<_> = found.iter().map(|it| (&*it.field, it.is_merged)).collect();
    assert_eq!(
        found,
        [("spec.a", true), ("spec.b", true), ("spec.b", false)]
    );
}

/// Each of hundreds of thousands of duplicates kept the whole path to it, of a document of 3 MiB some 100 GiB.
#[test]
fn of_many_duplicates_the_first_are_told_and_none_is_long() {
    let (depth, count) = (200, 10_000);
    let nested = format!("{{{}: ", "k".repeat(1_000)).repeat(depth);
    let text = format!(
        "{nested}{{{}}}{}",
        "a: 1, ".repeat(count),
        "}".repeat(depth)
    );
    let found = read(&text).unwrap().duplicates;
    assert_eq!(found.len(), 100);
    let bytes: usize = found.iter().map(|it| it.field.len() + it.key.len()).sum();
    assert!(bytes < 1 << 20, "{bytes}");
    let long = "ä".repeat(1 << 20);
    let found = read(&format!("? {long}\n: 1\n? {long}\n: 2\n"))
        .unwrap()
        .duplicates;
    assert!(found[0].key.len() < 10_000, "{}", found[0].key.len());
}

/// What overrides merged keys is no mistake, and must not hide one.
#[test]
fn merged_keys_do_not_take_the_place_of_what_is_given_twice() {
    let keys: Vec<String> = (0..200).map(|number| format!("k{number}: 1")).collect();
    let keys = keys.join(", ");
    let text = format!("base: &base {{{keys}}}\nspec: {{<<: *base, {keys}, k0: 2}}\n");
    let found = read(&text).unwrap().duplicates;
    let own: Vec<_> = found.iter().filter(|it| !it.is_merged).collect();
    assert_eq!(own.len(), 1, "{own:?}");
    assert_eq!(found.len(), 101);
}

/// They were not told.
#[test]
fn what_json_gives_twice_is_told_with_its_line() {
    let text =
        "{\"x\": 1}\n{\n\t\"spec\": {\n\t\t\"a\": [1],\n\t\t\"a\": 2,\n\t\t\"<<\": {}\n\t}\n}\n";
    let found = documents(text).unwrap();
    assert_eq!(found[1].value["spec"]["a"], 2);
    let twice: Vec<_> = found[1].duplicates.iter().collect();
    assert_eq!(twice.len(), 1, "{twice:?}");
    assert_eq!((twice[0].line, &*twice[0].field), (5, "spec.a"));
}

/// They were counted from the end of the JSON.
#[test]
fn lines_count_from_the_beginning_of_the_file_after_json_too() {
    let text = "{\"a\": 1}\n---\nb: 1\n--- !x\nc: 1\n";
    let error = documents(text).unwrap_err();
    assert_eq!((error.line, error.column), (4, 4), "{error}");
}

#[test]
fn aliases_stand_for_a_bounded_text() {
    let long = "x".repeat(1 << 20);
    let many = "*a, ".repeat(20);
    let error = read(&format!("a: &a {long}\nb: [{many}]\n")).unwrap_err();
    assert_eq!(error.problem, "alias expansion exceeds the limit");
}
