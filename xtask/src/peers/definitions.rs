//! Our definitions of the Ray kinds against those in the operator's own Go module.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use sundown_kinds::crd::compare::{Difference, MEANT, compare};
use sundown_kinds::crd::{ray_cluster, ray_job};

use crate::process;

const MODULE: &str = "github.com/ray-project/kuberay/ray-operator@v1.6.2";

/// Fails on a difference that is not meant, and on a reason that no difference needs any more.
pub(super) fn run() -> Result<()> {
    let module = download()?;
    let mut differences = Vec::new();
    for (name, ours) in [("rayjobs", ray_job()), ("rayclusters", ray_cluster())] {
        let path = module.join(format!("config/crd/bases/ray.io_{name}.yaml"));
        let theirs = read(&path)?;
        let ours = serde_json::from_str(&ours)?;
        differences.extend(compare(&ours, &theirs));
    }
    let unmeant: Vec<&Difference> = differences
        .iter()
        .filter(|difference| difference.reason().is_none())
        .collect();
    for difference in &unmeant {
        println!("{difference}");
    }
    let is_used = |ending: &str| differences.iter().any(|it| it.path.ends_with(ending));
    let stale: Vec<&str> = MEANT
        .iter()
        .map(|(ending, _)| *ending)
        .filter(|ending| !is_used(ending))
        .collect();
    ensure!(
        unmeant.is_empty(),
        "{} differences to {MODULE}",
        unmeant.len()
    );
    ensure!(
        stale.is_empty(),
        "no difference needs these reasons any more: {stale:?}"
    );
    println!(
        "peers: the definitions are those of {MODULE} but for {} places in {} meant ways",
        differences.len(),
        MEANT.len()
    );
    Ok(())
}

fn download() -> Result<PathBuf> {
    let mut go = Command::new("go");
    go.args(["mod", "download", "-json", MODULE])
        .current_dir(std::env::temp_dir());
    let answer: Value = serde_json::from_str(&process::output(&mut go)?)?;
    let directory = answer["Dir"].as_str().context("go names no directory")?;
    Ok(PathBuf::from(directory))
}

fn read(path: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    // Theirs is larger than what the reader takes from strangers.
    let mut options = serde_saphyr::Options::default();
    options.budget = None;
    serde_saphyr::from_str_with_options(&text, options).with_context(|| path.display().to_string())
}
