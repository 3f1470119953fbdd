//! A cut tail, a flipped byte, a missing file: refused with a report or harmless, never a silent loss.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use sundown_disk::{Disk, OpenError};
use sundown_store::Revision;

use crate::world::{World, content, copy, put, seen};

type Seen = (
    Revision,
    Vec<String>,
    Vec<std::sync::Arc<sundown_store::Event>>,
);

/// A directory whose journal is as short as its content, as after the first restart.
fn filled() -> Result<(tempfile::TempDir, Seen)> {
    let home = tempfile::tempdir()?;
    drop(World::open(home.path())?);
    let mut world = World::open(home.path())?;
    world.fill()?;
    let before = seen(&world.store);
    Ok((home, before))
}

/// A directory with tables: what is in them is no longer in a journal.
fn flushed() -> Result<(tempfile::TempDir, Seen)> {
    let home = tempfile::tempdir()?;
    let mut world = World::open(home.path())?;
    let keyspaces = home.path().join("state/db/keyspaces");
    // A table that is only being written is none yet.
    let has_tables = |id: &str| Ok::<_, anyhow::Error>(version(&keyspaces.join(id))? > 0);
    for number in 0..5_000 {
        let mut writes = Vec::new();
        for part in 0..8 {
            // Names come again, so that the log has previous states to keep as well.
            writes.push(put(
                &format!("a-{}-{part}", number % 100),
                &"x".repeat(9_000),
            )?);
        }
        world.commit(writes)?;
        if has_tables("1")? && has_tables("2")? {
            break;
        }
    }
    ensure!(has_tables("1")? && has_tables("2")?, "nothing was flushed");
    let before = seen(&world.store);
    drop(world);
    // Whatever was still being written is taken away by the next start.
    drop(World::open(home.path())?);
    Ok((home, before))
}

/// The number of the version that a keyspace is at; 0 is one without tables.
fn version(keyspace: &Path) -> Result<u64> {
    let current = fs::read(keyspace.join("current"))?;
    let number = current.first_chunk().context("it begins with a number")?;
    Ok(u64::from_le_bytes(*number))
}

/// Whether a file is one of a version of its keyspace that says nothing: an older one, one that was
/// never finished, or the first, which has no tables.
fn is_idle_version(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let number = name.and_then(|name| name.strip_prefix('v')?.parse::<u64>().ok());
    let now = path.parent().and_then(|keyspace| version(keyspace).ok());
    number.is_some_and(|number| number == 0 || now != Some(number))
}

fn is_table(path: &Path) -> bool {
    let is_of = |id: &str| path.to_string_lossy().contains(&format!("/{id}/tables/"));
    is_of("1") || is_of("2")
}

fn journal(home: &Path) -> Result<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(home.join("state/db"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "jnl") {
            found.push(path);
        }
    }
    found.pop().context("there is a journal")
}

/// Damages a copy; it must be refused, twice, with every file as it was, or show everything. A look
/// must come to the same.
fn check(
    home: &Path,
    before: &Seen,
    what: &str,
    damage: impl FnOnce(&Path) -> Result<()>,
) -> Result<bool> {
    let scratch = tempfile::tempdir()?;
    copy(home, scratch.path())?;
    damage(scratch.path())?;
    let files = content(&scratch.path().join("state/db"))?;
    let looked = match Disk::inspect(scratch.path()) {
        Ok((_, store)) => {
            ensure!(seen(&store) == *before, "{what}: a silent loss");
            false
        }
        Err(OpenError::Damaged(_) | OpenError::Refused { .. }) => true,
        Err(error) => return Err(error).context(what.to_owned()),
    };
    for _ in 0..2 {
        match World::open(scratch.path()) {
            Ok(world) => {
                ensure!(seen(&world.store) == *before, "{what}: a silent loss");
                ensure!(!looked, "{what}: a look refuses it, a start does not");
                return Ok(false);
            }
            Err(OpenError::Damaged(_) | OpenError::Refused { .. }) => {}
            Err(error) => return Err(error).context(what.to_owned()),
        }
        ensure!(
            content(&scratch.path().join("state/db"))? == files,
            "{what}: a refused start has changed files"
        );
    }
    ensure!(looked, "{what}: a start refuses it, a look does not");
    Ok(true)
}

#[test]
fn a_cut_journal_is_refused_at_every_length() -> Result<()> {
    let (home, before) = filled()?;
    let length = fs::metadata(journal(home.path())?)?.len();
    for cut in (0..length).step_by(usize::try_from(length / 60)?) {
        let refused = check(home.path(), &before, &format!("cut at {cut}"), |home| {
            let file = fs::OpenOptions::new().write(true).open(journal(home)?)?;
            Ok(file.set_len(cut)?)
        })?;
        assert!(refused, "cut at {cut} of {length}");
    }
    Ok(())
}

