//! The start: a new directory, a sound one, or a damaged one that is refused unless its owner has
//! accepted the loss. Nothing is removed here but copies of our own.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use fjall::PersistMode;
use sundown_model::ObjectKey;
use sundown_store::{Revision, Store, Stored};

use super::{Disk, Handles, OpenError, Options, log_key};
use crate::directory::Directory;
use crate::high_water::HighWater;
use crate::record::{Base, Sum, object, object_key};
use crate::recovery::{Flaw, Records};
use crate::{Damage, journal};

impl Disk {
    /// Opens a data directory, or makes one, and gives the store that it holds.
    ///
    /// Guarantees: everything that was ever acknowledged is in the store, or the start is refused.
    pub fn open(path: &Path, options: Options) -> Result<(Self, Store), OpenError> {
        let directory = Directory::claim(path)?;
        if directory.is_new()? {
            return create(directory, Revision::ZERO, options);
        }
        let acknowledged = HighWater::read(&directory.high_water());
        let failed = |source| OpenError::io(path, source);
        let aside = directory.aside();
        if aside.exists() {
            // A start was interrupted: what it had copied is older than what fjall has cut off.
            journal::put_back(&directory.database(), &aside).map_err(failed)?;
        }
        let found = look(&directory, acknowledged);
        let (handles, records, damage) = match found {
            Ok(Found {
                handles,
                records,
                flaw: None,
            }) => {
                fs::remove_dir_all(&aside).map_err(failed)?;
                let base = records.head();
                return ready(directory, handles, records, base, options);
            }
            Ok(found) => {
                let flaw = found.flaw.expect("the sound case is above");
                let mut damage = directory.damage(flaw.what);
                damage.last_good = flaw.last_good;
                (Some(found.handles), Some(found.records), damage)
            }
            Err(what) => (None, None, directory.damage(what)),
        };
        let damage = Damage {
            acknowledged,
            ..damage
        };
        match (options.accept_loss_after, handles, records) {
            (Some(asked), ..) if asked == Revision::ZERO => {
                let kept = directory.make_damaged().map_err(failed)?;
                put_back_if_there(&directory).map_err(failed)?;
                let moved = fs::rename(directory.database(), kept.join("db"));
                moved.or_else(ignore_missing).map_err(failed)?;
                create(directory, acknowledged.unwrap_or_default(), options)
            }
            (Some(asked), Some(handles), Some(records)) if Some(asked) == damage.last_good => {
                let kept = directory.make_damaged().map_err(failed)?;
                let moved = fs::rename(&aside, kept.join("journal"));
                moved.map_err(failed)?;
                let newest = records.head().max(acknowledged.unwrap_or_default());
                cut(directory, handles, &records, asked, newest, options)
            }
            (asked, handles, _) => {
                drop(handles);
                put_back_if_there(&directory).map_err(failed)?;
                Err(match asked {
                    Some(asked) => OpenError::NotThere { asked, damage },
                    None => damage.into(),
                })
            }
        }
    }
}

struct Found {
    handles: Handles,
    records: Records,
    flaw: Option<Flaw>,
}

/// Opens and reads everything.
///
/// Errors: what is so damaged that nothing can be read.
fn look(directory: &Directory, acknowledged: Option<Revision>) -> Result<Found, String> {
    let database = directory.database();
    // Without these fjall would begin a new database in the place of the old one.
    for name in ["version", "keyspaces", "lock"] {
        if !database.join(name).exists() {
            return Err(format!("`db/{name}` is missing"));
        }
    }
    let copied = journal::copy_aside(&database, &directory.aside());
    let proven = copied.map_err(|error| format!("the journal cannot be read: {error}"))?;
    let read = || {
        let handles = Handles::open(&database)?;
        let records = Records::read(&handles.objects, &handles.log)?;
        fjall::Result::Ok((handles, records))
    };
    // fjall expects its own files to be sound and panics on some that are not.
    let read = catch_unwind(AssertUnwindSafe(read));
    let read = read.map_err(|_| "the database cannot be read: fjall panicked".to_owned())?;
    let (handles, records) =
        read.map_err(|error| format!("the database cannot be read: {error}"))?;
    let flaw = if let Some(acknowledged) = acknowledged {
        records.flaw(acknowledged.max(proven))
    } else {
        let last_good = match records.flaw(proven) {
            Some(flaw) => flaw.last_good,
            None => Some(records.head()),
        };
        let what = "the file `high-water` is missing or cannot be read".to_owned();
        Some(Flaw { what, last_good })
    };
    Ok(Found {
        handles,
        records,
        flaw,
    })
}

