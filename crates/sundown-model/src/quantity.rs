//! Quantities such as `500m` and `1Gi`: read, compared and written as upstream's
//! `apimachinery/pkg/api/resource` writes them.

/// Billionths, the finest unit that there is.
const UNIT: i128 = 1_000_000_000;
const MAX: i128 = i64::MAX as i128 * UNIT;

/// What upstream says about a text that is none.
pub const MALFORMED: &str = "quantities must match the regular expression \
                                    '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// An amount, and in which family of units it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity {
    billionths: i128,
    family: Family,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Decimal,
    Binary,
    Exponent,
}

const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: [(&str, u32); 6] = [
    ("Ki", 10),
    ("Mi", 20),
    ("Gi", 30),
    ("Ti", 40),
    ("Pi", 50),
    ("Ei", 60),
];

impl Quantity {
    /// Reads a quantity; None if the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (is_negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, suffix) = rest.split_at(end.unwrap_or(rest.len()));
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if part.contains('.') || (whole.is_empty() && part.is_empty()) {
            return None;
        }
        let (family, scale) = unit(suffix)?;
        let digits = format!("{whole}{part}");
        let digits: i128 = digits.get(..digits.len().min(30))?.parse().ok()?;
        let mut billionths = digits.checked_mul(UNIT).unwrap_or(MAX);
        let mut exponent = -i32::try_from(part.len()).ok()?;
        match scale {
            Scale::Ten(power) => exponent += power,
            Scale::Two(power) => billionths = billionths.checked_mul(1 << power).unwrap_or(MAX),
        }
        for _ in 0..exponent.clamp(-40, 40).max(0) {
            billionths = billionths.saturating_mul(10).min(MAX);
        }
        // What is finer than the finest unit is rounded up.
        for _ in 0..(-exponent).clamp(0, 40) {
            billionths = (billionths + 9) / 10;
        }
        let billionths = billionths.min(MAX) * if is_negative { -1 } else { 1 };
        Some(Self { billionths, family })
    }

    /// In billionths, to be compared and added.
    pub fn billionths(self) -> i128 {
        self.billionths
    }

    /// Nothing.
    pub const ZERO: Self = Self {
        billionths: 0,
        family: Family::Decimal,
    };

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.billionths == 0
    }

    /// The sum, in the units of the first that is not zero, as upstream's `Add` leaves them.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            billionths: clamped(self.billionths.saturating_add(other.billionths)),
            family: if self.is_zero() {
                other.family
            } else {
                self.family
            },
        }
    }

    /// So many times as much.
    #[must_use]
    pub fn times(self, count: i64) -> Self {
        Self {
            billionths: clamped(self.billionths.saturating_mul(count.into())),
            family: self.family,
        }
    }

    /// As a whole number, rounded away from zero.
    pub fn value(self) -> i64 {
        let rounded = (self.billionths + self.billionths.signum() * (UNIT - 1)) / UNIT;
        i64::try_from(rounded).unwrap_or(if rounded < 0 { i64::MIN } else { i64::MAX })
    }

    /// As a float, where the nearest one is good enough.
    #[expect(clippy::cast_precision_loss, reason = "approximate by name")]
    pub fn approximate(self) -> f64 {
        self.billionths as f64 / UNIT as f64
    }

    /// The one way to write it: the largest unit without a fraction.
    pub fn canonical(self) -> String {
        let is_small = self.billionths.abs() < 1024 * UNIT;
        match self.family {
            Family::Binary if !is_small => self.binary(),
            Family::Binary | Family::Decimal => {
                let (mantissa, power) = self.decimal();
                let unit = DECIMAL.iter().find(|(_, own)| *own == power);
                format!("{mantissa}{}", unit.map_or("", |(unit, _)| unit))
            }
            Family::Exponent => match self.decimal() {
                (mantissa, 0) => mantissa.to_string(),
                (mantissa, power) => format!("{mantissa}e{power}"),
            },
        }
    }

    fn decimal(self) -> (i128, i32) {
        let (mut mantissa, mut power) = (self.billionths, -9);
        if mantissa == 0 {
            return (0, 0);
        }
        while mantissa % 1000 == 0 && power < 18 {
            mantissa /= 1000;
            power += 3;
        }
        (mantissa, power)
    }

    fn binary(self) -> String {
        // Fractions of one have no binary unit: upstream rounds them up.
        let mut mantissa = (self.billionths + self.billionths.signum() * (UNIT - 1)) / UNIT;
        let mut power = 0;
        while mantissa % 1024 == 0 && power < 60 {
            mantissa /= 1024;
            power += 10;
        }
        let unit = BINARY.iter().find(|(_, own)| *own == power);
        format!("{mantissa}{}", unit.map_or("", |(unit, _)| unit))
    }
}

fn clamped(billionths: i128) -> i128 {
    billionths.clamp(-MAX, MAX)
}

enum Scale {
    Ten(i32),
    Two(u32),
}

fn unit(suffix: &str) -> Option<(Family, Scale)> {
    if let Some((_, power)) = DECIMAL.iter().find(|(unit, _)| *unit == suffix) {
        return Some((Family::Decimal, Scale::Ten(*power)));
    }
    if let Some((_, power)) = BINARY.iter().find(|(unit, _)| *unit == suffix) {
        return Some((Family::Binary, Scale::Two(*power)));
    }
    let power = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((Family::Exponent, Scale::Ten(power)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_written_in_the_largest_unit_without_a_fraction() {
        for (sent, written) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("100", "100"),
            ("1000", "1k"),
            ("512Ki", "512Ki"),
            ("0.5Ki", "512"),
            ("1e3", "1e3"),
            ("1200e0", "1200"),
            ("0", "0"),
            ("-1500m", "-1500m"),
            ("1.1", "1100m"),
            ("2E", "2E"),
            ("0.0000000001", "1n"),
        ] {
            let read = Quantity::parse(sent).map(Quantity::canonical);
            assert_eq!(read.as_deref(), Some(written), "{sent}");
        }
    }

    #[test]
    fn sums_keep_the_units_of_what_came_first_and_never_overflow() {
        let read = |text: &str| Quantity::parse(text).unwrap_or(Quantity::ZERO);
        let sum = |one: &str, two: &str| read(one).plus(read(two)).canonical();
        assert_eq!(sum("0", "1Gi"), "1Gi");
        assert_eq!(sum("512Mi", "512Mi"), "1Gi");
        assert_eq!(sum("500m", "1"), "1500m");
        assert_eq!(sum("1Gi", "1G"), "2073741824");
        assert_eq!(read("9E").times(i64::MAX).value(), i64::MAX);
        assert_eq!(read("200m").times(3).canonical(), "600m");
    }

    #[test]
    fn values_are_rounded_away_from_zero() {
        for (text, value) in [("1100m", 2), ("1", 1), ("1n", 1), ("-1500m", -2), ("0", 0)] {
            assert_eq!(
                Quantity::parse(text).map(Quantity::value),
                Some(value),
                "{text}"
            );
        }
    }

    #[test]
    fn other_texts_are_no_quantities() {
        for text in ["", "a", "1.2.3", "1x", "m", "1Mii", "--1"] {
            assert_eq!(Quantity::parse(text), None, "{text}");
        }
    }
}
