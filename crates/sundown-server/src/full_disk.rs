//! What the log says of a disk that is full: once, then once a minute with a count, and that there is room
//! again. The log often lies on the same disk, and every client that tries again would add a line.

use std::time::Duration;

/// Between two lines, and how long no write may have been refused before the matter is over.
const PAUSE: Duration = Duration::from_mins(1);

/// A line for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    Full,
    StillFull { refused_count: usize },
    RoomAgain { refused_count: usize },
}

/// How often writes were refused. Instants are durations since any fixed moment.
#[derive(Debug, Default)]
pub(crate) struct FullDisk {
    since: Option<Refused>,
}

#[derive(Debug)]
struct Refused {
    count: usize,
    last_at: Duration,
    said_at: Duration,
}

impl FullDisk {
    /// So many writes were refused.
    pub(crate) fn refused(&mut self, count: usize, now: Duration) -> Option<Said> {
        let Some(refused) = &mut self.since else {
            self.since = Some(Refused {
                count,
                last_at: now,
                said_at: now,
            });
            return Some(Said::Full);
        };
        refused.count = refused.count.saturating_add(count);
        refused.last_at = now;
        if now.saturating_sub(refused.said_at) < PAUSE {
            return None;
        }
        refused.said_at = now;
        let refused_count = refused.count;
        Some(Said::StillFull { refused_count })
    }

    /// A write was done. Small ones may still find room between large ones that do not.
    pub(crate) fn written(&mut self, now: Duration) -> Option<Said> {
        let refused = self.since.as_ref()?;
        if now.saturating_sub(refused.last_at) < PAUSE {
            return None;
        }
        let refused_count = refused.count;
        self.since = None;
        Some(Said::RoomAgain { refused_count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// One line was written for each refused write: 1 MB a second, onto the full disk.
    #[test]
    fn refusals_without_end_are_told_once_a_minute_with_their_count() {
        let mut disk = FullDisk::default();
        let mut said = Vec::new();
        // Ten minutes, a refusal every ten milliseconds.
        for step in 0..60_000 {
            said.extend(disk.refused(1, at(step * 10)));
        }
        assert_eq!(said.len(), 10);
        assert_eq!(said[0], Said::Full);
        let refused_count = 6_001;
        assert_eq!(said[1], Said::StillFull { refused_count });
    }

    #[test]
    fn small_writes_between_large_ones_add_no_lines() {
        let mut disk = FullDisk::default();
        let mut said = Vec::new();
        for step in 0..6_000 {
            said.extend(disk.refused(1, at(step * 10)));
            said.extend(disk.written(at(step * 10)));
        }
        assert_eq!(said, [Said::Full]);
    }

    #[test]
    fn room_is_told_once_and_the_next_time_begins_anew() {
        let mut disk = FullDisk::default();
        assert_eq!(disk.written(at(0)), None);
        assert_eq!(disk.refused(3, at(0)), Some(Said::Full));
        assert_eq!(disk.written(at(1_000)), None);
        let refused_count = 3;
        assert_eq!(
            disk.written(at(60_000)),
            Some(Said::RoomAgain { refused_count })
        );
        assert_eq!(disk.written(at(60_001)), None);
        assert_eq!(disk.refused(1, at(60_002)), Some(Said::Full));
    }
}
