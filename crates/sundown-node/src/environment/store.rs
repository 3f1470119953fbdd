//! The cache of environments: what is there, what is made, what is removed.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use xxhash_rust::xxh3::xxh3_64;

use super::make::{self, MakeError, Order, Progress};
use super::python;
use super::recipe::{PythonVersion, Recipe, Rules, is_told_by_name};
use super::{Environment, Standing};
use crate::spec::is_plain_name;

/// Written last: without it an environment is not whole.
const MARK: &str = "sundown.json";

/// The programs of the host, as every container finds them.
const HOST_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// All environments of a user.
#[derive(Debug)]
pub struct Environments {
    directory: PathBuf,
    rules: Rules,
    /// One is made at a time: they share the network and the disk.
    making: Mutex<()>,
    pythons: python::Known,
}

/// An environment in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub name: String,
    pub path: PathBuf,
    pub requirements: Vec<String>,
    pub python: String,
    /// Whether it was made to its end.
    pub is_whole: bool,
    /// Whether somebody makes it now.
    pub is_being_made: bool,
}

/// What became of an environment that was to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    Removed,
    NotThere,
    /// Somebody makes it now, so it stays.
    BeingMade,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mark {
    requirements: Vec<String>,
    python: PythonVersion,
    prefix: PathBuf,
}

impl Environments {
    /// The environments in a directory, by these rules.
    pub fn new(directory: PathBuf, rules: Rules) -> Self {
        Self {
            directory,
            rules,
            making: Mutex::default(),
            pythons: python::Known::default(),
        }
    }

    /// How an image stands.
    pub async fn standing(&self, image: &str) -> Standing {
        let recipe = match self.rules.recipe(image) {
            Ok(recipe) => recipe,
            Err(unknown) => return Standing::Unavailable(unknown.to_string()),
        };
        match recipe {
            Recipe::Packages {
                name,
                requirements,
                python,
            } => {
                let path = self.path(&name, &requirements, python);
                match mark(&path).filter(|mark| mark.requirements == requirements) {
                    Some(mark) => Standing::Ready(virtual_environment(&path, &mark.prefix)),
                    None => Standing::Missing,
                }
            }
            Recipe::Python { python } => self.of_python(python).await,
            Recipe::Host { program, command } => of_host(&program, command),
            Recipe::Prefix { path } => self.of_prefix(&path).await,
        }
    }

