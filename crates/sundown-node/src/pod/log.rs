//! The log of a container, in the format of the container runtime interface, in two files of bounded
//! size. It flows whether or not anybody reads it.

use std::fs;
use std::io::{self, PipeReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use jiff::Timestamp;

/// Longer lines are cut into parts, each marked as one, as container runtimes do.
const LINE_BYTES_MAX: usize = 16 << 10;

/// How much is taken from a pipe at once.
const READ_BYTES: usize = 64 << 10;

/// The log of one attempt.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    bytes_max: u64,
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    file: fs::File,
    length: u64,
}

impl LogFile {
    /// The log at a path; one file of it grows to `bytes_max`, and there are two.
    pub(super) fn open(path: &Path, bytes_max: u64) -> Self {
        let opened = open(path);
        if let Err(error) = &opened {
            eprintln!("pod init: {}: {error}", path.display());
        }
        Self {
            path: path.to_owned(),
            bytes_max,
            open: Mutex::new(opened.ok()),
        }
    }

    /// Writes a stream until its end, on a thread of its own.
    pub(super) fn follow(
        self: Arc<Self>,
        stream: &'static str,
        pipe: PipeReader,
    ) -> Option<JoinHandle<()>> {
        let spawned = thread::Builder::new()
            .name(stream.to_owned())
            .spawn(move || self.copy(stream, pipe));
        spawned.ok()
    }

    fn copy(&self, stream: &str, mut pipe: PipeReader) {
        let mut buffer = vec![0; READ_BYTES];
        let mut lines = Lines::default();
        while let Ok(length @ 1..) = pipe.read(&mut buffer) {
            let text = lines.take(stream, Timestamp::now(), &buffer[..length]);
            self.write(&text);
        }
        self.write(&lines.finish(stream, Timestamp::now()));
    }

    /// A log that cannot be written must not stop the container, so the text is dropped.
    fn write(&self, text: &[u8]) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if text.is_empty() {
            return;
        }
        let added = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let is_full = open
            .as_ref()
            .is_some_and(|each| each.length + added > self.bytes_max);
        if is_full {
            *open = self.rotate().ok();
        }
        if let Some(each) = open.as_mut()
            && each.file.write_all(text).is_ok()
        {
            each.length += added;
        }
    }

    fn rotate(&self) -> io::Result<Open> {
        fs::rename(&self.path, self.path.with_extension("log.1"))?;
        open(&self.path)
    }
}

fn open(path: &Path) -> io::Result<Open> {
    fs::create_dir_all(path.parent().expect("a log lies in a directory"))?;
    let file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?;
    let length = file.metadata()?.len();
    Ok(Open { file, length })
}

/// Cuts a stream into lines of the log.
#[derive(Debug, Default)]
struct Lines {
    pending: Vec<u8>,
}

impl Lines {
    fn take(&mut self, stream: &str, at: Timestamp, bytes: &[u8]) -> Vec<u8> {
        let prefix = format!("{at:.9} {stream} ");
        let mut text = Vec::with_capacity(bytes.len() * 2);
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = LINE_BYTES_MAX - self.pending.len();
            let window = &rest[..rest.len().min(room)];
            let end = window.iter().position(|byte| *byte == b'\n');
            let (taken, after) = rest.split_at(end.unwrap_or(window.len()));
            self.pending.extend_from_slice(taken);
            rest = if end.is_some() { &after[1..] } else { after };
            if end.is_some() {
                self.flush(&mut text, &prefix, "F ");
            } else if self.pending.len() == LINE_BYTES_MAX {
                self.flush(&mut text, &prefix, "P ");
            }
        }
        text
    }

    /// A last line without an end is a whole line all the same.
    fn finish(&mut self, stream: &str, at: Timestamp) -> Vec<u8> {
        let mut text = Vec::new();
        if !self.pending.is_empty() {
            self.flush(&mut text, &format!("{at:.9} {stream} "), "F ");
        }
        text
    }

    fn flush(&mut self, text: &mut Vec<u8>, prefix: &str, tag: &str) {
        text.extend_from_slice(prefix.as_bytes());
        text.extend_from_slice(tag.as_bytes());
        text.append(&mut self.pending);
        text.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(parts: &[&[u8]]) -> String {
        let mut lines = Lines::default();
        let at = Timestamp::from_second(1).unwrap();
        let mut text = Vec::new();
        for part in parts {
            text.extend(lines.take("stdout", at, part));
        }
        text.extend(lines.finish("stdout", at));
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn lines_are_joined_across_reads_and_the_last_one_needs_no_end() {
        let at = "1970-01-01T00:00:01.000000000Z stdout F";
        assert_eq!(
            cut(&[b"one\ntw", b"o\n\nend"]),
            format!("{at} one\n{at} two\n{at} \n{at} end\n")
        );
        assert_eq!(cut(&[]), "");
    }

    #[test]
    fn long_lines_are_cut_into_parts() {
        let long = vec![b'x'; LINE_BYTES_MAX + 1];
        let text = cut(&[&long, b"\n"]);
        let tags: Vec<&str> = text.lines().map(|line| &line[38..39]).collect();
        assert_eq!(tags, ["P", "F"]);
    }
}
