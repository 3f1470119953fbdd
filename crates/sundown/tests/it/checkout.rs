//! A checkout of other people as the working directory. Python puts that directory first on its path, uv
//! and pip look for settings in it, and a PATH with `.` finds programs there: a `json.py` ran on the
//! host, and an index of a `uv.toml` filled the cache of the user for all later projects.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::process::{Up, stderr, stdout, sundown};

/// An index of the user in files: a stand-in for Ray as a wheel, and a package that would have to be built.
const MAKES_AN_INDEX: &str = r#"
import io, pathlib, sys, tarfile, zipfile
index, ran = pathlib.Path(sys.argv[1]), sys.argv[2]
def offer(project, file):
    page = index / project
    page.mkdir(parents=True)
    (page / "index.html").write_text(f'<!DOCTYPE html><html><body><a href="{file}">{file}</a></body></html>')
    return page / file
wheel = "ray-2.52.0-py3-none-any.whl"
with zipfile.ZipFile(offer("ray", wheel), "w") as it:
    info = "ray-2.52.0.dist-info/"
    it.writestr("ray.py", "version = '2.52.0'\n")
    it.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: ray\nVersion: 2.52.0\nProvides-Extra: default\n")
    it.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    it.writestr(info + "RECORD", "ray.py,,\n" + "".join(f"{info}{n},,\n" for n in ["METADATA", "WHEEL", "RECORD"]))
with tarfile.open(offer("demo-src", "demo-src-1.0.tar.gz"), "w:gz") as it:
    for name, text in [("setup.py", f"open({ran!r}, 'a').write('setup.py\\n')\n"),
                       ("PKG-INFO", "Metadata-Version: 2.1\nName: demo-src\nVersion: 1.0\n")]:
        member = tarfile.TarInfo("demo-src-1.0/" + name)
        member.size = len(text)
        it.addfile(member, io.BytesIO(text.encode()))
"#;

/// A home, a checkout with traps, and an index that only the checkout names.
struct World {
    home: tempfile::TempDir,
    trap: TcpListener,
}

impl World {
    fn new() -> Result<Self> {
        let home = tempfile::tempdir()?;
        let trap = TcpListener::bind("127.0.0.1:0")?;
        trap.set_nonblocking(true)?;
        let world = Self { home, trap };
        world.set_traps()?;
        Ok(world)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Written by whatever of the checkout runs.
    fn ran(&self) -> PathBuf {
        self.at("ran")
    }

    fn set_traps(&self) -> Result<()> {
        let checkout = self.at("checkout");
        fs::create_dir_all(checkout.join("bin"))?;
        let ran = self.ran().display().to_string();
        for module in [
            "json",
            "venv",
            "pip",
            "logging",
            "site",
            "ensurepip",
            "sitecustomize",
            "usercustomize",
        ] {
            let text = format!("open({ran:?}, 'a').write('{module}\\n')\n");
            fs::write(checkout.join(format!("{module}.py")), text)?;
        }
        for program in ["uv", "python3", "python3.11", "bin/uv", "bin/python3"] {
            let path = checkout.join(program);
            fs::write(&path, format!("#!/bin/sh\necho {program} >> '{ran}'\n"))?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
        let index = format!("http://{}/simple", self.trap.local_addr()?);
        let of_uv = format!("index-url = \"{index}\"\n");
        fs::write(checkout.join("uv.toml"), &of_uv)?;
        let project = format!("[project]\nname = \"x\"\nversion = \"1\"\n[tool.uv]\n{of_uv}");
        fs::write(checkout.join("pyproject.toml"), project)?;
        fs::write(
            checkout.join("pip.conf"),
            format!("[global]\nindex-url = {index}\n"),
        )?;
        fs::write(checkout.join(".python-version"), "../../checkout\n")?;
        Ok(())
    }

    /// A call in the checkout, with every variable that leads back into it.
    fn call(&self, arguments: &[&str]) -> Command {
        let checkout = self.at("checkout");
        let mut command = sundown(self.home.path(), arguments);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("PIP_") || text.starts_with("UV_") {
                command.env_remove(&name);
            }
        }
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .current_dir(&checkout)
            .env("PATH", format!(".:bin::{path}"))
            .env("PYTHONPATH", &checkout)
            .env("PYTHONSTARTUP", checkout.join("site.py"))
            .env("VIRTUAL_ENV", &checkout)
            .env("UV_PROJECT", &checkout)
            .env("UV_WORKING_DIR", &checkout)
            .env("UV_CONFIG_FILE", "uv.toml")
            .env("PIP_CONFIG_FILE", "pip.conf");
        command
    }

    /// The index that the user's own settings name.
    fn index(&self) -> Result<String> {
        let index = self.at("index");
        let mut python = Command::new("python3");
        python.args(["-I", "-c", MAKES_AN_INDEX]).arg(&index);
        let made = sundown_testing::output(python.arg(self.ran()).current_dir("/"))?;
        ensure!(made.status.success(), "no index: {}", stderr(&made));
        Ok(format!("file://{}", index.display()))
    }

    /// Nothing of the checkout has run, and nobody asked for its index.
    fn is_untouched(&self) -> Result<()> {
        let ran = fs::read_to_string(self.ran()).unwrap_or_default();
        ensure!(ran.is_empty(), "code of the checkout ran: {ran}");
        match self.trap.accept() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            other => bail!("the index of the checkout was asked: {other:?}"),
        }
    }
}

