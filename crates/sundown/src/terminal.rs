//! What may reach a terminal of texts that others wrote: logs, names, messages. A terminal takes orders from
//! what it is shown: it moves, renames itself, fills the clipboard, answers into the input. Here such
//! characters become visible ones. Pure. What goes to a pipe or a file is not touched, but for line breaks
//! within a line of ours, which could begin another one that looks like ours there as well.
//!
//! Each text is judged for itself. That holds for an order that is cut into two lines, too: its beginning
//! never reaches the terminal, and without it the rest is plain text.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Begins an order.
const ESCAPE: char = '\u{1b}';
/// Ends what colours have begun.
const PLAIN: &str = "\u{1b}[0m";

/// Whether colours of a text are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    Kept,
    Dropped,
}

/// A text with every character that acts made visible; line breaks and tabs stay.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    clean(text, Colours::Dropped, visibly)
}

/// A text that stands within a line of ours, on a terminal or not: it stays on that line, so that it cannot
/// pass for the next one. Breaks of lines and runs of spaces become one space.
pub(crate) fn one_line(text: &str) -> String {
    let text = visible(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// A line of a log. Colours only paint, and end with the line. What a carriage return would have written
/// over, as progress bars do, is left out.
pub(crate) fn log_line(line: &str, colours: Colours) -> Cow<'_, str> {
    let mut parts = line.rsplit('\r');
    let last = parts.find(|part| !part.is_empty()).unwrap_or_default();
    clean(last, colours, visibly)
}

/// JSON stays the same JSON: what acts is written as an escape of it.
pub(crate) fn json(line: &str) -> Cow<'_, str> {
    clean(line, Colours::Dropped, |it, text| {
        let _ = write!(text, "\\u{:04x}", u32::from(it));
    })
}

fn clean(text: &str, colours: Colours, show: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut is_painted = false;
    while let Some(at) = rest.find(acts) {
        cleaned.push_str(&rest[..at]);
        rest = &rest[at..];
        let paint = paint(rest);
        if paint > 0 {
            if colours == Colours::Kept {
                cleaned.push_str(&rest[..paint]);
                is_painted = true;
            }
            rest = &rest[paint..];
            continue;
        }
        let mut characters = rest.chars();
        if let Some(it) = characters.next() {
            show(it, &mut cleaned);
        }
        rest = characters.as_str();
    }
    cleaned.push_str(rest);
    if is_painted && !cleaned.ends_with(PLAIN) {
        cleaned.push_str(PLAIN);
    }
    Cow::Owned(cleaned)
}

/// Whether a terminal does something else with it than to show it.
fn acts(it: char) -> bool {
    match it {
        '\n' | '\t' => false,
        // The order of what is read: the rest of the line could say something else than it shows.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        // Both sets: many terminals take U+009B for the beginning of an order as well.
        it => it.is_control(),
    }
}

/// How long the order at the beginning of a text is, if all that it does is to paint; else 0.
fn paint(text: &str) -> usize {
    let Some(numbers) = text.strip_prefix("\u{1b}[") else {
        return 0;
    };
    let is_number = |it: char| it.is_ascii_digit() || it == ';' || it == ':';
    let end = numbers.find(|it| !is_number(it)).unwrap_or(numbers.len());
    if numbers[end..].starts_with('m') {
        ESCAPE.len_utf8() + 1 + end + 1
    } else {
        0
    }
}

