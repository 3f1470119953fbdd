//! Sets of indexes as a status writes them: `0-2,4`.

use std::collections::BTreeSet;
use std::fmt;

/// Which indexes of a job are done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Indexes(BTreeSet<u32>);

/// More cannot be written down: upstream's bound on completions of an indexed job.
const COUNT_MAX: u32 = 100_000;

impl Indexes {
    /// Reads a set; what is malformed is left out.
    pub(super) fn parse(text: &str) -> Self {
        let mut all = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
                all.extend(first..=last.min(COUNT_MAX));
            }
        }
        Self(all)
    }

    pub(super) fn insert(&mut self, index: u32) {
        self.0.insert(index);
    }

    pub(super) fn contains(&self, index: u32) -> bool {
        self.0.contains(&index)
    }

    pub(super) fn count(&self) -> i64 {
        i64::try_from(self.0.len()).unwrap_or(i64::MAX)
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for index in &self.0 {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == *index => *last = *index,
                Some(_) | None => runs.push((*index, *index)),
            }
        }
        let parts = runs.iter().map(|(first, last)| match last - first {
            0 => first.to_string(),
            // Upstream joins only runs of three and more.
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        });
        f.write_str(&parts.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::Indexes;

    #[test]
    fn sets_are_read_and_written_as_upstream_does() {
        for text in ["", "0", "0,1", "0-2", "0-2,4", "1,3-5,7,8"] {
            assert_eq!(Indexes::parse(text).to_string(), text);
        }
        assert_eq!(Indexes::parse("x,2,3-y").to_string(), "2");
    }
}