#[test]
fn nothing_of_a_checkout_runs_on_the_host_or_chooses_packages() -> Result<()> {
    let world = World::new()?;
    let index = world.index()?;
    let mut make = world.call(&["env", "make", "rayproject/ray:2.52.0"]);
    // What the user set counts, whichever of the two tools installs.
    make.env("PIP_INDEX_URL", &index);
    make.env("UV_DEFAULT_INDEX", &index);
    let output = sundown_testing::output(&mut make)?;
    world.is_untouched()?;
    ensure!(output.status.success(), "{}", stderr(&output));
    let output = sundown_testing::output(&mut world.call(&["env", "list", "-o", "json"]))?;
    let list: Value = serde_json::from_slice(&output.stdout)?;
    let [entry] = list.as_array().map_or(&[][..], |it| it) else {
        bail!("not one: {list}");
    };
    assert_eq!(entry["sources"], json!([index]));
    assert_eq!(
        (&entry["isOurs"], &entry["isCurrent"]),
        (&json!(true), &json!(true))
    );
    // From the usual index it would be another environment.
    assert_ne!(entry["name"], "ray-2.52.0-py3");
    let path = Path::new(entry["path"].as_str().context("a path")?);
    let mark: Value = serde_json::from_slice(&fs::read(path.join("sundown.json"))?)?;
    assert_eq!(mark["sources"], json!([index]));
    assert!(path.starts_with(world.at(".cache/sundown/environments")));
    world.is_untouched()
}

#[test]
fn a_package_that_would_have_to_be_built_is_named_and_not_built() -> Result<()> {
    let world = World::new()?;
    let index = world.index()?;
    let rules = world.at("checkout/rules.json");
    let rule = json!([{ "image": "mine", "like": "python:3", "packages": ["demo-src"] }]);
    fs::write(&rules, rule.to_string())?;
    // Relative to where the user is.
    let mut make = world.call(&["env", "make", "mine", "--image-rules", "rules.json"]);
    make.env("PIP_INDEX_URL", &index);
    make.env("UV_DEFAULT_INDEX", &index);
    let output = sundown_testing::output(&mut make)?;
    world.is_untouched()?;
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let said = stderr(&output);
    assert!(said.contains("there is no wheel of demo-src"), "{said}");
    assert!(said.contains("FIND_LINKS"), "{said}");
    // A failure leaves nothing that would count.
    let output = sundown_testing::output(&mut world.call(&["env", "list", "-o", "json"]))?;
    assert_eq!(stdout(&output).trim(), "[]");
    Ok(())
}

