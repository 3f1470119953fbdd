//! The cache of environments: what is taken, what is made, what is removed. What lies in it is read in
//! `entry`.

use std::error::Error as _;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use tokio::sync::{Mutex, OnceCell};
use xxhash_rust::xxh3::xxh3_64;

use super::entry::{self, Entry};
use super::hidden::Hidden;
use super::limits::{self, Limits};
use super::lock::{lock_file, open_lock, try_lock};
use super::make::{self, MakeError, Order, Progress};
use super::mark::{self, Found, Mark, Way};
use super::python;
use super::recipe::{PythonVersion, Recipe, Rules, is_told_by_name};
use super::sources::{Installer, Sources};
use super::{Environment, Standing};
use crate::is_shown;
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

    /// What stands for an image by the rules as they are now: users add one when an image is missing.
    fn recipe(&self, image: &str) -> Result<Recipe, String> {
        let rules = self.rules.again().map_err(|error| match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        })?;
        rules.recipe(image).map_err(|unknown| unknown.to_string())
    }

    /// How an image stands.
    pub async fn standing(&self, image: &str) -> Standing {
        let recipe = match self.recipe(image) {
            Ok(recipe) => recipe,
            Err(why) => return Standing::Unavailable(why),
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
        }) = self.recipe(image)
        else {
            return Err(MakeError::Unavailable(nameless(image)));
        };
        let wanted = self.wanted(&name, requirements, python).await;
        let wanted = wanted.ok_or_else(|| MakeError::Unavailable(nameless(&name)))?;
        let path = &wanted.path;
        let lock = Arc::new(self.lock(path).await?);
        let aside = match self.ready(&wanted) {
            Ok(environment) => return Ok(environment),
            Err(way) => self.make_room_apart(&lock, path, way).await?,
        };
        let order = Order {
            directory: path,
            lock: &lock,
            requirements: &wanted.requirements,
            python,
            installer: self.installer().await,
        };
        let made = self.made(order, wanted.sources.list(), tell).await;
        if made.is_err() {
            // What was begun goes, and what was there before is there again. Where that fails it stays aside,
            // where a prune removes it.
            let path = path.clone();
            let _ = make::apart(&lock, move || match aside {
                Some(aside) => mark::put_back(&aside, &path),
                None => mark::discard(&path),
            })
            .await;
        }
        made.map(|mark| virtual_environment(path, &mark.prefix))
    }

    /// Makes an environment to its end.
    async fn made(
        &self,
        order: Order<'_>,
        sources: &[String],
        tell: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Mark, MakeError> {
        let found = make::make(order, &self.pythons, tell).await?;
        let path = order.directory;
        let counted = path.to_owned();
        let bytes = make::apart(order.lock, move || mark::bytes(&counted)).await;
        let mark = Mark {
            requirements: order.requirements.to_vec(),
            python: found.version,
            prefix: found.prefix,
            sources: Some(sources.to_vec()),
            bytes: bytes.ok(),
        };
        let what = format!("finish {}", path.display());
        mark::finish(path, &mark).map_err(MakeError::io(what))?;
        Ok(mark)
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

    async fn make_room_apart(
        &self,
        lock: &Arc<File>,
        path: &Path,
        way: Way,
    ) -> Result<Option<PathBuf>, MakeError> {
        let (directory, path, limits) = (self.directory.clone(), path.to_owned(), self.limits);
        let what = format!("make room for {}", path.display());
        let made = make::apart(lock, move || make_room(&directory, limits, &path, way)).await;
        made.map_err(MakeError::io(what))?
    }

    /// What is in the cache.
    pub fn list(&self) -> io::Result<Vec<Entry>> {
        entry::list(&self.directory)
    }

    /// Removes an environment of the cache by its name, unless it is being made or is not ours.
    pub fn remove(&self, name: &str) -> io::Result<Removal> {
        let Some(path) = victim(&self.directory, name) else {
            return Ok(Removal::NotThere);
        };
        // Before the lock: it is made beside what is ours only.
        match Found::at(&path) {
            Found::Nothing => return Ok(Removal::NotThere),
            Found::Foreign => return Ok(Removal::Foreign),
            Found::Empty | Found::Unfinished | Found::WithoutPython(_) | Found::Whole(_) => {}
        }
        // Held until it is gone: a process that wants to make it meanwhile waits.
        let Some(_lock) = try_lock(&path)? else {
            return Ok(Removal::BeingMade);
        };
        // Once more, now that no other process changes it.
        match Found::at(&path) {
            Found::Nothing => return Ok(Removal::NotThere),
            Found::Foreign => return Ok(Removal::Foreign),
            Found::Empty => mark::remove_empty(&path)?,
            Found::Unfinished | Found::WithoutPython(_) | Found::Whole(_) => mark::remove(&path)?,
        }
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
                .filter(|it| !is_shown(it))
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
        // Its Python runs here, outside of every pod.
        let program = path.join("bin/python");
        if let Err(error) = trust(&[path, &program]) {
            let path = path.display();
            return Standing::Unavailable(format!(
                "the image rule names {path}, which cannot be trusted: {error}"
            ));
        }
        let Ok(python) = self.pythons.ask(&program).await else {
            let program = program.display();
            return Standing::Unavailable(format!(
                "the image rule names an environment whose {program} does not answer"
            ));
        };
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

/// Makes sure that one more may be made, and that nothing lies where it is to be; gives the place of
/// what was set aside.
fn make_room(
    directory: &Path,
    limits: Limits,
    path: &Path,
    way: Way,
) -> Result<Option<PathBuf>, MakeError> {
    let what = |verb: &str| MakeError::io(format!("{verb} {}", path.display()));
    let mut held = entry::held(directory).map_err(what("look beside"))?;
    if matches!(way, Way::RemoveFirst | Way::RemoveEmptyFirst) {
        held.retain(|it| directory.join(&it.name) != path);
    }
    // First: nothing is moved for one that is not made.
    if let Some(why) = limits::full(limits, &held) {
        return Err(MakeError::Full(why));
    }
    match way {
        Way::Take | Way::Make => Ok(None),
        Way::Refuse => Err(MakeError::Foreign {
            path: path.to_owned(),
        }),
        Way::RemoveEmptyFirst => mark::remove_empty(path)
            .map(|()| None)
            .map_err(what("remove")),
        Way::RemoveFirst => mark::remove(path).map(|()| None).map_err(what("remove")),
        Way::SetAsideFirst => mark::set_aside(path).map(Some).map_err(what("set aside")),
    }
}

/// Whether nobody else can write to or replace any of these; else why, in words.
fn trust(paths: &[&Path]) -> Result<(), String> {
    let mut checked = paths.iter().map(|path| sundown_files::check(path));
    let distrusted = checked.find_map(Result::err);
    distrusted.map_or(Ok(()), |error| match error.source() {
        Some(cause) => Err(format!("{error}: {cause}")),
        None => Err(error.to_string()),
    })
}

fn nameless(name: &str) -> String {
    format!("no environment can be made under the name {name:?}")
}

/// What may be removed by a name: a directory right inside the cache, and nothing else.
fn victim(directory: &Path, name: &str) -> Option<PathBuf> {
    is_plain_name(name).then(|| directory.join(name))
}

fn virtual_environment(path: &Path, prefix: &Path) -> Environment {
    let binds = vec![path.to_owned(), prefix.to_owned()];
    Environment {
        binds: binds.into_iter().filter(|it| !is_shown(it)).collect(),
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
