//! Durations, dates and other values that are written as texts, as Go reads and writes them.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// The units of a duration, in nanoseconds.
const UNITS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];

/// Reads a duration such as `1h30m`.
pub(crate) fn duration(text: &str) -> Option<SignedDuration> {
    let (is_negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    let mut sum = SignedDuration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.');
        let (unit, after) = rest.split_at(end.unwrap_or(rest.len()));
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let part = SignedDuration::try_from_secs_f64(number * scale / 1e9).ok()?;
        sum = sum.checked_add(part)?;
        rest = after;
    }
    Some(if is_negative { -sum } else { sum })
}

/// A duration as CEL writes it: seconds.
pub(crate) fn duration_text(value: SignedDuration) -> String {
    format!("{}s", value.as_secs_f64())
}

/// Reads a date as the instant at which it begins.
pub(crate) fn date(text: &str) -> Option<Timestamp> {
    let date: Date = text.parse().ok()?;
    date.to_zoned(TimeZone::UTC).ok().map(|it| it.timestamp())
}

/// Reads standard base64 with padding.
pub(crate) fn base64(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| {
        Some(match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        })
    };
    let body = text.trim_end_matches('=').as_bytes();
    if !text.len().is_multiple_of(4) || text.len() - body.len() > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(body.len() * 3 / 4);
    for group in body.chunks(4) {
        let digits: Vec<u8> = group
            .iter()
            .map(|byte| digit(*byte))
            .collect::<Option<_>>()?;
        let at = |index: usize| digits.get(index).copied().unwrap_or(0);
        let bytes = [
            (at(0) << 2) | (at(1) >> 4),
            (at(1) << 4) | (at(2) >> 2),
            (at(2) << 6) | at(3),
        ];
        out.extend_from_slice(&bytes[..digits.len().saturating_sub(1)]);
    }
    Some(out)
}

/// A number as Go prints it: the shortest form, with an exponent when it is large or small.
pub(crate) fn float_text(value: f64) -> String {
    if !value.is_finite() {
        let sign = if value > 0.0 { "+" } else { "-" };
        return if value.is_nan() {
            "NaN".to_owned()
        } else {
            format!("{sign}Inf")
        };
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::{base64, duration};

    #[test]
    fn reads_durations_as_go_does() {
        assert_eq!(duration("1h30m"), Some(SignedDuration::from_secs(5400)));
        assert_eq!(duration("-1.5s"), Some(SignedDuration::from_millis(-1500)));
        assert_eq!(duration("0"), Some(SignedDuration::ZERO));
        for text in ["", "1", "s", "1x", "1h-1m"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn reads_base64() {
        assert_eq!(base64("YQ=="), Some(b"a".to_vec()));
        assert_eq!(base64("YWJj"), Some(b"abc".to_vec()));
        assert_eq!(base64("YQ="), None);
        assert_eq!(base64("Y!=="), None);
    }
}
