//! Named formats, with the messages that Kubernetes has for names.

use super::super::overloads::FORMATS;
use super::super::value::Val;
use crate::formats;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LETTER_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// The format of a name.
pub(super) fn find(name: &str) -> Option<&'static str> {
    FORMATS.iter().find(|format| **format == name).copied()
}

/// What is wrong with a text, if anything: an optional list.
pub(super) fn validate<'a>(format: &str, text: &str) -> Val<'a> {
    // A prefix may end in a dash, as something follows it.
    let stem = format.strip_suffix("Prefix");
    let own = match stem {
        Some(_) => text
            .strip_suffix('-')
            .map_or(text.to_owned(), |it| format!("{it}a")),
        None => text.to_owned(),
    };
    let (length_max, fits, why) = match stem.unwrap_or(format) {
        "dns1123Label" => (63, is_label(&own), LABEL),
        "dns1123Subdomain" => (253, own.split('.').all(is_label), SUBDOMAIN),
        "dns1035Label" => {
            let is_letter = own.starts_with(|c: char| c.is_ascii_lowercase());
            (63, is_letter && is_label(&own), LETTER_LABEL)
        }
        "qualifiedName" => (317, is_qualified(&own), QUALIFIED),
        "labelValue" => (63, own.is_empty() || is_name(&own), VALUE),
        "uri" => (
            usize::MAX,
            super::url::Url::read(&own).is_some(),
            "invalid URI",
        ),
        "uuid" => (
            usize::MAX,
            formats::holds("uuid", &own),
            "does not match the UUID format",
        ),
        "byte" => (usize::MAX, formats::holds("byte", &own), "invalid base64"),
        "date" => (usize::MAX, formats::holds("date", &own), "invalid date"),
        _ => (
            usize::MAX,
            formats::holds("date-time", &own),
            "invalid datetime",
        ),
    };
    let too_long =
        (own.len() > length_max).then(|| format!("must be no more than {length_max} bytes"));
    let wrong = (!fits).then(|| why.to_owned());
    let all: Vec<Val<'a>> = too_long.into_iter().chain(wrong).map(Val::owned).collect();
    if all.is_empty() {
        Val::Optional(None)
    } else {
        Val::some(Val::list(all))
    }
}

fn is_label(text: &str) -> bool {
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    framed(text, is_edge, |byte| is_edge(byte) || byte == b'-')
}

fn is_name(text: &str) -> bool {
    framed(
        text,
        |byte| byte.is_ascii_alphanumeric(),
        |byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte),
    )
}

fn is_qualified(text: &str) -> bool {
    match text.split_once('/') {
        None => text.len() <= 63 && is_name(text),
        Some((prefix, name)) => {
            prefix.len() <= 253
                && prefix.split('.').all(is_label)
                && name.len() <= 63
                && is_name(name)
        }
    }
}

fn framed(text: &str, is_edge: impl Fn(u8) -> bool, is_middle: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    is_edge(*first) && is_edge(*last) && bytes.iter().all(|byte| is_middle(*byte))
}
