//! The formats of strings that upstream checks, as `kube-openapi/pkg/validation/strfmt` has them.
//! A format that is not listed here is not checked, as upstream strips it.

use core::net::{Ipv4Addr, Ipv6Addr};

/// Whether a text has a format; true for formats that are not known.
pub(crate) fn holds(format: &str, text: &str) -> bool {
    let hex = |bytes: &str| bytes.bytes().all(|byte| byte.is_ascii_hexdigit());
    match format.replace('-', "").as_str() {
        "datetime" => text.contains(['T', 't']) && text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some('3')),
        "uuid4" => is_uuid(text, Some('4')),
        "uuid5" => is_uuid(text, Some('5')),
        "byte" => is_base64(text),
        "email" => text
            .split_once('@')
            .is_some_and(|(user, host)| !user.is_empty() && !host.is_empty()),
        "uri" => text.starts_with('/') || text.split_once(':').is_some_and(|(it, _)| is_scheme(it)),
        "hostname" => text.len() <= 255 && text.split('.').all(is_label),
        "hexcolor" => {
            let digits = text.strip_prefix('#').unwrap_or(text);
            [3, 6].contains(&digits.len()) && hex(digits)
        }
        "bsonobjectid" => text.len() == 24 && hex(text),
        "duration" => is_duration(text),
        "k8sshortname" => text.len() <= 63 && is_lower_label(text),
        "k8slongname" => text.len() <= 253 && text.split('.').all(is_lower_label),
        _ => true,
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let bits_max = if address.parse::<Ipv4Addr>().is_ok() {
        32
    } else if address.parse::<Ipv6Addr>().is_ok() {
        128
    } else {
        return false;
    };
    length.parse::<u8>().is_ok_and(|bits| bits <= bits_max)
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    let is_byte = |part: &&str| part.len() == 2 && part.bytes().all(|it| it.is_ascii_hexdigit());
    [6, 8, 20].contains(&parts.len()) && parts.iter().all(is_byte)
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let is_hex = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex && version.is_none_or(|version| digits.chars().nth(12) == Some(version))
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    text.len().is_multiple_of(4) && text.len() - body.len() <= 2 && body.bytes().all(is_sign)
}

fn is_scheme(text: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.bytes().all(is_sign)
}

fn is_label(text: &str) -> bool {
    let is_sign = |c: char| c.is_alphanumeric() || c == '-';
    !text.is_empty() && text.len() <= 63 && text.chars().all(is_sign) && !text.starts_with('-')
}

fn is_lower_label(text: &str) -> bool {
    let is_edge = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let bytes = text.as_bytes();
    let is_sign = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    is_edge(bytes.first()) && is_edge(bytes.last()) && bytes.iter().all(is_sign)
}

fn is_duration(text: &str) -> bool {
    let mut rest = text.trim().trim_start_matches(['-', '+']);
    if rest == "0" {
        return true;
    }
    while !rest.is_empty() {
        let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        if digits.len() == rest.len() {
            return false;
        }
        let unit = digits.trim_start();
        let end = unit.find(|c: char| c.is_ascii_digit() || c == ' ');
        let (name, after) = unit.split_at(end.unwrap_or(unit.len()));
        let is_unit = ["ns", "us", "µs", "ms", "s", "m", "h", "d", "w"].contains(&name);
        if !is_unit {
            return false;
        }
        rest = after.trim_start();
    }
    !text.is_empty()
}
