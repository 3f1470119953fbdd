//! The cache of environments: what is there, what is made, what is removed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use tokio::sync::{Mutex, OnceCell};
use xxhash_rust::xxh3::xxh3_64;

use super::hidden::Hidden;
use super::limits::{self, Held, Limits};
use super::lock::{is_being_made, lock_file, open_lock, try_lock};
use super::make::{self, MakeError, Order, Progress};
use super::mark::{self, Found, Mark, Way};
use super::python;
use super::recipe::{PythonVersion, Recipe, Rules, is_told_by_name};
use super::sources::{Installer, Sources};
use super::{Environment, Standing};
use crate::spec::is_plain_name;

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
    limits: Limits,
    /// Asked once: it starts a process.
    installer: OnceCell<Installer>,
}

/// An environment in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "what scripts read of `env list -o json`, each for itself"
)]
pub struct Entry {
    pub name: String,
    pub path: PathBuf,
    pub requirements: Vec<String>,
    pub python: String,
    /// Where its packages came from; nothing is known of those that an older version made.
    pub sources: Vec<String>,
    /// How much room it takes, where that was noted.
    pub bytes: Option<u64>,
    /// Whether it was made by Sundown; what was not is left alone.
    pub is_ours: bool,
    /// Whether it was made to its end.
    pub is_whole: bool,
    /// Whether a pod of today may get it: not one of an older version, or one that was replaced.
    pub is_current: bool,
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
    /// It was not made by Sundown, so it stays.
    Foreign,
}

/// An environment as it is wanted.
#[derive(Debug)]
struct Wanted {
    path: PathBuf,
    requirements: Vec<String>,
    sources: Sources,
}

impl Environments {
    /// The environments in a directory, by these rules.
    pub fn new(directory: PathBuf, rules: Rules) -> Self {
        Self {
            directory,
            rules,
            making: Mutex::default(),
            pythons: python::Known::default(),
            limits: Limits::default(),
            installer: OnceCell::new(),
        }
    }

