//! `docs/api-support.md` says what the server does: every row of it is tried.

use std::collections::BTreeMap;

use serde_json::Value;
use sundown_api::{Method, Request};

use crate::world::{CM, PODS, World, cm, pod, request};

const PAGE: &str = include_str!("../../../../docs/api-support.md");

/// The cells of the rows below a heading, without the head of the table.
fn rows(heading: &str) -> Vec<Vec<&'static str>> {
    let (_, section) = PAGE
        .split_once(&format!("## {heading}\n"))
        .expect("the heading is there");
    let section = section.split("\n## ").next().expect("a section has a text");
    let lines = section.lines().filter(|line| line.starts_with('|')).skip(2);
    lines
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

/// The kinds of each group and version, as the server lists them.
fn served(world: &mut World) -> BTreeMap<String, Vec<String>> {
    let groups = world.get("/apis").ok().json;
    let mut paths = vec![("v1".to_owned(), "/api/v1".to_owned())];
    for version in groups["groups"].as_array().into_iter().flatten() {
        for version in version["versions"].as_array().into_iter().flatten() {
            let version = version["groupVersion"].as_str().unwrap_or("");
            paths.push((version.to_owned(), format!("/apis/{version}")));
        }
    }
    let mut served = BTreeMap::new();
    for (version, path) in paths {
        let mut kinds: Vec<String> = world.get(&path).ok().json["resources"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|it| !it["name"].as_str().unwrap_or("").contains('/'))
            .map(|it| it["kind"].as_str().unwrap_or("").to_owned())
            .collect();
        kinds.sort();
        served.insert(version, kinds);
    }
    served
}

#[test]
fn the_page_names_every_kind_that_is_served() {
    let mut world = World::new();
    let served = served(&mut world);
    let listed: BTreeMap<String, Vec<String>> = rows("Kinds")
        .into_iter()
        .map(|row| {
            let kinds = row[1].split(", ").map(str::to_owned).collect();
            (row[0].trim_matches('`').to_owned(), kinds)
        })
        .collect();
    let table: String = served
        .iter()
        .map(|(version, kinds)| format!("| `{version}` | {} |\n", kinds.join(", ")))
        .collect::<Vec<_>>()
        .concat();
    assert_eq!(listed, served, "the table should be:\n{table}");
}

#[test]
fn what_the_page_calls_refused_is_refused_with_that_code() {
    let mut world = World::new();
    world.post(CM, &cm("a")).ok();
    world.post(PODS, &pod("a")).ok();
    let rows = rows("Refused");
    assert!(rows.len() >= 8, "the table is read");
    for row in rows {
        let [what, line, code] = row.as_slice() else {
            panic!("{row:?} has no three cells");
        };
        let mut words = line.trim_matches('`').split(' ');
        let method = match words.next() {
            Some("GET") => Method::Get,
            Some("POST") => Method::Post,
            Some("PATCH") => Method::Patch,
            other => panic!("{other:?} is no method"),
        };
        let path = words.next().expect("a row has a path");
        let header = words.next().map(str::to_owned);
        let (accept, content_type) = match method {
            Method::Get => (header, None),
            _ => (None, header),
        };
        let reply = world.send(&Request {
            accept,
            content_type,
            ..request(method, path, &Value::Null)
        });
        assert_eq!(reply.code.to_string(), *code, "{what}: {}", reply.text);
    }
}
