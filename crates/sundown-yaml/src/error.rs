//! What is wrong with a text, and where.

use std::fmt;

/// The longest text that is told in full where many may be told. Names that people give have at most a few hundred
/// bytes.
const TOLD_BYTES_MAX: usize = 4 * 1024;

/// What a text that is not told in full ends with.
const MORE: &str = "...";

/// What is wrong, with its place and the field that it is part of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct YamlError {
    /// Counted from one.
    pub line: usize,
    /// Counted from one.
    pub column: usize,
    /// Such as `spec.containers[0].image`; empty: the whole document.
    pub field: String,
    /// In words, without anything of the text.
    pub problem: String,
    /// The scalar that it is about.
    pub found: Option<String>,
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)?;
        if !self.field.is_empty() {
            write!(f, ", in {}", self.field)?;
        }
        write!(f, ": {}", self.problem)?;
        match &self.found {
            Some(found) => write!(f, ": `{found}`"),
            None => Ok(()),
        }
    }
}

impl YamlError {
    /// Without anything of the text, which may hold secrets.
    #[must_use]
    pub fn without_text(self) -> Self {
        Self {
            field: String::new(),
            found: None,
            ..self
        }
    }

    /// The place counts from the beginning of a text that begins with this line, counted from one.
    pub(crate) fn after_line(mut self, first: usize) -> Self {
        self.line += first - 1;
        self
    }
}

/// The way to a part of a document.
#[derive(Debug, Clone, Default)]
pub(crate) struct Path(Vec<Step>);

#[derive(Debug, Clone)]
enum Step {
    Key(String),
    Item(usize),
}

impl Path {
    pub(crate) fn push_key(&mut self, key: &str) {
        self.0.push(Step::Key(key.to_owned()));
    }

    pub(crate) fn push_item(&mut self, index: usize) {
        self.0.push(Step::Item(index));
    }

    pub(crate) fn pop(&mut self) {
        self.0.pop();
    }

    /// In words, cut if it is long.
    pub(crate) fn excerpt(&self) -> String {
        excerpt(&self.to_string())
    }
}

/// A text, cut if it is long.
pub(crate) fn excerpt(text: &str) -> String {
    if text.len() <= TOLD_BYTES_MAX {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(TOLD_BYTES_MAX);
    format!("{}{MORE}", &text[..end])
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if index == 0 => write!(f, "{key}")?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Item(item) => write!(f, "[{item}]")?,
            }
        }
        Ok(())
    }
}
