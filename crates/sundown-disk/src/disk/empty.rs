//! A new database without anything in it: the files that fjall would make, as they lie in
//! `src/generated/database`.
//!
//! fjall syncs some 45 times to make them, which is most of the time that a first start takes. Here
//! they are synced once each. What is in them is fjall's business: a test compares them with what the
//! fjall of today makes, and says how to bring them up to date.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

macro_rules! file {
    ($name:literal) => {
        (
            $name,
            include_bytes!(concat!("../generated/database/", $name)).as_slice(),
        )
    };
}

/// The log begins with its base, which is revision zero.
const FILES: [(&str, &[u8]); 11] = [
    file!("0.jnl"),
    file!("keyspaces/0/current"),
    file!("keyspaces/0/tables/0"),
    file!("keyspaces/0/tables/1"),
    file!("keyspaces/0/v3"),
    file!("keyspaces/1/current"),
    file!("keyspaces/1/v0"),
    file!("keyspaces/2/current"),
    file!("keyspaces/2/v0"),
    file!("lock"),
    file!("version"),
];

/// Each after the one that it lies in.
const DIRECTORIES: [&str; 8] = [
    "",
    "keyspaces",
    "keyspaces/0",
    "keyspaces/0/tables",
    "keyspaces/1",
    "keyspaces/1/tables",
    "keyspaces/2",
    "keyspaces/2/tables",
];

/// Makes the database in a place that is free.
///
/// Guarantees: all of it is on the disk, but for the name of the place.
pub(super) fn make(place: &Path) -> io::Result<()> {
    for name in DIRECTORIES {
        fs::create_dir(place.join(name))?;
    }
    let mut written = Vec::new();
    for (name, content) in FILES {
        let mut file = File::create_new(place.join(name))?;
        file.write_all(content)?;
        written.push(file);
    }
    // After all of them are written: what is synced first takes much of the others with it.
    for file in written {
        file.sync_all()?;
    }
    for name in DIRECTORIES {
        File::open(place.join(name))?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use sundown_store::Revision;

    use super::*;
    use crate::disk::Handles;
    use crate::record::Base;

    type Files = BTreeMap<String, Vec<u8>>;

    fn made_by_fjall(place: &Path) -> Files {
        let handles = Handles::open(place).unwrap();
        handles.fill(Base::default(), &BTreeMap::new()).unwrap();
        drop(handles);
        // Cuts the journal to its length, and removes what is no longer needed.
        drop(Handles::open(place).unwrap());
        files(place, "")
    }

    fn files(place: &Path, within: &str) -> Files {
        let mut found = Files::new();
        for entry in fs::read_dir(place.join(within)).unwrap() {
            let entry = entry.unwrap();
            let name = Path::new(within).join(entry.file_name());
            let name = name.to_str().unwrap().to_owned();
            if entry.file_type().unwrap().is_dir() {
                found.extend(files(place, &name));
            } else {
                found.insert(name, fs::read(entry.path()).unwrap());
            }
        }
        found
    }

    /// A table says when it was made, so only its first block can be the same: the settings of a
    /// keyspace. So do the files that hold sums of tables.
    fn comparable(name: &str, content: &[u8]) -> Vec<u8> {
        match name.rsplit_once('/') {
            Some(("keyspaces/0/tables", _)) => {
                let block = content.windows(4).skip(1).position(|it| it == b"LSM\x03");
                content[..block.map_or(0, |at| at + 1)].to_vec()
            }
            Some(("keyspaces/0", _)) => Vec::new(),
            _ => content.to_vec(),
        }
    }

    #[test]
    fn it_is_what_fjall_makes() {
        let home = tempfile::tempdir().unwrap();
        let made = made_by_fjall(home.path());
        let shipped = FILES.map(|(name, content)| (name.to_owned(), content.to_vec()));
        let shipped: Files = shipped.into();
        let compared = |files: &Files| {
            let all = files.iter();
            all.map(|(name, content)| (name.clone(), comparable(name, content)))
                .collect::<Files>()
        };
        if compared(&made) != compared(&shipped) {
            let home = home.keep();
            panic!(
                "put what lies in {} into src/generated/database",
                home.display()
            );
        }
    }

    #[test]
    fn fjall_takes_it_for_an_empty_database() {
        let home = tempfile::tempdir().unwrap();
        let place = home.path().join("db");
        make(&place).unwrap();
        let handles = Handles::open(&place).unwrap();
        assert_eq!(handles.newest().unwrap(), Revision::ZERO);
        assert!(handles.objects.is_empty().unwrap());
        assert_eq!(handles.log.len().unwrap(), 1);
        assert_eq!(handles.database.keyspace_count(), 2);
    }
}
