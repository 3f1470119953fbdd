//! The command of a container: found and made ready. Used for the container's own command and
//! for commands that are run in it later.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::directory;
use crate::spec::{ContainerSpec, RunAs};

/// Where commands are looked for when the environment does not say.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// More than any table of accounts has. A container may put what it likes there.
const ACCOUNTS_BYTES_MAX: u64 = 1 << 20;

/// Why a command could not be started, as a shell and a container runtime tell it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct NotStarted {
    /// 127 if there is no such command, 126 if it cannot be executed, 128 if it did not come to that.
    pub(crate) code: i32,
    pub(crate) message: String,
}

impl NotStarted {
    /// The surroundings of the command could not be made.
    pub(crate) fn surroundings(error: &dyn std::error::Error) -> Self {
        Self {
            code: 128,
            message: error.to_string(),
        }
    }

    fn of(program: &str, error: &io::Error) -> Self {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        Self {
            code: if is_missing { 127 } else { 126 },
            message: format!("exec: \"{program}\": {}", described(error)),
        }
    }
}

/// The system's words without Rust's number behind them.
fn described(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => "no such file or directory".to_owned(),
        Some(Errno::ACCESS | Errno::PERM) => "permission denied".to_owned(),
        Some(Errno::NOEXEC) => "exec format error".to_owned(),
        Some(Errno::ISDIR) => "is a directory".to_owned(),
        _ => error.to_string(),
    }
}

/// A command with the environment and user of its container, ready to be spawned from inside the
/// container's root. The calling thread is in the command's directory then.
pub(crate) fn prepare(spec: &ContainerSpec, argv: &[String]) -> Result<Command, NotStarted> {
    let directory = spec.working_directory.as_deref().unwrap_or(Path::new("/"));
    directory::enter(directory).map_err(|error| NotStarted {
        code: 128,
        message: format!(
            "working directory {}: {}",
            directory.display(),
            described(&error)
        ),
    })?;
    let program = argv
        .first()
        .expect("the command was checked not to be empty");
    let mut command = Command::new(find(program, directory, &spec.env)?);
    command.arg0(program);
    command.args(&argv[1..]);
    command.env_clear();
    command.envs(own_variables(spec));
    command.envs(spec.env.iter().map(|(name, value)| (name, value)));
    if let Some(RunAs { user, group }) = spec.run_as.filter(|run_as| run_as.is_other()) {
        command.uid(user).gid(group);
    }
    Ok(command)
}

/// What a container runtime sets itself; whatever the manifest says is set over it.
fn own_variables(spec: &ContainerSpec) -> [(&'static str, OsString); 2] {
    let user = spec.run_as.map_or(0, |run_as| run_as.user);
    let accounts = accounts().unwrap_or_default();
    let home = home(&accounts, user, |path| Path::new(path).is_dir());
    let names = rustix::system::uname();
    let hostname = OsStr::from_bytes(names.nodename().to_bytes());
    [("HOME", home.into()), ("HOSTNAME", hostname.to_owned())]
}

/// The accounts that the container shows. It may show a pipe, a device or a file without end instead.
fn accounts() -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open("/etc/passwd", flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut text = String::new();
    file.take(ACCOUNTS_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// The home of a user by the accounts of the machine, if it is there inside; else that of root, or none
/// in particular.
fn home(accounts: &str, user: u32, is_there: impl Fn(&str) -> bool) -> String {
    let mut accounts = accounts.lines().filter_map(|line| {
        let mut fields = line.split(':').skip(2);
        let (number, home) = (fields.next()?, fields.nth(2)?);
        (number.parse() == Ok(user)).then_some(home)
    });
    let home = accounts.next().filter(|home| is_there(home));
    let usual = if user == 0 { "/root" } else { "/" };
    home.unwrap_or(usual).to_owned()
}

/// Names the program in an error of `spawn`.
pub(crate) fn not_started(argv: &[String], error: &io::Error) -> NotStarted {
    NotStarted::of(argv.first().map_or("", String::as_str), error)
}

fn find(program: &str, directory: &Path, env: &[(String, String)]) -> Result<PathBuf, NotStarted> {
    if program.contains('/') {
        let path = directory.join(program);
        return match path.metadata() {
            Ok(_) => Ok(path),
            Err(error) => Err(NotStarted {
                code: 127,
                message: format!("exec: \"{program}\": stat {program}: {}", described(&error)),
            }),
        };
    }
    let path = env.iter().find(|(name, _)| name == "PATH");
    let path = path.map_or(DEFAULT_PATH, |(_, value)| value.as_str());
    let candidates = path
        .split(':')
        .map(|each| directory.join(each).join(program));
    let found: Vec<PathBuf> = candidates.filter(|each| each.is_file()).collect();
    if let Some(executable) = found.iter().find(|each| is_executable(each)) {
        return Ok(executable.clone());
    }
    Err(NotStarted {
        code: if found.is_empty() { 127 } else { 126 },
        message: format!("exec: \"{program}\": executable file not found in $PATH"),
    })
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_that_of_the_account_if_it_is_there() {
        let accounts = "root:x:0:0:root:/root:/bin/bash\nbad\nray:x:1000:100::/home/ray:/bin/sh\n";
        let of = |user, there: &str| home(accounts, user, |path| path == there);
        assert_eq!(of(0, "/root"), "/root");
        assert_eq!(of(1000, "/home/ray"), "/home/ray");
        assert_eq!(of(1000, "/elsewhere"), "/", "it is not there inside");
        assert_eq!(of(7, "/home/ray"), "/", "nobody knows it");
        assert_eq!(home("", 0, |_| true), "/root");
    }
}