#[test]
fn a_flipped_byte_is_never_a_silent_loss() -> Result<()> {
    let (home, before) = filled()?;
    let mut files = Vec::new();
    list(home.path(), &mut files)?;
    let mut sum = (0, 0);
    for path in files {
        let is_journal = path.extension().is_some_and(|it| it == "jnl");
        let times = if is_journal { 60 } else { 8 };
        let (refused, count) = flip(home.path(), &before, &path, times)?;
        sum = (sum.0 + refused, sum.1 + count);
    }
    assert!(sum.0 * 3 > sum.1, "{} of {} refused", sum.0, sum.1);
    Ok(())
}

#[test]
fn a_sector_of_zeros_in_the_journal_is_refused() -> Result<()> {
    let (home, before) = filled()?;
    let length = usize::try_from(fs::metadata(journal(home.path())?)?.len())?;
    for sector in 0..length.div_ceil(512) {
        let what = format!("sector {sector} of zeros");
        let refused = check(home.path(), &before, &what, |home| {
            let path = journal(home)?;
            let mut bytes = fs::read(&path)?;
            let end = (sector * 512 + 512).min(length);
            bytes[sector * 512..end].fill(0);
            Ok(fs::write(path, bytes)?)
        })?;
        assert!(refused, "{what}");
    }
    Ok(())
}

#[test]
fn a_flipped_byte_in_a_table_is_never_a_silent_loss() -> Result<()> {
    let (home, before) = flushed()?;
    let mut files = Vec::new();
    list(&home.path().join("state/db/keyspaces"), &mut files)?;
    files.retain(|path| is_table(path));
    assert!(!files.is_empty());
    for path in files {
        let (refused, count) = flip(home.path(), &before, &path, 5)?;
        assert!(refused * 2 > count, "{refused} of {count} refused");
    }
    Ok(())
}

#[test]
fn a_missing_file_is_never_a_silent_loss() -> Result<()> {
    for (home, before) in [filled()?, flushed()?] {
        let mut files = Vec::new();
        list(home.path(), &mut files)?;
        for path in files {
            let inside = path.strip_prefix(home.path())?;
            let what = format!("without {}", inside.display());
            let refused = check(home.path(), &before, &what, |home| {
                Ok(fs::remove_file(home.join(inside))?)
            })?;
            let is_needed = inside != Path::new("state/lock") && !is_idle_version(&path);
            assert!(refused || !is_needed, "{what}");
        }
    }
    Ok(())
}

/// Flips bytes all over a file; gives how many were refused, and of how many.
fn flip(home: &Path, before: &Seen, path: &Path, times: usize) -> Result<(usize, usize)> {
    let inside = path.strip_prefix(home)?;
    let length = usize::try_from(fs::metadata(path)?.len())?;
    let (mut refused, mut count) = (0, 0);
    for at in (0..length).step_by((length / times).max(1)) {
        let what = format!("flip {at} of {length} in {}", inside.display());
        count += 1;
        let is_refused = check(home, before, &what, |home| {
            let mut bytes = fs::read(home.join(inside))?;
            bytes[at] ^= 0x10;
            Ok(fs::write(home.join(inside), bytes)?)
        });
        match is_refused {
            Ok(is_refused) => refused += usize::from(is_refused),
            // A flipped digit of the format is a newer format: refused by name, too.
            Err(error) if error.to_string().contains("format") => refused += 1,
            Err(error) => return Err(error),
        }
    }
    Ok((refused, count))
}

#[test]
fn an_accepted_loss_goes_on_and_keeps_the_damaged_files() -> Result<()> {
    let (home, _) = filled()?;
    let path = journal(home.path())?;
    let length = fs::metadata(&path)?.len();
    fs::OpenOptions::new()
        .write(true)
        .open(&path)?
        .set_len(length - 10)?;
    let Err(OpenError::Damaged(damage)) = World::open(home.path()) else {
        anyhow::bail!("a cut journal was taken");
    };
    assert_eq!(damage.acknowledged, Some(Revision::new(30)));
    assert_eq!(damage.last_good, Some(Revision::new(25)), "{damage}");
    let refused = World::accept(home.path(), 24).err();
    assert!(
        matches!(refused, Some(OpenError::NotThere { .. })),
        "{refused:?}"
    );
    let mut world = World::accept(home.path(), 25)?;
    assert_eq!(world.store.iter().count(), 20, "the deletes are undone");
    assert_eq!(
        world.store.revision(),
        Revision::new(30),
        "no revision is given twice"
    );
    world.commit(vec![put("later", "x")?])?;
    drop(world);
    assert!(home.path().join("state/damaged-1/db/0.jnl").exists());
    let world = World::open(home.path())?;
    assert_eq!(world.store.iter().count(), 21);
    Ok(())
}

#[test]
fn an_unreadable_database_can_be_left_behind() -> Result<()> {
    let (home, _) = filled()?;
    fs::remove_file(home.path().join("state/db/version"))?;
    let world = World::accept(home.path(), 0)?;
    assert_eq!(world.store.iter().count(), 0);
    assert_eq!(world.store.revision(), Revision::new(30));
    assert!(home.path().join("state/damaged-1/db").exists());
    Ok(())
}

fn list(directory: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            list(&entry.path(), found)?;
        } else if entry.metadata()?.len() > 0 {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(())
}
