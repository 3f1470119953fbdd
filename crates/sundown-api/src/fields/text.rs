//! Texts that Go reads as more than texts, and writes in one form: quantities, bytes, instants.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use serde_json::Value;

use crate::quantity::{MALFORMED, Quantity};

const SECONDS: &str = "2006-01-02T15:04:05Z07:00";
const MICROSECONDS: &str = "2006-01-02T15:04:05.000000Z07:00";

/// A quantity in its one form.
pub(super) fn quantity(sent: &str) -> Result<Value, String> {
    let read = Quantity::parse(sent).ok_or(MALFORMED)?;
    Ok(read.canonical().into())
}

/// Bytes in base64.
pub(super) fn bytes(sent: String) -> Result<Value, String> {
    if STANDARD.decode(&sent).is_ok() {
        return Ok(sent.into());
    }
    // Go's decoder passes over ends of lines.
    let plain: String = sent.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    if STANDARD.decode(&plain).is_ok() {
        return Ok(plain.into());
    }
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let wrong = sent.bytes().position(|byte| !fits(&byte));
    let at = wrong.unwrap_or(sent.len() - sent.len() % 4);
    Err(format!("illegal base64 data at input byte {at}"))
}

/// An instant in whole seconds.
pub(super) fn time(sent: &str) -> Result<Value, String> {
    instant(sent, SECONDS, 0)
}

/// An instant in microseconds.
pub(super) fn micro_time(sent: &str) -> Result<Value, String> {
    let fraction = sent.split_once('.').map_or("", |(_, rest)| rest);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    if digits != 6 && sent.parse::<Timestamp>().is_ok() {
        let rest = sent.get(19..).unwrap_or("");
        return Err(format!(
            "parsing time {sent:?} as {MICROSECONDS:?}: cannot parse {rest:?} as \".000000\""
        ));
    }
    instant(sent, MICROSECONDS, 6)
}

fn instant(sent: &str, layout: &str, digits: u8) -> Result<Value, String> {
    let read: Timestamp = sent.parse().map_err(|_| {
        let year_fits = sent.len() >= 4 && sent.bytes().take(4).all(|byte| byte.is_ascii_digit());
        let (rest, wanted) = if year_fits {
            (&sent[4..], "-")
        } else {
            (sent, "2006")
        };
        format!("parsing time {sent:?} as {layout:?}: cannot parse {rest:?} as {wanted:?}")
    })?;
    // Whole seconds are cut, not rounded.
    let read = if digits == 0 {
        Timestamp::from_second(
            read.as_nanosecond()
                .div_euclid(1_000_000_000)
                .try_into()
                .unwrap_or(0),
        )
        .unwrap_or(read)
    } else {
        read
    };
    let printer = DateTimePrinter::new().precision(Some(digits));
    Ok(printer.timestamp_to_string(&read).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_in_one_form() {
        assert_eq!(
            time("2020-01-01T01:00:00.9+01:00"),
            Ok("2020-01-01T00:00:00Z".into())
        );
        assert_eq!(
            micro_time("2020-01-01T01:00:00.100000+01:00"),
            Ok("2020-01-01T00:00:00.100000Z".into())
        );
        assert!(micro_time("2020-01-01T00:00:00.1Z").is_err());
        assert!(time("x").is_err());
    }

    #[test]
    fn bytes_that_are_none_are_named_by_their_place() {
        let wrong = |text: &str| bytes(text.to_owned()).unwrap_err();
        assert_eq!(wrong("!"), "illegal base64 data at input byte 0");
        assert_eq!(wrong("YWJj!"), "illegal base64 data at input byte 4");
        assert_eq!(wrong("YWJjZA"), "illegal base64 data at input byte 4");
        assert_eq!(bytes("YWJj".into()), Ok("YWJj".into()));
    }
}
