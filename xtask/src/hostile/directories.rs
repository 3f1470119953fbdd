//! Directories that are not ours: a data directory with the user's own files, a checkout, a cache.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::Test;
use super::place::Place;

pub(super) const TESTS: &[Test] = &[
    (
        "a_foreign_directory_stays_as_it_is",
        a_foreign_directory_stays_as_it_is,
    ),
    (
        "modules_of_a_checkout_do_not_run",
        modules_of_a_checkout_do_not_run,
    ),
    (
        "a_foreign_directory_in_the_cache_is_not_pruned",
        a_foreign_directory_in_the_cache_is_not_pruned,
    ),
];

/// What a user may have, under names that Sundown has used.
const NAMES: [&str; 14] = [
    "building",
    "ready",
    "scratch",
    "node",
    "db",
    "lock",
    "port",
    "room",
    "high-water",
    "relaxed",
    "up.log",
    "format.new",
    "kubeconfig",
    "state",
];

/// A manifest that can be applied anywhere.
pub(super) const OBJECT: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";

/// Everything below a directory: sort, mode, owner, inode, time of change and content.
fn picture(of: &Path) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    let mut left = vec![of.to_owned()];
    while let Some(path) = left.pop() {
        let it = fs::symlink_metadata(&path).with_context(|| path.display().to_string())?;
        let content = if it.is_file() {
            fs::read_to_string(&path)?
        } else if it.is_symlink() {
            fs::read_link(&path)?.display().to_string()
        } else {
            left.extend(fs::read_dir(&path)?.flatten().map(|entry| entry.path()));
            String::new()
        };
        let times = (it.mtime(), it.mtime_nsec());
        let told = format!(
            "{:o} {} {} {times:?} {content}",
            it.mode(),
            it.uid(),
            it.ino()
        );
        all.insert(path.display().to_string(), told);
    }
    Ok(all)
}

fn a_foreign_directory_stays_as_it_is(place: &Place) -> Result<()> {
    let elsewhere = place.home().join("elsewhere");
    fs::create_dir_all(elsewhere.join("thesis"))?;
    fs::write(elsewhere.join("thesis/text"), "mine")?;
    for kind in ["files", "directories", "links"] {
        let directory = place.home().join(kind);
        fs::create_dir(&directory)?;
        for name in NAMES {
            let path = directory.join(name);
            match kind {
                "files" => fs::write(path, "mine")?,
                "links" => symlink(&elsewhere, path)?,
                _ => {
                    fs::create_dir(&path)?;
                    fs::write(path.join("text"), "mine")?;
                    symlink(&elsewhere, path.join("pods"))?;
                }
            }
        }
    }
    let job = place.home().join("object.yaml");
    fs::write(&job, OBJECT)?;
    place.own(&place.home())?;
    let before = picture(&place.home())?;
    let job = job.display().to_string();
    for kind in ["files", "directories", "links"] {
        let directory = place.home().join(kind).display().to_string();
        for words in [
            &["up"][..],
            &["run", &job],
            &["status"],
            &["down"],
            &["reset", "--yes"],
            &["db", "verify"],
            &["db", "dump"],
        ] {
            let done = place.end(place.command(words).args(["--data-dir", &directory]))?;
            let is_refused = !done.succeeded && done.said.contains(&directory);
            ensure!(is_refused, "{words:?} on {kind}: {}", done.said);
            let after = picture(&place.home())?;
            ensure!(after == before, "{words:?} changed {kind}: {}", done.said);
        }
    }
    Ok(())
}

fn modules_of_a_checkout_do_not_run(place: &Place) -> Result<()> {
    let checkout = place.home().join("checkout");
    fs::create_dir(&checkout)?;
    let marker = place.home().join("marker");
    let evil = format!(
        "open({:?}, 'w').write('ran')\n",
        marker.display().to_string()
    );
    for name in [
        "json",
        "venv",
        "pip",
        "logging",
        "sys",
        "site",
        "sitecustomize",
        "usercustomize",
    ] {
        fs::write(checkout.join(format!("{name}.py")), &evil)?;
    }
    let index = "[pip]\nindex-url = \"http://127.0.0.1:1/simple\"\n";
    fs::write(checkout.join("uv.toml"), index)?;
    fs::write(
        checkout.join("pyproject.toml"),
        format!("[tool.uv]\n{index}"),
    )?;
    let job = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {restartPolicy: Never, containers: [{name: c, image: 'python:3', command: [python3, -c, 'print(1)']}]}\n";
    fs::write(checkout.join("pod.yaml"), job)?;
    place.own(&place.home())?;
    for words in [
        &["run", "--rm", "pod.yaml"][..],
        &["env", "make", "python:3"],
    ] {
        let done = place.end(place.command(words).current_dir(&checkout))?;
        ensure!(
            !marker.exists(),
            "{words:?} ran code of the checkout: {}",
            done.said
        );
        ensure!(done.succeeded, "{words:?}: {}", done.said);
    }
    let down = place.call(&["down"])?;
    ensure!(down.succeeded, "{}", down.said);
    Ok(())
}

fn a_foreign_directory_in_the_cache_is_not_pruned(place: &Place) -> Result<()> {
    let own = place.home().join(".cache/sundown/environments/my-thesis");
    fs::create_dir_all(&own)?;
    fs::write(own.join("text"), "mine")?;
    place.own(&place.home())?;
    let done = place.call(&["env", "prune"])?;
    ensure!(done.said.contains("my-thesis"), "{}", done.said);
    let done = place.call(&["env", "prune", "--all"])?;
    ensure!(
        fs::read_to_string(own.join("text"))? == "mine",
        "{}",
        done.said
    );
    Ok(())
}