/// A new directory whose revisions go on after `after`.
fn create(
    directory: Directory,
    after: Revision,
    options: Options,
) -> Result<(Disk, Store), OpenError> {
    let path = directory.path.clone();
    let io = |source| OpenError::io(&path, source);
    let fjall = |source| OpenError::Database {
        path: path.clone(),
        source,
    };
    directory.begin_creation().map_err(io)?;
    let handles = Handles::open(&directory.database()).map_err(fjall)?;
    let base = Base {
        revision: after,
        sum: Sum::default(),
    };
    handles
        .write_base(base, &BTreeMap::new(), &Records::default())
        .map_err(fjall)?;
    drop(HighWater::create(&directory.high_water(), after).map_err(io)?);
    directory.end_creation().map_err(io)?;
    let records = Records {
        base,
        ..Records::default()
    };
    ready(directory, handles, records, after, options)
}

/// Goes on from an older revision; later ones are never given again.
fn cut(
    directory: Directory,
    handles: Handles,
    records: &Records,
    asked: Revision,
    newest: Revision,
    options: Options,
) -> Result<(Disk, Store), OpenError> {
    let path = directory.path.clone();
    let objects = records.rolled_back(asked).expect("proven to be good");
    let mut sum = Sum::default();
    for (key, stored) in &objects {
        sum.add(object(&object_key(key), stored).1);
    }
    let base = Base {
        revision: newest,
        sum,
    };
    let written = handles.write_base(base, &objects, records);
    written.map_err(|source| OpenError::Database {
        path: path.clone(),
        source,
    })?;
    let created = HighWater::create(&directory.high_water(), newest);
    drop(created.map_err(|source| OpenError::io(&path, source))?);
    let records = Records {
        objects,
        sum,
        base,
        ..Records::default()
    };
    ready(directory, handles, records, newest, options)
}

fn ready(
    directory: Directory,
    handles: Handles,
    records: Records,
    head: Revision,
    options: Options,
) -> Result<(Disk, Store), OpenError> {
    let high_water = HighWater::open(&directory.high_water());
    let mut high_water = high_water.map_err(|error| OpenError::io(&directory.path, error))?;
    // What was synced and not yet noted is noted now: from here on it counts as acknowledged.
    let raised = high_water.raise(head).and_then(|()| high_water.sync());
    raised.map_err(|error| OpenError::io(&directory.path, error))?;
    let sum = records.sum;
    let first = records.entries.first().map(|entry| entry.revision);
    let (store, summary) = records.store(options.history);
    let disk = Disk {
        directory,
        high_water,
        handles: Some(handles),
        full_at: None,
        head,
        first: first.unwrap_or(head.next()),
        sum,
        summary,
    };
    Ok((disk, store))
}

impl Handles {
    /// Makes `objects` the whole state and `base` the whole log.
    fn write_base(
        &self,
        base: Base,
        objects: &BTreeMap<ObjectKey, Arc<Stored>>,
        present: &Records,
    ) -> fjall::Result<()> {
        let mut batch = self.database.batch();
        for key in present.objects.keys() {
            if !objects.contains_key(key) {
                batch.remove(&self.objects, object_key(key));
            }
        }
        for (key, stored) in objects {
            let key = object_key(key);
            let (value, _) = object(&key, stored);
            batch.insert(&self.objects, key, value);
        }
        for guard in self.log.iter() {
            let key = guard.key()?;
            if *key != log_key(Revision::ZERO) {
                batch.remove(&self.log, key);
            }
        }
        batch.insert(&self.log, log_key(Revision::ZERO), base.encode());
        batch.commit()?;
        self.database.persist(PersistMode::SyncAll)
    }
}

fn put_back_if_there(directory: &Directory) -> std::io::Result<()> {
    let aside = directory.aside();
    if aside.exists() {
        journal::put_back(&directory.database(), &aside)?;
    }
    Ok(())
}

fn ignore_missing(error: std::io::Error) -> std::io::Result<()> {
    match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }
}
