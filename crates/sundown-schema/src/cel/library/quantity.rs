//! Quantities such as `1500m` or `2Gi`, exact to a billionth.

use std::cmp::Ordering;

use super::super::eval::{Error, told};
use super::super::value::Val;
use super::Library;

/// A number of billionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Quantity(i128);

const UNIT: i128 = 1_000_000_000;

impl Quantity {
    /// Reads a quantity. What is finer than a billionth is rounded up, away from zero.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (is_negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let (factor, divisor) = scale(suffix)?;
        let shift = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let divisor = divisor.checked_mul(shift)?;
        let scaled = digits.checked_mul(factor)?;
        let rounded = scaled / divisor + i128::from(scaled % divisor != 0);
        Some(Self(if is_negative { -rounded } else { rounded }))
    }

    fn int(self) -> Option<i64> {
        i64::try_from(self.0 / UNIT)
            .ok()
            .filter(|_| self.0 % UNIT == 0)
    }

    #[expect(clippy::cast_precision_loss, reason = "approximate by name")]
    fn float(self) -> f64 {
        self.0 as f64 / UNIT as f64
    }

    pub(super) fn call<'a>(
        self,
        name: &str,
        args: &[Val<'a>],
    ) -> std::result::Result<Option<Val<'a>>, Error> {
        let other = match args {
            [] => None,
            [Val::Int(value)] => i128::from(*value).checked_mul(UNIT).map(Self),
            [Val::Library(it)] => match &**it {
                Library::Quantity(quantity) => Some(*quantity),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let made = |sum: Option<i128>| match sum {
            Some(sum) => Ok(Some(Val::library(Library::Quantity(Self(sum))))),
            None => told("quantity overflow"),
        };
        let sign = |order: Ordering| Val::Int(order as i64);
        Ok(Some(match (name, other) {
            ("sign", None) => sign(self.0.cmp(&0)),
            ("isInteger", None) => Val::Bool(self.int().is_some()),
            ("asInteger", None) => match self.int() {
                Some(value) => Val::Int(value),
                None => return told("cannot convert value to integer"),
            },
            ("asApproximateFloat", None) => Val::Double(self.float()),
            ("isGreaterThan", Some(other)) => Val::Bool(self > other),
            ("isLessThan", Some(other)) => Val::Bool(self < other),
            ("compareTo", Some(other)) => sign(self.cmp(&other)),
            ("add", Some(other)) => return made(self.0.checked_add(other.0)),
            ("sub", Some(other)) => return made(self.0.checked_sub(other.0)),
            _ => return Ok(None),
        }))
    }
}

/// What a suffix multiplies billionths by, and what it divides them by.
fn scale(suffix: &str) -> Option<(i128, i128)> {
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(power) = binary.iter().position(|it| *it == suffix) {
        let power = u32::try_from(power).ok()? + 1;
        return Some((UNIT.checked_mul(1024_i128.checked_pow(power)?)?, 1));
    }
    let power = match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        other => other.strip_prefix(['e', 'E'])?.parse().ok()?,
    };
    let ten = |power: u32| 10_i128.checked_pow(power);
    if power < 0 {
        Some((UNIT, ten(i32::unsigned_abs(power))?))
    } else {
        Some((UNIT.checked_mul(ten(i32::unsigned_abs(power))?)?, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::Quantity;

    #[test]
    fn reads_quantities_of_all_suffixes() {
        let same = |one: &str, two: &str| {
            let (one, two) = (Quantity::read(one), Quantity::read(two));
            assert!(one.is_some() && one == two, "{one:?} {two:?}");
        };
        same("1500m", "1.5");
        same("1Ki", "1024");
        same("2e3", "2k");
        same("0.1", "100m");
        same("1E", "1000000000000000000");
        same("-1", "-1000m");
        assert!(Quantity::read("1Mi") > Quantity::read("1M"));
        for text in ["", "x", "1.2.3", "1 Gi", "1Xi", "e3", "."] {
            assert_eq!(Quantity::read(text), None, "{text}");
        }
    }
}
