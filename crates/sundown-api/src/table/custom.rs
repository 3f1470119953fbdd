//! The columns of custom resources: `additionalPrinterColumns` of the definition, Name first; Age if
//! there are none. As upstream's `apiserver/pkg/registry/customresource/tableconvertor`.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use sundown_store::Stored;

use super::{age, columns};

/// Where the value of one column comes from, and how it is shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cell {
    path: Vec<Step>,
    is_date: bool,
    is_number: bool,
}

/// One step of a JSON path.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Member(String),
    Index(i64),
    /// `[*]`.
    All,
    /// `[?(@.MEMBER=="VALUE")]`.
    Where(String, String),
}

/// The columns and cells of one version of a definition.
pub(super) fn columns(definition: Option<&Arc<Stored>>, version: &str) -> (Value, Vec<Cell>) {
    let definition: Value = definition
        .and_then(|stored| serde_json::from_slice(stored.json()).ok())
        .unwrap_or_default();
    let versions = definition["spec"]["versions"].as_array();
    let own = versions
        .into_iter()
        .flatten()
        .find(|own| own["name"] == version);
    let asked = own.and_then(|own| own["additionalPrinterColumns"].as_array());
    let age = [json!({
        "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": columns::plain()[1]["description"],
    })];
    let asked = asked
        .filter(|asked| !asked.is_empty())
        .map_or(&age[..], Vec::as_slice);
    let mut columns = vec![json!({
        "name": "Name", "type": "string", "format": "name",
        "description": columns::plain()[0]["description"], "priority": 0,
    })];
    let mut cells = Vec::new();
    for column in asked {
        let text = |member: &str| column[member].as_str().unwrap_or("");
        let path = text("jsonPath");
        let mut description = text("description").to_owned();
        if description.is_empty() {
            description = format!("Custom resource definition column (in JSONPath format): {path}");
        }
        columns.push(json!({
            "name": text("name"), "type": text("type"), "format": text("format"),
            "description": description, "priority": column["priority"].as_i64().unwrap_or(0),
        }));
        cells.push(Cell {
            path: steps(path),
            is_date: text("type") == "date",
            is_number: matches!(text("type"), "integer" | "number" | "boolean"),
        });
    }
    (columns.into(), cells)
}

/// The cells of one object, Name first.
pub(super) fn cells(cells: &[Cell], object: &Value, now: Timestamp) -> Vec<Value> {
    let name = object["metadata"]["name"].as_str().unwrap_or("");
    let others = cells.iter().map(|cell| cell.of(object, now));
    [name.into()].into_iter().chain(others).collect()
}

impl Cell {
    fn of(&self, object: &Value, now: Timestamp) -> Value {
        let mut found = vec![object];
        for step in &self.path {
            found = found
                .into_iter()
                .flat_map(|value| step.follow(value))
                .collect();
        }
        let Some(first) = found.first() else {
            return if self.is_date {
                "<unknown>".into()
            } else {
                Value::Null
            };
        };
        match first {
            _ if self.is_date => age::since(Some(first), now).into(),
            Value::Null => Value::Null,
            // Upstream drops a value that is not of the type of its column.
            Value::Number(_) | Value::Bool(_) if self.is_number => (*first).clone(),
            _ if self.is_number => Value::Null,
            Value::Number(_)
            | Value::Bool(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => {
                let texts: Vec<String> = found.iter().map(|value| text(value)).collect();
                texts.join(" ").into()
            }
        }
    }
}

impl Step {
    fn follow<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Member(name) => value.get(name).into_iter().collect(),
            Self::Index(index) => {
                let list = value.as_array().map_or(&[][..], Vec::as_slice);
                let back = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
                let at = if *index < 0 {
                    list.len().checked_sub(back)
                } else {
                    Some(back)
                };
                at.and_then(|at| list.get(at)).into_iter().collect()
            }
            Self::All => members(value),
            Self::Where(member, wanted) => {
                let mut found = members(value);
                found.retain(|value| value.get(member).is_some_and(|own| text(own) == *wanted));
                found
            }
        }
    }
}

fn members(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(list) => list.iter().collect(),
        Value::Object(map) => map.values().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Reads the part of JSON path that definitions use; what is not understood finds nothing.
fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path.trim_start_matches('$');
    while !rest.is_empty() {
        if let Some(bracket) = rest.strip_prefix('[') {
            let end = bracket.find(']').unwrap_or(bracket.len());
            steps.push(bracket_step(&bracket[..end]));
            rest = bracket.get(end + 1..).unwrap_or("");
            continue;
        }
        let member = rest.strip_prefix('.').unwrap_or(rest);
        let mut name = String::new();
        let mut letters = member.char_indices();
        let mut end = member.len();
        while let Some((at, letter)) = letters.next() {
            match letter {
                // `\.` is a dot inside a name, as in annotations.
                '\\' => name.extend(letters.next().map(|(_, escaped)| escaped)),
                '.' | '[' => {
                    end = at;
                    break;
                }
                _ => name.push(letter),
            }
        }
        if !name.is_empty() {
            steps.push(Step::Member(name));
        }
        rest = &member[end..];
        if rest.is_empty() || member.is_empty() {
            break;
        }
    }
    steps
}

fn bracket_step(inside: &str) -> Step {
    let unquoted = inside.trim_matches(['\'', '"']);
    if inside == "*" {
        return Step::All;
    }
    if let Ok(index) = inside.parse() {
        return Step::Index(index);
    }
    let filter = inside
        .strip_prefix("?(")
        .and_then(|it| it.strip_suffix(')'));
    if let Some((member, wanted)) = filter.and_then(|it| it.split_once("==")) {
        let member = member.trim().trim_start_matches("@.");
        let wanted = wanted.trim().trim_matches(['\'', '"']);
        return Step::Where(member.to_owned(), wanted.to_owned());
    }
    Step::Member(unquoted.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Cell, steps};

    #[test]
    fn follows_the_paths_that_definitions_use() {
        let object = json!({
            "metadata": { "annotations": { "a.b/c": "x" } },
            "status": {
                "phase": "Ready", "count": 3,
                "conditions": [{ "type": "A", "status": "True" }, { "type": "B", "status": "False" }],
            },
        });
        let check = |path: &str, is_number, expect: serde_json::Value| {
            let cell = Cell {
                path: steps(path),
                is_date: false,
                is_number,
            };
            assert_eq!(
                cell.of(&object, jiff::Timestamp::UNIX_EPOCH),
                expect,
                "{path}"
            );
        };
        check(".status.phase", false, json!("Ready"));
        check(".status.count", true, json!(3));
        check(".status.phase", true, json!(null));
        check(".status.missing", false, json!(null));
        check(".status.conditions[1].type", false, json!("B"));
        check(".status.conditions[-1].type", false, json!("B"));
        check(
            ".status.conditions[?(@.type==\"B\")].status",
            false,
            json!("False"),
        );
        check(".status.conditions[*].type", false, json!("A B"));
        check(".metadata.annotations.a\\.b/c", false, json!("x"));
    }
}
