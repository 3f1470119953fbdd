//! Directories that are not Sundown's, named as the data directory by mistake: every command refuses them
//! by name, and nothing in them changes. `up` once removed what it took for its own by name alone.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::process::{stderr, sundown};

/// Every name that Sundown has ever given, with something of the user's behind it.
const DIRECTORIES: [&str; 6] = ["building", "db", "node", "ready", "scratch", "state"];
const FILES: [&str; 9] = [
    "control.sock",
    "high-water",
    "kubeconfig",
    "lock",
    "node.sock",
    "port",
    "relaxed",
    "room",
    "up.log",
];

/// What a path is: inode, mode, when it was written, and what it holds.
type Content = BTreeMap<PathBuf, (u64, u32, i64, i64, Vec<u8>)>;

fn content(directory: &Path) -> Result<Content> {
    let mut found = Content::new();
    let mut rest = vec![directory.to_owned()];
    while let Some(path) = rest.pop() {
        let metadata = path.symlink_metadata()?;
        let bytes = if metadata.is_dir() {
            for entry in fs::read_dir(&path)? {
                rest.push(entry?.path());
            }
            Vec::new()
        } else if metadata.is_symlink() {
            fs::read_link(&path)?.into_os_string().into_encoded_bytes()
        } else {
            fs::read(&path)?
        };
        let (ino, mode) = (metadata.ino(), metadata.mode());
        let written = (metadata.mtime(), metadata.mtime_nsec());
        found.insert(path, (ino, mode, written.0, written.1, bytes));
    }
    Ok(found)
}

/// Runs a command to its end; gives its exit code and what it complained about. A refusal takes milliseconds: the
/// bound is for a control plane that came up.
fn ended(mut command: Command) -> Result<(Option<i32>, String)> {
    let output = sundown_testing::output(&mut command)?;
    Ok((output.status.code(), stderr(&output)))
}

