//! Versions of Ray, as free texts of users: read generously, compared by number.

/// Major, minor and patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u32, pub(crate) u32, pub(crate) u32);

impl Version {
    /// Reads `2.53.0`, `v2.53`, `2.53.0.rc1` and `2.53.0-py311`: two numbers at least, what follows the
    /// third does not count. As upstream's generic versions.
    pub(crate) fn generic(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('v');
        let numbers: String = text
            .chars()
            .take_while(|c| c.is_ascii_digit() || *c == '.')
            .collect();
        let mut parts = numbers.trim_end_matches('.').split('.');
        let mut number = || parts.next().map(str::parse::<u32>);
        let (major, minor) = (number()?.ok()?, number()?.ok()?);
        let patch = match number() {
            None => 0,
            Some(patch) => patch.ok()?,
        };
        Some(Self(major, minor, patch))
    }

    /// Reads a semantic version, of which minor and patch may be left out; whether it is a release.
    pub(crate) fn semantic(text: &str) -> Option<(Self, bool)> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (text, build) = text.split_once('+').unwrap_or((text, "x"));
        let (numbers, before) = match text.split_once('-') {
            Some((numbers, before)) => (numbers, Some(before)),
            None => (text, None),
        };
        let is_word = |word: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
            !word.is_empty() && word.chars().all(fits)
        };
        let parts: Option<Vec<u32>> = numbers.split('.').map(|part| part.parse().ok()).collect();
        let parts = parts.filter(|parts| parts.len() <= 3)?;
        if !is_word(build) || !before.is_none_or(is_word) {
            return None;
        }
        let part = |index: usize| parts.get(index).copied().unwrap_or(0);
        Some((Self(part(0), part(1), part(2)), before.is_none()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_versions_need_two_numbers_and_ignore_what_follows() {
        for (text, expected) in [
            ("2.53.0", Some(Version(2, 53, 0))),
            ("v2.53", Some(Version(2, 53, 0))),
            ("2.53.1.rc0", Some(Version(2, 53, 1))),
            ("2.53.0-py311", Some(Version(2, 53, 0))),
            ("2", None),
            ("nightly", None),
            ("", None),
            ("99999999999.1", None),
        ] {
            assert_eq!(Version::generic(text), expected, "{text}");
        }
    }

    #[test]
    fn semantic_versions_may_be_short_but_not_loose() {
        assert_eq!(Version::semantic("2.6"), Some((Version(2, 6, 0), true)));
        assert_eq!(
            Version::semantic("2.6.0-rc.1"),
            Some((Version(2, 6, 0), false))
        );
        assert_eq!(Version::semantic("2.6.0.1"), None);
        assert_eq!(Version::semantic("nightly"), None);
    }
}