    /// With these limits instead of the usual ones.
    #[must_use]
    pub fn limited(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Without an interpreter that would show one of these to pods.
    #[must_use]
    pub fn hiding(self, hidden: Hidden) -> Self {
        let pythons = python::Known::hiding(hidden);
        Self { pythons, ..self }
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
                let Some(wanted) = self.wanted(&name, requirements, python).await else {
                    return Standing::Unavailable(nameless(&name));
                };
                match self.ready(&wanted) {
                    Ok(environment) => Standing::Ready(environment),
                    Err(_) => Standing::Missing,
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
            return Err(MakeError::Unavailable(nameless(image)));
        };
        let wanted = self.wanted(&name, requirements, python).await;
        let wanted = wanted.ok_or_else(|| MakeError::Unavailable(nameless(&name)))?;
        let path = &wanted.path;
        let _lock = self.lock(path).await?;
        match self.ready(&wanted) {
            Ok(environment) => return Ok(environment),
            Err(way) => self.make_room(path, way)?,
        }
        let order = Order {
            directory: path,
            requirements: &wanted.requirements,
            python,
            installer: self.installer().await,
        };
        let found = make::make(order, &self.pythons, tell).await?;
        let mark = Mark {
            requirements: wanted.requirements,
            python: found.version,
            prefix: found.prefix,
            sources: Some(wanted.sources.list().to_vec()),
            bytes: Some(mark::bytes(path)),
        };
        let what = format!("finish {}", path.display());
        mark::finish(path, &mark).map_err(MakeError::io(what))?;
        Ok(virtual_environment(path, &mark.prefix))
    }

    async fn wanted(
        &self,
        name: &str,
        requirements: Vec<String>,
        python: Option<PythonVersion>,
    ) -> Option<Wanted> {
        let sources = Sources::read(self.installer().await);
        let mut told = requirements.clone();
        told.extend(sources.key());
        Some(Wanted {
            path: self.path(name, &told, python)?,
            requirements,
            sources,
        })
    }

    async fn installer(&self) -> &Installer {
        self.installer.get_or_init(make::installer).await
    }

    /// What is wanted, if it is there; else the way to it.
    fn ready(&self, wanted: &Wanted) -> Result<Environment, Way> {
        let found = Found::at(&wanted.path);
        let fits = |mark: &Mark| {
            mark.fits(&wanted.requirements, &wanted.sources)
                && self.pythons.revealed_by(&mark.prefix).is_none()
        };
        match (found.way(fits), found) {
            (Way::Take, Found::Whole(mark)) => Ok(virtual_environment(&wanted.path, &mark.prefix)),
            (way, _) => Err(way),
        }
    }

    /// Makes sure that one more may be made, and that nothing lies where it is to be.
    fn make_room(&self, path: &Path, way: Way) -> Result<(), MakeError> {
        let what = |verb: &str| MakeError::io(format!("{verb} {}", path.display()));
        let mut held = self.held().map_err(what("look beside"))?;
        if way == Way::RemoveFirst {
            held.retain(|it| self.directory.join(&it.name) != path);
        }
        // First: nothing is moved for one that is not made.
        if let Some(why) = limits::full(self.limits, &held) {
            return Err(MakeError::Full(why));
        }
        match way {
            Way::Take | Way::Make => Ok(()),
            Way::Refuse => Err(MakeError::Foreign {
                path: path.to_owned(),
            }),
            Way::RemoveFirst => mark::remove(path).map_err(what("remove")),
            Way::SetAsideFirst => mark::set_aside(path).map(drop).map_err(what("set aside")),
        }
    }

    /// What takes room, the oldest first.
    fn held(&self) -> io::Result<Vec<Held>> {
        let entries = self.list()?.into_iter().filter(|it| it.is_ours);
        let mut held: Vec<_> = entries
            .map(|it| {
                let changed_at = it.path.metadata().and_then(|it| it.modified()).ok();
                let bytes = it.bytes.unwrap_or_else(|| mark::bytes(&it.path));
                (
                    changed_at,
                    Held {
                        name: it.name,
                        bytes,
                    },
                )
            })
            .collect();
        held.sort_by(|one, other| (one.0, &one.1.name).cmp(&(other.0, &other.1.name)));
        Ok(held.into_iter().map(|(_, held)| held).collect())
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
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                found.push(Entry::of(entry.path()));
            }
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    /// Removes an environment of the cache by its name, unless it is being made or is not ours.
    pub fn remove(&self, name: &str) -> io::Result<Removal> {
        let Some(path) = victim(&self.directory, name) else {
            return Ok(Removal::NotThere);
        };
        match Found::at(&path) {
            Found::Nothing => return Ok(Removal::NotThere),
            Found::Foreign => return Ok(Removal::Foreign),
            Found::Unfinished | Found::WithoutPython(_) | Found::Whole(_) => {}
        }
        // Held until it is gone: whoever wants to make it meanwhile waits.
        let Some(_lock) = try_lock(&path)? else {
            return Ok(Removal::BeingMade);
        };
        mark::remove(&path)?;
        Ok(Removal::Removed)
    }

    async fn of_python(&self, wanted: Option<PythonVersion>) -> Standing {
        let choice = self.pythons.first(wanted).await;
        let Some(python) = choice.pythons.into_iter().next() else {
            let version =
                wanted.map_or("3".to_owned(), |(major, minor)| format!("{major}.{minor}"));
            let error = MakeError::NoPython {
                version,
                passed_over: choice.passed_over,
            };
            return Standing::Unavailable(error.to_string());
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
                "the image rule names {path}, which is not a directory"
            ));
        }
        let python = self.pythons.ask(&path.join("bin/python")).await;
        let prefix = python.map_or_else(|| path.to_owned(), |python| python.prefix);
        let revealed = |it: &Path| self.pythons.revealed_by(it);
        if let Some(why) = revealed(path).or_else(|| revealed(&prefix)) {
            let path = path.display();
            return Standing::Unavailable(format!(
                "the image rule names {path}, which pods cannot get: {why}, which they would see"
            ));
        }
        Standing::Ready(virtual_environment(path, &prefix))
    }

    /// None: the name cannot be that of a directory.
    fn path(
        &self,
        name: &str,
        requirements: &[String],
        python: Option<PythonVersion>,
    ) -> Option<PathBuf> {
        let python = python.map_or("py3".to_owned(), |(major, minor)| {
            format!("py{major}.{minor}")
        });
        let further = if is_told_by_name(name, requirements) {
            String::new()
        } else {
            format!("-{:08x}", xxh3_64(requirements.join("\n").as_bytes()) >> 32)
        };
        let name = format!("{name}-{python}{further}");
        victim(&self.directory, &name)
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

fn nameless(name: &str) -> String {
    format!("no environment can be made under the name {name:?}")
}

/// What may be removed by a name: a directory right inside the cache, and nothing else.
fn victim(directory: &Path, name: &str) -> Option<PathBuf> {
    is_plain_name(name).then(|| directory.join(name))
}

impl Entry {
    fn of(path: PathBuf) -> Self {
        let found = Found::at(&path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.into_owned();
        let is_ours = found.is_ours();
        // A Python that was removed takes its environments with it.
        let mark = match found {
            Found::Whole(mark) => Some(mark),
            Found::Nothing | Found::Foreign | Found::Unfinished | Found::WithoutPython(_) => None,
        };
        let of_mark = mark.as_ref();
        Self {
            is_ours,
            is_whole: mark.is_some(),
            is_current: of_mark.is_some_and(|it| it.sources.is_some()) && !mark::is_aside(&name),
            is_being_made: is_being_made(&path),
            python: of_mark.map_or(String::new(), |mark| {
                format!("{}.{}", mark.python.0, mark.python.1)
            }),
            bytes: of_mark.and_then(|mark| mark.bytes),
            sources: of_mark
                .and_then(|mark| mark.sources.clone())
                .unwrap_or_default(),
            requirements: mark.map(|mark| mark.requirements).unwrap_or_default(),
            name,
            path,
        }
    }

    /// Whether its packages came from elsewhere than the index that pip and uv take by themselves.
    pub fn is_of_another_index(&self) -> bool {
        !self.sources.is_empty() && !Sources::is_usual(&self.sources)
    }
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
