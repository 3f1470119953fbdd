//! The JSON paths of definitions: printer columns, scale and selectable fields.

use std::sync::Arc;

use serde_json::Value;

/// A path such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath {
    steps: Arc<[Step]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    Index(i64),
    /// All items or members.
    All,
    /// Items whose member at a path equals (or not) a value.
    Where {
        path: Vec<String>,
        value: Value,
        is_equal: bool,
    },
}

impl JsonPath {
    /// Reads a path; None for forms that this evaluator does not know.
    pub fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            if let Some(inner) = rest.strip_prefix('[') {
                let end = closing(inner)?;
                steps.push(bracket(inner[..end].trim())?);
                rest = &inner[end + 1..];
                continue;
            }
            rest = rest.strip_prefix('.').unwrap_or(rest);
            let (name, after) = member(rest);
            rest = after;
            match name.as_str() {
                "" if rest.is_empty() => break,
                "" => {}
                "*" => steps.push(Step::All),
                _ => steps.push(Step::Member(name)),
            }
        }
        Some(Self {
            steps: steps.into(),
        })
    }

    /// All values at the path.
    pub fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        self.steps.iter().fold(vec![value], |found, step| {
            found.into_iter().flat_map(|it| step.find(it)).collect()
        })
    }

    /// Sets the value at a path of members; false if the path is of another form.
    pub fn set(&self, object: &mut Value, new: Value) -> bool {
        let mut at = object;
        for step in &*self.steps {
            let Step::Member(name) = step else {
                return false;
            };
            if !at.is_object() {
                *at = Value::Object(serde_json::Map::new());
            }
            at = &mut at[name.as_str()];
        }
        *at = new;
        true
    }

    /// The members, where the path has nothing else.
    pub fn members(&self) -> Option<Vec<&str>> {
        let name = |step: &'_ Step| match step {
            Step::Member(_) => true,
            Step::Index(_) | Step::All | Step::Where { .. } => false,
        };
        if !self.steps.iter().all(name) {
            return None;
        }
        let texts = self.steps.iter().filter_map(|step| match step {
            Step::Member(name) => Some(name.as_str()),
            Step::Index(_) | Step::All | Step::Where { .. } => None,
        });
        Some(texts.collect())
    }
}

impl Step {
    fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Member(name) => value.get(name).into_iter().collect(),
            Self::Index(index) => {
                let list = value.as_array().map_or(&[][..], Vec::as_slice);
                let index = if *index < 0 {
                    i64::try_from(list.len()).unwrap_or(i64::MAX) + index
                } else {
                    *index
                };
                let item = usize::try_from(index).ok().and_then(|it| list.get(it));
                item.into_iter().collect()
            }
            Self::All => children(value),
            Self::Where {
                path,
                value: wanted,
                is_equal,
            } => {
                let at = |item: &'a Value| path.iter().try_fold(item, |it, name| it.get(name));
                let holds =
                    |item: &&'a Value| at(item).is_some_and(|found| (found == wanted) == *is_equal);
                children(value).into_iter().filter(holds).collect()
            }
        }
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(list) => list.iter().collect(),
        Value::Object(map) => map.values().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn member(text: &str) -> (String, &str) {
    let (mut name, mut chars) = (String::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.extend(chars.next().map(|(_, c)| c)),
            '.' | '[' => return (name, &text[at..]),
            c => name.push(c),
        }
    }
    (name, "")
}

fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ']') => return Some(at),
            _ => {}
        }
    }
    None
}

fn bracket(text: &str) -> Option<Step> {
    if text == "*" {
        return Some(Step::All);
    }
    if let Ok(index) = text.parse() {
        return Some(Step::Index(index));
    }
    if let Some(name) = unquoted(text) {
        return Some(Step::Member(name.to_owned()));
    }
    let condition = text.strip_prefix("?(")?.strip_suffix(')')?;
    let equal = condition.split_once("==").map(|pair| (pair, true));
    let unequal = || condition.split_once("!=").map(|pair| (pair, false));
    let ((path, value), is_equal) = equal.or_else(unequal)?;
    let path = path.trim().strip_prefix("@.")?;
    let value = value.trim();
    let value = match unquoted(value) {
        Some(text) => Value::from(text),
        None => serde_json::from_str(value).ok()?,
    };
    let path = path.split('.').map(str::to_owned).collect();
    Some(Step::Where {
        path,
        value,
        is_equal,
    })
}

fn unquoted(text: &str) -> Option<&str> {
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('\'').or_else(|| inner('"'))
}
