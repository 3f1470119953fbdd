//! Quantities such as `500m` and `1Gi`: read, compared and written as upstream's
//! `apimachinery/pkg/api/resource` writes them.

/// Billionths, the finest unit that there is.
const UNIT: i128 = 1_000_000_000;
/// The largest amount in billionths: 10^29 units. Upstream computes beyond it, with as many digits as it
/// takes; here what is larger counts as this much, and nobody has so many bytes.
const MAX: i128 = 10_i128.pow(38);
/// The largest amount with a binary suffix: upstream's `maxAllowed`, the largest `i64`.
const BINARY_MAX: i128 = i64::MAX as i128 * UNIT;

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
        let digits = whole.bytes().chain(part.bytes());
        let mut digits: Vec<u8> = digits.map(|digit| digit - b'0').collect();
        let mut exponent = -i64::try_from(part.len()).ok()?;
        let mut max = MAX;
        match scale {
            Scale::Ten(power) => exponent += i64::from(power),
            Scale::Two(power) => {
                for _ in 0..power / 10 {
                    times_1024(&mut digits);
                }
                max = BINARY_MAX;
            }
        }
        let billionths = billionths(&digits, exponent).min(max);
        let billionths = if is_negative { -billionths } else { billionths };
        Some(Self { billionths, family })
    }

    /// So many billionths; more than there can be count as the most.
    pub fn of_billionths(billionths: i128) -> Self {
        Self {
            billionths: clamped(billionths),
            family: Family::Decimal,
        }
    }

    /// The sum in billionths, unless it is more than can be counted.
    pub fn checked_billionths(self, other: i128) -> Option<i128> {
        let sum = self.billionths.checked_add(other)?;
        (-MAX..=MAX).contains(&sum).then_some(sum)
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

/// What digits (0 to 9, the largest first) times a power of ten are in billionths, rounded up where they
/// are finer and at most [`MAX`]. Exact, for any number of digits.
fn billionths(digits: &[u8], exponent: i64) -> i128 {
    let start = digits.iter().position(|digit| *digit != 0);
    let Some(start) = start else {
        return 0;
    };
    let end = digits
        .iter()
        .rposition(|digit| *digit != 0)
        .unwrap_or(start)
        + 1;
    let zeros = i64::try_from(digits.len() - end).unwrap_or(i64::MAX);
    let digits = &digits[start..end];
    // Digits are dropped below a billionth, or zeros put behind them.
    let shift = exponent.saturating_add(zeros).saturating_add(9);
    let dropped = usize::try_from(shift.saturating_neg()).unwrap_or(0);
    let kept = digits.len().saturating_sub(dropped);
    let mut amount: i128 = 0;
    let appended = std::iter::repeat_n(&0, usize::try_from(shift.min(40)).unwrap_or(0));
    for digit in digits[..kept].iter().chain(appended) {
        amount = amount.saturating_mul(10).saturating_add(i128::from(*digit));
        if amount >= MAX {
            return MAX;
        }
    }
    // The last digit is not zero, so that something was dropped.
    amount + i128::from(dropped > 0)
}

/// Multiplies digits (0 to 9, the largest first), however many there are.
fn times_1024(digits: &mut Vec<u8>) {
    let mut carry: u32 = 0;
    for digit in digits.iter_mut().rev() {
        carry += u32::from(*digit) * 1024;
        *digit = u8::try_from(carry % 10).unwrap_or(0);
        carry /= 10;
    }
    let mut front = Vec::new();
    while carry > 0 {
        front.push(u8::try_from(carry % 10).unwrap_or(0));
        carry /= 10;
    }
    front.reverse();
    digits.splice(0..0, front);
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
    fn many_digits_and_large_exponents_are_read_as_they_are() {
        let zeros = "0".repeat(40);
        let nines = "9".repeat(40);
        for (sent, written) in [
            (&*format!("1.{zeros}"), "1"),
            (&format!("{zeros}1.5{zeros}"), "1500m"),
            (&format!("0.{zeros}1"), "1n"),
            (&format!("1{zeros}e-40"), "1"),
            (&format!("1.{zeros}Ki"), "1Ki"),
            (&format!("1.{zeros}1Ki"), "1025"),
            ("1.5e-2147483648", "1e-9"),
            ("-1.5e-2147483648", "-1e-9"),
            ("1e-2147483648", "1e-9"),
            ("0e2147483647", "0"),
            ("0.5e1", "5"),
            ("10E", "10E"),
            ("9223372036854775808", "9223372036854775808"),
            ("8Ei", "9223372036854775807"),
            (
                "12345678901234567890123456789",
                "12345678901234567890123456789",
            ),
            ("1.234567890123456789Ti", "1357421750470"),
            // Beyond what is counted here.
            ("1e2147483647", "100000000000e18"),
            (&nines, "100000000000E"),
        ] {
            let read = Quantity::parse(sent).map(Quantity::canonical);
            assert_eq!(read.as_deref(), Some(written), "{sent}");
        }
        assert_eq!(Quantity::parse("1e2147483648"), None);
        assert_eq!(Quantity::parse("1e99999999999999999999"), None);
    }

    #[test]
    fn a_text_of_a_megabyte_is_read_in_one_pass() {
        let long = "7".repeat(3_000_000);
        for text in [
            long.clone(),
            format!("0.{long}"),
            format!("{long}.{long}Ei"),
            format!("{long}e-3000000"),
        ] {
            let read = Quantity::parse(&text).map(Quantity::billionths);
            assert!(read.is_some_and(|it| it > 0));
        }
    }

    /// Every text of up to six signs that a quantity is made of: none of them panics, what is written is
    /// read as the same amount, and the sign turns the amount around.
    #[test]
    fn what_is_written_is_read_as_the_same() {
        let signs = ["", "0", "9", ".", "-", "e", "E", "Ki", "m", "5"];
        let mut texts = vec![String::new()];
        for _ in 0..5 {
            let longer = texts
                .iter()
                .flat_map(|text| signs.map(|sign| format!("{text}{sign}")));
            texts = longer.collect();
            texts.sort();
            texts.dedup();
        }
        let mut count = 0;
        for text in &texts {
            let Some(read) = Quantity::parse(text) else {
                continue;
            };
            count += 1;
            let written = read.canonical();
            let again = Quantity::parse(&written).map(Quantity::billionths);
            // What is finer than a unit has no binary suffix and is rounded when it is written.
            let is_rounded = read.family == Family::Binary && read.billionths % UNIT != 0;
            assert!(
                is_rounded || again == Some(read.billionths),
                "{text} {written}"
            );
            if !text.starts_with('-') {
                let turned = Quantity::parse(&format!("-{text}")).map(Quantity::billionths);
                assert_eq!(turned, Some(-read.billionths), "{text}");
            }
            assert!(read.times(i64::MAX).plus(read).billionths.abs() <= MAX);
            let _ = (read.value(), read.approximate());
        }
        assert!(count > 1_000, "{count}");
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
