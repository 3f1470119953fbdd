//! Writing to stdout. A reader that goes away is an error here, not a panic as in `println`.

use std::io::{self, Write};

use serde::Serialize;

/// Prints a text as it is.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Prints one line of JSON.
pub(crate) fn print_json(value: &impl Serialize) -> io::Result<()> {
    let json = serde_json::to_string(value).expect("answers are plain data with text keys");
    print(&(json + "\n"))
}
