//! `/openapi/v2`: one document of all that is served, in JSON and in protobuf.
//!
//! kubectl asks for it wherever it validates by itself: lists, kinds that are not served yet. It is
//! made of what v3 is made of, part by part when a client asks for it, and kept by nobody here; the
//! server keeps what it compressed (`crates/sundown-server/src/compressed.rs`).

mod gnostic;
mod lowered;
mod parts;

use serde_json::{Value, json};

use crate::registry::Registry;
use crate::render::{JSON, response};
use crate::{Request, Response, discovery, facts, negotiate};

use parts::{definitions, paths};

/// What a client may ask for; upstream gives both names of protobuf the same answer.
const FORMS: [(&str, Form); 3] = [
    (JSON, Form::Json),
    (
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        Form::Protobuf,
    ),
    (PROTOBUF, Form::Protobuf),
];

const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// How the document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    /// A `Document` of gnostic's `openapiv2`.
    Protobuf,
}

/// `/openapi/v2`: made only for a client that does not have it.
pub(crate) fn document(registry: &Registry, request: &Request) -> Response {
    let mut answer = response(200, Vec::new());
    answer.headers.push(("vary", "Accept".to_owned()));
    let Some(form) = negotiate::first_of(request, &FORMS) else {
        answer.code = 406;
        return answer;
    };
    answer.content_type = form.media();
    let tag = tag(registry, form);
    if discovery::has_tag(request, &tag) {
        answer.code = 304;
    } else {
        answer.body = form.write(registry);
    }
    answer.headers.push(("etag", tag));
    answer
}

impl Form {
    fn media(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::Protobuf => PROTOBUF,
        }
    }

    fn write(self, registry: &Registry) -> Vec<u8> {
        match self {
            Self::Json => json_text(registry),
            Self::Protobuf => gnostic::document(registry),
        }
    }
}

/// Tells two documents apart without making them: they follow from the program, from its facts and
/// from the definitions.
fn tag(registry: &Registry, form: Form) -> String {
    let mut text = format!("{}/{form:?}", env!("CARGO_PKG_VERSION"));
    for ty in registry.all().filter(|ty| ty.is_custom()) {
        text.push_str(&super::mark(ty));
    }
    let facts = discovery::fingerprint(facts::table());
    let own = discovery::fingerprint(text.as_bytes());
    format!("\"{facts:032X}{own:032X}\"")
}

fn info() -> Value {
    json!({ "title": "Kubernetes", "version": super::VERSION })
}

/// Written part by part: as one tree it would take ten times its length.
fn json_text(registry: &Registry) -> Vec<u8> {
    let mut out = format!("{{\"swagger\":\"2.0\",\"info\":{},\"paths\":{{", info()).into_bytes();
    paths(registry, &mut |path, item| put_member(&mut out, path, item));
    out.extend_from_slice(b"},\"definitions\":{");
    definitions(registry, &mut |name, schema| {
        put_member(&mut out, name, schema);
    });
    out.extend_from_slice(b"}}");
    out
}

fn put_member(out: &mut Vec<u8>, name: &str, value: &Value) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    out.extend_from_slice(format!("{}:{value}", Value::from(name)).as_bytes());
}
