//! The data directory: who may have it, its lock, and the places in it. Whether it may be used at all is
//! decided in `claim.rs`; what the files hold is left to those who write them.

mod take_over;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use self::take_over::take_over;
use crate::claim::{Begun, FORMAT, Moved, Refusal, STATE, Verdict, may_claim};
use crate::held::{self, Held};
use crate::lock::{self, Obstacle};
use crate::{Damage, OpenError};

/// How often a directory that is made or removed by others meanwhile is looked at.
const TRIES_MAX: usize = 10;

/// What an interrupted first start leaves that the next one needs: its lock, and what is said to the log.
const KEPT: [&str; 3] = ["lock", "up.log", "up.log.1"];

const LOCK: &str = "lock";

/// A directory that no other process uses.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    /// Where everything lies: in the directory, or, of one of the format before, itself.
    state: PathBuf,
    verdict: Verdict,
    /// Locked as long as it is open, also for other machines that share the file system. Before what is
    /// held, and so the first to go: a start that finds it locked in a directory that is free is refused.
    lock: Option<File>,
    /// None: nobody has ever used the directory.
    held: Option<Held>,
}

/// A data directory that nobody can start on while this lives.
#[derive(Debug)]
pub struct Hold {
    directory: Directory,
}

impl Hold {
    /// Takes a directory that is proven to be one of ours; None: there is no data in it.
    ///
    /// Guarantees: nothing in it is changed.
    /// Errors: somebody uses it, or it is not one of ours.
    pub fn take(path: &Path) -> Result<Option<Self>, OpenError> {
        let directory = Directory::look_at(path)?;
        Ok(directory.held.is_some().then_some(Self { directory }))
    }

    /// Removes everything that Sundown keeps in it, and the directory if nothing else is there. Whoever
    /// is interrupted in it can repeat it.
    pub fn clear(mut self) -> Result<(), OpenError> {
        // A takeover needs it itself, where versions of before look for it.
        self.directory.lock = None;
        let Some(held) = &self.directory.held else {
            return Ok(());
        };
        // Of the new format, a `lock` or `node` beside the state is the user's.
        if let Verdict::Migrate(_) = self.directory.verdict {
            take_over(held)?;
        }
        let failed = |source| OpenError::io(&held.path, source);
        // Once more before anything goes: what is held may not be what was looked at by its path.
        match accept(&held.path, may_claim(&held.look().map_err(failed)?))? {
            Verdict::Ours => held.disprove().map_err(failed)?,
            Verdict::Interrupted(_) => {}
            Verdict::ClaimEmpty => return Ok(()),
            Verdict::Make | Verdict::Migrate(_) | Verdict::Refused(_) => {
                return Err(failed(io::ErrorKind::ResourceBusy.into()));
            }
        }
        held.clear().map_err(failed)
    }
}

/// Where everything of a data directory lies that is ours; None: there is no data.
///
/// Guarantees: nothing in it is changed.
/// Errors: it is not one of ours.
pub fn find(path: &Path) -> Result<Option<PathBuf>, OpenError> {
    let path = normal(path)?;
    Ok(state_of(&path, &judge(&path)?))
}

/// Whether a process uses a data directory, or is about to. What cannot be looked at is not in use.
///
/// Guarantees: nothing in it is changed, and no start on it fails by this look.
pub fn is_in_use(path: &Path) -> bool {
    let Ok(path) = held::normal(path) else {
        return false;
    };
    Held::is_taken(&path).unwrap_or(false) || obstacle(&path) == Obstacle::Use
}

/// Does something while no process uses a data directory; a start that comes meanwhile waits for it. None: it is in
/// use, or cannot be held, and nothing was done.
pub fn while_free<T>(path: &Path, deed: impl FnOnce() -> T) -> Option<T> {
    let path = held::normal(path).ok()?;
    let _held = Held::take(&path).ok()??;
    // One of the format before holds nothing else.
    (obstacle(&path) != Obstacle::Use).then(deed)
}

/// Makes a data directory as far as its state, for a control plane that will start on it.
///
/// Errors: it is not one of ours, or somebody uses it.
pub fn prepare(path: &Path) -> Result<PathBuf, OpenError> {
    let path = normal(path)?;
    match judge(&path)? {
        Verdict::Ours | Verdict::Interrupted(Begun::Made) => {}
        _ => drop(enter(&path)?),
    }
    Ok(path.join(STATE))
}

fn normal(path: &Path) -> Result<PathBuf, OpenError> {
    held::normal(path).map_err(|source| OpenError::io(path, source))
}

/// The verdict on a directory that is not refused.
fn judge(path: &Path) -> Result<Verdict, OpenError> {
    let seen = held::look(path).map_err(|source| OpenError::io(path, source))?;
    accept(path, may_claim(&seen))
}

fn accept(path: &Path, verdict: Verdict) -> Result<Verdict, OpenError> {
    let path = || path.to_owned();
    match verdict {
        Verdict::Refused(Refusal::Newer { found }) => Err(OpenError::Newer {
            path: path(),
            found,
            known: FORMAT,
        }),
        Verdict::Refused(refusal) => Err(OpenError::Refused {
            path: path(),
            refusal,
        }),
        verdict => Ok(verdict),
    }
}

