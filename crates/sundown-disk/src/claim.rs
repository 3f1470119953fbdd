//! Whether a directory may be used for data: a pure function from what was seen of it to a verdict. Only
//! one that did not exist, is empty, or proves that Sundown made it is ever written to.
//!
//! ```text
//! DIR/starting    our mark, written first and into an empty directory only; it becomes `format`
//! DIR/format      the proof: this is a data directory, and whole
//! DIR/kubeconfig  the way in, while a control plane is up; replaced and removed if it begins as ours
//! DIR/state/      everything else that is ever removed, replaced or cut
//! ```
//!
//! Before format 2 all of it lay in `DIR` itself. Such a directory is taken over by renames, one at a time;
//! `next_move` says which, so that whoever is killed in between is gone on with.

use sundown_files::{Distrust, Sort, Step, Us, judge};

/// The format that this version writes.
pub(crate) const FORMAT: u32 = 2;
/// The one before, with everything in the directory itself.
const FORMAT_BEFORE: u32 = 1;
const FORMAT_WORDS: &str = "sundown data format ";

/// The names at the top of a data directory.
pub(crate) const FORMAT_FILE: &str = "format";
pub(crate) const STARTING: &str = "starting";
pub(crate) const STATE: &str = "state";
/// Stands in the state while a directory of the format before is taken over.
pub(crate) const MOVING: &str = "moving";

/// Files that format 1 has in the directory itself.
const FILES_BEFORE: &[&str] = &[
    "control.sock",
    "format.new",
    "high-water",
    "identity.json",
    "node.sock",
    "port",
    "relaxed",
    "room",
    "up.log",
    "up.log.1",
    // The last to move: while it stands there an older version that holds it keeps us out.
    "lock",
];
/// Directories that format 1 has there, beside those of damaged files.
const DIRECTORIES_BEFORE: &[&str] = &["building", "db", "node", "ready", "scratch"];

/// Whoever may write with this mode beside the owner.
const WRITE: u32 = 0o022;

/// What was seen of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) us: Us,
    /// Whether it is the root of the file system.
    pub(crate) is_root: bool,
    /// Whether it is the home directory of the user.
    pub(crate) is_home: bool,
    /// From `/` to its parent, or to the last of those that exists.
    pub(crate) way: Vec<Step>,
    /// None: nothing is there.
    pub(crate) place: Option<Place>,
}

/// What stands at the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) sort: Sort,
    pub(crate) owner: u32,
    pub(crate) mode: u32,
    /// Sorted by their names.
    pub(crate) entries: Vec<Entry>,
    /// What the file `format` says; None: there is no such file, or it is no text.
    pub(crate) format: Option<String>,
    /// What the file `starting` says.
    pub(crate) starting: Option<String>,
    /// What lies in `state`.
    pub(crate) inside: Vec<Entry>,
}

/// An entry of a directory, itself: never what a link leads to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) sort: Sort,
    pub(crate) owner: u32,
    pub(crate) mode: u32,
}

/// What may be done with a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is not there, and may be made.
    Make,
    /// It is empty, and may be marked as ours.
    ClaimEmpty,
    Ours,
    /// A first start, or a reset, was interrupted: nothing in it is needed.
    Interrupted(Begun),
    /// It is ours, of the format before.
    Migrate(Moved),
    Refused(Refusal),
}

/// How far a first start came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    /// The mark stands, nothing else.
    Marked,
    /// The place of the state is made, too, and whatever of a database.
    Made,
}

/// How far a takeover came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// Its format is the one before, so everything is where it was.
    Nothing,
    /// Its format is the new one, and some of its files lie where they lay.
    Some,
}

