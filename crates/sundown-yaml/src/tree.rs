//! The nodes of a document as they were written: scalars are not resolved, aliases are not followed.

use std::collections::BTreeMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Tag};

use crate::error::{Path, YamlError};

/// How deep collections may lie in each other. The API server reads JSON of such a depth and no more.
pub(crate) const DEPTH_MAX: usize = 255;

const CORE: &str = "tag:yaml.org,2002:";

/// Where a node is in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id(usize);

/// A document.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    /// None: there is no document.
    pub(crate) root: Option<Id>,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) content: Content,
    /// Counted from one.
    pub(crate) line: usize,
    /// Counted from one.
    pub(crate) column: usize,
}

#[derive(Debug)]
pub(crate) enum Content {
    Scalar(Scalar),
    Sequence(Vec<Id>),
    Mapping(Vec<(Id, Id)>),
    Alias(Id),
}

/// A scalar as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    pub(crate) kind: ScalarKind,
}

/// What is said about the type of a scalar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScalarKind {
    /// Plain: it follows from the text.
    Implicit,
    /// Quoted, a block, or with the tag `!`.
    Text,
    /// Tagged; those of YAML's own are short, such as `!!int`.
    Tagged(String),
}

/// A collection that is being read.
struct Open {
    id: Id,
    is_mapping: bool,
    children: Vec<Id>,
}

impl Tree {
    /// Reads the first document of a text.
    pub(crate) fn parse(text: &str) -> Result<Self, YamlError> {
        let mut builder = Builder {
            nodes: Vec::new(),
            anchors: BTreeMap::new(),
            open: Vec::new(),
            root: None,
        };
        let options = granit_parser::options! {
            emit_comments: false,
            flow_nesting_limit: DEPTH_MAX,
            block_nesting_limit: DEPTH_MAX,
        };
        let mut parser = Parser::new_from_str_with_options(text, options);
        while let Some(next) = parser.next_event() {
            match next {
                // What comes after the first document is never looked at, as in go-yaml.
                Ok((Event::DocumentEnd, _)) => break,
                Ok((event, span)) => builder.take(event, span.start),
                Err(error) => {
                    let (line, column) = place(error.marker());
                    return Err(YamlError {
                        line,
                        column,
                        field: builder.path().to_string(),
                        problem: error.info(),
                        found: None,
                    });
                }
            }
        }
        Ok(Self {
            nodes: builder.nodes,
            root: builder.root,
        })
    }

    pub(crate) fn node(&self, id: Id) -> &Node {
        &self.nodes[id.0]
    }
}

fn place(marker: &Marker) -> (usize, usize) {
    (marker.line().max(1), marker.col() + 1)
}

struct Builder {
    nodes: Vec<Node>,
    anchors: BTreeMap<usize, Id>,
    open: Vec<Open>,
    root: Option<Id>,
}

impl Builder {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the parser may tell of more than nodes"
    )]
    fn take(&mut self, event: Event<'_>, at: Marker) {
        match event {
            Event::Alias(anchor) => {
                // The parser knows only anchors that it told of.
                if let Some(&target) = self.anchors.get(&anchor) {
                    let id = self.add(Content::Alias(target), at, 0);
                    self.put(id);
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let scalar = Scalar {
                    text: text.into_owned(),
                    kind: kind(style, tag.as_deref()),
                };
                let id = self.add(Content::Scalar(scalar), at, anchor);
                self.put(id);
            }
            // Tags of collections are not looked at, as in go-yaml.
            Event::SequenceStart(_, anchor, _) => {
                let id = self.add(Content::Sequence(Vec::new()), at, anchor);
                self.begin(id, false);
            }
            Event::MappingStart(_, anchor, _) => {
                let id = self.add(Content::Mapping(Vec::new()), at, anchor);
                self.begin(id, true);
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            // Beginnings, ends and comments; the parser's own list is open.
            _ => {}
        }
    }

    fn add(&mut self, content: Content, at: Marker, anchor: usize) -> Id {
        let id = Id(self.nodes.len());
        let (line, column) = place(&at);
        self.nodes.push(Node {
            content,
            line,
            column,
        });
        if anchor != 0 {
            self.anchors.insert(anchor, id);
        }
        id
    }

    fn begin(&mut self, id: Id, is_mapping: bool) {
        self.open.push(Open {
            id,
            is_mapping,
            children: Vec::new(),
        });
    }

    fn end(&mut self) {
        let Some(open) = self.open.pop() else {
            return;
        };
        self.nodes[open.id.0].content = if open.is_mapping {
            let pairs = open.children.chunks_exact(2);
            Content::Mapping(pairs.map(|pair| (pair[0], pair[1])).collect())
        } else {
            Content::Sequence(open.children)
        };
        self.put(open.id);
    }

    fn put(&mut self, id: Id) {
        match self.open.last_mut() {
            Some(open) => open.children.push(id),
            None => self.root = Some(id),
        }
    }

    /// The field that is being read.
    fn path(&self) -> Path {
        let mut path = Path::default();
        for open in &self.open {
            if !open.is_mapping {
                path.push_item(open.children.len());
                continue;
            }
            // A key without its value, else the last key: what comes next to it cannot be read.
            let count = open.children.len();
            let key = count.checked_sub(if count % 2 == 1 { 1 } else { 2 });
            let key = key.map(|at| &self.nodes[open.children[at].0].content);
            if let Some(Content::Scalar(key)) = key {
                path.push_key(&key.text);
            }
        }
        path
    }
}

fn kind(style: ScalarStyle, tag: Option<&Tag>) -> ScalarKind {
    let Some(tag) = tag else {
        return match style {
            ScalarStyle::Plain => ScalarKind::Implicit,
            ScalarStyle::SingleQuoted
            | ScalarStyle::DoubleQuoted
            | ScalarStyle::Literal
            | ScalarStyle::Folded => ScalarKind::Text,
        };
    };
    match (tag.suffix_in_namespace(CORE), tag.parts()) {
        (Some(name), _) => ScalarKind::Tagged(format!("!!{name}")),
        (None, ("", "!")) => ScalarKind::Text,
        (None, (handle, suffix)) => ScalarKind::Tagged(format!("{handle}{suffix}")),
    }
}
