//! Control planes that keep their data, the two commands that look into it, and what they say when
//! something is wrong with it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::{Up, call, stderr, stdout, sundown};

/// A data directory that a control plane has used and left.
fn used(home: &Path) -> Result<PathBuf> {
    let up = Up::start_durable(home, &[])?;
    let data = up.started["data"].as_str().context("it keeps data")?;
    let data = PathBuf::from(data);
    assert!(data.starts_with(home));
    assert_eq!(up.terminate()?, Some(0));
    Ok(data)
}

/// Runs `sundown db WHAT`; gives its exit code and all that it said.
fn db(home: &Path, arguments: &[&str]) -> Result<(Option<i32>, String)> {
    let output = sundown_testing::output(sundown(home, &["db"]).args(arguments))?;
    Ok((output.status.code(), stdout(&output) + &stderr(&output)))
}

#[test]
fn verifies_and_dumps_what_a_control_plane_left() -> Result<()> {
    let home = tempfile::tempdir()?;
    used(home.path())?;
    let (code, said) = db(home.path(), &["verify"])?;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("is sound"), "{said}");

    let (_, said) = db(home.path(), &["verify", "-o", "json"])?;
    let verified: Value = serde_json::from_str(&said)?;
    let objects = verified["objects"].as_u64().context("a number")?;
    assert!(objects >= 4, "the namespaces that every cluster has");

    let (code, said) = db(home.path(), &["dump", "-o", "json"])?;
    assert_eq!(code, Some(0), "{said}");
    let dumped: Value = serde_json::from_str(&said)?;
    let items = dumped["items"].as_array().context("a list")?;
    assert_eq!(u64::try_from(items.len())?, objects);
    let is_default = |item: &&Value| item["metadata"]["name"] == "default";
    let default = items.iter().find(is_default).context("the namespace")?;
    assert_eq!(default["kind"], "Namespace");

    let (_, said) = db(home.path(), &["dump"])?;
    assert_eq!(said.lines().count(), items.len());
    Ok(())
}

#[test]
fn a_directory_in_use_is_refused_by_name() -> Result<()> {
    let home = tempfile::tempdir()?;
    let up = Up::start_durable(home.path(), &[])?;
    let pid = format!("process {}", up.started["pid"]);
    let second = call(home.path(), &["up"])?;
    assert_eq!(second.status.code(), Some(1));
    let said = stderr(&second);
    assert!(said.contains(&pid), "{said}");
    assert!(said.contains("--data-dir DIR"), "{said}");
    let (code, said) = db(home.path(), &["verify"])?;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&pid), "{said}");
    assert_eq!(up.terminate()?, Some(0));
    Ok(())
}

#[test]
fn a_damaged_directory_is_refused_with_a_report_and_a_way_on() -> Result<()> {
    let home = tempfile::tempdir()?;
    let data = used(home.path())?;
    let journal = data.join("state/db/0.jnl");
    let mut bytes = fs::read(&journal)?;
    let last = bytes.iter().rposition(|byte| *byte != 0).context("empty")?;
    bytes.truncate(last - 20);
    fs::write(&journal, &bytes)?;

    let (code, report) = db(home.path(), &["verify"])?;
    assert_eq!(code, Some(1), "{report}");
    assert!(report.contains("is damaged: "), "{report}");
    assert!(report.contains("acknowledged up to revision "), "{report}");
    let refused = call(home.path(), &["up"])?;
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(stderr(&refused), report, "a start says the same");
    assert_eq!(fs::read(&journal)?, bytes, "nothing was changed");

    let word = "--accept-loss-after ";
    let way_on = report.split(word).nth(1).context("no way on")?;
    let revision = way_on.split_whitespace().next().context("no revision")?;
    let up = Up::start_durable(home.path(), &[word.trim(), revision])?;
    assert_eq!(up.terminate()?, Some(0));
    let kept = data.join("state/damaged-1/db/0.jnl");
    assert_eq!(fs::read(kept)?, bytes, "the damaged files are kept");
    let (code, said) = db(home.path(), &["verify"])?;
    assert_eq!(code, Some(0), "{said}");
    Ok(())
}

#[test]
fn a_lost_identity_is_told_with_what_to_do() -> Result<()> {
    let home = tempfile::tempdir()?;
    let data = used(home.path())?;
    fs::remove_file(data.join("state/identity.json"))?;
    let refused = call(home.path(), &["up"])?;
    assert_eq!(refused.status.code(), Some(1));
    let said = stderr(&refused);
    assert!(said.contains("--new-identity"), "{said}");
    let up = Up::start_durable(home.path(), &["--new-identity"])?;
    assert_eq!(up.terminate()?, Some(0));
    Ok(())
}