/// Why a directory is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("it is the root of the file system")]
    Root,
    #[error("it is your home directory")]
    Home,
    #[error("it is a link")]
    Link,
    #[error("it is not a directory")]
    NotADirectory,
    /// Root is refused as well: the owner could replace any file while root works on it.
    #[error("it belongs to user {owner}, and this is user {us}")]
    Owner { owner: u32, us: u32 },
    #[error("others may write to it: its mode is {mode:04o}")]
    Writable { mode: u32 },
    #[error("others can replace it: {0}")]
    Way(Distrust),
    #[error("it holds `{entry}`, and nothing that proves that Sundown made it")]
    Foreign { entry: String },
    #[error("its file `format` is not one of Sundown")]
    Format,
    /// A later version has written it.
    #[error("it has data format {found}, this version knows up to {FORMAT}")]
    Newer { found: u32 },
    /// An older data directory in which the place of the new format is taken.
    #[error("it has data format {FORMAT_BEFORE}, and `{entry}` in it is in the way of the new one")]
    Occupied { entry: String },
    #[error("`{entry}` in it is not what Sundown makes under that name")]
    Odd { entry: String },
    /// Found when it is taken over: pods write where their files were.
    #[error("pods of an older version run on it")]
    PodsRun,
    /// Found when it is only looked at.
    #[error("its takeover from data format {FORMAT_BEFORE} is not finished")]
    Unfinished,
}

/// One step of a takeover. Each is a rename, or makes something that was not there, until the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Move {
    /// Make the mark, which is the next `format`.
    Mark,
    MakeState,
    /// Note in the state that it is being filled.
    NoteMoving,
    /// Replace `format` by the mark: older versions refuse it from now on.
    TakeOver,
    /// Rename an entry into the state.
    Take(String),
    /// Remove the note.
    Finish,
}

/// Decides what may be done with a directory.
pub(crate) fn may_claim(seen: &Seen) -> Verdict {
    if seen.is_root {
        return Verdict::Refused(Refusal::Root);
    }
    if seen.is_home {
        return Verdict::Refused(Refusal::Home);
    }
    if let Err(distrust) = judge(seen.us, &seen.way) {
        return Verdict::Refused(Refusal::Way(distrust));
    }
    let Some(place) = &seen.place else {
        return Verdict::Make;
    };
    let us = seen.us.user;
    match refuse(place, us) {
        Some(refusal) => Verdict::Refused(refusal),
        None => judge_content(place, us),
    }
}

/// Whether it can be trusted, whatever is in it.
fn refuse(place: &Place, us: u32) -> Option<Refusal> {
    let (owner, mode) = (place.owner, place.mode & 0o7777);
    match place.sort {
        Sort::Link => Some(Refusal::Link),
        Sort::File => Some(Refusal::NotADirectory),
        Sort::Directory if owner != us => Some(Refusal::Owner { owner, us }),
        Sort::Directory if mode & WRITE != 0 => Some(Refusal::Writable { mode }),
        Sort::Directory => None,
    }
}

fn judge_content(place: &Place, us: u32) -> Verdict {
    if let Some(entry) = odd(place, us) {
        return Verdict::Refused(Refusal::Odd { entry });
    }
    let Some(format) = &place.format else {
        return match (&place.starting, place.entries.first()) {
            (Some(text), _) if is_mark(text) => Verdict::Interrupted(match place.entry(STATE) {
                None => Begun::Marked,
                Some(_) => Begun::Made,
            }),
            (_, None) => Verdict::ClaimEmpty,
            (_, Some(entry)) => Verdict::Refused(Refusal::Foreign {
                entry: entry.name.clone(),
            }),
        };
    };
    match number(format) {
        Some(FORMAT) if place.holds(MOVING) => Verdict::Migrate(Moved::Some),
        Some(FORMAT) => Verdict::Ours,
        Some(FORMAT_BEFORE) => match in_the_way(place) {
            Some(entry) => Verdict::Refused(Refusal::Occupied {
                entry: entry.to_owned(),
            }),
            None => Verdict::Migrate(Moved::Nothing),
        },
        Some(found) if found > FORMAT => Verdict::Refused(Refusal::Newer { found }),
        Some(_) | None => Verdict::Refused(Refusal::Format),
    }
}

