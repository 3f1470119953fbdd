//! Where the last lines of a file begin, found from its end: a log may be larger than memory.

use std::io::{self, Read, Seek, SeekFrom};

/// How much is looked at in one step backwards.
const BLOCK_BYTES: u64 = 64 << 10;

/// Where the lines that are wanted begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) offset: u64,
    /// How many lines more were wanted than the file has.
    pub(super) missing: u64,
}

/// Finds the last lines of the first `length` bytes of a file.
pub(super) fn start(file: &mut (impl Read + Seek), length: u64, lines: u64) -> io::Result<Start> {
    if lines == 0 {
        return Ok(Start {
            offset: length,
            missing: 0,
        });
    }
    let mut block = Vec::new();
    let mut end = length;
    let mut ends_seen = 0;
    while end > 0 {
        let begin = end.saturating_sub(BLOCK_BYTES);
        let size = usize::try_from(end - begin).expect("a block fits into memory");
        block.resize(size, 0);
        file.seek(SeekFrom::Start(begin))?;
        file.read_exact(&mut block)?;
        for (at, _) in block
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, byte)| **byte == b'\n')
        {
            let after = begin + u64::try_from(at).unwrap_or(u64::MAX) + 1;
            // The end of the last line is not the end of one before it.
            if after == length {
                continue;
            }
            ends_seen += 1;
            if ends_seen == lines {
                return Ok(Start {
                    offset: after,
                    missing: 0,
                });
            }
        }
        end = begin;
    }
    let has_lines = if length == 0 { 0 } else { ends_seen + 1 };
    Ok(Start {
        offset: 0,
        missing: lines - has_lines,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn check(text: &str, lines: u64, offset: u64, missing: u64) {
        let length = u64::try_from(text.len()).unwrap();
        let found = start(&mut Cursor::new(text.as_bytes()), length, lines).unwrap();
        assert_eq!(
            found,
            Start { offset, missing },
            "{lines} of {} bytes",
            text.len()
        );
    }

    #[test]
    fn the_last_lines_begin_after_the_ends_of_those_before() {
        check("a\nb\nc\n", 0, 6, 0);
        check("a\nb\nc\n", 1, 4, 0);
        check("a\nb\nc\n", 2, 2, 0);
        check("a\nb\nc\n", 3, 0, 0);
        check("a\nb\nc\n", 5, 0, 2);
        check("", 2, 0, 2);
        check("\n\n", 1, 1, 0);
        check("a\nb", 1, 2, 0);
        check("a\nb", 2, 0, 0);
    }

    #[test]
    fn lines_are_found_across_blocks() {
        let line = format!("{}\n", "x".repeat(50_000));
        let text = line.repeat(5);
        check(&text, 1, 4 * 50_001, 0);
        check(&text, 4, 50_001, 0);
        check(&text, 5, 0, 0);
        check(&text, 9, 0, 4);
    }
}
