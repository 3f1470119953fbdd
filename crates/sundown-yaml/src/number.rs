//! Numbers as Go reads and writes them.

use serde_json::{Number, Value};

/// A number of YAML.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Parsed {
    Integer(i64),
    /// Too large for the other.
    Unsigned(u64),
    Float(f64),
}

/// `strconv.ParseInt` and `ParseUint` with base 0, of a text without underscores.
pub(crate) fn integer(text: &str) -> Option<Parsed> {
    let (is_negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = radix(digits);
    // `from_str_radix` takes a sign of its own.
    if !digits.bytes().all(|it| it.is_ascii_alphanumeric()) {
        return None;
    }
    let size = u64::from_str_radix(digits, radix).ok()?;
    let is_signed = is_negative || text.starts_with('+');
    match i64::try_from(size) {
        Ok(size) if is_negative => Some(Parsed::Integer(-size)),
        Ok(size) => Some(Parsed::Integer(size)),
        Err(_) if is_negative && size == i64::MIN.unsigned_abs() => Some(Parsed::Integer(i64::MIN)),
        // `ParseUint` takes no sign.
        Err(_) if is_signed => None,
        Err(_) => Some(Parsed::Unsigned(size)),
    }
}

fn radix(digits: &str) -> (u32, &str) {
    let bytes = digits.as_bytes();
    match (bytes.first(), bytes.get(1).map(u8::to_ascii_lowercase)) {
        (Some(b'0'), Some(b'x')) => (16, &digits[2..]),
        (Some(b'0'), Some(b'o')) => (8, &digits[2..]),
        (Some(b'0'), Some(b'b')) => (2, &digits[2..]),
        (Some(b'0'), Some(_)) => (8, &digits[1..]),
        _ => (10, digits),
    }
}

/// A float in the form that go-yaml knows, of a text without underscores. Too large ones are none.
pub(crate) fn float(text: &str) -> Option<f64> {
    let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (rest, None),
    };
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    let is_mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => is_number(fraction),
        Some((whole, fraction)) => is_number(whole) && (fraction.is_empty() || is_number(fraction)),
        None => is_number(mantissa),
    };
    let is_exponent =
        exponent.is_none_or(|it| is_number(it.strip_prefix(['-', '+']).unwrap_or(it)));
    if !is_mantissa || !is_exponent {
        return None;
    }
    text.parse::<f64>().ok().filter(|it| it.is_finite())
}

/// A number as JSON has it; None for what JSON has not. Go writes a float without a fraction as an integer.
pub(crate) fn value(parsed: Parsed) -> Option<Value> {
    match parsed {
        Parsed::Integer(number) => Some(number.into()),
        Parsed::Unsigned(number) => Some(number.into()),
        Parsed::Float(number) => match whole(number) {
            Some(whole) => Some(whole.into()),
            None => Number::from_f64(number).map(Value::Number),
        },
    }
}

/// The integer that a float is.
pub(crate) fn whole(float: f64) -> Option<i64> {
    // Up to here Go writes all digits.
    const MAX: f64 = 9.2e18;
    let is_whole = float.fract() == 0.0 && float.abs() < MAX;
    is_whole.then(|| format!("{float:.0}").parse().ok())?
}

/// A float as a key: `strconv.FormatFloat(key, 'g', -1, 32)`.
pub(crate) fn key(float: f64) -> String {
    /// Below and above Go writes an exponent.
    const PLAIN: std::ops::Range<i32> = -4..6;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "upstream formats keys with 32 bits"
    )]
    let short = float as f32;
    let written = format!("{short:e}");
    let Some((mantissa, exponent)) = written.split_once('e') else {
        return written;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if PLAIN.contains(&exponent) {
        return format!("{short}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}
