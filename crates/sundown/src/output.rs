//! Writing to stdout and stderr. A reader that goes away is an error here, not a panic as in `println`.
//! Where the reader is a terminal, it gets no character that acts on it.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::terminal;

/// Prints a text for people.
pub(crate) fn print(text: &str) -> io::Result<()> {
    print_as_it_is(&shown(text, &io::stdout()))
}

/// Tells people something on stderr, on lines of its own.
pub(crate) fn tell(text: &str) -> io::Result<()> {
    io::stderr().write_all(lines_to_tell(text).as_bytes())
}

/// What people are told on stderr, on lines of its own.
pub(crate) fn lines_to_tell(text: &str) -> String {
    let text = shown(text, &io::stderr());
    format!("{}\n", text.trim_end_matches('\n'))
}

/// Prints one line of JSON.
pub(crate) fn print_json(value: &impl Serialize) -> io::Result<()> {
    print_as_it_is(&json_to_print(value))
}

/// One line of JSON for standard output.
pub(crate) fn json_to_print(value: &impl Serialize) -> String {
    json(value, &io::stdout()) + "\n"
}

/// Tells one line of JSON on stderr.
pub(crate) fn tell_json(value: &impl Serialize) -> io::Result<()> {
    io::stderr().write_all(json_to_tell(value).as_bytes())
}

/// One line of JSON for stderr.
pub(crate) fn json_to_tell(value: &impl Serialize) -> String {
    json(value, &io::stderr()) + "\n"
}

fn print_as_it_is(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

fn shown<'a>(text: &'a str, to: &impl IsTerminal) -> Cow<'a, str> {
    if to.is_terminal() {
        terminal::visible(text)
    } else {
        Cow::Borrowed(text)
    }
}

fn json(value: &impl Serialize, to: &impl IsTerminal) -> String {
    let json = serde_json::to_string(value).expect("answers are plain data with text keys");
    if to.is_terminal() {
        terminal::json(&json).into_owned()
    } else {
        json
    }
}
