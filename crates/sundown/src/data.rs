//! Where data lies, and what is told about a directory that is refused.

use std::path::{Path, PathBuf};

use sundown_disk::{OpenError, Refusal};
use sundown_embedded::ClosedPaths;
use sundown_node::environment::{Hidden, Limits};
use sundown_node::home_of_account;

use crate::complaint::Complaint;

/// A directory of the user's: the variable that names it for Sundown, the one for all programs, and where it
/// usually is.
struct Usual {
    what: &'static str,
    own: &'static str,
    shared: &'static str,
    below_home: &'static str,
}

const STATE: Usual = Usual {
    what: "data",
    own: "SUNDOWN_DATA",
    shared: "XDG_STATE_HOME",
    below_home: ".local/state",
};

const CACHE: Usual = Usual {
    what: "environments",
    own: "SUNDOWN_CACHE",
    shared: "XDG_CACHE_HOME",
    below_home: ".cache",
};

const CONFIGURATION: Usual = Usual {
    what: "image rules",
    own: "SUNDOWN_IMAGE_RULES",
    shared: "XDG_CONFIG_HOME",
    below_home: ".config",
};

/// Where the kubeconfigs of control planes in memory lie, each with the number of its process.
pub(crate) fn ephemeral_directory() -> Result<PathBuf, Complaint> {
    let found = of_user(&STATE, &variable, "sundown-ephemeral");
    found.ok_or_else(|| {
        Complaint::usage("there is no place for the kubeconfig: HOME is not set")
            .help("set HOME, or name a file: --kubeconfig PATH")
    })
}

/// The user's rules about images: as told, else `$SUNDOWN_IMAGE_RULES`, else in the configuration.
///
/// Errors: they could be written by others, who would choose what runs here.
pub(crate) fn image_rules(told: Option<&Path>) -> Result<PathBuf, Complaint> {
    let told = told.map(Path::to_owned);
    let told = told.or_else(|| variable(CONFIGURATION.own));
    let usual = || Some(of_user(&CONFIGURATION, &variable, "sundown")?.join("images.json"));
    let file = told
        .or_else(usual)
        .ok_or_else(|| homeless(&CONFIGURATION))?;
    trusted(file, "the image rules")
}

/// The data directory: as told, else `$SUNDOWN_DATA`, else the user's state directory.
pub(crate) fn directory(told: Option<&Path>) -> Result<PathBuf, Complaint> {
    let told = told.map(Path::to_owned);
    let told = told.or_else(|| variable(STATE.own));
    let found = told.or_else(|| of_user(&STATE, &variable, "sundown"));
    found.ok_or_else(|| homeless(&STATE))
}

/// The kubeconfig of the control plane of a data directory.
pub(crate) fn kubeconfig(directory: &Path) -> PathBuf {
    directory.join("kubeconfig")
}

/// How much the cache of environments may hold.
pub(crate) fn environment_limits() -> Result<Limits, Complaint> {
    let variable = |name: &str| variable(name).map(|it| it.to_string_lossy().into_owned());
    Limits::of(variable).map_err(|error| {
        Complaint::usage(error.to_string()).help("correct it or take it out of the environment")
    })
}

/// Sundown's own directories, by what they are called.
fn own(data: &Path, environments: &Path) -> Vec<(&'static str, PathBuf)> {
    let configuration = of_user(&CONFIGURATION, &variable, "sundown");
    let mut own = vec![
        ("the data directory of Sundown", data.to_owned()),
        // Not what lies beside them: `$SUNDOWN_CACHE` may be a directory that holds more.
        ("the environments of Sundown", environments.to_owned()),
    ];
    own.extend(configuration.map(|it| ("the configuration of Sundown", it)));
    own
}

/// The home directories of this user: by the environment, and by the account, which a service may have
/// started us without telling.
fn homes(told: Option<PathBuf>, of_account: Option<PathBuf>) -> Vec<PathBuf> {
    let of_account = of_account.filter(|it| told.as_ref() != Some(it));
    told.into_iter().chain(of_account).collect()
}