/// Something of a directory that claims to be ours that Sundown never makes: above all a link, behind which
/// everything could lie.
fn odd(place: &Place, us: u32) -> Option<String> {
    let is_ours = place.format.is_some() || place.starting.as_deref().is_some_and(is_mark);
    let is_before = place.format.as_deref().and_then(number) == Some(FORMAT_BEFORE);
    let is_moving = is_before || place.holds(MOVING);
    let is_odd = |entry: &&Entry| match &*entry.name {
        FORMAT_FILE | STARTING => entry.sort == Sort::Link,
        STATE if is_before => false,
        STATE => entry.sort != Sort::Directory || entry.owner != us || entry.mode & WRITE != 0,
        // Of the new format, whatever stands there is the user's.
        name => is_moving && entry.sort == Sort::Link && is_of_before(name),
    };
    let top = place.entries.iter().find(is_odd);
    let top = top.map(|entry| entry.name.clone());
    let inside = place.inside.iter().find(|entry| entry.sort == Sort::Link);
    let inside = inside.map(|entry| format!("{STATE}/{}", entry.name));
    top.or(inside).filter(|_| is_ours)
}

/// What stands where a takeover of a directory of the format before would put something, unless it is
/// what an interrupted one has put there.
fn in_the_way(place: &Place) -> Option<&'static str> {
    match &place.starting {
        Some(text) if is_mark(text) => None,
        _ if place.entry(STARTING).is_some() => Some(STARTING),
        _ => place.entry(STATE).map(|_| STATE),
    }
}

/// The next step of a takeover; None: there is nothing to take over.
///
/// Assumes: the verdict is `Migrate`.
pub(crate) fn next_move(place: &Place) -> Option<Move> {
    match number(place.format.as_deref()?)? {
        FORMAT_BEFORE if place.entry(STARTING).is_none() => Some(Move::Mark),
        FORMAT_BEFORE if place.entry(STATE).is_none() => Some(Move::MakeState),
        FORMAT_BEFORE if !place.holds(MOVING) => Some(Move::NoteMoving),
        FORMAT_BEFORE => Some(Move::TakeOver),
        FORMAT if place.holds(MOVING) => {
            let rest = place.entries.iter().filter(|entry| is_taken(entry));
            // The lock goes last.
            let next = rest.min_by_key(|entry| entry.name == "lock");
            Some(next.map_or(Move::Finish, |entry| Move::Take(entry.name.clone())))
        }
        _ => None,
    }
}

/// Whether an entry has a name and a sort that format 1 gave.
fn is_taken(entry: &Entry) -> bool {
    match entry.sort {
        Sort::File => FILES_BEFORE.contains(&&*entry.name),
        Sort::Directory => DIRECTORIES_BEFORE.contains(&&*entry.name) || is_damaged(&entry.name),
        Sort::Link => false,
    }
}

fn is_of_before(name: &str) -> bool {
    FILES_BEFORE.contains(&name) || DIRECTORIES_BEFORE.contains(&name) || is_damaged(name)
}

/// Where damaged files were put: `damaged-1` and so on.
fn is_damaged(name: &str) -> bool {
    let number = name.strip_prefix("damaged-").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// What the proof says, and the mark that becomes the proof.
pub(crate) fn mark() -> String {
    format!("{FORMAT_WORDS}{FORMAT}\n")
}

/// After a reset the mark is the proof of before, whatever its number.
fn is_mark(text: &str) -> bool {
    number(text).is_some_and(|number| number <= FORMAT)
}

fn number(text: &str) -> Option<u32> {
    let number = text.strip_suffix('\n')?.strip_prefix(FORMAT_WORDS)?;
    number.parse().ok()
}

impl Place {
    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Whether the state has an entry.
    fn holds(&self, name: &str) -> bool {
        self.inside.iter().any(|entry| entry.name == name)
    }
}

#[cfg(test)]
mod tests;
