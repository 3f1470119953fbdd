//! How much the cache of environments may hold. Nothing is removed to make room: pods may run in it, and
//! the user knows what is still wanted. Over the limit the next one is refused with what to do.

use std::fmt::Write as _;

/// The variable for how many.
pub(super) const COUNT_VARIABLE: &str = "SUNDOWN_ENVIRONMENTS_MAX";
/// The variable for how large they may be together.
pub(super) const BYTES_VARIABLE: &str = "SUNDOWN_ENVIRONMENTS_SIZE_MAX";

/// A laptop's share: one of Ray takes half a gibibyte, one with `PyTorch` for CUDA about seven.
const USUAL: Limits = Limits {
    count_max: 32,
    bytes_max: 40 << 30,
};

/// How many of those that could go are named.
const NAMED_MAX: usize = 5;

/// How much the cache may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub count_max: usize,
    pub bytes_max: u64,
}

/// A limit that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is {value:?}, which is not {wanted}")]
pub struct LimitError {
    variable: &'static str,
    value: String,
    wanted: &'static str,
}

impl Default for Limits {
    fn default() -> Self {
        USUAL
    }
}

impl Limits {
    /// By the variables of a process.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Self, LimitError> {
        let told = |name: &str| variable(name).filter(|it| !it.is_empty());
        let mut limits = USUAL;
        if let Some(value) = told(COUNT_VARIABLE) {
            limits.count_max = value.trim().parse().map_err(|_| LimitError {
                variable: COUNT_VARIABLE,
                value,
                wanted: "a number such as 32",
            })?;
        }
        if let Some(value) = told(BYTES_VARIABLE) {
            limits.bytes_max = size(value.trim()).ok_or(LimitError {
                variable: BYTES_VARIABLE,
                value,
                wanted: "a size such as 40Gi",
            })?;
        }
        Ok(limits)
    }
}

/// A number of bytes, with or without a unit of Kubernetes.
fn size(text: &str) -> Option<u64> {
    let units = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40)];
    let unit = units.iter().find(|(unit, _)| text.ends_with(unit));
    let (number, shift) = match unit {
        Some((unit, shift)) => (text.strip_suffix(unit)?, *shift),
        None => (text, 0),
    };
    let number: u64 = number.trim().parse().ok()?;
    number.checked_mul(1 << shift)
}

/// An environment that takes room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) name: String,
    pub(super) bytes: u64,
}

/// Says why nothing more is made, or None if there is room. `held` begins with the oldest.
pub(super) fn full(limits: Limits, held: &[Held]) -> Option<String> {
    let bytes = held
        .iter()
        .fold(0_u64, |sum, it| sum.saturating_add(it.bytes));
    if held.len() < limits.count_max && bytes < limits.bytes_max {
        return None;
    }
    let mut text = format!(
        "the cache of environments is full: {} of at most {} environments, {} of at most {}; ",
        held.len(),
        limits.count_max,
        in_words(bytes),
        in_words(limits.bytes_max),
    );
    if !held.is_empty() {
        let named = held.iter().take(NAMED_MAX);
        let named = named.map(|it| format!("{} ({})", it.name, in_words(it.bytes)));
        let named: Vec<String> = named.collect();
        let _ = write!(
            text,
            "remove what no pod needs any more with `sundown env prune NAME`, oldest first: {}; or ",
            named.join(", ")
        );
    }
    let _ = write!(text, "set {COUNT_VARIABLE} or {BYTES_VARIABLE} higher");
    Some(text)
}

/// A size for people.
pub fn in_words(bytes: u64) -> String {
    let (shift, unit) = match bytes {
        0..1_048_576 => (10, "KiB"),
        1_048_576..1_073_741_824 => (20, "MiB"),
        1_073_741_824.. => (30, "GiB"),
    };
    let tenths = (u128::from(bytes) * 10) >> shift;
    match (tenths / 10, tenths % 10) {
        (whole, tenth) if whole < 10 && tenth > 0 => format!("{whole}.{tenth} {unit}"),
        (whole, _) => format!("{whole} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(count: &str, bytes: &str) -> Result<Limits, LimitError> {
        Limits::of(|name| {
            let value = if name == COUNT_VARIABLE { count } else { bytes };
            Some(value.to_owned())
        })
    }

    fn held(sizes: &[u64]) -> Vec<Held> {
        let one = |(at, bytes): (usize, &u64)| Held {
            name: format!("e{at}"),
            bytes: *bytes,
        };
        sizes.iter().enumerate().map(one).collect()
    }

    #[test]
    fn limits_are_read_or_named_as_wrong() {
        assert_eq!(told("", ""), Ok(Limits::default()));
        for (count, bytes, expect) in [
            ("3", "5", (3, 5)),
            ("0", "2Gi", (0, 2 << 30)),
            (" 7 ", "1 Ti", (7, 1 << 40)),
        ] {
            let limits = told(count, bytes).map(|it| (it.count_max, it.bytes_max));
            assert_eq!(limits, Ok(expect), "{count} {bytes}");
        }
        for (count, bytes, name) in [
            ("many", "", COUNT_VARIABLE),
            ("-1", "", COUNT_VARIABLE),
            ("", "40GB", BYTES_VARIABLE),
            ("", "99999999999Ti", BYTES_VARIABLE),
        ] {
            let why = told(count, bytes).unwrap_err().to_string();
            assert!(why.starts_with(name), "{why}");
        }
    }

    #[test]
    fn over_a_limit_the_next_one_is_refused_with_what_could_go() {
        let limits = Limits {
            count_max: 3,
            bytes_max: 3 << 30,
        };
        assert_eq!(full(limits, &[]), None);
        assert_eq!(full(limits, &held(&[1 << 30, 1 << 30])), None);
        let many = full(limits, &held(&[1, 2, 3])).unwrap();
        assert!(many.contains("3 of at most 3 environments"), "{many}");
        assert!(
            many.contains("`sundown env prune NAME`, oldest first: e0 (0 KiB), e1"),
            "{many}"
        );
        assert!(many.contains(COUNT_VARIABLE), "{many}");
        let large = full(limits, &held(&[3 << 30, 1 << 20])).unwrap();
        assert!(large.contains("3 GiB of at most 3 GiB"), "{large}");
        assert!(large.contains("e0 (3 GiB), e1 (1 MiB)"), "{large}");
        let none = Limits {
            count_max: 0,
            ..limits
        };
        let told = full(none, &[]).unwrap();
        assert!(!told.contains("prune"), "{told}");
    }

    #[test]
    fn sizes_are_told_in_short() {
        for (bytes, expect) in [
            (0, "0 KiB"),
            (1536, "1.5 KiB"),
            (433 << 20, "433 MiB"),
            ((1 << 30) + (300 << 20), "1.2 GiB"),
            (40 << 30, "40 GiB"),
            (u64::MAX, "17179869183 GiB"),
        ] {
            assert_eq!(in_words(bytes), expect);
        }
    }
}
