//! Fields that an object names twice, found in the bytes: a parser of values keeps the last and
//! says nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::below::bounded;

/// How many paths are told: upstream's bound on what a strict decoder finds (`saveStrictError` of
/// sigs.k8s.io/json).
pub const FINDINGS_MAX: usize = 100;

/// The paths of fields that are there more than once, each once, in order of the bytes, as far as the
/// bound goes.
///
/// Assumes: the bytes are JSON; what follows the first fault is not looked at.
pub fn duplicate_fields(json: &[u8]) -> Vec<String> {
    let mut scan = Scan {
        json,
        at: 0,
        path: String::new(),
        told: BTreeSet::new(),
        found: Vec::new(),
    };
    scan.value(0);
    scan.found
}

/// As deep as any parser of requests goes.
const DEPTH_MAX: usize = 200;

struct Scan<'a> {
    json: &'a [u8],
    at: usize,
    path: String,
    told: BTreeSet<String>,
    found: Vec<String>,
}

impl Scan<'_> {
    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        match self.next()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.text().map(|_| ()),
            _ => {
                let is_end = |byte: &u8| b",]}".contains(byte) || byte.is_ascii_whitespace();
                let rest = &self.json[self.at..];
                self.at += rest.iter().position(is_end).unwrap_or(rest.len()).max(1);
                Some(())
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        self.at += 1;
        // How often each is there.
        let mut names = BTreeMap::new();
        let before = self.path.len();
        loop {
            match self.next()? {
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                b',' => self.at += 1,
                b'"' => {
                    let name = self.text()?;
                    if self.next()? != b':' {
                        return None;
                    }
                    self.at += 1;
                    if !self.path.is_empty() {
                        self.path.push('.');
                    }
                    self.path.push_str(&name);
                    // A path is looked up once for each of its names, not once for each repetition.
                    let times = names.entry(name).or_insert(0_usize);
                    *times += 1;
                    if *times == 2 {
                        self.tell();
                    }
                    self.value(depth + 1)?;
                    self.path.truncate(before);
                }
                _ => return None,
            }
        }
    }

    fn tell(&mut self) {
        if self.found.len() >= FINDINGS_MAX {
            return;
        }
        let path = bounded(&self.path);
        if self.told.insert(path.clone()) {
            self.found.push(path);
        }
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.at += 1;
        let before = self.path.len();
        let mut index = 0;
        loop {
            match self.next()? {
                b']' => {
                    self.at += 1;
                    return Some(());
                }
                b',' => self.at += 1,
                _ => {
                    write!(self.path, "[{index}]").expect("text takes all");
                    self.value(depth + 1)?;
                    self.path.truncate(before);
                    index += 1;
                }
            }
        }
    }

    fn text(&mut self) -> Option<String> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.json.get(self.at)? {
                b'\\' => self.at += 2,
                b'"' => break,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        serde_json::from_slice(&self.json[start..self.at]).ok()
    }

    fn next(&mut self) -> Option<u8> {
        while self.json.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        self.json.get(self.at).copied()
    }
}
