//! The open data directory: its start, and the one way to write to it. Who queues commits and who is
//! told of them is the server's business.

mod empty;
mod start;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use sundown_store::{Event, History, Revision};

use crate::directory::Directory;
use crate::high_water::HighWater;
use crate::record::{Change, Entry, Sum, object, object_key};
use crate::{Damage, Refusal, Summary, relaxed};

/// Two keyspaces make a write buffer of twice this; fjall 3.1 reads no bound of its own for it.
const MEMTABLE_BYTES: u64 = 8 * 1024 * 1024;
const JOURNAL_BYTES: u64 = 64 * 1024 * 1024;
/// Everything is read once, at the start: a cache would only hold what is never asked for again.
const CACHE_BYTES: u64 = 1024 * 1024;
/// One for flushes while the other compacts.
const WORKERS: usize = 2;

/// How many old events one group forgets: after a pause all of them are too old at once, and the
/// first write should not pay for it alone. More than one group can add, or the log would grow.
const TRIM_MAX: usize = 4_096;

/// How many events may be seen before they are synced: so many revisions are left out after a power
/// failure that may have taken some of them.
pub const RELAXED_MAX: usize = 1_000;

/// How much room there must be before a full disk is tried again.
const ROOM_BYTES: usize = 1024 * 1024;
/// How often a full disk is looked at, however many writes ask.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// How a data directory is opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// How much history is kept for watches.
    pub history: History,
    /// Go on from this revision of a damaged directory, without what came after it; zero: empty.
    pub accept_loss_after: Option<Revision>,
}

/// Keeps commits. One implementation is shipped; tests of the server bring others.
pub trait Keep: Send {
    /// Hands events to the system, all or none, and forgets events older than `oldest`. A killed
    /// process does not lose them from here on.
    ///
    /// Assumes: the revisions follow those of the last successful call, which was synced.
    fn write(&mut self, events: &[Arc<Event>], oldest: Option<Revision>)
    -> Result<(), AppendError>;

    /// Makes durable what was written.
    fn sync(&mut self) -> Result<(), AppendError>;

    /// Called before any events are shown between `write` and `sync`: at most [`RELAXED_MAX`] of
    /// them at once.
    fn relax(&mut self) -> Result<(), AppendError>;
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// There is no room. Nothing of it will appear later; a later call may succeed.
    #[error("the disk is full")]
    Full(#[source] io::Error),
    /// The outcome is not known. Nothing more can be written: end the process.
    #[error("write to the data directory")]
    Failed(#[source] fjall::Error),
}

/// Why a data directory was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("{} is in use by another control plane{}", path.display(), pid.map(|pid| format!(", process {pid}")).unwrap_or_default())]
    InUse { path: PathBuf, pid: Option<u32> },
    /// It is not one of ours, or not safe. Nothing in it was touched.
    #[error("{} cannot be the data directory: {refusal}", path.display())]
    Refused { path: PathBuf, refusal: Refusal },
    /// A later version has written it.
    #[error("{} has data format {found}, this version knows up to {known}", path.display())]
    Newer {
        path: PathBuf,
        found: u32,
        known: u32,
    },
    /// Something acknowledged is missing or wrong.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// A loss was accepted that is not the one to be accepted.
    #[error("{} cannot go on from revision {asked}: the revision to name is {}", damage.path.display(), damage.way_on())]
    NotThere {
        asked: Revision,
        #[source]
        damage: Damage,
    },
    /// Files cannot be made, read or written.
    #[error("open the data directory {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// fjall cannot make or write its files.
    #[error("open the data directory {}", path.display())]
    Database {
        path: PathBuf,
        #[source]
        source: fjall::Error,
    },
}

impl OpenError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Io { path, source }
    }

    /// The directory went while it was looked at.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    pub(crate) fn database(path: &Path, source: fjall::Error) -> Self {
        let path = path.to_owned();
        Self::Database { path, source }
    }
}

/// An open data directory.
pub struct Disk {
    directory: Directory,
    high_water: HighWater,
    /// None after a full disk, until there is room again.
    handles: Option<Handles>,
    full_at: Option<Instant>,
    /// Whether it is noted that some writes are seen before they are synced.
    is_relaxed: bool,
    head: Revision,
    /// The oldest record of the log.
    first: Revision,
    sum: Sum,
    summary: Summary,
}

struct Handles {
    database: Database,
    objects: Keyspace,
    log: Keyspace,
}

