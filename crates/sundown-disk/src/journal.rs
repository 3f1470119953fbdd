//! fjall's journal files, looked at and copied before fjall opens them: it cuts off what it cannot
//! decode. Nothing of its format is assumed but that our log records stand in it as they are.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use memchr::memmem;
use sundown_store::Revision;

use crate::record::{Entry, LOG_MAGIC};

/// Copies every journal to `aside` and gives the newest revision that must have been synced: the one
/// before the group of any whole record.
pub(crate) fn copy_aside(database: &Path, aside: &Path) -> io::Result<Revision> {
    fs::create_dir_all(aside)?;
    let mut proven = Revision::ZERO;
    for path in journals(database)? {
        let mut bytes = Vec::new();
        read_without_tail(&path, &mut bytes)?;
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        File::create(aside.join(name))?.write_all(&bytes)?;
        for at in memmem::find_iter(&bytes, LOG_MAGIC) {
            if let Some(group) = Entry::group_at(&bytes[at..]) {
                proven = proven.max(Revision::new(group.number().saturating_sub(1)));
            }
        }
    }
    Ok(proven)
}

/// Puts the copies back, so that the next start finds what this one found.
pub(crate) fn put_back(database: &Path, aside: &Path) -> io::Result<()> {
    for path in journals(aside)? {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        fs::rename(&path, database.join(name))?;
    }
    fs::remove_dir_all(aside)
}

fn journals(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "jnl") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// fjall makes its journals 64 MiB long in advance; the zeros at the end are not worth keeping.
fn read_without_tail(path: &Path, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut chunk = vec![0; 256 * 1024];
    let mut zero_count = 0;
    loop {
        let length = file.read(&mut chunk)?;
        if length == 0 {
            return Ok(());
        }
        if chunk[..length].iter().all(|byte| *byte == 0) {
            zero_count += length;
        } else {
            bytes.resize(bytes.len() + zero_count, 0);
            zero_count = 0;
            bytes.extend_from_slice(&chunk[..length]);
        }
    }
}
