//! Nodes as JSON: scalars resolved, aliases followed, keys merged, as go-yaml does it (`decode.go`).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::Read;
use crate::error::{Path, YamlError, excerpt};
use crate::number::{self, Parsed};
use crate::scalar::{Resolved, resolve};
use crate::tree::{Content, DEPTH_MAX, Id, Node, Scalar, ScalarKind, Tree};

/// How much text aliases may stand for: more than any body that the API server takes.
const ALIASED_BYTES_MAX: usize = 16 << 20;

/// How many duplicates are told, of those that a merge key brought and of the others: as many as a strict decoder
/// of upstream tells (`saveStrictError` of sigs.k8s.io/json). A document can hold hundreds of thousands.
const DUPLICATES_MAX: usize = 100;

/// A key that its mapping had already. Field and key are cut if they are long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate {
    /// Of the value, counted from one.
    pub line: usize,
    /// Such as `spec.replicas`.
    pub field: String,
    pub key: String,
    /// Whether one of the two came by a merge key (`<<`), which is there to be overridden.
    pub is_merged: bool,
}

/// Makes JSON of a document.
///
/// Errors: JSON has nothing for it, or its aliases stand for more than the limit.
pub(crate) fn decode(tree: &Tree) -> Result<Read, YamlError> {
    let mut decoder = Decoder {
        tree,
        path: Path::default(),
        depth: 0,
        followed: BTreeSet::new(),
        counts: Counts::default(),
        duplicates: Duplicates::default(),
    };
    let value = match tree.root {
        Some(root) => decoder.value(root)?,
        None => Value::Null,
    };
    Ok(Read {
        value,
        duplicates: decoder.duplicates.all,
    })
}

struct Decoder<'a> {
    tree: &'a Tree,
    path: Path,
    depth: usize,
    /// The aliases that are being followed.
    followed: BTreeSet<Id>,
    counts: Counts,
    duplicates: Duplicates,
}

/// The first keys that were given twice. Merged ones are counted apart: they are no mistakes, and must not take
/// the place of those that are.
#[derive(Debug, Default)]
struct Duplicates {
    all: Vec<Duplicate>,
    merged: usize,
    own: usize,
}

impl Duplicates {
    /// Takes one, unless there are enough of its kind; what is told of it is made only if it is taken.
    fn add(&mut self, is_merged: bool, made: impl FnOnce() -> Duplicate) {
        let count = if is_merged {
            &mut self.merged
        } else {
            &mut self.own
        };
        if *count < DUPLICATES_MAX {
            *count += 1;
            self.all.push(made());
        }
    }
}

/// How much of a document comes of aliases.
#[derive(Debug, Default)]
struct Counts {
    nodes: u32,
    aliased: u32,
    aliased_bytes: usize,
}

impl Counts {
    /// The bounds of upstream: of a small document 99 % may come of aliases, of a large one 10 %.
    fn is_too_much(&self) -> bool {
        const LOW: f64 = 400_000.0;
        const HIGH: f64 = 4_000_000.0;
        let (nodes, aliased) = (f64::from(self.nodes), f64::from(self.aliased));
        let allowed = 0.99 - 0.89 * ((nodes - LOW) / (HIGH - LOW)).clamp(0.0, 1.0);
        let is_many = self.aliased > 100 && self.nodes > 1000 && aliased / nodes > allowed;
        is_many || self.aliased_bytes > ALIASED_BYTES_MAX
    }
}

impl<'a> Decoder<'a> {
    fn value(&mut self, id: Id) -> Result<Value, YamlError> {
        let node = self.enter(id)?;
        let value = match &node.content {
            Content::Scalar(scalar) => self.scalar(node, scalar),
            Content::Sequence(items) => self.sequence(items),
            Content::Mapping(pairs) => {
                let mut members = Map::new();
                self.mapping(pairs, &mut members)?;
                Ok(Value::Object(members))
            }
            Content::Alias(target) => self.alias(id, |decoder| decoder.value(*target)),
        };
        self.depth -= 1;
        value
    }

