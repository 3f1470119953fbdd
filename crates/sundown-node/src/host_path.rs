//! Which paths of the host no pod may have as a volume. The rule is a pure function of a list; it is
//! asked by name before a pod is made, and by the real path of an opened descriptor when it is mounted,
//! so that no link leads around it. Which directories are on the list is the caller's business.

mod create;

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use serde::{Deserialize, Serialize};

pub(crate) use create::Start;

/// Through its links every directory of the host can be reached.
const PROCESSES: &str = "/proc";

/// How many directories above a path are looked at; the kernel's longest path has as many.
const LEVEL_COUNT_MAX: usize = 2_048;

/// The directories of the host that are closed to pods, beside `/` and `/proc`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedPaths {
    closed: Vec<Closed>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Closed {
    /// For example "the data directory".
    what: String,
    path: PathBuf,
    /// Whether a path below it is refused, too.
    is_closed_below: bool,
}

impl ClosedPaths {
    /// Adds a directory with all that lies in it.
    pub fn close(&mut self, what: &str, path: impl Into<PathBuf>) {
        self.add(what, &path.into(), true);
    }

    /// Adds a directory alone: what lies in it may be named.
    pub fn close_itself(&mut self, what: &str, path: impl Into<PathBuf>) {
        self.add(what, &path.into(), false);
    }

    /// The same with every directory also under the path that its links lead to.
    #[must_use]
    pub fn resolved(mut self) -> Self {
        for closed in self.closed.clone() {
            let path = real_path(&closed.path);
            if path != closed.path {
                self.closed.push(Closed { path, ..closed });
            }
        }
        self
    }

    fn add(&mut self, what: &str, path: &Path, is_closed_below: bool) {
        self.closed.push(Closed {
            what: what.to_owned(),
            path: normal(path),
            is_closed_below,
        });
    }

    /// Why a path is refused; None: it may be a volume. Links are not looked at.
    pub fn refusal(&self, path: &Path) -> Option<String> {
        let named = path.display();
        if !path.is_absolute() {
            return Some(format!("hostPath {named} is refused: it is not absolute"));
        }
        let path = normal(path);
        if path == Path::new("/") {
            let why = "it is the whole file system of this machine";
            return Some(format!(
                "hostPath {named} is refused: {why}; name the directory that is needed"
            ));
        }
        if path.starts_with(PROCESSES) {
            let why = "its links lead to every directory of this machine";
            return Some(format!("hostPath {named} is refused: {why}"));
        }
        let why = self.closed.iter().find_map(|closed| closed.about(&path))?;
        Some(format!("hostPath {named} is refused: {why}"))
    }

    /// The same for what was opened, whatever name it was opened by.
    pub(crate) fn check_opened(&self, named: &Path, opened: &OwnedFd) -> io::Result<()> {
        let real = fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd()))?;
        let refusal = self.refusal(&real);
        let refusal = refusal.or_else(|| self.same_directory(opened, Path::new("")));
        let refusal = refusal.or_else(|| self.same_above(&real, opened));
        refuse(named, &real, refusal)
    }

    /// The same for a path that may not exist yet: of its links those count that do.
    pub(crate) fn check_path(&self, named: &Path) -> io::Result<()> {
        let real = real_path(named);
        refuse(named, &real, self.refusal(&real))
    }

    /// Another mount of a closed directory has another path and is the same directory. `below` is what is
    /// wanted inside of it.
    fn same_directory(&self, opened: &OwnedFd, below: &Path) -> Option<String> {
        let opened = rustix::fs::fstat(opened).ok()?;
        let is_same = |path: &Path| {
            let found = fs::metadata(path);
            found.is_ok_and(|it| identity(&it) == (opened.st_dev, opened.st_ino))
        };
        let paths = self
            .closed
            .iter()
            .flat_map(|closed| closed.path.ancestors());
        let found = paths.into_iter().find(|path| is_same(path))?;
        self.refusal(&found.join(below))
    }

    /// What lies in another mount of a closed directory has that directory above it.
    fn same_above(&self, real: &Path, opened: &OwnedFd) -> Option<String> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let up = |from: &OwnedFd| rustix::fs::openat(from, "..", flags, Mode::empty()).ok();
        let is_directory = rustix::fs::fstat(opened)
            .is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Directory);
        let mut here = if is_directory {
            up(opened)?
        } else {
            rustix::fs::open(real.parent()?, flags, Mode::empty()).ok()?
        };
        let closed = self.closed.iter().filter(|it| it.is_closed_below);
        let closed: Vec<_> = closed
            .filter_map(|it| Some((identity(&fs::metadata(&it.path).ok()?), it)))
            .collect();
        for _ in 0..LEVEL_COUNT_MAX {
            let stat = rustix::fs::fstat(&here).ok()?;
            let found = closed
                .iter()
                .find(|(it, _)| *it == (stat.st_dev, stat.st_ino));
            if let Some((_, closed)) = found {
                return self.refusal(&closed.path);
            }
            let above = up(&here)?;
            let stat_above = rustix::fs::fstat(&above).ok()?;
            if (stat_above.st_dev, stat_above.st_ino) == (stat.st_dev, stat.st_ino) {
                return None;
            }
            here = above;
        }
        Some(format!(
            "hostPath {} is refused: it lies too deep",
            real.display()
        ))
    }
}

