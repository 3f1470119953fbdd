//! A definition without its schemas: they are nearly all of its length, and few of those who read a
//! definition want them. What they mean is left to `lazy`.

use sundown_schema::value;
use sundown_store::Body;

const MEMBER: &str = "\"openAPIV3Schema\":";
/// What is left of a schema.
const EMPTY: &str = "\"openAPIV3Schema\":{}";

/// The text of a definition in two parts.
#[derive(Debug)]
pub(crate) struct Short<'a> {
    /// The definition, with schemas that say nothing.
    pub(crate) text: String,
    /// The schemas that were there, each with its name as a member.
    schemas: Vec<&'a str>,
}

impl<'a> Short<'a> {
    /// Takes the schemas out.
    ///
    /// Assumes: the text is JSON without spaces, as the store has it.
    pub(crate) fn of(whole: &'a str) -> Self {
        let (mut text, mut schemas) = (String::new(), Vec::new());
        let mut rest = whole;
        while let Some(at) = rest.find(MEMBER) {
            let (before, found) = rest.split_at(at);
            let Some(schema) = value(&found.as_bytes()[MEMBER.len()..]) else {
                break;
            };
            let (schema, after) = found.split_at(MEMBER.len() + schema.len());
            text.push_str(before);
            text.push_str(EMPTY);
            schemas.push(schema);
            rest = after;
        }
        text.push_str(rest);
        Self { text, schemas }
    }

    /// Puts them back.
    ///
    /// Assumes: it was made of the text, and the versions stand in their order.
    pub(crate) fn fill(&self, body: Body) -> Body {
        body.filled(EMPTY, &self.schemas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_out_the_schema_of_each_version() {
        let whole = r#"{"a":"\"openAPIV3Schema\":","v":[{"n":1,"schema":{"openAPIV3Schema":{"p":{"openAPIV3Schema":{"t":"}\""}}}}},{"schema":{"openAPIV3Schema":{}}}],"z":0}"#;
        let short = Short::of(whole);
        let left = r#"{"a":"\"openAPIV3Schema\":","v":[{"n":1,"schema":{"openAPIV3Schema":{}}},{"schema":{"openAPIV3Schema":{}}}],"z":0}"#;
        assert_eq!(short.text, left);
        let first = r#""openAPIV3Schema":{"p":{"openAPIV3Schema":{"t":"}\""}}}"#;
        assert_eq!(short.schemas, [first, EMPTY]);
    }

    #[test]
    fn a_text_without_schemas_stays() {
        for text in [
            "{}",
            r#"{"openAPIV3Schema":"#,
            r#"{"spec":{"versions":[]}}"#,
        ] {
            assert_eq!(Short::of(text).text, text);
        }
    }
}
