//! A store with a disk below it, and small objects to put in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Result;
use jiff::Timestamp;
use serde_json::{Map, json};
use sundown_disk::{AppendError, Disk, Keep, OpenError, Options};
use sundown_model::{ObjectKey, Resource};
use sundown_store::{Body, Event, Parts, Revision, Store, Transaction, Write};

pub(crate) struct World {
    pub(crate) disk: Disk,
    pub(crate) store: Store,
}

pub(crate) fn config_maps() -> Resource {
    Resource::new("", "configmaps")
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced(&config_maps(), "default", name)
}

pub(crate) fn put(name: &str, text: &str) -> Result<Write> {
    let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
    let mut rest = Map::new();
    rest.insert("data".to_owned(), json!({ "text": text }));
    let body = Body::encode(&Parts {
        api_version: "v1",
        kind: "ConfigMap",
        uid: &format!("uid-of-{name}").as_str().into(),
        labels: &labels,
        metadata: &json!({ "name": name, "labels": labels }),
        rest: &rest,
    })?;
    Ok(Write::Put {
        key: key(name),
        body,
    })
}

impl World {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let (disk, store) = Disk::open(path, Options::default())?;
        Ok(Self { disk, store })
    }

    /// Opens it without what came after a revision.
    pub(crate) fn accept(path: &Path, after: u64) -> Result<Self, OpenError> {
        let options = Options {
            accept_loss_after: Some(Revision::new(after)),
            ..Options::default()
        };
        let (disk, store) = Disk::open(path, options)?;
        Ok(Self { disk, store })
    }

    /// Commits writes as one group; on an error nothing has happened.
    pub(crate) fn commit(&mut self, writes: Vec<Write>) -> Result<(), AppendError> {
        let mut next = self.store.clone();
        let reads = Vec::new();
        let done = next.commit(&Transaction { reads, writes }, Timestamp::UNIX_EPOCH);
        done.expect("nothing was read");
        let events: Vec<_> = next.events_since(self.store.revision()).cloned().collect();
        self.disk.write(&events, next.oldest_event())?;
        self.disk.sync()?;
        self.store = next;
        Ok(())
    }

    /// Creates, changes and deletes: 12 groups, 30 revisions.
    pub(crate) fn fill(&mut self) -> Result<()> {
        for number in 0..10 {
            let (a, b) = (format!("a-{number}"), format!("b-{number}"));
            self.commit(vec![put(&a, "first")?, put(&b, &"x".repeat(300))?])?;
        }
        let changed: Result<Vec<_>> = (0..5).map(|n| put(&format!("a-{n}"), "second")).collect();
        self.commit(changed?)?;
        let deletes = (0..5).map(|number| Write::Delete {
            key: key(&format!("b-{number}")),
        });
        self.commit(deletes.collect())?;
        Ok(())
    }
}

/// Everything that a client could see of a store.
pub(crate) fn seen(store: &Store) -> (Revision, Vec<String>, Vec<Arc<Event>>) {
    let objects = store
        .iter()
        .map(|(key, stored)| format!("{key} {stored:?}"));
    let events = store.events_since(Revision::ZERO).cloned();
    (store.revision(), objects.collect(), events.collect())
}

/// Copies a whole directory.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// What lies in a directory.
pub(crate) fn names(directory: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// All files below a directory, with when they were written.
pub(crate) fn content(directory: &Path) -> Result<BTreeMap<PathBuf, (SystemTime, Vec<u8>)>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(content(&path)?);
        } else {
            let written_at = std::fs::metadata(&path)?.modified()?;
            files.insert(path.clone(), (written_at, std::fs::read(&path)?));
        }
    }
    Ok(files)
}
