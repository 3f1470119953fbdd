//! The start: a new directory, a sound one, or a damaged one that is refused unless its owner has
//! accepted the loss. The database is looked at as a copy, so that whatever is wrong with it stays as
//! it was found.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use fjall::PersistMode;
use sundown_model::ObjectKey;
use sundown_store::{Revision, Store, Stored};

use super::{Disk, Handles, OpenError, Options, RELAXED_MAX, empty, log_key};
use crate::directory::{Directory, remove};
use crate::high_water::HighWater;
use crate::record::{Base, Change, Entry, Sum, object, object_key};
use crate::recovery::{Flaw, Records};
use crate::scratch::{Scratch, Tables};
use crate::{Damage, Summary, relaxed};

/// A batch of fjall lies in memory as a whole.
const BATCH_OBJECTS_MAX: usize = 1_000;

type Objects = BTreeMap<ObjectKey, Arc<Stored>>;

impl Disk {
    /// Opens a data directory, or makes one, and gives the store that it holds.
    ///
    /// Guarantees: everything that was ever acknowledged is in the store, or the start is refused
    /// and nothing is changed.
    pub fn open(path: &Path, options: Options) -> Result<(Self, Store), OpenError> {
        let directory = Directory::claim(path)?;
        let failed = |source| OpenError::io(path, source);
        if directory.is_new() {
            let after = Revision::ZERO;
            build(&directory, after, &Objects::new())?;
            let noted = HighWater::create(&directory.high_water(), after);
            noted
                .and_then(|()| directory.note_format())
                .and_then(|()| directory.install())
                .map_err(failed)?;
            return start_empty(directory, after, options);
        }
        directory.tidy().map_err(failed)?;
        let acknowledged = HighWater::read(&directory.high_water());
        let scratch = directory.scratch();
        let found = look(&directory, acknowledged, &scratch, Tables::Linked)?;
        match found.damage {
            None => start(directory, found.records, options),
            Some(damage) => accept(directory, damage, &found.records, options),
        }
    }

    /// Looks into a data directory that no control plane uses: what a start would find.
    ///
    /// Guarantees: nothing in it is changed; the copy that is looked at lies elsewhere.
    pub fn inspect(path: &Path) -> Result<(Summary, Store), OpenError> {
        let directory = Directory::look_at(path)?;
        directory.ensure_whole()?;
        if directory.is_new() {
            let damage = directory.damage("there is no database");
            return Err(damage.into());
        }
        let acknowledged = HighWater::read(&directory.high_water());
        // A name that nobody can know before, and a directory that nobody else can enter.
        let place = tempfile::Builder::new().prefix("sundown-db-").tempdir();
        let place = place.map_err(|source| OpenError::io(path, source))?;
        let copy = place.path().join("db");
        let found = look(&directory, acknowledged, &copy, Tables::Pointed)?;
        match found.damage {
            None => {
                let (store, summary) = found.records.store(Options::default().history);
                Ok((summary, store))
            }
            Some(damage) => Err(damage.into()),
        }
    }
}

struct Found {
    records: Records,
    damage: Option<Damage>,
}

/// Copies the database, reads everything of the copy, and judges it.
///
/// Errors: there is no room for the copy, or files cannot be read at all.
fn look(
    directory: &Directory,
    acknowledged: Option<Revision>,
    place: &Path,
    tables: Tables,
) -> Result<Found, OpenError> {
    let damaged = |records, what: String, last_good| Found {
        records,
        damage: Some(Damage {
            last_good,
            acknowledged,
            ..directory.damage(what)
        }),
    };
    let mut database = directory.database();
    if !database.exists() && directory.ready().exists() {
        database = directory.ready();
    }
    if let Some(name) = missing(&database) {
        let what = format!("`db/{name}` is missing");
        return Ok(damaged(Records::default(), what, None));
    }
    let scratch = Scratch::make(&database, place, tables);
    let scratch = scratch.map_err(|source| OpenError::io(&directory.path, source))?;
    let read = || {
        let handles = Handles::open(&scratch.path)?;
        Records::read(&handles.objects, &handles.log)
    };
    // fjall expects its own files to be sound and panics on some that are not.
    let records = match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(records)) => records,
        Ok(Err(error)) => {
            let what = format!("the database cannot be read: {error}");
            return Ok(damaged(Records::default(), what, None));
        }
        Err(_) => {
            let what = "the database cannot be read: fjall panicked".to_owned();
            return Ok(damaged(Records::default(), what, None));
        }
    };
    let flaw = if let Some(acknowledged) = acknowledged {
        records.flaw(acknowledged.max(scratch.proven))
    } else {
        let last_good = match records.flaw(scratch.proven) {
            Some(flaw) => flaw.last_good,
            None => Some(records.head()),
        };
        let what = "the file `high-water` is missing or cannot be read".to_owned();
        Some(Flaw { what, last_good })
    };
    Ok(match flaw {
        Some(flaw) => damaged(records, flaw.what, flaw.last_good),
        None => Found {
            records,
            damage: None,
        },
    })
}

/// A file without which fjall would begin something new in the place of the old.
fn missing(database: &Path) -> Option<&'static str> {
    let needed = [
        "version",
        "lock",
        "keyspaces/0/current",
        "keyspaces/1/current",
        "keyspaces/2/current",
    ];
    needed.into_iter().find(|it| !database.join(it).exists())
}

