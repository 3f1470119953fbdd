//! The two files of a log and the order in which they are read. The writer renames the full one and
//! begins another; a reader that holds a file open keeps it whatever is renamed or removed.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// How often the files may change names while they are opened. Each time a whole file was filled
/// meanwhile, so more than a few mean that something else is wrong.
const TRIES_MAX: usize = 16;

/// Which file it is, under whatever name.
pub(super) type Identity = (u64, u64);

/// A file that is being read.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) file: File,
    pub(super) identity: Identity,
    /// How long it was when it was opened.
    pub(super) length: u64,
    pub(super) position: u64,
}

/// The two files as they stand under their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) full: Option<Identity>,
    pub(super) current: Option<Identity>,
}

/// Where a reader goes on that is at the end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follow {
    /// Its file is still the one that is written.
    Stay,
    /// Its file is full; what follows is in the current one.
    Current,
    /// Its file is gone; both are newer.
    Both,
}

impl Part {
    /// How many bytes may be read now. One that does not follow ends where the file ended when it was
    /// opened, or it would run after a busy writer for ever; but no line is cut.
    pub(super) fn room(&self, follow: bool, is_within_line: bool) -> usize {
        let left = self.length.saturating_sub(self.position);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        match (follow, left) {
            (true, _) => usize::MAX,
            (false, 0) if is_within_line => 1,
            (false, left) => left,
        }
    }
}

/// Decides where to go on after the end of a file; `None`: nothing was read yet.
pub(super) fn after(own: Option<Identity>, standing: &Standing) -> Follow {
    match own {
        _ if standing.current.is_none() => Follow::Stay,
        Some(_) if own == standing.current => Follow::Stay,
        Some(_) if own == standing.full => Follow::Current,
        Some(_) | None => Follow::Both,
    }
}

/// The files under their names now.
pub(super) fn standing(path: &Path) -> Standing {
    let identity = |path: &Path| std::fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
    Standing {
        full: identity(&full(path)),
        current: identity(path),
    }
}

/// Opens both files, the older first, such that nothing lies between them.
pub(super) fn open(path: &Path) -> io::Result<VecDeque<Part>> {
    for _ in 0..TRIES_MAX {
        let current = part(path)?;
        let full = part(&full(path))?;
        let identity = current.as_ref().map(|part| part.identity);
        if standing(path).current == identity {
            return Ok(full.into_iter().chain(current).collect());
        }
    }
    Err(io::Error::other("the log changes faster than it is read"))
}

fn part(path: &Path) -> io::Result<Option<Part>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    Ok(Some(Part {
        file,
        identity: (metadata.dev(), metadata.ino()),
        length: metadata.len(),
        position: 0,
    }))
}

fn full(path: &Path) -> std::path::PathBuf {
    path.with_extension("log.1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_goes_on_where_its_file_went() {
        let (a, b, c) = ((1, 1), (1, 2), (1, 3));
        let check = |own, full, current, expect| {
            let standing = Standing { full, current };
            assert_eq!(after(own, &standing), expect, "{own:?} {standing:?}");
        };
        check(None, None, None, Follow::Stay);
        check(None, None, Some(a), Follow::Both);
        check(Some(a), None, Some(a), Follow::Stay);
        check(Some(a), Some(a), Some(b), Follow::Current);
        check(Some(a), Some(b), Some(c), Follow::Both);
        check(Some(a), Some(a), None, Follow::Stay);
        check(Some(a), None, None, Follow::Stay);
    }
}