/// What no pod may see, whatever Python is bound for it.
pub(crate) fn hidden(data: &Path, environments: &Path) -> Hidden {
    let homes = homes(variable("HOME"), home_of_account());
    let homes = homes.into_iter().map(|home| ("the home directory", home));
    Hidden::new(homes.chain(own(data, environments)))
}

/// What no hostPath of a pod may be: whoever reads or writes there has all rights of the user.
/// Beside the directories in use, `files` hold the way in; so does the usual data directory, where another
/// control plane may be.
pub(crate) fn closed_to_pods(data: &Path, environments: &Path, files: &[PathBuf]) -> ClosedPaths {
    let mut closed = ClosedPaths::default();
    // First: of two reasons, that it is the home directory says more than what it contains.
    for home in homes(variable("HOME"), home_of_account()) {
        closed.close_itself("the home directory", home);
    }
    let files = files.iter().cloned().map(|it| ("a file of Sundown", it));
    let usual = of_user(&STATE, &variable, "sundown").map(|it| ("a data directory of Sundown", it));
    let ephemeral = of_user(&STATE, &variable, "sundown-ephemeral");
    let ephemeral = ephemeral.map(|it| ("kubeconfigs of Sundown", it));
    let more = files.chain(usual).chain(ephemeral);
    for (what, path) in own(data, environments).into_iter().chain(more) {
        closed.close(what, std::path::absolute(&path).unwrap_or(path));
    }
    closed
}

/// Where the environments are that stand for images: in `$SUNDOWN_CACHE`, else the user's cache directory.
/// What lies there can be made again.
///
/// Errors: they could be written by others, whose programs would run here.
pub(crate) fn environments() -> Result<PathBuf, Complaint> {
    let found = variable(CACHE.own).or_else(|| of_user(&CACHE, &variable, "sundown"));
    let cache = found.ok_or_else(|| homeless(&CACHE))?;
    trusted(cache.join("environments"), "the directory of environments")
}

/// Where everything of a data directory lies; None: there is no data.
pub(crate) fn find(directory: &Path) -> Result<Option<PathBuf>, Complaint> {
    sundown_disk::find(directory).map_err(|error| refused(&error))
}

fn trusted(path: PathBuf, what: &str) -> Result<PathBuf, Complaint> {
    match sundown_files::check(&path) {
        Ok(()) => Ok(path),
        Err(error) => Err(Complaint::new(format!("{what} cannot be trusted"))
            .at(path.display().to_string())
            .because(&error)
            .help("it and the directories above it must belong to you or root, and no other user may write to them")),
    }
}

/// None: no variable tells.
fn of_user(
    usual: &Usual,
    variable: &dyn Fn(&str) -> Option<PathBuf>,
    name: &str,
) -> Option<PathBuf> {
    let home = || Some(variable("HOME")?.join(usual.below_home));
    let directory = variable(usual.shared).or_else(home)?;
    Some(directory.join(name))
}

fn homeless(usual: &Usual) -> Complaint {
    let Usual {
        what, own, shared, ..
    } = usual;
    Complaint::usage(format!("there is no place for {what}: HOME is not set"))
        .help(format!("set HOME, or {own}, or {shared}"))
}

fn variable(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).filter(|it| !it.is_empty());
    value.map(PathBuf::from)
}

