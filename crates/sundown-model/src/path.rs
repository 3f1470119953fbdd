//! Names as parts of the path of a request. Whatever a name holds, it stays one part: it neither begins
//! a query nor climbs to another resource.

use std::fmt::Write;

/// A text as one part of a path, percent-encoded where it has to be.
///
/// Whether it is a name at all is another matter; most are DNS subdomains and come out as they are,
/// but those of roles may hold nearly everything.
pub fn part(text: &str) -> String {
    // Alone these are no names but ways.
    if text == "." || text == ".." {
        return text.replace('.', "%2E");
    }
    let mut part = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            part.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            let _ = write!(part, "%{byte:02X}");
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn names_stay_one_part_whatever_they_hold() {
        for (name, expect) in [
            ("my-secret.v1", "my-secret.v1"),
            ("system:node", "system:node"),
            ("?watch=true", "%3Fwatch%3Dtrue"),
            ("a/b", "a%2Fb"),
            ("..%2f..", "..%252f.."),
            ("x#y", "x%23y"),
            (" \n", "%20%0A"),
            ("ä", "%C3%A4"),
            ("..", "%2E%2E"),
            ("", ""),
        ] {
            assert_eq!(part(name), expect, "{name:?}");
        }
    }
}