/// As `less` and `cat -v` show it.
fn visibly(it: char, text: &mut String) {
    let _ = match u32::from(it) {
        code @ 0..0x20 => write!(text, "^{}", char::from_u32(code + 0x40).unwrap_or('?')),
        0x7f => write!(text, "^?"),
        code => write!(text, "<U+{code:04X}>"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_shown_instead() {
        for (text, expect) in [
            ("plain, über, 日本, 🙂", "plain, über, 日本, 🙂"),
            ("a\tb\nc", "a\tb\nc"),
            (
                "clipboard \u{1b}]52;c;ZXZpbA==\u{7}",
                "clipboard ^[]52;c;ZXZpbA==^G",
            ),
            ("title \u{1b}]0;x\u{1b}\\", "title ^[]0;x^[\\"),
            ("up \u{1b}[2A\u{1b}[J", "up ^[[2A^[[J"),
            ("asks \u{1b}[c\u{1b}P$q\u{1b}\\", "asks ^[[c^[P$q^[\\"),
            ("reset \u{1b}c", "reset ^[c"),
            (
                "of one character \u{9b}2J \u{9d}52;c;eA==\u{9c}",
                "of one character <U+009B>2J <U+009D>52;c;eA==<U+009C>",
            ),
            ("cut off \u{1b}[3", "cut off ^[[3"),
            ("cut off \u{1b}", "cut off ^["),
            (
                "more than paint \u{1b}[>4;2m\u{1b}[?1049h",
                "more than paint ^[[>4;2m^[[?1049h",
            ),
            ("back\u{8}\u{8} \u{7f} \0", "back^H^H ^? ^@"),
            (
                "other way \u{202e}txt.exe\u{202c} \u{2066}x\u{2069}",
                "other way <U+202E>txt.exe<U+202C> <U+2066>x<U+2069>",
            ),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("carriage\rreturn", "carriage^Mreturn"),
        ] {
            assert_eq!(visible(text), expect, "{text:?}");
        }
    }

    #[test]
    fn what_stands_within_a_line_stays_on_it() {
        for (text, expect) in [
            ("plain, über", "plain, über"),
            ("waits\ncluster: done", "waits cluster: done"),
            ("waits\r\ncluster: done", "waits^M cluster: done"),
            ("\n\n a \t b\n", "a b"),
            ("a\rb", "a^Mb"),
            ("a\u{b}b\u{c}c\u{85}d", "a^Kb^Lc<U+0085>d"),
            ("a\u{2028}b\u{2029}c", "a b c"),
            ("up \u{1b}[A\u{1b}D\u{1b}E\u{1b}M", "up ^[[A^[D^[E^[M"),
            ("\n", ""),
        ] {
            assert_eq!(one_line(text), expect, "{text:?}");
        }
    }

    #[test]
    fn colours_of_a_log_stay_and_end_with_the_line() {
        for (line, kept, dropped) in [
            ("\u{1b}[31mred\u{1b}[0m", "\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}[1;38:5:9mx", "\u{1b}[1;38:5:9mx\u{1b}[0m", "x"),
            ("\u{1b}[m", "\u{1b}[m\u{1b}[0m", ""),
            ("\u{1b}[31m\u{1b}[2J", "\u{1b}[31m^[[2J\u{1b}[0m", "^[[2J"),
        ] {
            assert_eq!(log_line(line, Colours::Kept), kept, "{line:?}");
            assert_eq!(log_line(line, Colours::Dropped), dropped, "{line:?}");
        }
    }

    #[test]
    fn of_a_line_that_writes_over_itself_the_last_is_shown() {
        for (line, expect) in [
            ("  0%\r 50%\r100%", "100%"),
            ("100%\r", "100%"),
            ("\r\r", ""),
            ("no more", "no more"),
        ] {
            assert_eq!(log_line(line, Colours::Kept), expect, "{line:?}");
        }
    }

    /// The two halves of an order, as two lines: neither acts.
    #[test]
    fn an_order_that_is_cut_anywhere_does_not_act() {
        let order = "\u{1b}]52;c;ZXZpbA==\u{1b}\\\u{1b}[2J\u{9b}1A";
        for at in (0..=order.len()).filter(|at| order.is_char_boundary(*at)) {
            for half in [&order[..at], &order[at..]] {
                let shown = log_line(half, Colours::Kept);
                assert!(!shown.contains(acts), "{half:?} {shown:?}");
            }
        }
    }

    #[test]
    fn json_means_the_same() {
        let value = serde_json::json!({"line": "\u{1b}[2J \u{9b}2J \u{202e}x ü \u{7f}"});
        let line = value.to_string();
        let shown = json(&line);
        assert!(!shown.contains(acts), "{shown:?}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            value
        );
    }
}
