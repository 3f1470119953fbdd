//! A directory that a process lives on, and word from the kernel when its path leads to it no longer. What
//! follows from that is for the process to say.

use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{Mode, OFlags, Stat, fstat, stat};
use rustix::io::Errno;

/// Room for a good number of events at once.
const EVENT_BYTES: usize = 4 << 10;

/// A directory, held by its descriptor and known by its path.
///
/// The kernel tells of the removal of a directory itself only when no process holds it any more, and this one
/// does. So the directory above it is watched for entries that go. Those further above cannot be removed before
/// it; they are watched for being moved, as far as we may.
#[derive(Debug)]
pub struct WatchedDirectory {
    path: PathBuf,
    directory: OwnedFd,
    events: OwnedFd,
}

/// Which directory it is, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
}

/// What the path of a directory shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtPath {
    Shows(Identity),
    Nothing,
    /// It cannot be looked at.
    Unknown,
}

/// Where a directory is that was at its path once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// At its path, as far as can be seen.
    There,
    Removed,
    /// It exists, and its path shows nothing.
    Moved,
    /// Its path shows another file.
    Replaced,
}

/// Decides where a directory is, of what its descriptor and its path show.
///
/// A path that cannot be looked at proves nothing: what ends processes must not be a doubt.
pub fn locate(held: Identity, link_count: u64, at_path: AtPath) -> Whereabouts {
    match at_path {
        AtPath::Shows(shown) if shown == held => Whereabouts::There,
        AtPath::Shows(_) => Whereabouts::Replaced,
        AtPath::Nothing | AtPath::Unknown if link_count == 0 => Whereabouts::Removed,
        AtPath::Nothing => Whereabouts::Moved,
        AtPath::Unknown => Whereabouts::There,
    }
}

/// Completes a sentence that begins with the path.
impl fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::There => "is there",
            Self::Removed => "was removed",
            Self::Moved => "was moved away",
            Self::Replaced => "was replaced by another directory",
        })
    }
}

impl WatchedDirectory {
    /// Holds the directory and begins to listen.
    ///
    /// Assumes: the path is absolute and without links.
    ///
    /// Errors: the directory is not there, or the one above it cannot be watched.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let mut above = path.ancestors().skip(1);
        let parent = above.next().ok_or(io::ErrorKind::InvalidInput)?;
        let entries_go = WatchFlags::DELETE | WatchFlags::MOVED_FROM;
        let flags = entries_go | WatchFlags::MOVE_SELF | WatchFlags::ONLYDIR;
        inotify::add_watch(&events, parent, flags)?;
        for directory in above {
            // One that we may not read cannot be watched.
            let flags = WatchFlags::MOVE_SELF | WatchFlags::ONLYDIR;
            let _ = inotify::add_watch(&events, directory, flags);
        }
        Ok(Self {
            path: path.to_owned(),
            directory,
            events,
        })
    }

    /// Where the directory is now. Events that waited are taken: the descriptor is readable again after the
    /// next one.
    pub fn look(&self) -> io::Result<Whereabouts> {
        // First: what happens after the look is another event.
        self.drain()?;
        let held = fstat(&self.directory)?;
        let at_path = match stat(&self.path) {
            Ok(shown) => AtPath::Shows(identity(&shown)),
            Err(Errno::NOENT | Errno::NOTDIR) => AtPath::Nothing,
            Err(_) => AtPath::Unknown,
        };
        Ok(locate(identity(&held), link_count(&held), at_path))
    }

    /// The path under which the directory was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn drain(&self) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
        let mut events = inotify::Reader::new(&self.events, &mut buffer);
        loop {
            match events.next() {
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[expect(
    clippy::useless_conversion,
    reason = "the kernel's types differ between machines"
)]
fn identity(stat: &Stat) -> Identity {
    Identity {
        device: stat.st_dev.into(),
        inode: stat.st_ino.into(),
    }
}

#[expect(
    clippy::useless_conversion,
    reason = "the kernel's types differ between machines"
)]
fn link_count(stat: &Stat) -> u64 {
    stat.st_nlink.into()
}

/// Readable when something may have changed.
impl AsFd for WatchedDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

impl AsRawFd for WatchedDirectory {
    fn as_raw_fd(&self) -> RawFd {
        self.events.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn where_a_directory_is_follows_from_its_descriptor_and_its_path() {
        let own = Identity {
            device: 1,
            inode: 7,
        };
        let other_inode = Identity { inode: 8, ..own };
        let other_device = Identity { device: 2, ..own };
        for (link_count, at_path, expected) in [
            (2, AtPath::Shows(own), Whereabouts::There),
            // Some file systems count no links of directories.
            (1, AtPath::Shows(own), Whereabouts::There),
            (0, AtPath::Shows(own), Whereabouts::There),
            (0, AtPath::Nothing, Whereabouts::Removed),
            (2, AtPath::Nothing, Whereabouts::Moved),
            (0, AtPath::Shows(other_inode), Whereabouts::Replaced),
            (2, AtPath::Shows(other_inode), Whereabouts::Replaced),
            (2, AtPath::Shows(other_device), Whereabouts::Replaced),
            (2, AtPath::Unknown, Whereabouts::There),
            (0, AtPath::Unknown, Whereabouts::Removed),
        ] {
            let found = locate(own, link_count, at_path);
            assert_eq!(found, expected, "{link_count} links, {at_path:?}");
        }
    }

    #[test]
    fn a_directory_is_looked_at_through_its_life() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        let home = home.path().canonicalize()?;
        let (data, away) = (home.join("data"), home.join("away"));
        let own = data.join("own");
        fs::create_dir_all(&own)?;
        let watched = WatchedDirectory::open(&own)?;
        assert_eq!(watched.look()?, Whereabouts::There);
        fs::write(data.join("file"), "")?;
        fs::remove_file(data.join("file"))?;
        assert_eq!(watched.look()?, Whereabouts::There, "another entry went");

        // What lies above it is moved: its own directory hears nothing of that.
        fs::rename(&data, &away)?;
        assert!(is_told(&watched)?);
        assert_eq!(watched.look()?, Whereabouts::Moved);
        std::os::unix::fs::symlink(&away, &data)?;
        assert_eq!(watched.look()?, Whereabouts::There, "a link leads to it");
        fs::remove_file(&data)?;
        fs::rename(&away, &data)?;
        assert_eq!(watched.look()?, Whereabouts::There, "it came back");

        assert!(!is_told(&watched)?);
        crate::remove(&home, "data")?;
        assert!(is_told(&watched)?);
        assert_eq!(watched.look()?, Whereabouts::Removed);
        fs::create_dir_all(&own)?;
        assert_eq!(watched.look()?, Whereabouts::Replaced);
        Ok(())
    }

    /// Whether an event waits; it is taken.
    fn is_told(watched: &WatchedDirectory) -> io::Result<bool> {
        let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
        let mut events = inotify::Reader::new(&watched.events, &mut buffer);
        match events.next() {
            Ok(_) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
