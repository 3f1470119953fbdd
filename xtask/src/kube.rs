//! `cargo xtask kube`: the real Kubernetes that we measure ourselves against, built from its modules.
//!
//! Which modules and versions is in `xtask/kube/go.mod`; what is asked of the programs is left to the
//! lanes.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::{process, workspace};

const VERSION: &str = "v1.37.1";

/// The programs and the packages that they are built from, quick ones first.
const PROGRAMS: &[(&str, &str)] = &[
    ("etcd", "./etcd"),
    ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    (
        "kube-controller-manager",
        "k8s.io/kubernetes/cmd/kube-controller-manager",
    ),
];

/// Builds what is missing.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    ensure!(arguments.is_empty(), "cargo xtask kube takes no arguments");
    if let Some(assets) = assets() {
        println!("$KUBEBUILDER_ASSETS is used as it is: {}", assets.display());
        return Ok(());
    }
    let directory = directory()?;
    std::fs::create_dir_all(&directory).context("make the directory of the programs")?;
    for (index, (name, package)) in PROGRAMS.iter().enumerate() {
        let count = PROGRAMS.len();
        let path = directory.join(name);
        if path.is_file() {
            println!("[{} of {count}] {name}: there already", index + 1);
            continue;
        }
        println!(
            "[{} of {count}] {name}: building, this may take minutes",
            index + 1
        );
        let started_at = Instant::now();
        build(package, &path)?;
        println!("    done in {} s", started_at.elapsed().as_secs());
    }
    println!("in {}", directory.display());
    Ok(())
}

/// Where one of the programs is.
///
/// Errors: it is not there; the message says how to get it.
pub(crate) fn program(name: &str) -> Result<PathBuf> {
    let path = directory()?.join(name);
    ensure!(
        path.is_file(),
        "{} is missing: run `cargo xtask kube`",
        path.display()
    );
    Ok(path)
}

fn build(package: &str, path: &std::path::Path) -> Result<()> {
    process::require(
        "go",
        "install Go 1.26 or later (https://go.dev/dl), or set KUBEBUILDER_ASSETS to a directory \
         with kube-apiserver, kube-controller-manager, etcd and kubectl",
    )?;
    // Not parsable, kubectl refuses the server's version; the linker sets what a release sets.
    let stamp = "-X k8s.io/component-base/version.";
    let flags = format!("-s -w {stamp}gitVersion={VERSION} {stamp}gitMajor=1 {stamp}gitMinor=37");
    // Moved into place when it is whole: what lies there is taken for complete.
    let unfinished = path.with_extension("unfinished");
    process::run(
        Command::new("go")
            .current_dir(workspace::root().join("xtask/kube"))
            .env("CGO_ENABLED", "0")
            .args(["build", "-ldflags", &flags, "-o"])
            .arg(&unfinished)
            .arg(package),
    )?;
    std::fs::rename(&unfinished, path).context("move the program into place")
}

fn directory() -> Result<PathBuf> {
    match assets() {
        Some(assets) => Ok(assets),
        None => Ok(workspace::cache()?.join("kube").join(VERSION)),
    }
}

fn assets() -> Option<PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS")?;
    (!assets.is_empty()).then(|| assets.into())
}
