//! `cargo xtask purity`: the pure crates reach no clock, thread, file, environment or randomness,
//! and nothing of the core knows the embedded server.
//!
//! Clippy's disallowed lists judge calls; this gate judges what they cannot: dependencies, imports,
//! and whether the lists themselves still stand.

mod lints;
mod paths;
mod tree;

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::{process, workspace};

/// The crates that look and decide. Everything else in `crates/` is a shell around them.
pub(crate) const PURE: &[&str] = &[
    "sundown-model",
    "sundown-kinds",
    "sundown-decide",
    "sundown-engine",
    "sundown-schema",
    "sundown-store",
    "sundown-yaml",
    "sundown-api",
    "sundown-sim",
];

/// The crates that do: listed so that a new crate has to be put in one of the two lists.
const SHELL: &[&str] = &[
    "sundown-files",
    "sundown-disk",
    "sundown-server",
    "sundown-driver",
    "sundown-node",
    "sundown-embedded",
    "sundown",
    "sundown-testing",
];

/// The crates that run unchanged against any API server …
const SERVER_BLIND: &[&str] = &[
    "sundown-model",
    "sundown-kinds",
    "sundown-decide",
    "sundown-engine",
    "sundown-driver",
];

/// … and so must not reach these.
const EMBEDDED_SERVER: &[&str] = &[
    "sundown-api",
    "sundown-store",
    "sundown-disk",
    "sundown-server",
    "sundown-embedded",
    "sundown-sim",
];

/// Runs all checks and lists every violation.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    ensure!(
        arguments.is_empty(),
        "cargo xtask purity takes no arguments"
    );
    let mut violations = unlisted(&workspace::crates()?);
    violations.extend(check_trees()?);
    violations.extend(check_sources()?);
    violations.extend(check_lints()?);
    for violation in &violations {
        println!("{violation}");
    }
    ensure!(
        violations.is_empty(),
        "{} violations of purity",
        violations.len()
    );
    println!(
        "{} pure crates: dependencies, paths and lints hold; {} know no embedded server",
        PURE.len(),
        SERVER_BLIND.join(", ")
    );
    Ok(())
}

fn unlisted(crates: &[String]) -> Vec<String> {
    crates
        .iter()
        .filter(|name| !PURE.contains(&name.as_str()) && !SHELL.contains(&name.as_str()))
        .map(|name| format!("{name}: list it in xtask/src/purity.rs as pure or as shell"))
        .collect()
}

fn check_trees() -> Result<Vec<String>> {
    let mut violations = Vec::new();
    for name in PURE {
        violations.extend(tree::impure(name, &normal_dependencies(name)?));
    }
    for name in SERVER_BLIND {
        violations.extend(tree::forbidden(
            name,
            &normal_dependencies(name)?,
            EMBEDDED_SERVER,
        ));
    }
    Ok(violations)
}

fn normal_dependencies(name: &str) -> Result<String> {
    let arguments = [
        "tree",
        "--package",
        name,
        "--edges",
        "normal",
        "--prefix",
        "none",
    ];
    process::output(&mut workspace::cargo(&arguments)?)
}

fn check_sources() -> Result<Vec<String>> {
    let files = workspace::files()?;
    let of_pure = files
        .iter()
        .filter(|file| file.is_rust() && is_judged(&file.path));
    Ok(of_pure
        .flat_map(|file| paths::check(&file.path, &file.text))
        .collect())
}

/// Sources and tests of pure crates. Compile-fail cases, build scripts and examples, which are
/// programs of their own, never run in a decision.
fn is_judged(path: &str) -> bool {
    let Some((name, inside)) = path
        .strip_prefix("crates/")
        .and_then(|rest| rest.split_once('/'))
    else {
        return false;
    };
    let is_exempt = inside == "build.rs"
        || inside.starts_with("examples/")
        || inside.split('/').any(|part| part == "compile_fail");
    PURE.contains(&name) && !is_exempt
}

fn check_lints() -> Result<Vec<String>> {
    let root = workspace::root();
    let shared = read(&root.join("clippy.toml"))?;
    let template = read(&template_path())?;
    let mut violations = lints::template(&shared, &template);
    for name in PURE {
        let home = root.join("crates").join(name);
        violations.extend(lints::clippy_toml(
            name,
            &read(&home.join("clippy.toml"))?,
            &template,
        ));
        violations.extend(lints::lib_rs(name, &read(&home.join("src/lib.rs"))?));
    }
    Ok(violations)
}

/// The `clippy.toml` that all pure crates share: clippy reads one per crate and includes none.
fn template_path() -> std::path::PathBuf {
    workspace::root().join("crates/sundown-model/clippy.toml")
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
}

#[cfg(test)]
mod tests;
