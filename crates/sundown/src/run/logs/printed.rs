//! Where a log that is read once more goes on: by the times of its lines, because the beginning of a
//! long log is dropped while it is written.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

/// Two streams of a container may be written in another order than that of their times, but not by
/// more than this.
const DISORDER_MAX: SignedDuration = SignedDuration::from_secs(1);

/// The lines that were printed last: how many of each time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Printed(BTreeMap<Timestamp, usize>);

impl Printed {
    /// From when on the log is asked for; None: from its beginning.
    pub(super) fn since(&self) -> Option<Timestamp> {
        let (last, _) = self.0.last_key_value()?;
        Some(last.checked_sub(DISORDER_MAX).unwrap_or(Timestamp::MIN))
    }

    /// A line was printed.
    pub(super) fn add(&mut self, at: Timestamp) {
        *self.0.entry(at).or_default() += 1;
        let Some(since) = self.since() else {
            return;
        };
        // One by one, and nearly always none: a log may have a million lines a second.
        while let Some(oldest) = self.0.first_entry()
            && *oldest.key() < since
        {
            oldest.remove();
        }
    }

    /// Takes a line out; whether it was there.
    pub(super) fn take(&mut self, at: Timestamp) -> bool {
        match self.0.get_mut(&at) {
            Some(count @ 1..) => {
                *count -= 1;
                true
            }
            Some(0) | None => false,
        }
    }
}

/// A line of a log that was asked for with times; without one it is as it is.
pub(super) fn split(line: &str) -> (Option<Timestamp>, &str) {
    let (at, text) = line.split_once(' ').unwrap_or((line, ""));
    match at.trim_end().parse() {
        Ok(at) => (Some(at), text),
        Err(_) => (None, line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(milliseconds).unwrap()
    }

    /// What is printed of a log that is read up to `lost` lines, and then again with what the server
    /// has from that time on.
    fn read_twice(times: &[i64], lost: usize) -> Vec<usize> {
        let mut printed = Printed::default();
        let mut shown = Vec::new();
        for first in [true, false] {
            let since = printed.since();
            let mut known = printed.clone();
            let lines = times.iter().map(|it| at(*it)).enumerate();
            let lines = lines.filter(|(_, at)| since.is_none_or(|since| *at >= since));
            let limit = if first { lost } else { times.len() };
            for (line, at) in lines.take(limit) {
                if !known.take(at) {
                    printed.add(at);
                    shown.push(line);
                }
            }
        }
        shown
    }

    #[test]
    fn each_line_is_printed_once_wherever_the_reading_stopped() {
        // Lines that were read at once have one time; those of two streams may stand in any order.
        let times = [0, 0, 0, 700, 650, 700, 2_000, 2_000, 9_000, 8_999, 9_000];
        let all: Vec<usize> = (0..times.len()).collect();
        for lost in 0..=times.len() {
            assert_eq!(read_twice(&times, lost), all, "lost after {lost}");
        }
    }

    #[test]
    fn only_the_last_second_is_remembered() {
        let mut printed = Printed::default();
        assert_eq!(printed.since(), None);
        for second in 0..1_000 {
            printed.add(at(second * 1_000));
        }
        assert_eq!(printed.0.len(), 2);
        assert_eq!(printed.since(), Some(at(998_000)));
    }

    #[test]
    fn a_time_is_told_apart_from_the_text() {
        let time: Timestamp = "2026-01-02T03:04:05.000000006Z".parse().unwrap();
        let line = "2026-01-02T03:04:05.000000006Z  two words\n";
        assert_eq!(split(line), (Some(time), " two words\n"));
        assert_eq!(
            split("2026-01-02T03:04:05.000000006Z \n"),
            (Some(time), "\n")
        );
        assert_eq!(split("no time\n"), (None, "no time\n"));
        assert_eq!(split(""), (None, ""));
    }
}
