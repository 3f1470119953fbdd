//! Semantic versions.

use std::cmp::Ordering;

use super::super::value::Val;
use super::Library;

/// A version; what comes after a plus does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Semver {
    numbers: [u64; 3],
    before: Vec<String>,
}

impl Semver {
    /// Reads a version; loosely, a leading `v`, missing parts and leading zeros are taken too.
    pub(crate) fn read(text: &str, is_loose: bool) -> Option<Self> {
        let text = if is_loose {
            text.strip_prefix('v').unwrap_or(text)
        } else {
            text
        };
        let (text, build) = text
            .split_once('+')
            .map_or((text, None), |(it, build)| (it, Some(build)));
        let (numbers, before) = text
            .split_once('-')
            .map_or((text, None), |(it, rest)| (it, Some(rest)));
        let is_word = |it: &str| {
            !it.is_empty()
                && it
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let words = |text: Option<&str>| -> Option<Vec<String>> {
            let Some(text) = text else {
                return Some(Vec::new());
            };
            let words: Vec<String> = text.split('.').map(str::to_owned).collect();
            words.iter().all(|it| is_word(it)).then_some(words)
        };
        words(build)?;
        let before = words(before)?;
        let is_padded = |it: &String| it.len() > 1 && it.starts_with('0') && is_number(it);
        if before.iter().any(is_padded) {
            return None;
        }
        let mut found = numbers.split('.').map(|it| number(it, is_loose));
        let major = found.next()??;
        let mut next = || match found.next() {
            Some(number) => number,
            None => is_loose.then_some(0),
        };
        let (minor, patch) = (next()?, next()?);
        found.next().is_none().then_some(Self {
            numbers: [major, minor, patch],
            before,
        })
    }

    fn compare(&self, other: &Self) -> Ordering {
        let numbers = self.numbers.cmp(&other.numbers);
        numbers.then_with(|| match (self.before.is_empty(), other.before.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let pairs = self.before.iter().zip(&other.before);
                let differing = pairs
                    .map(|(one, two)| words(one, two))
                    .find(|it| it.is_ne());
                differing.unwrap_or(self.before.len().cmp(&other.before.len()))
            }
        })
    }

    pub(super) fn call<'a>(&self, name: &str, args: &[Val<'a>]) -> Option<Val<'a>> {
        let int = |value: u64| Val::Int(i64::try_from(value).unwrap_or(i64::MAX));
        let other = match args {
            [] => None,
            [Val::Library(it)] => match &**it {
                Library::Semver(other) => Some(self.compare(other)),
                _ => return None,
            },
            _ => return None,
        };
        Some(match (name, other) {
            ("major", None) => int(self.numbers[0]),
            ("minor", None) => int(self.numbers[1]),
            ("patch", None) => int(self.numbers[2]),
            ("isGreaterThan", Some(order)) => Val::Bool(order.is_gt()),
            ("isLessThan", Some(order)) => Val::Bool(order.is_lt()),
            ("compareTo", Some(order)) => Val::Int(order as i64),
            _ => return None,
        })
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(text: &str, is_loose: bool) -> Option<u64> {
    let is_padded = text.len() > 1 && text.starts_with('0');
    let is_fine = is_number(text) && (is_loose || !is_padded);
    text.parse().ok().filter(|_| is_fine)
}

fn words(one: &str, two: &str) -> Ordering {
    match (is_number(one), is_number(two)) {
        (true, true) => one.len().cmp(&two.len()).then_with(|| one.cmp(two)),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => one.cmp(two),
    }
}

#[cfg(test)]
mod tests {
    use super::Semver;

    #[test]
    fn orders_versions() {
        let order = [
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0",
            "1.2.0",
        ];
        let read: Vec<Semver> = order
            .iter()
            .map(|it| Semver::read(it, false).unwrap())
            .collect();
        assert!(
            read.windows(2)
                .all(|pair| pair[0].compare(&pair[1]).is_lt())
        );
        assert_eq!(Semver::read("v1.2", true), Semver::read("1.2.0", false));
        for text in [
            "1", "1.2", "v1.2.3", "1.2.3.4", "01.2.3", "1.2.x", "1.2.3-01",
        ] {
            assert_eq!(Semver::read(text, false), None, "{text}");
        }
    }
}