/// What a directory is, whatever it is called.
fn identity(of: &fs::Metadata) -> (u64, u64) {
    (of.dev(), of.ino())
}

impl Closed {
    fn about(&self, path: &Path) -> Option<String> {
        let (what, own) = (&self.what, self.path.display());
        if path == self.path {
            let hint = if self.is_closed_below {
                ""
            } else {
                "; name a directory below it"
            };
            return Some(format!("it is {what}{hint}"));
        }
        if self.path.starts_with(path) {
            return Some(format!("it contains {what}, {own}"));
        }
        let is_below = self.is_closed_below && path.starts_with(&self.path);
        is_below.then(|| format!("it lies in {what}, {own}"))
    }
}

/// The home directory that this user's account names, whatever the environment says; None: there is no
/// account, or it names a directory of the system, which every pod sees.
pub fn home_of_account() -> Option<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::effective());
    user.ok().flatten().and_then(|user| home_in(user.dir))
}

fn home_in(directory: PathBuf) -> Option<PathBuf> {
    let is_own = directory.is_absolute() && !crate::container::system::is_shown(&directory);
    is_own.then_some(directory)
}

fn refuse(named: &Path, real: &Path, refusal: Option<String>) -> io::Result<()> {
    match refusal {
        None => Ok(()),
        Some(message) if named == real => Err(io::Error::other(message)),
        Some(message) => {
            let named = named.display();
            Err(io::Error::other(format!("{named} leads there: {message}")))
        }
    }
}

/// Without `.`, `..`, repeated and trailing slashes.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir => {
                normal.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    normal
}

