//! From the lines of a log file to what a reader sees. Pure: bytes in, bytes out.
//!
//! Mirrors upstream's `cri-client/pkg/logs/logs.go`.

use jiff::Timestamp;

use super::LogOptions;

/// No line of ours is longer; what is, is damaged and dropped.
const LINE_BYTES_MAX: usize = 128 << 10;

/// What is shown of the lines that come.
#[derive(Debug)]
pub(super) struct Shown {
    since: Option<Timestamp>,
    timestamps: bool,
    bytes_left: u64,
    /// The beginning of a line whose end has not come.
    pending: Vec<u8>,
    /// Whether what is shown next begins a line: a part of a long line does not.
    is_at_start: bool,
}

/// One line of the file.
struct Entry<'a> {
    at: &'a [u8],
    is_partial: bool,
    text: &'a [u8],
}

impl Shown {
    pub(super) fn new(options: &LogOptions) -> Self {
        Self {
            since: options.since,
            timestamps: options.timestamps,
            bytes_left: options.bytes_max.unwrap_or(u64::MAX),
            pending: Vec::new(),
            is_at_start: true,
        }
    }

    /// Takes what was read of the file and adds what is seen of it.
    pub(super) fn take(&mut self, bytes: &[u8], seen: &mut Vec<u8>) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            rest = after;
            if self.pending.is_empty() {
                self.line(line, seen);
            } else {
                let mut whole = std::mem::take(&mut self.pending);
                whole.extend_from_slice(line);
                self.line(&whole, seen);
            }
        }
        if self.pending.len() + rest.len() <= LINE_BYTES_MAX {
            self.pending.extend_from_slice(rest);
        }
    }

    /// A last line without an end is shown as it is.
    pub(super) fn finish(&mut self, seen: &mut Vec<u8>) {
        let last = std::mem::take(&mut self.pending);
        if !last.is_empty() {
            self.line(&last, seen);
        }
    }

    pub(super) fn is_within_line(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes_left == 0
    }

    fn line(&mut self, line: &[u8], seen: &mut Vec<u8>) {
        // What is no line of a log was torn when the machine went down.
        let Some(entry) = read(line) else {
            return;
        };
        if !self.is_wanted(&entry) {
            return;
        }
        if self.timestamps && self.is_at_start {
            self.show(entry.at, seen);
            self.show(b" ", seen);
        }
        self.show(entry.text, seen);
        if !entry.is_partial {
            self.show(b"\n", seen);
        }
        self.is_at_start = !entry.is_partial;
    }

    fn is_wanted(&self, entry: &Entry<'_>) -> bool {
        let Some(since) = self.since else {
            return true;
        };
        let text = std::str::from_utf8(entry.at).unwrap_or_default();
        text.parse::<Timestamp>().is_ok_and(|at| at >= since)
    }

    fn show(&mut self, text: &[u8], seen: &mut Vec<u8>) {
        let room = usize::try_from(self.bytes_left).unwrap_or(usize::MAX);
        let text = &text[..text.len().min(room)];
        seen.extend_from_slice(text);
        self.bytes_left -= u64::try_from(text.len()).unwrap_or(0);
    }
}

/// `TIME STREAM TAG TEXT`, in the format of the container runtime interface.
fn read(line: &[u8]) -> Option<Entry<'_>> {
    let mut words = line.splitn(4, |byte| *byte == b' ');
    let (at, _stream, tag) = (words.next()?, words.next()?, words.next()?);
    Some(Entry {
        at,
        is_partial: tag == b"P",
        text: words.next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: &str = "1970-01-01T00:00:01.000000000Z";
    const LATER: &str = "1970-01-01T00:00:02.500000000Z";

    fn options() -> LogOptions {
        LogOptions::default()
    }

    fn check(options: &LogOptions, file: &str, expect: &str) {
        for size in [1, 7, file.len().max(1)] {
            let mut shown = Shown::new(options);
            let mut seen = Vec::new();
            for piece in file.as_bytes().chunks(size) {
                shown.take(piece, &mut seen);
            }
            shown.finish(&mut seen);
            assert_eq!(
                String::from_utf8(seen).unwrap(),
                expect,
                "in pieces of {size}"
            );
        }
    }

    #[test]
    fn lines_are_shown_without_what_the_log_adds() {
        let file = format!("{AT} stdout F one\n{AT} stderr F two  words\n{AT} stdout F \n");
        check(&options(), &file, "one\ntwo  words\n\n");
        let long = format!("{AT} stdout P on\n{AT} stdout F e\n");
        check(&options(), &long, "one\n");
        check(&options(), &format!("{AT} stdout F torn"), "torn\n");
        check(
            &options(),
            &format!("rubbish\n{AT} stdout F x\n{AT}"),
            "x\n",
        );
    }

    #[test]
    fn times_stand_before_lines_and_not_before_their_parts() {
        let options = LogOptions {
            timestamps: true,
            ..options()
        };
        let file = format!("{AT} stdout P on\n{LATER} stdout F e\n{LATER} stdout F x\n");
        check(&options, &file, &format!("{AT} one\n{LATER} x\n"));
    }

    #[test]
    fn what_is_too_old_or_too_much_is_left_out() {
        let file = format!("{AT} stdout F old\n{LATER} stdout F new\n");
        let since = LogOptions {
            since: Some("1970-01-01T00:00:02Z".parse().unwrap()),
            ..options()
        };
        check(&since, &file, "new\n");
        let few = LogOptions {
            bytes_max: Some(5),
            ..options()
        };
        check(&few, &file, "old\nn");
    }

    #[test]
    fn a_line_without_end_is_not_kept() {
        let mut shown = Shown::new(&options());
        let mut seen = Vec::new();
        let piece = vec![b'x'; 64 << 10];
        for _ in 0..100 {
            shown.take(&piece, &mut seen);
        }
        assert!(shown.pending.len() <= LINE_BYTES_MAX);
    }
}