/// What is wrong, and how to go on.
pub(crate) fn refused(error: &OpenError) -> Complaint {
    let complaint = Complaint::of(error);
    let (OpenError::Damaged(damage) | OpenError::NotThere { damage, .. }) = error else {
        return match error {
            OpenError::InUse { .. } => {
                complaint.help("end the other one, or take another directory: --data-dir DIR")
            }
            OpenError::Newer { .. } => complaint
                .help("use the version that wrote it, or another directory: --data-dir DIR"),
            OpenError::Refused { refusal, .. } => help(refusal)
                .into_iter()
                .fold(complaint.help("nothing in it was touched"), Complaint::help),
            OpenError::Damaged(_)
            | OpenError::NotThere { .. }
            | OpenError::Io { .. }
            | OpenError::Database { .. } => complaint,
        };
    };
    let told = |revision: Option<sundown_store::Revision>| {
        revision.map_or_else(|| "not known".to_owned(), |revision| revision.to_string())
    };
    let way_on = format!("--accept-loss-after {}", damage.way_on());
    let loss = match damage.last_good {
        Some(_) => "to go on without what came after it",
        None => "to begin with nothing",
    };
    complaint
        .at(damage.path.display().to_string())
        .help(format!(
            "acknowledged up to revision {}",
            told(damage.acknowledged)
        ))
        .help(format!("last good revision {}", told(damage.last_good)))
        .help("nothing was changed; a copy of the directory from a backup can take its place")
        .help(format!(
            "{loss}: start it with {way_on} (the damaged files are kept)"
        ))
}

/// What to do about a directory that is not used.
fn help(refusal: &Refusal) -> Vec<&'static str> {
    const ANOTHER: &str = "name a directory that is empty or does not exist: --data-dir DIR";
    match refusal {
        Refusal::Link => vec!["name the directory that it leads to: --data-dir DIR"],
        Refusal::Owner { us: 0, .. } => vec![
            "its owner could replace any file while root works on it",
            "as root, name a directory of root's own: --data-dir DIR",
        ],
        Refusal::Root
        | Refusal::Home
        | Refusal::NotADirectory
        | Refusal::Owner { .. }
        | Refusal::Format
        | Refusal::Newer { .. } => vec![ANOTHER],
        Refusal::Writable { .. } => vec!["if it is yours alone: chmod 700", ANOTHER],
        Refusal::Way(_) => vec!["name one that only you and root can replace: --data-dir DIR"],
        Refusal::Foreign { .. } => vec![
            ANOTHER,
            "a data directory whose file `format` is lost: put that back from a backup",
        ],
        Refusal::Occupied { .. } => vec!["move that away, and try again"],
        Refusal::Odd { .. } => vec![
            "look at it, and put back from a backup what belongs there",
            ANOTHER,
        ],
        Refusal::PodsRun => vec!["end them by `down` of this directory"],
        Refusal::Unfinished => vec!["the next start finishes it"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without HOME, as under many supervisors, a pod could have the home directory as a volume.
    #[test]
    fn the_home_of_the_account_is_closed_whatever_home_says() {
        let path = |it: &str| Some(PathBuf::from(it));
        let text = |homes: Vec<PathBuf>| homes.iter().map(|it| it.display().to_string()).collect();
        let check = |told, of_account, expect: &[&str]| {
            let found: Vec<String> = text(homes(told, of_account));
            assert_eq!(found, expect);
        };
        check(None, path("/home/me"), &["/home/me"]);
        check(path("/home/me"), path("/home/me"), &["/home/me"]);
        check(path("/tmp/h"), path("/home/me"), &["/tmp/h", "/home/me"]);
        check(path("/tmp/h"), None, &["/tmp/h"]);
        check(None, None, &[]);
        if let Some(home) = home_of_account() {
            let closed = closed_to_pods(Path::new("/data"), Path::new("/cache/e"), &[]);
            assert!(closed.refusal(&home).is_some());
        }
    }

    #[test]
    fn a_place_is_told_by_its_variable_or_home_and_never_guessed() {
        let none = |_: &str| None;
        let home = |name: &str| (name == "HOME").then(|| PathBuf::from("/h"));
        let both = |name: &str| match name {
            "HOME" => Some(PathBuf::from("/h")),
            "XDG_STATE_HOME" => Some(PathBuf::from("/x")),
            _ => None,
        };
        assert_eq!(of_user(&STATE, &none, "sundown"), None);
        let found = of_user(&STATE, &home, "sundown");
        assert_eq!(found.as_deref(), Some(Path::new("/h/.local/state/sundown")));
        let found = of_user(&STATE, &both, "sundown");
        assert_eq!(found.as_deref(), Some(Path::new("/x/sundown")));
    }
}