/// Goes on without what is lost, if that is the wish; the damaged database is kept.
fn accept(
    directory: Directory,
    damage: Damage,
    records: &Records,
    options: Options,
) -> Result<(Disk, Store), OpenError> {
    let Some(asked) = options.accept_loss_after else {
        return Err(damage.into());
    };
    let objects = if asked == Revision::ZERO {
        Objects::new()
    } else if Some(asked) == damage.last_good {
        records.rolled_back(asked).expect("proven to be good")
    } else {
        return Err(OpenError::NotThere { asked, damage });
    };
    // Later revisions have been seen; they are never given again.
    let newest = records.head().max(damage.acknowledged.unwrap_or_default());
    build(&directory, newest, &objects)?;
    let path = directory.path.clone();
    let replaced = replace(&directory, newest);
    replaced.map_err(|source| OpenError::io(&path, source))?;
    let records = Records {
        base: Base {
            revision: newest,
            sum: sum_of(&objects),
        },
        sum: sum_of(&objects),
        objects,
        ..Records::default()
    };
    start(directory, records, options)
}

/// Puts the new database in the place of the damaged one, which is kept.
fn replace(directory: &Directory, newest: Revision) -> io::Result<()> {
    let kept = directory.make_damaged()?;
    match fs::rename(directory.database(), kept.join("db")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::File::open(&kept)?.sync_all()?;
    directory.install()?;
    HighWater::create(&directory.high_water(), newest)?;
    directory.sync()
}

/// Builds a database beside the one in use: these objects, and a log that begins after a revision.
fn build(directory: &Directory, after: Revision, objects: &Objects) -> Result<(), OpenError> {
    let io = |source| OpenError::io(&directory.path, source);
    let (building, ready) = (directory.building(), directory.ready());
    remove(&building)
        .and_then(|()| remove(&ready))
        .map_err(io)?;
    let base = Base {
        revision: after,
        sum: sum_of(objects),
    };
    if after == Revision::ZERO && objects.is_empty() {
        empty::make(&building).map_err(io)?;
    } else {
        let built = Handles::open(&building).and_then(|handles| handles.fill(base, objects));
        built.map_err(|source| OpenError::database(&directory.path, source))?;
    }
    fs::rename(&building, &ready)
        .and_then(|()| directory.sync())
        .map_err(io)
}

fn start_empty(
    directory: Directory,
    after: Revision,
    options: Options,
) -> Result<(Disk, Store), OpenError> {
    let records = Records {
        base: Base {
            revision: after,
            sum: Sum::default(),
        },
        ..Records::default()
    };
    start(directory, records, options)
}

/// Opens a database that is known to hold these records.
fn start(
    directory: Directory,
    mut records: Records,
    options: Options,
) -> Result<(Disk, Store), OpenError> {
    let path = directory.path.clone();
    let failed = |source| OpenError::io(&path, source);
    let database = |source| OpenError::database(&path, source);
    let handles = Handles::open(&directory.database()).map_err(database)?;
    // Objects may be secrets, and a directory that was there before may be open to others.
    let owner_only = fs::Permissions::from_mode(0o700);
    fs::set_permissions(directory.database(), owner_only).map_err(failed)?;
    if relaxed::may_have_lost(&directory).map_err(failed)? {
        let skip = skip(&records);
        handles.append_skip(&skip).map_err(database)?;
        records.entries.push(skip);
    }
    let head = records.head();
    let mut high_water = HighWater::open(&directory.high_water()).map_err(failed)?;
    // What was synced and not yet noted is noted now: from here on it counts as acknowledged.
    high_water
        .raise(head)
        .and_then(|()| high_water.sync())
        .and_then(|()| relaxed::forget(&directory))
        .map_err(failed)?;
    let sum = records.sum;
    let first = records.entries.first().map(|entry| entry.revision);
    let (store, summary) = records.store(options.history);
    let disk = Disk {
        directory,
        high_water,
        handles: Some(handles),
        full_at: None,
        is_relaxed: false,
        head,
        first: first.unwrap_or(head.next()),
        sum,
        summary,
    };
    let newest = disk.handles.as_ref().map(Handles::newest).transpose();
    if newest.map_err(database)? != Some(disk.newest()) {
        return Err(database(fjall::Error::Unrecoverable));
    }
    Ok((disk, store))
}

/// Leaves out the revisions that may have been seen and lost in a power failure.
fn skip(records: &Records) -> Entry {
    let head = records.head();
    let count = u64::try_from(RELAXED_MAX).expect("a small constant");
    Entry {
        revision: Revision::new(head.number().saturating_add(count)),
        group: head.next(),
        at: records
            .entries
            .last()
            .map_or(jiff::Timestamp::UNIX_EPOCH, |last| last.at),
        key: ObjectKey::cluster(&sundown_model::Resource::new("", ""), ""),
        change: Change::Skip,
        prev: None,
        sum: records.sum,
    }
}

fn sum_of(objects: &Objects) -> Sum {
    let mut sum = Sum::default();
    for (key, stored) in objects {
        sum.add(object(&object_key(key), stored).1);
    }
    sum
}

impl Handles {
    /// Writes the content of a new database.
    pub(super) fn fill(&self, base: Base, objects: &Objects) -> fjall::Result<()> {
        let mut batch = self.database.batch();
        batch.insert(&self.log, log_key(Revision::ZERO), base.encode());
        let mut count = 0;
        for (key, stored) in objects {
            let key = object_key(key);
            let (value, _) = object(&key, stored);
            batch.insert(&self.objects, key, value);
            count += 1;
            if count == BATCH_OBJECTS_MAX {
                batch.commit()?;
                batch = self.database.batch();
                count = 0;
            }
        }
        batch.commit()?;
        self.database.persist(PersistMode::SyncAll)
    }

    fn append_skip(&self, skip: &Entry) -> fjall::Result<()> {
        let mut batch = self.database.batch();
        batch.insert(&self.log, log_key(skip.revision), skip.encode());
        batch.commit()?;
        self.database.persist(PersistMode::SyncAll)
    }
}
