//! The forms that names may have, in the words of upstream's `util/validation`.

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LETTER_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const VARIABLE: &str = "a valid environment variable name must consist only of printable ASCII characters other than '='";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// What is wrong with a DNS subdomain.
pub fn subdomain(text: &str) -> Vec<String> {
    let parts_fit = text.split('.').all(is_label);
    checked(text, 253, parts_fit, SUBDOMAIN)
}

/// What is wrong with a name that is only part of a path, as those of roles and bindings are.
pub fn path_segment(text: &str) -> Vec<String> {
    if matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    let wrong = ['/', '%'].into_iter().filter(|it| text.contains(*it));
    wrong.map(|it| format!("may not contain '{it}'")).collect()
}

/// What is wrong with a DNS label.
pub fn label(text: &str) -> Vec<String> {
    if text.contains('.') {
        return vec!["must not contain dots".into()];
    }
    checked(text, 63, is_label(text), LABEL)
}

/// What is wrong with a DNS label that begins with a letter.
pub fn letter_label(text: &str) -> Vec<String> {
    let fits = is_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase());
    checked(text, 63, fits, LETTER_LABEL)
}

/// What is wrong with the name of a port.
pub fn port_name(text: &str) -> Vec<String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let rules = [
        (text.len() > 15, "must be no more than 15 characters"),
        (
            text.is_empty() || !text.chars().all(fits),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (
            !text.contains(|c: char| c.is_ascii_lowercase()),
            "must contain at least one letter (a-z)",
        ),
        (text.contains("--"), "must not contain consecutive hyphens"),
        (
            text.starts_with('-') || text.ends_with('-'),
            "must not begin or end with a hyphen",
        ),
    ];
    let broken = rules.into_iter().filter(|(is_broken, _)| *is_broken);
    broken.map(|(_, why)| why.to_owned()).collect()
}

/// What is wrong with the name of an environment variable.
pub fn variable(text: &str) -> Vec<String> {
    let fits = |c: char| (c == ' ' || c.is_ascii_graphic()) && c != '=';
    if text.chars().all(fits) {
        Vec::new()
    } else {
        vec![VARIABLE.to_owned()]
    }
}

/// What is wrong with the key of a config map or secret.
pub fn config_key(text: &str) -> Vec<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut wrong = checked(
        text,
        253,
        !text.is_empty() && text.chars().all(fits),
        CONFIG_KEY,
    );
    match text {
        "." => wrong.push("must not be '.'".into()),
        ".." => wrong.push("must not be '..'".into()),
        _ if text.starts_with("..") => wrong.push("must not start with '..'".into()),
        _ => {}
    }
    wrong
}

/// What is wrong with a qualified name: an optional subdomain, a slash, a name.
pub fn qualified_name(text: &str) -> Vec<String> {
    let (prefix, name) = match text.split_once('/') {
        None => (None, text),
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a qualified name {QUALIFIED} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
        Some((prefix, name)) => (Some(prefix), name),
    };
    let mut wrong = Vec::new();
    match prefix {
        Some("") => wrong.push("prefix part must be non-empty".into()),
        Some(prefix) => {
            wrong.extend(
                subdomain(prefix)
                    .into_iter()
                    .map(|text| format!("prefix part {text}")),
            );
        }
        None => {}
    }
    if name.is_empty() {
        wrong.push("name part must be non-empty".into());
    } else if name.len() > 63 {
        wrong.push("name part must be no more than 63 bytes".into());
    }
    if !is_name(name) {
        wrong.push(format!("name part {QUALIFIED}"));
    }
    wrong
}

/// What is wrong with the value of a label.
pub fn label_value(text: &str) -> Vec<String> {
    checked(text, 63, text.is_empty() || is_name(text), VALUE)
}

fn checked(text: &str, bytes_max: usize, fits: bool, why: &str) -> Vec<String> {
    let too_long =
        (text.len() > bytes_max).then(|| format!("must be no more than {bytes_max} bytes"));
    too_long
        .into_iter()
        .chain((!fits).then(|| why.to_owned()))
        .collect()
}

fn is_label(text: &str) -> bool {
    let fits = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    edges_and_middle(text, fits, |c| fits(c) || c == b'-')
}

fn is_name(text: &str) -> bool {
    edges_and_middle(
        text,
        |c| c.is_ascii_alphanumeric(),
        |c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'),
    )
}

fn edges_and_middle(text: &str, edge: impl Fn(u8) -> bool, middle: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    edge(*first) && edge(*last) && bytes.iter().all(|c| middle(*c))
}
