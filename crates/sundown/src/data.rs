//! Where data lies, and what is told about a directory that is refused.

use std::path::{Path, PathBuf};

use sundown_disk::OpenError;

use crate::complaint::Complaint;

/// `$SUNDOWN_DATA`, else the user's state directory.
pub(crate) fn state_directory() -> PathBuf {
    let own = variable("SUNDOWN_DATA");
    own.unwrap_or_else(|| of_user("XDG_STATE_HOME", ".local/state"))
}

/// `$SUNDOWN_CACHE`, else the user's cache directory. What lies there can be made again.
pub(crate) fn cache_directory() -> PathBuf {
    let own = variable("SUNDOWN_CACHE");
    own.unwrap_or_else(|| of_user("XDG_CACHE_HOME", ".cache"))
}

/// The user's rules about images: as told, else `$SUNDOWN_IMAGE_RULES`, else in the configuration.
pub(crate) fn image_rules(told: Option<&Path>) -> PathBuf {
    let told = told.map(Path::to_owned);
    let told = told.or_else(|| variable("SUNDOWN_IMAGE_RULES"));
    told.unwrap_or_else(|| of_user("XDG_CONFIG_HOME", ".config").join("images.json"))
}

/// The data directory: as told, else the usual one.
pub(crate) fn directory(told: Option<&Path>) -> PathBuf {
    told.map_or_else(state_directory, Path::to_owned)
}

/// Where the environments are that stand for images.
pub(crate) fn environments() -> PathBuf {
    cache_directory().join("environments")
}

fn of_user(name: &str, usual: &str) -> PathBuf {
    let home = || variable("HOME").map(|home| home.join(usual));
    let directory = variable(name).or_else(home);
    directory.unwrap_or_else(std::env::temp_dir).join("sundown")
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
            OpenError::Damaged(_)
            | OpenError::NotThere { .. }
            | OpenError::Io { .. }
            | OpenError::Database { .. } => complaint,
        };
    };
    let told = |revision: Option<sundown_store::Revision>| {
        revision.map_or_else(|| "not known".to_owned(), |revision| revision.to_string())
    };
    let way_on = format!("sundown up --accept-loss-after {}", damage.way_on());
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
        .help(format!("{loss}: {way_on} (the damaged files are kept)"))
}
