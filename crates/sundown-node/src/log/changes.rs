//! Word from the kernel that something in a directory changed.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

/// Room for a good number of events at once.
const EVENT_BYTES: usize = 4 << 10;

/// The changes in the directory of a log, from the moment that this is made.
#[derive(Debug)]
pub struct LogChanges {
    descriptor: AsyncFd<OwnedFd>,
}

impl LogChanges {
    pub(super) fn of(directory: &Path) -> io::Result<Self> {
        let descriptor = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let flags = WatchFlags::MODIFY
            | WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::ONLYDIR;
        inotify::add_watch(&descriptor, directory, flags)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe to call, for the sake of types that give away their                       descriptor; an OwnedFd does not"
        )]
        let descriptor = AsyncFd::new(descriptor)?;
        Ok(Self { descriptor })
    }

    /// Resolves when something has changed since the last time; false: the directory is gone.
    /// May be cancelled.
    pub async fn changed(&mut self) -> io::Result<bool> {
        loop {
            let mut ready = self.descriptor.readable().await?;
            if let Ok(read) = ready.try_io(|descriptor| drain(descriptor.get_ref())) {
                return read;
            }
        }
    }
}

/// Takes all events that wait.
fn drain(descriptor: &OwnedFd) -> io::Result<bool> {
    let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
    let mut events = inotify::Reader::new(descriptor, &mut buffer);
    let (mut has_any, mut is_there) = (false, true);
    loop {
        match events.next() {
            Ok(event) => {
                has_any = true;
                is_there &= !event
                    .events()
                    .intersects(ReadFlags::DELETE_SELF | ReadFlags::IGNORED);
            }
            Err(Errno::WOULDBLOCK) if has_any => return Ok(is_there),
            Err(error) => return Err(error.into()),
        }
    }
}
