//! YAML and JSON of users, read as kubectl and the API server read them: the scalars of YAML 1.1 as
//! go-yaml resolves them (`0777`, `yes`, merge keys), as JSON.
//!
//! Text in, values out. The grammar is that of `granit-parser`, which gives each scalar as it was written,
//! with its style and tag; crates that give values resolve scalars by YAML 1.2. What an object means is the
//! business of others.
#![deny(clippy::wildcard_enum_match_arm)]

mod decode;
mod error;
mod number;
mod scalar;
mod stream;
mod tree;

pub use decode::Duplicate;
pub use error::YamlError;
pub use stream::{Document, documents};

use serde_json::Value;

/// One document, and what was said more than once in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    pub value: Value,
    /// The first of the keys that a mapping had already; the last value counts.
    pub duplicates: Vec<Duplicate>,
}

/// Reads the first document of a text; without one it is null. As `yaml.YAMLToJSON` of
/// `sigs.k8s.io/yaml`.
///
/// Errors: the text is no YAML, or has no form in JSON.
pub fn read(text: &str) -> Result<Read, YamlError> {
    let tree = tree::Tree::parse(text)?;
    decode::decode(&tree)
}
