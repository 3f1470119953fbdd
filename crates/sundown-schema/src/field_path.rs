//! Paths to fields of a schema, as definitions name them: `.spec.size`, `.spec['a.b']`.

use serde_json::Value;

/// Why a path is none, in the words of upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPathFault(pub String);

/// A field that a path leads to.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldPath<'a> {
    /// The names on the way.
    pub members: Vec<String>,
    /// The schema of the field.
    pub schema: &'a Value,
}

/// Follows a path through a schema. Items of lists cannot be named.
pub fn field_path<'a>(path: &str, schema: &'a Value) -> Result<FieldPath<'a>, FieldPathFault> {
    let mut found = FieldPath {
        members: Vec::new(),
        schema,
    };
    let mut rest = path;
    while !rest.is_empty() {
        let (name, after) = step(rest)?;
        found.schema =
            below(found.schema, &name).ok_or_else(|| fault("does not refer to a valid field"))?;
        found.members.push(name);
        rest = after;
    }
    Ok(found)
}

fn fault(why: impl Into<String>) -> FieldPathFault {
    FieldPathFault(why.into())
}

fn step(path: &str) -> Result<(String, &str), FieldPathFault> {
    if let Some(quoted) = path.strip_prefix("['") {
        let mut name = String::new();
        let mut chars = quoted.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => name.extend(chars.next().map(|(_, c)| c)),
                '\'' => {
                    let after = &quoted[at + 1..];
                    let after = after.strip_prefix(']');
                    let after = after.ok_or_else(|| fault("expected ']' but got end of path"))?;
                    return Ok((name, after));
                }
                c => name.push(c),
            }
        }
        return Err(fault("unexpected end of JSON path"));
    }
    if path.starts_with('[') {
        return Err(fault("array notation is not allowed"));
    }
    let is_end = |c: char| c == '.' || c == '[';
    let Some(name) = path.strip_prefix('.') else {
        let token = path.split(is_end).next().unwrap_or("");
        return Err(fault(format!("expected [ or . but got: {token}")));
    };
    let end = name.find(is_end).unwrap_or(name.len());
    if end == 0 {
        return Err(fault("unexpected end of JSON path"));
    }
    Ok((name[..end].to_owned(), &name[end..]))
}

fn below<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let property = schema.get("properties").and_then(|it| it.get(name));
    property.or_else(|| {
        schema
            .get("additionalProperties")
            .filter(|it| it.is_object())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::field_path;

    #[test]
    fn follows_names_and_tells_what_is_none() {
        let schema = json!({ "properties": {
            "spec": { "properties": { "a.b": { "type": "string" }, "l": { "items": {} } } },
            "map": { "additionalProperties": { "type": "integer" } },
        } });
        let found = |path: &str| match field_path(path, &schema) {
            Ok(found) => found.members.join("|"),
            Err(fault) => fault.0,
        };
        assert_eq!(found(".spec['a.b']"), "spec|a.b");
        assert_eq!(found(".map.any"), "map|any");
        assert_eq!(found(".spec.zz"), "does not refer to a valid field");
        assert_eq!(found("spec.a"), "expected [ or . but got: spec");
        assert_eq!(found(".spec.l[0]"), "array notation is not allowed");
        assert_eq!(found(".spec."), "unexpected end of JSON path");
        assert_eq!(found(".spec['x"), "unexpected end of JSON path");
    }
}
