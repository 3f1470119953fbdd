//! Reading the log of one run, from its end if need be, and going on with it while it grows. Memory is
//! bounded whatever the size of the log; when a reader is to stop is for the caller to decide.

mod changes;
mod files;
mod shown;
mod tail;

use std::collections::VecDeque;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use jiff::Timestamp;

use crate::paths::NodePaths;
use crate::spec::{ContainerKey, is_plain_name};
use files::{Follow, Part};
use shown::Shown;

pub use changes::LogChanges;

/// How much of a file is read at once.
const READ_BYTES: usize = 64 << 10;

/// How much of a log is wanted, and in which form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Go on with what is written later.
    pub follow: bool,
    /// Only the last lines.
    pub tail_lines: Option<u64>,
    /// Only what was written since.
    pub since: Option<Timestamp>,
    /// Put its time before each line.
    pub timestamps: bool,
    /// Stop after so many bytes.
    pub bytes_max: Option<u64>,
}

/// A place in the log of one run. Its calls block on the disk.
#[derive(Debug)]
pub struct LogReader {
    path: PathBuf,
    follow: bool,
    /// What is still to be read, the oldest first.
    parts: VecDeque<Part>,
    shown: Shown,
    buffer: Vec<u8>,
}

impl LogReader {
    /// Opens the log of a run; one that was never written is empty.
    ///
    /// # Errors
    /// The names lead elsewhere, or the files cannot be read.
    pub fn open(paths: &NodePaths, run: &ContainerKey, options: &LogOptions) -> io::Result<Self> {
        if !is_plain_name(&run.uid) || !is_plain_name(&run.container) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let path = paths.pod(&run.uid).log(&run.container, run.attempt);
        let mut parts = files::open(&path)?;
        if let Some(lines) = options.tail_lines {
            skip_to_tail(&mut parts, lines)?;
        }
        Ok(Self {
            path,
            follow: options.follow,
            parts,
            shown: Shown::new(options),
            buffer: vec![0; READ_BYTES],
        })
    }

    /// The next piece of text; `None`: there is no more, or no more yet if it is followed.
    pub fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut text = Vec::new();
        while text.is_empty() {
            if self.shown.is_full() {
                return Ok(None);
            }
            let Some(part) = self.parts.front_mut() else {
                if self.go_on()? {
                    continue;
                }
                return Ok(None);
            };
            let room = part.room(self.follow, self.shown.is_within_line());
            let length = room.min(self.buffer.len());
            let count = part.file.read(&mut self.buffer[..length])?;
            part.position += u64::try_from(count).unwrap_or(u64::MAX);
            if count > 0 {
                self.shown.take(&self.buffer[..count], &mut text);
            } else if self.parts.len() > 1 {
                self.shown.finish(&mut text);
                self.parts.pop_front();
            } else if !self.go_on()? {
                return Ok(None);
            }
        }
        Ok(Some(text))
    }

    /// The last line if it has no end: of a run that is over there comes no more.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        self.shown.finish(&mut text);
        text
    }

    /// Whether everything that was asked for has been read.
    pub fn is_full(&self) -> bool {
        self.shown.is_full()
    }

    /// What wakes those who follow.
    ///
    /// # Errors
    /// The directory of the log is not there or cannot be watched.
    pub fn changes(&self) -> io::Result<LogChanges> {
        LogChanges::of(self.path.parent().expect("a log lies in a directory"))
    }

    /// Looks whether the log goes on in another file.
    fn go_on(&mut self) -> io::Result<bool> {
        if !self.follow {
            return Ok(false);
        }
        let own = self.parts.back().map(|part| part.identity);
        match files::after(own, &files::standing(&self.path)) {
            Follow::Stay => Ok(false),
            Follow::Both => {
                self.parts.extend(files::open(&self.path)?);
                Ok(true)
            }
            Follow::Current => {
                let newer = files::open(&self.path)?;
                let newer: Vec<_> = newer
                    .into_iter()
                    .filter(|part| Some(part.identity) != own)
                    .collect();
                let has_more = !newer.is_empty();
                self.parts.extend(newer);
                Ok(has_more)
            }
        }
    }
}

/// Leaves only the last lines of all parts together.
fn skip_to_tail(parts: &mut VecDeque<Part>, lines: u64) -> io::Result<()> {
    let mut missing = lines;
    for part in parts.iter_mut().rev() {
        let found = tail::start(&mut part.file, part.length, missing)?;
        part.file.seek(SeekFrom::Start(found.offset))?;
        part.position = found.offset;
        missing = found.missing;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
