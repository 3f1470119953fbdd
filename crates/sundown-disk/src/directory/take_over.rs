//! The takeover of a data directory of the format before: its steps, and the locks that versions of before
//! know. Which step is next is decided in `claim.rs`.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::fs::OFlags;

use super::{LOCK, lock, open_lock, open_nofollow, sync};
use crate::OpenError;
use crate::claim::{MOVING, Move, Refusal, STATE, Verdict, may_claim, next_move};
use crate::held::Held;

/// Moves everything of a directory of the format before to its new place, one rename at a time. Whoever
/// finds one that was interrupted goes on with it.
pub(super) fn take_over(held: &Held) -> Result<(), OpenError> {
    let mut take_over = TakeOver::begin(held)?;
    while take_over.step()? {}
    Ok(())
}

/// A takeover on its way, with the locks that versions of before know.
pub(super) struct TakeOver<'a> {
    held: &'a Held,
    _locks: Vec<File>,
}

impl<'a> TakeOver<'a> {
    pub(super) fn begin(held: &'a Held) -> Result<Self, OpenError> {
        Ok(Self {
            held,
            _locks: locks_of_before(&held.path)?,
        })
    }

    /// Does the next step; false: there is none.
    pub(super) fn step(&mut self) -> Result<bool, OpenError> {
        let path = &self.held.path;
        let failed = |source| OpenError::io(path, source);
        let seen = self.held.look().map_err(failed)?;
        let next = seen.place.as_ref().and_then(next_move);
        let Some(next) = next.filter(|_| matches!(may_claim(&seen), Verdict::Migrate(_))) else {
            return Ok(false);
        };
        let state = path.join(STATE);
        let done = match next {
            Move::Mark => self.held.mark(),
            Move::MakeState => self.held.make_state(),
            Move::NoteMoving => File::create_new(state.join(MOVING))
                .and_then(|file| file.sync_all())
                .and_then(|()| sync(&state)),
            Move::TakeOver => self.held.prove(),
            Move::Take(name) => self.held.take_in(&name).map_err(|error| {
                let message = format!("move `{name}` to `{STATE}/{name}`: {error}");
                io::Error::new(error.kind(), message)
            }),
            // Everything is where it belongs before the note of it goes.
            Move::Finish => sync(&state)
                .and_then(|()| self.held.sync())
                .and_then(|()| fs::remove_file(state.join(MOVING)))
                .and_then(|()| sync(&state)),
        };
        done.map_err(failed)?;
        Ok(true)
    }
}

/// The locks that versions of before know, taken.
pub(super) fn locks_of_before(path: &Path) -> Result<Vec<File>, OpenError> {
    let mut locks = Vec::new();
    let of_node = OFlags::RDONLY | OFlags::DIRECTORY;
    for (name, opened) in [
        (LOCK, open_lock(&path.join(LOCK))),
        ("node", open_nofollow(&path.join("node"), of_node)),
    ] {
        let opened = opened.map_err(|source| OpenError::io(path, source))?;
        let Some(mut file) = opened else {
            continue;
        };
        match (name, lock(path, &mut file)) {
            ("node", Err(OpenError::InUse { .. })) => {
                let (path, refusal) = (path.to_owned(), Refusal::PodsRun);
                return Err(OpenError::Refused { path, refusal });
            }
            (_, locked) => locked?,
        }
        locks.push(file);
    }
    Ok(locks)
}
