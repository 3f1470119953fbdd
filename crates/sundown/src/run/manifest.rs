//! What a file holds: its documents, and which of them is the job that is followed.

use serde_json::Value;
use sundown_yaml::{Duplicate, YamlError};

use crate::objects::{Known, text};

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ManifestError {
    #[error("cannot parse: {0}")]
    Unreadable(#[from] YamlError),
    #[error("no objects found")]
    Empty,
    #[error("document {number} has no {field}")]
    Incomplete { number: usize, field: &'static str },
    #[error("found {} jobs, but `run` can follow only one: {}", .0.len(), .0.join(", "))]
    ManyJobs(Vec<String>),
}

/// The objects of a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Manifest {
    pub(super) objects: Vec<Value>,
    /// Which of them is the job.
    pub(super) job: Option<usize>,
    /// What is given twice; the last of it counts.
    pub(super) duplicates: Vec<Duplicate>,
}

/// Reads a file: YAML with one or more documents, or JSON; a List stands for its items.
pub(super) fn read(content: &str) -> Result<Manifest, ManifestError> {
    let mut duplicates = Vec::new();
    let mut objects: Vec<Value> = Vec::new();
    for document in sundown_yaml::documents(content)? {
        duplicates.extend(document.duplicates);
        objects.extend(items(document.value));
    }
    if objects.is_empty() {
        return Err(ManifestError::Empty);
    }
    for (index, object) in objects.iter().enumerate() {
        let number = index + 1;
        let has_name = ["/metadata/name", "/metadata/generateName"]
            .iter()
            .any(|pointer| !text(object, pointer).is_empty());
        let field = match () {
            () if text(object, "/apiVersion").is_empty() => "apiVersion",
            () if text(object, "/kind").is_empty() => "kind",
            () if !has_name => "metadata.name",
            () => continue,
        };
        return Err(ManifestError::Incomplete { number, field });
    }
    let is_job = |object: &&Value| matches!(Known::of(object), Some(Known::Job | Known::RayJob));
    let jobs: Vec<&Value> = objects.iter().filter(is_job).collect();
    if jobs.len() > 1 {
        let names = jobs.into_iter().map(name).collect();
        return Err(ManifestError::ManyJobs(names));
    }
    let job = objects.iter().position(|object| is_job(&object));
    Ok(Manifest {
        objects,
        job,
        duplicates,
    })
}

/// An object as kubectl names it; a name that is made by the server ends in `*`.
pub(super) fn name(object: &Value) -> String {
    let kind = text(object, "/kind").to_ascii_lowercase();
    match text(object, "/metadata/name") {
        "" => format!("{kind}/{}*", text(object, "/metadata/generateName")),
        name => format!("{kind}/{name}"),
    }
}

/// A list stands for its items, as in kubectl; those of a list of a kind may leave the kind out.
fn items(document: Value) -> Vec<Value> {
    let of = text(&document, "/kind")
        .strip_suffix("List")
        .map(str::to_owned);
    let version = document["apiVersion"].clone();
    match (of, document) {
        (Some(of), Value::Object(mut list)) if list.get("items").is_some_and(Value::is_array) => {
            let Some(Value::Array(items)) = list.remove("items") else {
                return Vec::new();
            };
            let named = items.into_iter().map(|mut item| {
                if item.is_object() && item["kind"].is_null() && !of.is_empty() {
                    item["kind"] = of.clone().into();
                    item["apiVersion"] = version.clone();
                }
                item
            });
            named.collect()
        }
        (_, document) => vec![document],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: code}\n";
    const RAY: &str = "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: train}\n";
    const JOB: &str = "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: report-}\n";

    #[test]
    fn the_job_among_the_documents_is_the_one_that_is_followed() {
        let cases = [
            (MAP.to_owned(), 1, None),
            (format!("---\n{MAP}---\n{RAY}---\n"), 2, Some(1)),
            (JOB.to_owned(), 1, Some(0)),
            (
                r#"{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"}}]}"#.to_owned(),
                1,
                Some(0),
            ),
        ];
        for (content, count, job) in cases {
            let manifest = read(&content).unwrap();
            assert_eq!(manifest.objects.len(), count, "{content}");
            assert_eq!(manifest.job, job, "{content}");
        }
    }

    #[test]
    fn numbers_are_those_of_kubectl() {
        let octal = format!("{MAP}spec: {{defaultMode: 0777, on: yes}}\n");
        let manifest = read(&octal).unwrap();
        assert_eq!(manifest.objects[0]["spec"]["defaultMode"], 511);
        assert_eq!(manifest.objects[0]["spec"]["true"], true);
    }

    #[test]
    fn a_list_stands_for_its_items() {
        let inner = "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n";
        let manifest = read(inner).unwrap();
        assert_eq!(name(&manifest.objects[0]), "configmap/a");
        assert_eq!(manifest.objects[0]["apiVersion"], "v1");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let two = format!("{RAY}---\n{JOB}");
        let cases = [
            ("", "no objects found"),
            (
                "kind: Job\nmetadata: {name: a}\n",
                "document 1 has no apiVersion",
            ),
            (
                "apiVersion: v1\nkind: Pod\n",
                "document 1 has no metadata.name",
            ),
            ("a: 1\nb:\n  c: [", "cannot parse: line 3, column 6, in b.c"),
            (
                &two,
                "found 2 jobs, but `run` can follow only one: rayjob/train, job/report-*",
            ),
        ];
        for (content, expect) in cases {
            let error = read(content).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        }
    }
}