#[test]
fn a_full_cache_is_told_with_what_to_prune() -> Result<()> {
    let world = World::new()?;
    let mut make = world.call(&["env", "make", "rayproject/ray:2.52.0"]);
    make.env("SUNDOWN_ENVIRONMENTS_MAX", "0");
    let output = sundown_testing::output(&mut make)?;
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("0 of at most 0 environments"), "{said}");
    assert!(said.contains("SUNDOWN_ENVIRONMENTS_MAX"), "{said}");
    let mut make = world.call(&["env", "make", "rayproject/ray:2.52.0"]);
    make.env("SUNDOWN_ENVIRONMENTS_SIZE_MAX", "much");
    let output = sundown_testing::output(&mut make)?;
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    world.is_untouched()
}

/// With `SUNDOWN_CACHE=$HOME` this removed whatever lay in `~/environments`.
#[test]
fn pruning_leaves_directories_of_the_user_alone_and_names_them() -> Result<()> {
    let world = World::new()?;
    let cache = world.at("environments");
    fs::create_dir_all(cache.join("thesis/chapters"))?;
    fs::write(cache.join("thesis.lock"), "")?;
    fs::create_dir_all(cache.join("begun/bin"))?;
    fs::write(cache.join("begun/sundown.made"), "made by sundown env\n")?;
    let prune = |arguments: &[&str]| -> Result<Output> {
        let mut command = world.call(&["env", "prune"]);
        // Also relative, as every place may be told.
        command.env("SUNDOWN_CACHE", "..").args(arguments);
        sundown_testing::output(&mut command)
    };
    let output = prune(&[])?;
    let said = stdout(&output);
    assert!(said.contains("removed begun"), "{said}");
    assert!(said.contains("left thesis alone"), "{said}");
    for arguments in [&["--all"][..], &["thesis"], &["thesis", "-o", "json"]] {
        let output = prune(arguments)?;
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stdout(&output).contains("thesis"), "{}", stdout(&output));
    }
    assert!(cache.join("thesis/chapters").is_dir() && !cache.join("begun").exists());
    Ok(())
}

#[test]
fn a_control_plane_leaves_the_directory_that_it_was_started_in() -> Result<()> {
    let world = World::new()?;
    let command = world.call(&["up", "--node=false", "-o", "json"]);
    let places = [
        "--data-dir=../data",
        "--kubeconfig=here.yaml",
        "--flight-record=flight",
    ];
    let up = Up::spawn(command, &places)?;
    let id = up.started["pid"].as_u64().context("a process")?;
    match fs::read_link(format!("/proc/{id}/cwd")) {
        Ok(directory) => assert_eq!(directory, Path::new("/")),
        // The process is closed to debuggers of its own user, and so is this link.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            eprintln!("only root may ask for the working directory: {error}");
        }
        Err(error) => return Err(error.into()),
    }
    let checkout = world.at("checkout").canonicalize()?;
    assert_eq!(Path::new(up.kubeconfig()), checkout.join("here.yaml"));
    assert!(checkout.join("here.yaml").is_file() && checkout.join("flight").is_dir());
    assert!(world.at("data").is_dir());
    assert_eq!(up.terminate()?, Some(0));
    world.is_untouched()
}

/// The password of a private index was in the environment of every container.
#[test]
fn pods_do_not_get_the_password_of_an_index() -> Result<()> {
    let world = World::new()?;
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: shows}\nspec:\n  backoffLimit: 0\n  \
               template:\n    spec:\n      restartPolicy: Never\n      containers:\n      \
               - {name: main, image: busybox, command: [sh, -c, env]}\n";
    fs::write(world.at("checkout/job.yaml"), job)?;
    let mut run = world.call(&["run", "--rm", "job.yaml"]);
    run.env("PIP_INDEX_URL", "https://me:s3cret@index.example/simple");
    let output = sundown_testing::output(&mut run)?;
    let down = sundown_testing::output(&mut world.call(&["down"]))?;
    let said = format!("{}{}", stdout(&output), stderr(&output));
    if !output.status.success() && said.contains("namespaces") {
        eprintln!("skipped, pods cannot run here: {said}");
        return Ok(());
    }
    ensure!(output.status.success(), "{said}");
    ensure!(down.status.success(), "{}", stderr(&down));
    assert!(
        said.contains("PIP_INDEX_URL=https://index.example/simple"),
        "{said}"
    );
    assert!(!said.contains("s3cret"), "{said}");
    world.is_untouched()
}
