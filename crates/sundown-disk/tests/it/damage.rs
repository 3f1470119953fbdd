//! A cut tail, a flipped byte, a missing file: refused with a report or harmless, never a silent loss.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use sundown_disk::OpenError;
use sundown_store::Revision;

use crate::world::{World, copy, put, seen};

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

fn journal(home: &Path) -> Result<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(home.join("db"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "jnl") {
            found.push(path);
        }
    }
    found.pop().context("there is a journal")
}

/// Damages a copy; it must be refused, twice, or show everything.
fn check(
    home: &Path,
    before: &Seen,
    what: &str,
    damage: impl FnOnce(&Path) -> Result<()>,
) -> Result<bool> {
    let scratch = tempfile::tempdir()?;
    copy(home, scratch.path())?;
    damage(scratch.path())?;
    for _ in 0..2 {
        match World::open(scratch.path()) {
            Ok(world) => {
                ensure!(seen(&world.store) == *before, "{what}: a silent loss");
                return Ok(false);
            }
            Err(OpenError::Damaged(_)) => {}
            Err(error) => return Err(error).context(what.to_owned()),
        }
    }
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
    let (mut refused, mut count) = (0, 0);
    let mut files = Vec::new();
    list(home.path(), &mut files)?;
    for path in files {
        let inside = path.strip_prefix(home.path())?;
        let length = fs::metadata(&path)?.len();
        let step = usize::try_from(length / 40)?.max(1);
        for at in (0..usize::try_from(length)?).step_by(step) {
            let what = format!("flip {at} of {length} in {}", inside.display());
            count += 1;
            let is_refused = check(home.path(), &before, &what, |home| {
                let mut bytes = fs::read(home.join(inside))?;
                bytes[at] ^= 0x10;
                Ok(fs::write(home.join(inside), bytes)?)
            });
            match is_refused {
                Ok(is_refused) => refused += u32::from(is_refused),
                // A flipped digit of the format is a newer format: refused by name, too.
                Err(error) if error.to_string().contains("format") => refused += 1,
                Err(error) => return Err(error),
            }
        }
    }
    assert!(refused * 3 > count, "{refused} of {count} refused");
    Ok(())
}

#[test]
fn a_missing_file_is_never_a_silent_loss() -> Result<()> {
    let (home, before) = filled()?;
    let mut files = Vec::new();
    list(home.path(), &mut files)?;
    for path in files {
        let inside = path.strip_prefix(home.path())?;
        let what = format!("without {}", inside.display());
        let refused = check(home.path(), &before, &what, |home| {
            Ok(fs::remove_file(home.join(inside))?)
        })?;
        // The tables of fjall are empty still; without them the journal alone tells everything.
        let is_needed = inside.extension().is_some_and(|it| it == "jnl")
            || ["format", "high-water", "db/version"]
                .iter()
                .any(|it| inside == Path::new(it));
        assert!(refused || !is_needed, "{what} was not refused");
    }
    Ok(())
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
    assert!(home.path().join("damaged-1/journal").exists());
    let world = World::open(home.path())?;
    assert_eq!(world.store.iter().count(), 21);
    Ok(())
}

#[test]
fn an_unreadable_database_can_be_left_behind() -> Result<()> {
    let (home, _) = filled()?;
    fs::remove_file(home.path().join("db/version"))?;
    let world = World::accept(home.path(), 0)?;
    assert_eq!(world.store.iter().count(), 0);
    assert_eq!(world.store.revision(), Revision::new(30));
    assert!(home.path().join("damaged-1/db").exists());
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