    /// Makes what is missing for an image, unless somebody made it meanwhile.
    pub async fn make(
        &self,
        image: &str,
        tell: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Environment, MakeError> {
        let _one = self.making.lock().await;
        match self.standing(image).await {
            Standing::Ready(environment) => return Ok(environment),
            Standing::Unavailable(why) => return Err(MakeError::Unavailable(why)),
            Standing::Missing => {}
        }
        let Ok(Recipe::Packages {
            name,
            requirements,
            python,
        }) = self.rules.recipe(image)
        else {
            unreachable!("only packages are missing")
        };
        let path = self.path(&name, &requirements, python);
        let _lock = self.lock(&path).await?;
        if let Some(mark) = mark(&path).filter(|mark| mark.requirements == requirements) {
            return Ok(virtual_environment(&path, &mark.prefix));
        }
        let order = Order {
            directory: &path,
            requirements: &requirements,
            python,
        };
        let found = make::make(order, &self.pythons, tell).await?;
        let prefix = found.prefix;
        let mark = Mark {
            requirements,
            python: found.version,
            prefix: prefix.clone(),
        };
        let text = serde_json::to_vec(&mark).expect("a mark is plain data");
        let written = fs::write(path.join(MARK), text);
        written.map_err(MakeError::io(format!(
            "write {}",
            path.join(MARK).display()
        )))?;
        Ok(virtual_environment(&path, &prefix))
    }

    /// What is in the cache.
    pub fn list(&self) -> io::Result<Vec<Entry>> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                found.push(Entry::of(path));
            }
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    /// Removes an environment of the cache by its name, unless it is being made.
    pub fn remove(&self, name: &str) -> io::Result<Removal> {
        let Some(path) = victim(&self.directory, name).filter(|path| path.is_dir()) else {
            return Ok(Removal::NotThere);
        };
        // Held until it is gone: whoever wants to make it meanwhile waits.
        let Some(_lock) = try_lock(&path)? else {
            return Ok(Removal::BeingMade);
        };
        // Without its mark it is no environment any more, should the rest be interrupted.
        match fs::remove_file(path.join(MARK)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        fs::remove_dir_all(path)?;
        Ok(Removal::Removed)
    }

    async fn of_python(&self, wanted: Option<PythonVersion>) -> Standing {
        let Some(python) = self.pythons.first(wanted).await else {
            let version =
                wanted.map_or("3".to_owned(), |(major, minor)| format!("{major}.{minor}"));
            return Standing::Unavailable(MakeError::NoPython { version }.to_string());
        };
        let directory = python.executable.parent().unwrap_or(Path::new("/"));
        Standing::Ready(Environment {
            binds: Some(python.prefix)
                .into_iter()
                .filter(|it| !is_of_host(it))
                .collect(),
            variables: vec![(
                "PATH".into(),
                format!("{}:{HOST_PATH}", directory.display()),
            )],
            command: vec!["python3".into()],
        })
    }

    async fn of_prefix(&self, path: &Path) -> Standing {
        if !path.is_dir() {
            let path = path.display();
            return Standing::Unavailable(format!(
                "the image rule names {path}, which is no directory"
            ));
        }
        let python = self.pythons.ask(&path.join("bin/python")).await;
        let prefix = python.map_or_else(|| path.to_owned(), |python| python.prefix);
        Standing::Ready(virtual_environment(path, &prefix))
    }

    fn path(&self, name: &str, requirements: &[String], python: Option<PythonVersion>) -> PathBuf {
        let python = python.map_or("py3".to_owned(), |(major, minor)| {
            format!("py{major}.{minor}")
        });
        let further = if is_told_by_name(name, requirements) {
            String::new()
        } else {
            format!("-{:08x}", xxh3_64(requirements.join("\n").as_bytes()) >> 32)
        };
        let name = format!("{name}-{python}{further}");
        victim(&self.directory, &name).expect("the name of a recipe is plain")
    }

    /// Other processes of the user may make the same one.
    async fn lock(&self, path: &Path) -> Result<File, MakeError> {
        let path = path.to_owned();
        let what = format!("lock {}", lock_file(&path).display());
        let locked = tokio::task::spawn_blocking(move || {
            let file = open_lock(&path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            io::Result::Ok(file)
        });
        let locked = locked.await.map_err(io::Error::other).and_then(|it| it);
        locked.map_err(MakeError::io(what))
    }
}

/// Beside the environment, so that it stays when that goes.
fn lock_file(path: &Path) -> PathBuf {
    // Not `with_extension`: that would take a part of the version away.
    let mut file = path.as_os_str().to_owned();
    file.push(".lock");
    PathBuf::from(file)
}

fn open_lock(path: &Path) -> io::Result<File> {
    let file = lock_file(path);
    fs::create_dir_all(file.parent().unwrap_or(Path::new("/")))?;
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(false).open(file)
}

/// Takes the lock of an environment without waiting; None: somebody has it.
fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = open_lock(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether somebody makes an environment now. Whoever only looks does not disturb others who do.
fn is_being_made(path: &Path) -> bool {
    let Ok(file) = File::open(lock_file(path)) else {
        return false;
    };
    matches!(
        flock(&file, FlockOperation::NonBlockingLockShared),
        Err(Errno::WOULDBLOCK)
    )
}

/// What may be removed by a name: a directory right inside the cache, and nothing else.
fn victim(directory: &Path, name: &str) -> Option<PathBuf> {
    is_plain_name(name).then(|| directory.join(name))
}

impl Entry {
    fn of(path: PathBuf) -> Self {
        let mark = mark(&path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Self {
            name: name.into_owned(),
            is_whole: mark.is_some(),
            is_being_made: is_being_made(&path),
            python: mark.as_ref().map_or(String::new(), |mark| {
                format!("{}.{}", mark.python.0, mark.python.1)
            }),
            requirements: mark.map(|mark| mark.requirements).unwrap_or_default(),
            path,
        }
    }
}

fn mark(path: &Path) -> Option<Mark> {
    let mark: Mark = serde_json::from_slice(&fs::read(path.join(MARK)).ok()?).ok()?;
    // A Python that was removed takes its environments with it.
    mark.prefix.is_dir().then_some(mark)
}

fn virtual_environment(path: &Path, prefix: &Path) -> Environment {
    let binds = vec![path.to_owned(), prefix.to_owned()];
    Environment {
        binds: binds.into_iter().filter(|it| !is_of_host(it)).collect(),
        variables: vec![
            (
                "PATH".into(),
                format!("{}:{HOST_PATH}", path.join("bin").display()),
            ),
            ("VIRTUAL_ENV".into(), path.display().to_string()),
        ]
        .into_iter()
        .chain(for_ray())
        .collect(),
        command: vec!["bash".into()],
    }
}

/// What Ray needs to know of a node without limits of its own and without a way to everywhere.
fn for_ray() -> impl Iterator<Item = (String, String)> {
    let variables = [
        // Each raylet would take the whole machine's memory for its own and kill its workers for it.
        ("RAY_memory_monitor_refresh_ms", "0"),
        // The other resolver asks servers that pods do not have, and waits for them.
        ("GRPC_DNS_RESOLVER", "native"),
        // Nobody asked to be counted; the report is tried even so, hence the address of nobody.
        ("RAY_USAGE_STATS_ENABLED", "0"),
        ("RAY_USAGE_STATS_REPORT_URL", "http://127.0.0.1:9"),
        // What Ray warns in every job that it will become; there are no accelerators here.
        ("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0"),
    ];
    variables
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
}

/// What every pod sees anyway.
fn is_of_host(path: &Path) -> bool {
    ["/usr", "/bin", "/opt", "/etc"]
        .iter()
        .any(|it| path.starts_with(it))
}

fn of_host(program: &str, command: Vec<String>) -> Standing {
    let is_there = std::env::split_paths(HOST_PATH).any(|it| it.join(program).is_file());
    if !is_there {
        return Standing::Unavailable(format!(
            "the image stands for {program} of this machine, which is not there: install it"
        ));
    }
    Standing::Ready(Environment {
        binds: Vec::new(),
        variables: vec![("PATH".into(), HOST_PATH.into())],
        command,
    })
}

#[cfg(test)]
mod tests;