    /// Counts a node, and goes one deeper.
    fn enter(&mut self, id: Id) -> Result<&'a Node, YamlError> {
        let node = self.tree.node(id);
        self.counts.nodes = self.counts.nodes.saturating_add(1);
        if !self.followed.is_empty() {
            self.counts.aliased = self.counts.aliased.saturating_add(1);
            if let Content::Scalar(scalar) = &node.content {
                self.counts.aliased_bytes += scalar.text.len();
            }
        }
        if self.counts.is_too_much() {
            return Err(self.error(node, "alias expansion exceeds the limit"));
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error(node, "it is nested too deeply"));
        }
        Ok(node)
    }

    fn alias<T>(
        &mut self,
        id: Id,
        follow: impl FnOnce(&mut Self) -> Result<T, YamlError>,
    ) -> Result<T, YamlError> {
        if !self.followed.insert(id) {
            let node = self.tree.node(id);
            return Err(self.error(node, "an anchor's value contains itself"));
        }
        let found = follow(self);
        self.followed.remove(&id);
        found
    }

    fn scalar(&self, node: &Node, scalar: &Scalar) -> Result<Value, YamlError> {
        let resolved = resolve(scalar).map_err(|it| self.about(node, scalar, it))?;
        match resolved {
            Resolved::Null => Ok(Value::Null),
            Resolved::Bool(it) => Ok(Value::Bool(it)),
            Resolved::Text(it) => Ok(Value::String(it)),
            Resolved::Number(it) => {
                number::value(it).ok_or_else(|| self.about(node, scalar, "JSON has no such number"))
            }
        }
    }

    fn sequence(&mut self, items: &[Id]) -> Result<Value, YamlError> {
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            self.path.push_item(index);
            values.push(self.value(*item)?);
            self.path.pop();
        }
        Ok(Value::Array(values))
    }

    /// Puts the members of a mapping in, one after the other: what comes later counts, also if it is merged.
    fn mapping(
        &mut self,
        pairs: &[(Id, Id)],
        into: &mut Map<String, Value>,
    ) -> Result<(), YamlError> {
        let mut own = BTreeSet::new();
        for (key, value) in pairs {
            if self.is_merge(*key) {
                self.merge(*value, into)?;
                continue;
            }
            let name = self.key(*key)?;
            self.path.push_key(&name);
            let found = self.value(*value)?;
            let is_merged = own.insert(name.clone());
            if into.contains_key(&name) {
                let (path, line) = (&self.path, self.tree.node(*value).line);
                self.duplicates.add(is_merged, || Duplicate {
                    line,
                    field: path.excerpt(),
                    key: excerpt(&name),
                    is_merged,
                });
            }
            self.path.pop();
            into.insert(name, found);
        }
        Ok(())
    }

    fn is_merge(&self, key: Id) -> bool {
        match &self.tree.node(key).content {
            Content::Scalar(Scalar { text, kind }) => {
                let is_kind = match kind {
                    ScalarKind::Implicit => true,
                    ScalarKind::Text => false,
                    ScalarKind::Tagged(tag) => tag == "!!merge",
                };
                text == "<<" && is_kind
            }
            Content::Sequence(_) | Content::Mapping(_) | Content::Alias(_) => false,
        }
    }

    fn merge(&mut self, id: Id, into: &mut Map<String, Value>) -> Result<(), YamlError> {
        let node = self.tree.node(id);
        if let Content::Sequence(items) = &node.content {
            // Backwards, because earlier ones count.
            for item in items.iter().rev() {
                self.merge_one(*item, into)?;
            }
            return Ok(());
        }
        self.merge_one(id, into)
    }

    fn merge_one(&mut self, id: Id, into: &mut Map<String, Value>) -> Result<(), YamlError> {
        let tree = self.tree;
        self.enter(id)?;
        let merged = match &tree.node(id).content {
            Content::Mapping(pairs) => self.mapping(pairs, into),
            Content::Alias(target) if self.is_mapping(*target) => {
                self.alias(id, |decoder| decoder.merge_one(*target, into))
            }
            Content::Alias(_) | Content::Scalar(_) | Content::Sequence(_) => Err(self.error(
                tree.node(id),
                "only mappings can be merged, or a list of them",
            )),
        };
        self.depth -= 1;
        merged
    }

    fn is_mapping(&self, id: Id) -> bool {
        matches!(self.tree.node(id).content, Content::Mapping(_))
    }

    /// A key as text, as `sigs.k8s.io/yaml` writes it.
    fn key(&mut self, id: Id) -> Result<String, YamlError> {
        let tree = self.tree;
        self.enter(id)?;
        let node = tree.node(id);
        let key = match &node.content {
            Content::Scalar(scalar) => match resolve(scalar) {
                Ok(Resolved::Text(it)) => Ok(it),
                Ok(Resolved::Bool(it)) => Ok(it.to_string()),
                Ok(Resolved::Number(Parsed::Integer(it))) => Ok(it.to_string()),
                Ok(Resolved::Number(Parsed::Float(it))) => Ok(number::key(it)),
                Ok(Resolved::Null) => Err(self.error(node, "a key is null")),
                Ok(Resolved::Number(Parsed::Unsigned(_))) => {
                    Err(self.about(node, scalar, "a key is too large a number"))
                }
                Err(problem) => Err(self.about(node, scalar, problem)),
            },
            Content::Alias(target) => self.alias(id, |decoder| decoder.key(*target)),
            Content::Sequence(_) | Content::Mapping(_) => {
                Err(self.error(node, "a key is a list or a mapping"))
            }
        };
        self.depth -= 1;
        key
    }

    fn error(&self, node: &Node, problem: impl Into<String>) -> YamlError {
        YamlError {
            line: node.line,
            column: node.column,
            field: self.path.to_string(),
            problem: problem.into(),
            found: None,
        }
    }

    fn about(&self, node: &Node, scalar: &Scalar, problem: impl Into<String>) -> YamlError {
        YamlError {
            found: Some(scalar.text.clone()),
            ..self.error(node, problem)
        }
    }
}
