//! Facts that only a running kube-apiserver tells: what is served under which names, and the columns
//! of its Tables. Written down for `sundown-api`, whose tests compare itself with them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const TABLE: &str = "application/json;g=meta.k8s.io;v=v1;as=Table";

/// Writes `discovery.txt` and `columns.txt`.
pub(crate) async fn write(client: &Client, directory: &Path) -> Result<()> {
    let mut discovery = String::new();
    let mut columns = String::new();
    let mut texts = Texts::default();
    let mut told = BTreeSet::new();
    for root in ["/api", "/apis"] {
        let served = get(client, root, DISCOVERY).await?;
        for (group, version, resource) in resources(&served) {
            tell(&mut discovery, (&group, &version), &resource);
            // Columns are those of a kind, not of its versions.
            let is_new = told.insert((group.clone(), text(&resource["resource"]).to_owned()));
            if is_new && list(&resource["verbs"]).contains(&"list") {
                let path = path(&group, &version, text(&resource["resource"]));
                let table = get(client, &path, TABLE).await?;
                tell_columns(&mut columns, &mut texts, &group, &resource, &table);
            }
        }
    }
    save(directory, "discovery.txt", &discovery)?;
    save(
        directory,
        "columns.txt",
        &format!("{}{columns}", texts.shown()),
    )
}

/// Descriptions, each told once.
#[derive(Debug, Default)]
struct Texts {
    numbers: BTreeMap<String, usize>,
}

impl Texts {
    fn number(&mut self, text: &str) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(text.to_owned()).or_insert(next)
    }

    fn shown(&self) -> String {
        let mut lines: Vec<(usize, &String)> = self
            .numbers
            .iter()
            .map(|(text, number)| (*number, text))
            .collect();
        lines.sort_unstable();
        let lines = lines
            .into_iter()
            .map(|(number, text)| format!("#{number}\t{}\n", Value::from(text.as_str())));
        lines.collect()
    }
}

fn tell(out: &mut String, (group, version): (&str, &str), resource: &Value) {
    let lists =
        ["verbs", "shortNames", "categories"].map(|member| list(&resource[member]).join(","));
    let [verbs, short, categories] = lists;
    let texts = ["resource", "singularResource", "scope"].map(|member| text(&resource[member]));
    let [plural, singular, scope] = texts;
    let kind = text(&resource["responseKind"]["kind"]);
    let _ = writeln!(
        out,
        "{group}/{version}\t{plural}\t{singular}\t{kind}\t{scope}\t{verbs}\t{short}\t{categories}"
    );
    for part in resource["subresources"].as_array().into_iter().flatten() {
        let kind = &part["responseKind"];
        let _ = writeln!(
            out,
            "\t{}\t{}/{}/{}\t{}",
            text(&part["subresource"]),
            text(&kind["group"]),
            text(&kind["version"]),
            text(&kind["kind"]),
            list(&part["verbs"]).join(",")
        );
    }
}

fn tell_columns(out: &mut String, texts: &mut Texts, group: &str, resource: &Value, table: &Value) {
    let _ = writeln!(out, "{group}/{}", text(&resource["resource"]));
    for column in table["columnDefinitions"].as_array().into_iter().flatten() {
        let _ = writeln!(
            out,
            "\t{}\t{}\t{}\t{}\t#{}",
            text(&column["name"]),
            text(&column["type"]),
            text(&column["format"]),
            column["priority"],
            texts.number(text(&column["description"]))
        );
    }
}

/// Group, version and resource of everything that is served.
fn resources(served: &Value) -> Vec<(String, String, Value)> {
    let mut found = Vec::new();
    for group in served["items"].as_array().into_iter().flatten() {
        let name = text(&group["metadata"]["name"]);
        for version in group["versions"].as_array().into_iter().flatten() {
            for resource in version["resources"].as_array().into_iter().flatten() {
                let version = text(&version["version"]).to_owned();
                found.push((name.to_owned(), version, resource.clone()));
            }
        }
    }
    found
}

fn path(group: &str, version: &str, plural: &str) -> String {
    match group {
        "" => format!("/api/{version}/{plural}?limit=1"),
        group => format!("/apis/{group}/{version}/{plural}?limit=1"),
    }
}

async fn get(client: &Client, path: &str, accept: &str) -> Result<Value> {
    let request = http::Request::get(path).header("accept", accept);
    let response = client.send(request.body(Body::empty())?).await?;
    let body = response.into_body().collect().await?.to_bytes();
    serde_json::from_slice(&body).with_context(|| format!("{path} is no JSON"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn list(value: &Value) -> Vec<&str> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).collect()
}

fn save(directory: &Path, name: &str, content: &str) -> Result<()> {
    let path = directory.join(name);
    std::fs::write(&path, content).with_context(|| format!("write {}", path.display()))
}