fn state_of(path: &Path, verdict: &Verdict) -> Option<PathBuf> {
    match verdict {
        Verdict::Make | Verdict::ClaimEmpty | Verdict::Refused(_) => None,
        Verdict::Ours | Verdict::Interrupted(_) | Verdict::Migrate(Moved::Some) => {
            Some(path.join(STATE))
        }
        Verdict::Migrate(Moved::Nothing) => Some(path.to_owned()),
    }
}

/// Holds a directory that is ours from now on: made, marked or taken over as need be.
fn enter(path: &Path) -> Result<(Held, Verdict), OpenError> {
    let failed = |source| OpenError::io(path, source);
    for _ in 0..TRIES_MAX {
        if judge(path)? == Verdict::Make {
            Held::make(path).map_err(failed)?;
            continue;
        }
        let held = match hold(path) {
            // A reset took it meanwhile.
            Err(error) if error.is_missing() => continue,
            held => held?,
        };
        // Once more, now that nobody else changes it.
        let verdict = accept(path, may_claim(&held.look().map_err(failed)?))?;
        match verdict {
            Verdict::ClaimEmpty => match held.mark() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                marked => marked.map_err(failed)?,
            },
            Verdict::Migrate(_) => take_over(&held)?,
            Verdict::Ours | Verdict::Interrupted(_) => {}
            // It went meanwhile.
            Verdict::Make | Verdict::Refused(_) => continue,
        }
        // After a takeover, which may be refused.
        held.close().map_err(failed)?;
        held.make_state().map_err(failed)?;
        return Ok((held, verdict));
    }
    Err(failed(io::ErrorKind::ResourceBusy.into()))
}

fn hold(path: &Path) -> Result<Held, OpenError> {
    hold_after(path, lock::pause)
}

/// Waits for those who hold it for a moment: looks, and those who only make its state.
fn hold_after(path: &Path, pause: impl FnMut()) -> Result<Held, OpenError> {
    let held = lock::retry(pause, || match Held::take(path)? {
        Some(held) => Ok(Ok(held)),
        None => Ok(Err(obstacle(path))),
    });
    let held = held.map_err(|source| OpenError::io(path, source))?;
    held.map_err(|_| OpenError::InUse {
        path: path.to_owned(),
        pid: fs::read_to_string(lock_in(path))
            .ok()
            .and_then(|text| text.trim().parse().ok()),
    })
}

/// What keeps us from a directory that another process holds. One that uses it has a lock in it as well.
fn obstacle(path: &Path) -> Obstacle {
    let file = open_nofollow(&lock_in(path), OFlags::RDONLY | OFlags::NONBLOCK);
    let file = file.ok().flatten();
    if file.is_some_and(|file| lock::is_taken(file).unwrap_or(true)) {
        Obstacle::Use
    } else {
        Obstacle::Passing
    }
}

/// The lock of a process that uses a directory: of now, or of the format before.
fn lock_in(path: &Path) -> PathBuf {
    let lock = path.join(STATE).join(LOCK);
    // Beside a state the name is the user's.
    if lock.exists() { lock } else { path.join(LOCK) }
}

/// A new or empty file that only this user reads, also in a directory that others may look into.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.create(true).write(true).truncate(true);
    options.mode(0o600).open(path)
}

impl Directory {
    /// Takes the directory for this process; makes it if need be.
    ///
    /// Guarantees: one that is refused is not touched.
    pub(crate) fn claim(path: &Path) -> Result<Self, OpenError> {
        let path = normal(path)?;
        let failed = |source| OpenError::io(&path, source);
        let (held, verdict) = enter(&path)?;
        let state = path.join(STATE);
        let flags = OFlags::RDWR | OFlags::CREATE;
        let file = open_nofollow(&state.join(LOCK), flags).map_err(failed)?;
        let mut file = file.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        lock(&path, &mut file)?;
        let pid = format!("{}\n", std::process::id());
        let told = file
            .set_len(0)
            .and_then(|()| file.write_all(pid.as_bytes()));
        told.map_err(failed)?;
        let directory = Self {
            path: path.clone(),
            state,
            verdict,
            held: Some(held),
            lock: Some(file),
        };
        if directory.is_new() {
            directory.clear().map_err(failed)?;
        }
        Ok(directory)
    }

    /// Keeps others out while this process looks, and writes nothing.
    pub(crate) fn look_at(path: &Path) -> Result<Self, OpenError> {
        let path = normal(path)?;
        let nothing = |verdict| Self {
            path: path.clone(),
            state: path.join(STATE),
            verdict,
            held: None,
            lock: None,
        };
        let verdict = judge(&path)?;
        if state_of(&path, &verdict).is_none() {
            return Ok(nothing(verdict));
        }
        let held = match hold(&path) {
            Err(error) if error.is_missing() => return Ok(nothing(Verdict::Make)),
            held => held?,
        };
        // Once more, now that no other process changes it.
        let seen = held.look().map_err(|source| OpenError::io(&path, source))?;
        let verdict = accept(&path, may_claim(&seen))?;
        let Some(state) = state_of(&path, &verdict) else {
            return Ok(nothing(verdict));
        };
        let file = open_lock(&state.join(LOCK));
        let mut file = file.map_err(|source| OpenError::io(&path, source))?;
        if let Some(file) = &mut file {
            lock(&path, file)?;
        }
        Ok(Self {
            path,
            state,
            verdict,
            held: Some(held),
            lock: file,
        })
    }

