//! Instants and durations. Zones are UTC and fixed offsets: a database of zones is no fact.

use jiff::civil::Weekday;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::super::eval::{NO_OVERLOAD, Result, told};
use super::super::value::Val;

/// A part of an instant.
pub(super) fn of_time<'a>(at: Timestamp, name: &str, args: &[Val<'a>]) -> Result<'a> {
    let zone = match args {
        [] => TimeZone::UTC,
        [Val::Text(zone)] => match zone_of(zone) {
            Some(zone) => zone,
            None => return told(format!("unknown time zone {zone}")),
        },
        _ => return told(NO_OVERLOAD),
    };
    let at = at.to_zoned(zone);
    let number = match name {
        "getFullYear" => i64::from(at.year()),
        "getMonth" => i64::from(at.month()) - 1,
        "getDayOfYear" => i64::from(at.day_of_year()) - 1,
        "getDayOfMonth" => i64::from(at.day()) - 1,
        "getDate" => i64::from(at.day()),
        "getDayOfWeek" => i64::from(at.weekday().since(Weekday::Sunday)),
        "getHours" => i64::from(at.hour()),
        "getMinutes" => i64::from(at.minute()),
        "getSeconds" => i64::from(at.second()),
        "getMilliseconds" => i64::from(at.millisecond()),
        _ => return told(NO_OVERLOAD),
    };
    Ok(Val::Int(number))
}

fn zone_of(text: &str) -> Option<TimeZone> {
    if text == "UTC" || text == "Z" {
        return Some(TimeZone::UTC);
    }
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let offset = Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()?;
    Some(TimeZone::fixed(offset))
}

/// A duration in whole units.
pub(super) fn of_duration<'a>(value: SignedDuration, name: &str) -> Result<'a> {
    let number = match name {
        "getHours" => value.as_hours(),
        "getMinutes" => value.as_mins(),
        "getSeconds" => value.as_secs(),
        "getMilliseconds" => i64::try_from(value.as_millis()).unwrap_or(i64::MAX),
        _ => return told(NO_OVERLOAD),
    };
    Ok(Val::Int(number))
}

/// Sums and differences of instants and durations.
pub(super) fn arithmetic<'a>(sign: &str, left: &Val<'a>, right: &Val<'a>) -> Result<'a> {
    let moved = |at: &Timestamp, by: SignedDuration| {
        let moved = at.checked_add(by);
        moved.map_or_else(|_| told("timestamp overflow"), |it| Ok(Val::Time(it)))
    };
    let lasting = |value: Option<SignedDuration>| {
        value.map_or_else(|| told("duration overflow"), |it| Ok(Val::Duration(it)))
    };
    match (left, sign, right) {
        (Val::Time(at), "+", Val::Duration(by)) | (Val::Duration(by), "+", Val::Time(at)) => {
            moved(at, *by)
        }
        (Val::Time(at), "-", Val::Duration(by)) => moved(at, -*by),
        (Val::Time(one), "-", Val::Time(two)) => Ok(Val::Duration(one.duration_since(*two))),
        (Val::Duration(one), "+", Val::Duration(two)) => lasting(one.checked_add(*two)),
        (Val::Duration(one), "-", Val::Duration(two)) => lasting(one.checked_sub(*two)),
        _ => told(NO_OVERLOAD),
    }
}