/// Where a path leads, as far as it exists; the rest as it is written.
fn real_path(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(real) = fs::canonicalize(ancestor) {
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return normal(&real.join(rest));
        }
    }
    normal(path)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{ClosedPaths, home_in};

    fn closed() -> ClosedPaths {
        let mut closed = ClosedPaths::default();
        closed.close_itself("the home directory", "/home/me");
        closed.close("the data directory", "/home/me/.local/state/sundown/");
        closed.close("the cache", "/var/cache/me/sundown");
        closed
    }

    fn check(path: &str, why: &str) {
        let refusal = closed().refusal(Path::new(path)).unwrap_or_default();
        match why {
            "" => assert_eq!(refusal, "", "{path}"),
            why => assert!(refusal.contains(why), "{path}: {refusal:?}"),
        }
    }

    #[test]
    fn neither_a_closed_directory_nor_what_contains_it_may_be_a_volume() {
        check("/", "hostPath / is refused: it is the whole file system");
        check("//", "the whole file system");
        check("/usr/..", "the whole file system");
        check("/../..", "the whole file system");
        check("/home", "it contains the home directory, /home/me");
        check(
            "/home/me",
            "it is the home directory; name a directory below",
        );
        check("/home/me/", "it is the home directory");
        check("//home/./me/x/..", "it is the home directory");
        check(
            "/home/me/.local",
            "it contains the data directory, /home/me/",
        );
        check("/home/me/.local/state/sundown", "it is the data directory");
        check("/var/cache", "it contains the cache");
        check("home/me/project", "it is not absolute");
        check("", "it is not absolute");
    }

    #[test]
    fn nothing_inside_of_our_own_directories_may_be_a_volume() {
        check("/home/me/.local/state/sundown/db", "it lies in the data");
        check(
            "/var/cache/me/sundown/environments/x",
            "it lies in the cache",
        );
        check("/proc", "its links lead to every directory");
        check("/proc/1/root/home", "its links lead to every directory");
    }

    #[test]
    fn everything_else_may_as_on_any_node() {
        for path in [
            "/home/me/project",
            "/home/me/.local/state/sundowner",
            "/home/meadow",
            "/home/other",
            "/var/cache/me/other",
            "/tmp",
            "/dev/null",
            "/process",
        ] {
            check(path, "");
        }
    }

    #[test]
    fn the_home_of_an_account_counts_unless_it_is_the_systems() {
        for (named, is_own) in [
            ("/home/me", true),
            ("/root", true),
            ("/var/lib/service", true),
            ("/usr/sbin", false),
            ("/bin", false),
            ("", false),
            ("home", false),
        ] {
            assert_eq!(home_in(named.into()).is_some(), is_own, "{named}");
        }
    }

    #[test]
    fn a_link_to_a_closed_directory_is_that_directory() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(at("data/inner")).unwrap();
        std::fs::create_dir(at("project")).unwrap();
        std::os::unix::fs::symlink(at("data"), at("link")).unwrap();
        std::os::unix::fs::symlink("/", at("root")).unwrap();
        let mut closed = ClosedPaths::default();
        closed.close("the data directory", at("data"));
        for (name, is_refused) in [
            ("project", false),
            ("project/not/yet", false),
            ("link", true),
            ("link/inner", true),
            ("link/not/yet", true),
            ("root", true),
            ("project/../link", true),
        ] {
            let checked = closed.check_path(&at(name));
            assert_eq!(checked.is_err(), is_refused, "{name}: {checked:?}");
            let Ok(opened) = std::fs::File::open(at(name)) else {
                continue;
            };
            let checked = closed.check_opened(&at(name), &opened.into());
            assert_eq!(checked.is_err(), is_refused, "{name}: {checked:?}");
        }
    }

    /// As through a second mount of the file system: the path is another one, the directory the same.
    #[test]
    fn what_lies_in_a_closed_directory_is_known_by_what_is_above_it() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(at("real/data/inner/most")).unwrap();
        std::fs::write(at("real/data/inner/file"), "").unwrap();
        std::fs::create_dir(at("real/project")).unwrap();
        std::os::unix::fs::symlink(at("real"), at("other")).unwrap();
        let mut closed = ClosedPaths::default();
        closed.close("the data directory", at("other/data"));
        for (name, is_refused) in [
            ("real/data/inner/most", true),
            ("real/data/inner/file", true),
            ("real/data", true),
            ("real/project", false),
        ] {
            let opened = std::fs::File::open(at(name)).unwrap();
            let checked = closed.check_opened(&at(name), &opened.into());
            assert_eq!(checked.is_err(), is_refused, "{name}: {checked:?}");
        }
        let made = |name: &str| super::Start::find(&closed, &at(name));
        assert!(made("real/data/inner/new").is_err(), "nor is anything made");
        assert!(made("real/data/new").is_err());
        assert!(made("real/project/new").is_ok());
    }

    #[test]
    fn a_closed_directory_behind_a_link_is_closed_under_both_names() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(at("disk/home")).unwrap();
        std::os::unix::fs::symlink(at("disk/home"), at("home")).unwrap();
        let mut closed = ClosedPaths::default();
        closed.close_itself("the home directory", at("home"));
        let closed = closed.resolved();
        assert!(closed.refusal(&at("home")).is_some());
        assert!(closed.refusal(&at("disk")).is_some());
        assert!(closed.refusal(&at("disk/home/project")).is_none());
    }
}
