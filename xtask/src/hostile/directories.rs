//! Directories that are not ours: a data directory with the user's own files, a checkout, a cache.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Test;
use super::place::Place;

pub(super) const TESTS: &[Test] = &[
    (
        "a_foreign_directory_stays_as_it_is",
        a_foreign_directory_stays_as_it_is,
    ),
    (
        "nothing_of_a_checkout_runs_or_chooses_packages",
        nothing_of_a_checkout_runs_or_chooses_packages,
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

/// An index of the user in files, with a stand-in for Ray.
const MAKES_AN_INDEX: &str = r#"
import pathlib, sys, zipfile
page = pathlib.Path(sys.argv[1]) / "ray"
page.mkdir(parents=True)
wheel = "ray-2.52.0-py3-none-any.whl"
(page / "index.html").write_text(f'<!DOCTYPE html><html><body><a href="{wheel}">{wheel}</a></body></html>')
with zipfile.ZipFile(page / wheel, "w") as it:
    info = "ray-2.52.0.dist-info/"
    it.writestr("ray.py", "version = '2.52.0'\n")
    it.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: ray\nVersion: 2.52.0\nProvides-Extra: default\n")
    it.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    it.writestr(info + "RECORD", "ray.py,,\n" + "".join(f"{info}{n},,\n" for n in ["METADATA", "WHEEL", "RECORD"]))
"#;

/// A checkout whose modules leave a mark and whose settings name an index.
fn set_traps(checkout: &Path, marker: &Path, index: &str) -> Result<()> {
    fs::create_dir(checkout)?;
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
    let of_uv = format!("index-url = \"{index}\"\n");
    fs::write(checkout.join("uv.toml"), &of_uv)?;
    let project = format!("[project]\nname = \"x\"\nversion = \"1\"\n[tool.uv]\n{of_uv}");
    fs::write(checkout.join("pyproject.toml"), project)?;
    let of_pip = format!("[global]\nindex-url = {index}\n");
    fs::write(checkout.join("pip.conf"), of_pip)?;
    let job = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {restartPolicy: Never, containers: [{name: c, image: 'python:3', command: [python3, -c, 'print(1)']}]}\n";
    fs::write(checkout.join("pod.yaml"), job)?;
    Ok(())
}

fn nothing_of_a_checkout_runs_or_chooses_packages(place: &Place) -> Result<()> {
    let checkout = place.home().join("checkout");
    let marker = place.home().join("marker");
    // Nobody answers there; who asks is counted.
    let trap = TcpListener::bind("127.0.0.1:0")?;
    trap.set_nonblocking(true)?;
    set_traps(
        &checkout,
        &marker,
        &format!("http://{}/simple", trap.local_addr()?),
    )?;
    let index = place.home().join("index");
    let mut python = Command::new("python3");
    python.args(["-I", "-c", MAKES_AN_INDEX]).arg(&index);
    crate::process::run(python.current_dir("/")).context("make an index")?;
    place.own(&place.home())?;
    let index = format!("file://{}", index.display());
    for words in [
        &["run", "--rm", "pod.yaml"][..],
        &["env", "make", "rayproject/ray:2.52.0"],
    ] {
        let mut command = place.command(words);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("PIP_") || text.starts_with("UV_") {
                command.env_remove(&name);
            }
        }
        // What the user set counts, whichever of the two tools installs.
        command.env("PIP_INDEX_URL", &index);
        command.env("UV_DEFAULT_INDEX", &index);
        command.env("UV_CONFIG_FILE", "uv.toml");
        command.env("PIP_CONFIG_FILE", "pip.conf");
        let done = place.end(command.current_dir(&checkout))?;
        ensure!(
            !marker.exists(),
            "{words:?} ran code of the checkout: {}",
            done.said
        );
        let asked = trap.accept();
        ensure!(
            asked
                .as_ref()
                .is_err_and(|it| it.kind() == ErrorKind::WouldBlock),
            "{words:?} asked the index of the checkout: {asked:?}"
        );
        ensure!(done.succeeded, "{words:?}: {}", done.said);
    }
    let listed = place.call(&["env", "list", "-o", "json"])?;
    let list: Value = serde_json::from_str(&listed.said).context(listed.said)?;
    ensure!(list[0]["sources"] == json!([index]), "{list}");
    let path = Path::new(list[0]["path"].as_str().context("a path")?);
    let mark: Value = serde_json::from_slice(&fs::read(path.join("sundown.json"))?)?;
    ensure!(mark["sources"] == json!([index]), "{mark}");
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
