//! `cargo xtask accept yaml`: what kubectl makes of the documents that `sundown-yaml` is tested with.
//!
//! The landing gate compares our reader with the recorded answers; here kubectl itself is asked again.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::control_plane::ControlPlane;
use crate::sundown::{self, Profile};
use crate::{kube, workspace};

/// The lane: kubectl answers as recorded.
pub(crate) fn run() -> Result<()> {
    let found = ask_all()?;
    let recorded = lines("kubectl.jsonl")?;
    let strip = |line: &Value| json!({ "id": line["id"], "objects": line["objects"] });
    // Why something is refused is said in other words by each version of kubectl.
    let other = found
        .iter()
        .zip(&recorded)
        .filter(|(a, b)| strip(a) != strip(b));
    let other: Vec<_> = other.collect();
    for (found, recorded) in &other {
        println!("kubectl says {found}\nrecorded is  {recorded}");
    }
    ensure!(
        found.len() == recorded.len(),
        "cargo xtask accept record-yaml"
    );
    ensure!(
        other.is_empty(),
        "{} documents are read in another way",
        other.len()
    );
    println!("{} documents: kubectl reads them as recorded", found.len());
    Ok(())
}

/// Writes kubectl's answers anew; for documents that were added.
pub(crate) fn record() -> Result<()> {
    let mut text = String::new();
    for line in ask_all()? {
        writeln!(text, "{line}")?;
    }
    fs::write(path("kubectl.jsonl"), text).context("write the answers")
}

fn path(name: &str) -> PathBuf {
    workspace::root()
        .join("crates/sundown-yaml/tests/it")
        .join(name)
}

fn lines(name: &str) -> Result<Vec<Value>> {
    let text = fs::read_to_string(path(name)).with_context(|| format!("read {name}"))?;
    let lines = text.lines().map(|line| Ok(serde_json::from_str(line)?));
    lines.collect()
}

fn ask_all() -> Result<Vec<Value>> {
    let kubectl = kube::program("kubectl")?;
    let plane = ControlPlane::start(&sundown::build(Profile::Dev)?)?;
    let documents = lines("documents.jsonl")?;
    documents
        .iter()
        .map(|it| ask(&kubectl, &plane, it))
        .collect()
}

fn ask(kubectl: &Path, plane: &ControlPlane, document: &Value) -> Result<Value> {
    let text = document["text"].as_str().context("a text")?;
    let file = plane.manifest("document", text)?;
    let output = Command::new(kubectl)
        .env("KUBECONFIG", plane.kubeconfig())
        .arg("--cache-dir")
        .arg(plane.file("kubectl-cache"))
        .args(["create", "--dry-run=client", "--validate=false"])
        .args(["--output=json", "--filename", &file])
        .output()
        .context("run kubectl")?;
    let id = &document["id"];
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).replace(&file, "FILE");
        return Ok(json!({ "id": id, "refused": said.trim() }));
    }
    let objects = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    let objects: Result<Vec<Value>, _> = objects.collect();
    let mut objects = objects.with_context(|| format!("what kubectl printed of {id}"))?;
    for object in &mut objects {
        // Added by kubectl, whatever the file says.
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("namespace");
        }
    }
    Ok(json!({ "id": id, "objects": objects }))
}