/// Tries every command on a directory. Each must refuse it by name and say what to do, and everything
/// below `home` must be as before.
fn check(home: &Path, data: &Path, words: &[&str]) -> Result<()> {
    let job = home.join("job.yaml");
    fs::write(
        &job,
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {spec: {restartPolicy: Never, \
         containers: [{name: main, image: busybox, command: [\"true\"]}]}}}\n",
    )?;
    let job = job.display().to_string();
    let before = content(home)?;
    let named = data.display().to_string();
    for arguments in [
        &["up"][..],
        &["up", "--node=false"],
        &["up", "--new-identity", "--accept-loss-after", "0"],
        &["run", &job],
        &["status"],
        &["down"],
        &["reset", "--yes"],
        &["db", "verify"],
        &["db", "dump"],
    ] {
        let mut command = sundown(&home.join("home"), arguments);
        command.arg("--data-dir").arg(data);
        let (code, said) = ended(command)?;
        ensure!(code == Some(1), "{arguments:?} ended with {code:?}: {said}");
        for word in words.iter().copied().chain([&*named, "= help: "]) {
            ensure!(
                said.contains(word),
                "{arguments:?} does not say {word:?}: {said}"
            );
        }
        let after = content(home)?;
        ensure!(
            after == before,
            "{arguments:?} changed {:?}",
            differences(&before, &after)
        );
    }
    Ok(())
}

fn differences(before: &Content, after: &Content) -> Vec<PathBuf> {
    let all = before.keys().chain(after.keys());
    let differs = |path: &&PathBuf| before.get(*path) != after.get(*path);
    all.filter(differs).cloned().collect()
}

/// A home, a directory of the user's, and one beside it that links lead to.
struct World {
    kept: tempfile::TempDir,
    data: PathBuf,
    elsewhere: PathBuf,
}

impl World {
    fn new() -> Result<Self> {
        let kept = tempfile::tempdir()?;
        let (data, elsewhere) = (kept.path().join("project"), kept.path().join("elsewhere"));
        for directory in [&kept.path().join("home"), &data, &elsewhere.join("sub")] {
            fs::create_dir_all(directory)?;
        }
        fs::set_permissions(&data, fs::Permissions::from_mode(0o755))?;
        fs::write(elsewhere.join("sub/file"), "mine")?;
        Ok(Self {
            kept,
            data,
            elsewhere,
        })
    }

    fn fill(&self) -> Result<()> {
        for name in DIRECTORIES {
            fs::create_dir(self.data.join(name))?;
            fs::write(self.data.join(name).join("thesis.txt"), name)?;
        }
        for name in FILES {
            fs::write(self.data.join(name), format!("my {name}\n"))?;
        }
        Ok(symlink(&self.elsewhere, self.data.join("node/pods"))?)
    }

    fn check(&self, words: &[&str]) -> Result<()> {
        check(self.kept.path(), &self.data, words)
    }
}

#[test]
fn a_directory_of_the_users_own_stays_as_it_is() -> Result<()> {
    let world = World::new()?;
    world.fill()?;
    world.check(&[
        "it holds `building`",
        "--data-dir DIR",
        "nothing in it was touched",
    ])?;
    // A file of that name proves nothing by itself.
    fs::write(world.data.join("format"), "ext4\n")?;
    world.check(&["its file `format` is not one of Sundown"])
}

#[test]
fn links_in_the_place_of_our_files_are_not_followed() -> Result<()> {
    let world = World::new()?;
    for name in DIRECTORIES {
        symlink(&world.elsewhere, world.data.join(name))?;
    }
    for name in FILES {
        symlink(world.elsewhere.join("sub/file"), world.data.join(name))?;
    }
    world.check(&["it holds `building`"])?;
    // Not beside a proof either, which a checkout could bring along.
    fs::write(world.data.join("format"), "sundown data format 2\n")?;
    world.check(&["`state` in it is not what Sundown makes"])?;
    fs::write(world.data.join("format"), "sundown data format 1\n")?;
    world.check(&["`building` in it is not what Sundown makes"])
}

#[test]
fn a_link_a_file_and_a_directory_that_others_may_write_are_refused() -> Result<()> {
    let world = World::new()?;
    let link = world.kept.path().join("link");
    symlink(&world.data, &link)?;
    check(world.kept.path(), &link, &["it is a link"])?;
    let file = world.kept.path().join("file");
    fs::write(&file, "mine")?;
    check(world.kept.path(), &file, &["it is not a directory"])?;
    fs::set_permissions(&world.data, fs::Permissions::from_mode(0o777))?;
    world.check(&["others may write to it: its mode is 0777"])?;
    // Closed itself, but with a door that others could hang another way.
    let (open, inside) = (world.data.clone(), world.data.join("inside"));
    fs::create_dir(&inside)?;
    fs::set_permissions(world.kept.path(), fs::Permissions::from_mode(0o755))?;
    let words = ["others can replace it", &*open.display().to_string()];
    check(world.kept.path(), &inside, &words)
}

#[test]
fn the_home_directory_itself_is_refused_even_when_it_is_empty() -> Result<()> {
    let world = World::new()?;
    let home = world.kept.path().join("home");
    check(world.kept.path(), &home, &["it is your home directory"])
}

/// Root can do everything in the directory of another user, who could exchange its files meanwhile.
#[test]
fn root_refuses_the_directory_of_another_user() -> Result<()> {
    let world = World::new()?;
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(());
    }
    std::os::unix::fs::chown(&world.data, Some(65_534), Some(65_534))?;
    world.check(&[
        "it belongs to user 65534, and this is user 0",
        "a directory of root's own",
    ])
}

#[test]
fn without_a_home_it_says_what_to_set() -> Result<()> {
    let home = tempfile::tempdir()?;
    let homeless = |arguments: &[&str]| {
        let mut command = sundown(home.path(), arguments);
        command.env_remove("HOME");
        ended(command)
    };
    let data = home.path().join("data").display().to_string();
    let other = tempfile::tempdir()?;
    fs::write(other.path().join("images.json"), "[]")?;
    let rules = other.path().join("images.json").display().to_string();
    for (arguments, word) in [
        (&["up"][..], "set HOME, or SUNDOWN_DATA, or XDG_STATE_HOME"),
        (&["status"], "set HOME, or SUNDOWN_DATA, or XDG_STATE_HOME"),
        (
            &["reset", "--yes"],
            "set HOME, or SUNDOWN_DATA, or XDG_STATE_HOME",
        ),
        (
            &["db", "verify"],
            "set HOME, or SUNDOWN_DATA, or XDG_STATE_HOME",
        ),
        (
            &["up", "--ephemeral"],
            "set HOME, or name a file: --kubeconfig PATH",
        ),
        (
            &["up", "--data-dir", &data],
            "set HOME, or SUNDOWN_IMAGE_RULES, or XDG_CONFIG_HOME",
        ),
        (
            &["env"],
            "set HOME, or SUNDOWN_IMAGE_RULES, or XDG_CONFIG_HOME",
        ),
        (
            &["env", "--image-rules", &rules],
            "set HOME, or SUNDOWN_CACHE, or XDG_CACHE_HOME",
        ),
    ] {
        let (code, said) = homeless(arguments)?;
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        assert!(said.contains(word), "{arguments:?}: {said}");
    }
    assert_eq!(fs::read_dir(home.path())?.count(), 0);
    Ok(())
}

#[test]
fn rules_and_environments_that_others_may_write_are_refused() -> Result<()> {
    let home = tempfile::tempdir()?;
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755))?;
    let rules = home.path().join("images.json");
    fs::write(&rules, "[]")?;
    fs::set_permissions(&rules, fs::Permissions::from_mode(0o666))?;
    let mut command = sundown(home.path(), &["env", "--image-rules"]);
    command.arg(&rules);
    let (code, said) = ended(command)?;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the image rules cannot be trusted"), "{said}");
    assert!(said.contains("its mode is 0666"), "{said}");

    let cache = home.path().join("cache");
    fs::create_dir(&cache)?;
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777))?;
    for arguments in [&["env"][..], &["up"]] {
        let mut command = sundown(home.path(), arguments);
        command.env("SUNDOWN_CACHE", &cache);
        let (code, said) = ended(command)?;
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("environments cannot be trusted"), "{said}");
    }
    Ok(())
}