    /// Whether there is nothing yet, or only what an interrupted first start left.
    pub(crate) fn is_new(&self) -> bool {
        match self.verdict {
            Verdict::Make | Verdict::ClaimEmpty | Verdict::Interrupted(_) => true,
            Verdict::Ours | Verdict::Migrate(_) | Verdict::Refused(_) => false,
        }
    }

    /// Whether its files lie in two places, so that none of them tells anything.
    ///
    /// Errors: they do.
    pub(crate) fn ensure_whole(&self) -> Result<(), OpenError> {
        if self.verdict != Verdict::Migrate(Moved::Some) {
            return Ok(());
        }
        let (path, refusal) = (self.path.clone(), Refusal::Unfinished);
        Err(OpenError::Refused { path, refusal })
    }

    /// Removes what an interrupted first start left.
    fn clear(&self) -> io::Result<()> {
        let root = sundown_files::Root::open(&self.state)?;
        for entry in fs::read_dir(&self.state)? {
            let name = entry?.file_name();
            if !KEPT.iter().any(|kept| name == *kept) {
                root.remove(Path::new(&name))?;
            }
        }
        Ok(())
    }

    /// The directory is not new from now on.
    pub(crate) fn note_format(&self) -> io::Result<()> {
        self.sync()?;
        self.held.as_ref().map_or(Ok(()), Held::prove)
    }

    /// Puts a database that was built into its place; `db` must be free.
    pub(crate) fn install(&self) -> io::Result<()> {
        fs::rename(self.ready(), self.database())?;
        self.sync()
    }

    /// Removes what interrupted starts left, and finishes the step that one of them had begun.
    ///
    /// Assumes: the directory is not new.
    pub(crate) fn tidy(&self) -> io::Result<()> {
        remove(&self.scratch())?;
        remove(&self.building())?;
        match (self.database().exists(), self.ready().exists()) {
            (false, true) => self.install(),
            (true, true) => remove(&self.ready()),
            (_, false) => Ok(()),
        }
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        sync(&self.state)
    }

    /// A place for damaged files that holds none yet.
    pub(crate) fn make_damaged(&self) -> io::Result<PathBuf> {
        let mut number = 1;
        loop {
            let place = self.state.join(format!("damaged-{number}"));
            match fs::create_dir(&place) {
                Ok(()) => return Ok(place),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.state.join("db")
    }

    /// A new database that is not whole yet.
    pub(crate) fn building(&self) -> PathBuf {
        self.state.join("building")
    }

    /// A new database, whole and synced, that waits to take its place.
    pub(crate) fn ready(&self) -> PathBuf {
        self.state.join("ready")
    }

    /// Where the copy lies that a start looks at.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.state.join("scratch")
    }

    pub(crate) fn high_water(&self) -> PathBuf {
        self.state.join("high-water")
    }

    /// The note of a run that shows some writes before they are synced.
    pub(crate) fn relaxed(&self) -> PathBuf {
        self.state.join("relaxed")
    }

    /// Written to see whether there is room.
    pub(crate) fn room(&self) -> PathBuf {
        self.state.join("room")
    }

    pub(crate) fn damage(&self, what: impl Into<String>) -> Damage {
        Damage {
            path: self.path.clone(),
            what: what.into(),
            last_good: None,
            acknowledged: None,
        }
    }
}

/// Removes a directory and everything in it, if it is there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => sundown_files::remove(parent, name),
        (_, _) => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// None: it is not there.
fn open_nofollow(path: &Path, flags: OFlags) -> io::Result<Option<File>> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(Some(file.into())),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens a lock that is there; None: it is not. For writing, because NFS gives a lock for oneself alone
/// only through a descriptor that may write; nothing is written. Where that is not allowed, a descriptor
/// that reads is enough on every other file system. A directory is locked on this machine alone.
fn open_lock(path: &Path) -> io::Result<Option<File>> {
    open_nofollow(path, OFlags::RDWR).or_else(|_| open_nofollow(path, OFlags::RDONLY))
}

fn lock(path: &Path, file: &mut File) -> Result<(), OpenError> {
    if lock::take(&*file).map_err(|source| OpenError::io(path, source))? {
        return Ok(());
    }
    let mut pid = String::new();
    // Without the pid the refusal stands all the same.
    let _ = file.read_to_string(&mut pid);
    Err(OpenError::InUse {
        path: path.to_owned(),
        pid: pid.trim().parse().ok(),
    })
}

#[cfg(test)]
mod tests;
