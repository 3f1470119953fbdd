//! What stands in a flight record in the place of a text that may hold a secret. The form is strict, so
//! that such a text can be told from every other one when a record is read again.

/// What stands before the number of bytes, before the mark, and after it.
const TEXT: [&str; 3] = ["[redacted ", " bytes, ", "]"];
/// The same where only a label may stand.
const LABEL: [&str; 3] = ["redacted-", "-bytes-", ""];
/// How many hexadecimal digits a mark has.
const MARK_LENGTH: usize = 8;

/// The text in the place of one of this length; behind a slash, of one that began with a slash. Equal marks stand for equal texts of one record.
pub fn redacted(byte_count: usize, mark: u32) -> String {
    form(TEXT, byte_count, mark)
}

/// The same as the value of a label, which must be one.
pub fn redacted_label(byte_count: usize, mark: u32) -> String {
    form(LABEL, byte_count, mark)
}

/// Whether a text stands in the place of another one.
pub fn is_redacted(text: &str) -> bool {
    redacted_bytes(text).is_some()
}

/// How many bytes a text has, or had before it was redacted.
pub fn byte_count(text: &str) -> usize {
    redacted_bytes(text).unwrap_or(text.len())
}

fn form([begin, middle, end]: [&str; 3], byte_count: usize, mark: u32) -> String {
    format!("{begin}{byte_count}{middle}{mark:08x}{end}")
}

fn redacted_bytes(text: &str) -> Option<usize> {
    let text = text.strip_prefix('/').unwrap_or(text);
    let read = |[begin, middle, end]: [&str; 3]| {
        let inner = text.strip_prefix(begin)?.strip_suffix(end)?;
        let (count, mark) = inner.split_once(middle)?;
        let mut digits = mark.bytes();
        let is_mark =
            mark.len() == MARK_LENGTH && digits.all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
        let is_count = count.bytes().all(|it| it.is_ascii_digit());
        (is_mark && is_count).then(|| count.parse().ok())?
    };
    read(TEXT).or_else(|| read(LABEL))
}

#[cfg(test)]
mod tests {
    use super::{byte_count, is_redacted, redacted, redacted_label};

    #[test]
    fn only_the_exact_form_counts_as_redacted() {
        let text = redacted(7, 0xbeef);
        assert_eq!(text, "[redacted 7 bytes, 0000beef]");
        assert!(is_redacted(&text));
        assert_eq!(byte_count(&text), 7);
        let label = redacted_label(7, 0xbeef);
        assert_eq!(label, "redacted-7-bytes-0000beef");
        assert_eq!(crate::dns::label_value(&label), Vec::<String>::new());
        assert_eq!(byte_count(&label), 7);
        for other in [
            "",
            "hunter2",
            "[redacted]",
            "[redacted 7 bytes, hunter22]",
            "[redacted +7 bytes, 0000beef]",
            "[redacted hunter2 bytes, 0000beef]",
            "[redacted 7 bytes, 0000BEEF]",
            "[redacted 7 bytes, 0000beef] hunter2",
            "hunter2 [redacted 7 bytes, 0000beef]",
            "[redacted 99999999999999999999999 bytes, 0000beef]",
        ] {
            assert!(!is_redacted(other), "{other}");
            assert_eq!(byte_count(other), other.len());
        }
    }
}