impl Disk {
    /// What was found when it was opened.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    fn append(&mut self, events: &[Arc<Event>], oldest: Option<Revision>) -> fjall::Result<()> {
        let handles = self.handles.as_ref().expect("reopened before");
        let mut batch = handles.database.batch();
        let (mut head, mut sum) = (self.head, self.sum);
        let group = head.next();
        // fjall gives all items of a batch one sequence number, so a key may occur only once.
        let mut objects: BTreeMap<Vec<u8>, Option<Vec<u8>>> = BTreeMap::new();
        for event in events {
            assert_eq!(event.revision, head.next(), "commits come in order");
            head = event.revision;
            let key = object_key(&event.key);
            if let Some(prev) = &event.prev {
                sum.take(object(&key, prev).1);
            }
            let new = event.new.as_ref().map(|new| object(&key, new));
            if let Some((_, added)) = &new {
                sum.add(*added);
            }
            let entry = Entry {
                revision: head,
                group,
                at: event.at,
                key: event.key.clone(),
                change: if new.is_some() {
                    Change::Put
                } else {
                    Change::Delete
                },
                prev: event.prev.clone(),
                sum,
            };
            batch.insert(&handles.log, log_key(head), entry.encode());
            objects.insert(key, new.map(|(value, _)| value));
        }
        for (key, value) in objects {
            match value {
                Some(value) => batch.insert(&handles.objects, key, value),
                None => batch.remove(&handles.objects, key),
            }
        }
        let mut first = self.first;
        for _ in 0..TRIM_MAX {
            if oldest.is_none_or(|oldest| first >= oldest) || first >= group {
                break;
            }
            batch.remove(&handles.log, log_key(first));
            first = first.next();
        }
        batch.commit()?;
        // Errors of writing come here, so that those of `sync` are of syncing only.
        handles.database.persist(PersistMode::Buffer)?;
        (self.head, self.sum, self.first) = (head, sum, first);
        Ok(())
    }

    /// Opens the database again after a full disk.
    fn reopen(&mut self) -> Result<(), AppendError> {
        if self.handles.is_some() {
            return Ok(());
        }
        let full = || AppendError::Full(io::ErrorKind::StorageFull.into());
        let is_early = |at: Instant| at.elapsed() < RETRY_INTERVAL;
        if self.full_at.is_some_and(is_early) {
            return Err(full());
        }
        self.full_at = Some(Instant::now());
        if !self.has_room().map_err(AppendError::Full)? {
            return Err(full());
        }
        let handles = Handles::open(&self.directory.database()).map_err(AppendError::Failed)?;
        let newest = handles.newest().map_err(AppendError::Failed)?;
        if newest != self.newest() {
            return Err(AppendError::Failed(fjall::Error::Unrecoverable));
        }
        self.handles = Some(handles);
        self.full_at = None;
        Ok(())
    }

    /// The newest record that the log must have: without entries there is its base.
    fn newest(&self) -> Revision {
        if self.first <= self.head {
            self.head
        } else {
            Revision::ZERO
        }
    }

    fn has_room(&self) -> io::Result<bool> {
        let path = self.directory.room();
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(&vec![1; ROOM_BYTES])?;
            file.sync_all()
        });
        std::fs::remove_file(&path)?;
        match written {
            Ok(()) => Ok(true),
            Err(error) if is_full(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Keep for Disk {
    fn write(
        &mut self,
        events: &[Arc<Event>],
        oldest: Option<Revision>,
    ) -> Result<(), AppendError> {
        if events.is_empty() {
            return Ok(());
        }
        self.reopen()?;
        let before = (self.head, self.sum, self.first);
        let Err(error) = self.append(events, oldest) else {
            return Ok(());
        };
        (self.head, self.sum, self.first) = before;
        // What fjall did not write whole it cuts off when it is opened again.
        self.handles = None;
        let is_poisoned = matches!(error, fjall::Error::Poisoned);
        let no_room = match &error {
            fjall::Error::Io(io) => is_full(io),
            // A flush in the background failed; only the disk can say whether it was full.
            _ => is_poisoned && matches!(self.has_room(), Ok(false)),
        };
        if !no_room {
            return Err(AppendError::Failed(error));
        }
        self.full_at = Some(Instant::now());
        Err(AppendError::Full(io::ErrorKind::StorageFull.into()))
    }

    fn sync(&mut self) -> Result<(), AppendError> {
        let Some(handles) = &self.handles else {
            return Ok(());
        };
        // Never tried again: after a failed sync nobody knows what is on the disk.
        let synced = handles.database.persist(PersistMode::SyncData);
        synced.map_err(AppendError::Failed)?;
        let raised = self.high_water.raise(self.head);
        raised.map_err(|error| AppendError::Failed(error.into()))
    }

    fn relax(&mut self) -> Result<(), AppendError> {
        if !self.is_relaxed {
            relaxed::note(&self.directory).map_err(|error| {
                if is_full(&error) {
                    AppendError::Full(error)
                } else {
                    AppendError::Failed(error.into())
                }
            })?;
            self.is_relaxed = true;
        }
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Everything acknowledged is synced; this only spares the next start a doubt.
        let noted = self.high_water.sync();
        if let Err(error) = noted.and_then(|()| relaxed::forget(&self.directory)) {
            tracing::warn!(%error, "sync the high-water revision");
        }
    }
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk")
            .field("directory", &self.directory)
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}

impl Handles {
    fn open(path: &Path) -> fjall::Result<Self> {
        let builder = Database::builder(path)
            .max_journaling_size(JOURNAL_BYTES)
            .cache_size(CACHE_BYTES)
            .worker_threads(WORKERS)
            .manual_journal_persist(true);
        let database = builder.open()?;
        let options = || KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES);
        Ok(Self {
            objects: database.keyspace("objects", options)?,
            log: database.keyspace("log", options)?,
            database,
        })
    }

    /// The newest record of the log; zero is its base.
    fn newest(&self) -> fjall::Result<Revision> {
        let Some(guard) = self.log.last_key_value() else {
            return Err(fjall::Error::Unrecoverable);
        };
        let key = <[u8; 8]>::try_from(&*guard.key()?);
        let number = key.map(u64::from_be_bytes);
        number
            .map(Revision::new)
            .map_err(|_| fjall::Error::Unrecoverable)
    }
}

fn log_key(revision: Revision) -> [u8; 8] {
    revision.number().to_be_bytes()
}

/// No space, no quota, or no longer file allowed.
fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
