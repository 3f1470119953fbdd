//! `cargo xtask tidy`: the rules of the house that no compiler checks.
//!
//! Each rule is a function from the files of the repository to findings; what can be a lint is one.

mod documents;
mod names;
mod reasons;
mod rust;
mod words;

use std::fmt;

use anyhow::{Result, ensure};

use crate::workspace::{self, TextFile};

/// One place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    /// From 1; 0 for the file as a whole.
    line: usize,
    message: String,
}

impl Finding {
    fn new(file: &TextFile, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: file.path.clone(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Runs all rules over the repository and lists every finding.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    ensure!(arguments.is_empty(), "cargo xtask tidy takes no arguments");
    let files = workspace::files()?;
    let root = workspace::root();
    let mut findings = reasons::check(&files);
    for file in &files {
        findings.extend(names::check(file));
        findings.extend(words::check(file));
        findings.extend(rust::check(file));
        findings.extend(documents::check(file, |path| root.join(path).exists()));
    }
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    ensure!(findings.is_empty(), "{} findings", findings.len());
    println!("{} files are tidy", files.len());
    Ok(())
}

/// A file as a test writes it down.
#[cfg(test)]
fn sample(path: &str, text: &str) -> TextFile {
    TextFile {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}

/// Line and message of each finding, shortened to what a test compares.
#[cfg(test)]
fn lines(findings: &[Finding]) -> Vec<usize> {
    findings.iter().map(|finding| finding.line).collect()
}
