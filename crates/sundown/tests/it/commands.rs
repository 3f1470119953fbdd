//! Calls that need no server: usage, help and what is refused.

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::process::{call, stderr, stdout};

fn check(arguments: &[&str], code: i32, expect: &str) -> Result<()> {
    let home = tempfile::tempdir()?;
    let output = call(home.path(), arguments)?;
    let said = stdout(&output) + &stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(said.contains(expect), "{arguments:?}: {said}");
    Ok(())
}

#[test]
fn says_what_it_is_and_what_it_can() -> Result<()> {
    check(&["--version"], 0, "sundown 0.")?;
    for command in [
        "up",
        "run",
        "status",
        "down",
        "reset",
        "env",
        "db",
        "explain",
        "sim",
        "completions",
    ] {
        check(&[command, "--help"], 0, "\nExample")?;
    }
    check(&["completions", "bash"], 0, "_sundown()")
}

#[test]
fn refuses_what_it_cannot_do_and_says_what_to_do() -> Result<()> {
    check(&["db", "verify"], 1, "= help: name one: --data-dir")?;
    let controllers = "there are: owner_gc, ttl";
    check(&["up", "--ephemeral", "--controllers=-tll"], 2, controllers)?;
    check(
        &["sim", "--replay", "nowhere"],
        1,
        "read the flight nowhere",
    )?;
    check(&["explain", "jobs/a"], 1, "= help: start it: sundown up")?;
    let both = ["up", "--ephemeral", "--data-dir", "d"];
    check(&both, 2, "cannot be used with")?;
    let pods = ["up", "--ephemeral", "--node"];
    check(&pods, 2, "pods need a data directory")?;
    check(&["run", "nowhere.yaml"], 2, "cannot read the manifest")?;
    check(&["status"], 1, "no control plane is running")?;
    check(&["down"], 0, "nothing was up")?;
    check(&["reset"], 0, "there is no data in")?;
    check(&["env"], 0, "no environments in")?;
    check(&["env", "prune", "x"], 2, "there is no environment \"x\"")?;
    check(
        &["env", "make", "no/such:image"],
        1,
        "nothing stands for image",
    )?;
    let json = r#"{"error":"there is no data directory""#;
    check(&["db", "dump", "-o", "json"], 1, json)
}

/// A command without its kubeconfig was pasted, and deleted the job of the same name on another cluster; one without its
/// data directory deleted what another control plane had. One module makes all of them; here it is looked for others.
#[test]
fn no_command_is_printed_without_what_it_is_meant_for() -> Result<()> {
    let mut found = Vec::new();
    look(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut found,
    )?;
    assert_eq!(found, Vec::<String>::new());
    Ok(())
}

/// Commands that end, change or delete what they find.
const COMMANDS: [&str; 5] = [
    "kubectl ",
    "sundown up",
    "sundown down",
    "sundown run",
    "sundown reset",
];

/// Lines outside of comments and tests that begin such a command. Examples of the help name none to be pasted.
fn look(directory: &Path, found: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            look(&path, found)?;
            continue;
        }
        let name = path.file_name().unwrap_or_default();
        if ["kubectl.rs", "tests.rs", "arguments.rs"]
            .iter()
            .any(|it| name == *it)
        {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let code = code.lines().map(str::trim);
        let code = code.filter(|it| !it.starts_with("//") && !it.starts_with("let kubectl "));
        let commands = code.filter(|it| COMMANDS.iter().any(|command| it.contains(command)));
        found.extend(commands.map(|it| format!("{}: {it}", path.display())));
    }
    Ok(())
}
