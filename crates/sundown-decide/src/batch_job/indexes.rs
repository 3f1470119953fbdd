//! Sets of indexes as a status writes them: `0-2,4`.

use std::collections::BTreeMap;
use std::fmt;

/// Which indexes of a job are done, as runs by their first index. No two of them touch, so that there
/// are never more runs than the text has parts, whatever a part stands for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Indexes(BTreeMap<u32, u32>);

/// More cannot be written down: upstream's bound on completions of an indexed job.
const COUNT_MAX: u32 = 100_000;

impl Indexes {
    /// Reads a set; what is malformed is left out.
    pub(super) fn parse(text: &str) -> Self {
        let mut all = Self::default();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
                all.insert_run(first, last.min(COUNT_MAX));
            }
        }
        all
    }

    pub(super) fn insert(&mut self, index: u32) {
        self.insert_run(index, index);
    }

    pub(super) fn contains(&self, index: u32) -> bool {
        let before = self.0.range(..=index).next_back();
        before.is_some_and(|(_, last)| *last >= index)
    }

    pub(super) fn count(&self) -> i64 {
        let lengths = self.0.iter();
        let lengths = lengths.map(|(first, last)| i64::from(*last) - i64::from(*first) + 1);
        lengths.sum()
    }

    /// Each run that is swallowed was inserted once, so that a text costs as much as it has parts.
    fn insert_run(&mut self, mut first: u32, mut last: u32) {
        if first > last {
            return;
        }
        let touching = last.saturating_add(1);
        while let Some((&other, &end)) = self.0.range(..=touching).next_back() {
            if end.saturating_add(1) < first {
                break;
            }
            self.0.remove(&other);
            first = first.min(other);
            last = last.max(end);
        }
        self.0.insert(first, last);
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.0.iter().map(|(first, last)| match last - first {
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
        assert_eq!(Indexes::parse("5-3,7").to_string(), "7");
        assert_eq!(Indexes::parse("4294967295,1").to_string(), "1");
    }

    /// A status of 3 MiB can name a hundred thousand indexes three hundred thousand times.
    #[test]
    fn a_range_that_is_named_again_and_again_costs_one_step_each() {
        let text = "0-100000,".repeat(350_000);
        let all = Indexes::parse(&text);
        assert_eq!(all.to_string(), "0-100000");
        assert_eq!(all.count(), 100_001);
        assert!(all.contains(0) && all.contains(100_000) && !all.contains(100_001));
        let apart: Vec<String> = (0..=50_000).rev().map(|it| (it * 2).to_string()).collect();
        let all = Indexes::parse(&apart.join(","));
        assert_eq!((all.count(), all.0.len()), (50_001, 50_001));
    }

    #[test]
    fn runs_say_the_same_as_the_set_of_their_indexes() {
        // Every way to put three runs below seven together.
        let runs: Vec<(u32, u32)> = (0..7)
            .flat_map(|first| (first..7).map(move |last| (first, last)))
            .collect();
        for one in &runs {
            for two in &runs {
                for three in &runs {
                    let mut all = Indexes::default();
                    let mut set = std::collections::BTreeSet::new();
                    for (first, last) in [one, two, three] {
                        all.insert_run(*first, *last);
                        set.extend(*first..=*last);
                    }
                    let found: Vec<u32> = (0..9).filter(|it| all.contains(*it)).collect();
                    assert_eq!(found, set.iter().copied().collect::<Vec<_>>());
                    assert_eq!(all.count(), i64::try_from(set.len()).unwrap_or(-1));
                    assert_eq!(Indexes::parse(&all.to_string()), all);
                }
            }
        }
    }
}
