//! How long ago something was, in the few words of upstream (apimachinery, `util/duration`).

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// What is shown where no time is known.
const UNKNOWN: &str = "<unknown>";

/// The age of the instant that a field holds.
pub(super) fn since(at: Option<&Value>, now: Timestamp) -> String {
    match at.and_then(instant) {
        Some(at) => human(now.duration_since(at)),
        None => UNKNOWN.to_owned(),
    }
}

/// The instant that a field holds.
pub(super) fn instant(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// `HumanDuration`: at most two units, fewer the longer it is.
pub(super) fn human(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: i64, unit: &str, small: i64, rest: &str| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{rest}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two(days, "d", hours % 24, "h"),
        _ if days < 730 => format!("{days}d"),
        _ if days < 2920 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::human;

    #[test]
    fn speaks_as_upstream() {
        let check = |seconds, expect| assert_eq!(human(SignedDuration::from_secs(seconds)), expect);
        check(-5, "<invalid>");
        check(-1, "0s");
        check(119, "119s");
        check(120, "2m");
        check(463, "7m43s");
        check(600, "10m");
        check(3 * 3600 - 1, "179m");
        check(3 * 3600, "3h");
        check(7 * 3600 + 60, "7h1m");
        check(47 * 3600, "47h");
        check(48 * 3600, "2d");
        check(49 * 3600, "2d1h");
        check(8 * 86_400, "8d");
        check(731 * 86_400, "2y1d");
        check(9 * 365 * 86_400, "9y");
    }
}
