//! From a request body to an object: JSON and protobuf, and what fieldValidation asks for.
//!
//! Built-in kinds are read as their types; custom ones have their schemas, which are others'
//! business.

mod strict;

use serde_json::{Map, Value};
use sundown_schema::FINDINGS_MAX;

use crate::document::{DEPTH_MAX, Document, depth, unconverted};
use crate::facts::{Fact, facts};
use crate::failure::Failure;
use crate::field::{Errors, FieldError};
use crate::registry::Type;
use crate::render::JSON;
use crate::{Request, custom, fields, go_json, negotiate, patch, protobuf, yaml};

/// What bodies of built-in kinds may be.
const MEDIA_TYPES: [&str; 3] = [JSON, yaml::MEDIA, protobuf::MEDIA];

/// An object that a client sent.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) document: Document,
    /// What the client is told about its fields.
    pub(crate) warnings: Vec<String>,
}

/// Reads the body of a request.
///
/// Errors: another media type than we take, no object of this type, or fields that a strict
/// validation refuses.
pub(crate) fn body(ty: &Type, request: &Request) -> Result<Sent, Failure> {
    match (negotiate::media_type(request), fact_of(ty)) {
        (JSON, Some(fact)) => {
            // What does not parse is told in the words of the plain reader.
            match serde_json::from_slice(&request.body) {
                Ok(Value::Object(map)) => typed(ty, fact, Value::Object(map), request),
                _ => Document::parse(ty, &request.body).map(Sent::plain),
            }
        }
        (JSON, None) => custom::body(ty, request).map(Sent::of),
        (protobuf::MEDIA, Some(fact)) => {
            let value = from_protobuf(fact, &request.body).map_err(|why| {
                let why = why.to_string();
                let shown = request.body.iter().take(64);
                let hex = shown.fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
                Failure::bad_request(format!(
                    "the object provided is unrecognized (must be of type {}): {why} ({hex})",
                    ty.kind
                ))
            })?;
            typed(ty, fact, value, request)
        }
        (_, Some(_)) => Err(Failure::unsupported_media(&MEDIA_TYPES)),
        (_, None) => Err(Failure::unsupported_media(&[JSON])),
    }
}

/// Reads the options of a request from its body.
pub(crate) fn options(fact: &Fact, request: &Request) -> Result<Map<String, Value>, Failure> {
    let value = match negotiate::media_type(request) {
        JSON => serde_json::from_slice(&request.body).map_err(|_| {
            let why = go_json::syntax_error(&request.body);
            Failure::bad_request(format!(
                "couldn't get version/kind; json parse error: {why}"
            ))
        })?,
        protobuf::MEDIA => from_protobuf(fact, &request.body)
            .map_err(|why| Failure::bad_request(why.to_string()))?,
        _ => return Err(Failure::unsupported_media(&MEDIA_TYPES)),
    };
    let Value::Object(map) = value else {
        let found = go_json::name_of(&value);
        return Err(Failure::bad_request(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go \
             value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind \
             string \"json:\\\"kind,omitempty\\\"\" }}"
        )));
    };
    let canonical =
        fields::canonical(fact, map).map_err(|misfit| Failure::bad_request(misfit.decoded))?;
    Ok(canonical.object)
}

/// Reads what a patch made of an object.
pub(crate) fn patched(ty: &Type, value: Value, request: &Request) -> Result<Sent, Failure> {
    match fact_of(ty) {
        Some(fact) => {
            let shown = match negotiate::media_type(request) {
                patch::STRATEGIC => {
                    let patch = serde_json::from_slice(&request.body).unwrap_or_default();
                    go_json::printed(&patch)
                }
                _ => value.to_string(),
            };
            let wrong = |why: &str| {
                let error = FieldError::invalid("patch", shown.as_str(), why);
                Failure::invalid_as("", "", "", &Errors::from([error]))
            };
            let text = |member: &str| value[member].as_str().unwrap_or("");
            let (api_version, kind) = (text("apiVersion"), text("kind"));
            let is_own = |text: &str, own: &str| text.is_empty() || text == own;
            if !is_own(api_version, &ty.api_version()) || !is_own(kind, &ty.kind) {
                return Err(wrong(&unconverted(ty, api_version, kind)));
            }
            read(ty, fact, value, request, &wrong)
        }
        None => custom::patched(ty, value, request).map(Sent::of),
    }
}

/// The facts of a built-in kind.
pub(crate) fn fact_of(ty: &Type) -> Option<&'static Fact> {
    if ty.is_custom() {
        return None;
    }
    facts().kind(ty.resource.group(), &ty.version, &ty.kind)
}

impl Sent {
    fn of((document, warnings): (Document, Vec<String>)) -> Self {
        Self { document, warnings }
    }

    fn plain(document: Document) -> Self {
        Self {
            document,
            warnings: Vec::new(),
        }
    }
}

fn typed(ty: &Type, fact: &Fact, value: Value, request: &Request) -> Result<Sent, Failure> {
    read(ty, fact, value, request, &|why| undecodable(ty, why))
}

/// Reads an object of a built-in kind; `wrong` puts into words what does not fit its type.
fn read(
    ty: &Type,
    fact: &Fact,
    value: Value,
    request: &Request,
    wrong: &dyn Fn(&str) -> Failure,
) -> Result<Sent, Failure> {
    if depth(&value) > DEPTH_MAX {
        return Err(Failure::bad_request("exceeded max depth"));
    }
    let Value::Object(map) = value else {
        return Document::decode(ty, value).map(Sent::plain);
    };
    Document::check_type(ty, &map)?;
    let canonical = fields::canonical(fact, map).map_err(|misfit| {
        wrong(match negotiate::media_type(request) {
            patch::STRATEGIC => &misfit.converted,
            _ => &misfit.decoded,
        })
    })?;
    let found = match (
        request.param("fieldValidation"),
        negotiate::media_type(request),
    ) {
        (Some("Ignore"), _) => Vec::new(),
        (_, JSON) => strict::findings(fact, &request.body),
        _ => unknown(&canonical.unknown),
    };
    let mut document = Document::decode(ty, Value::Object(canonical.object))?;
    if let Some(view) = &ty.view {
        document.rest = view.stored(document.rest);
    }
    if request.param("fieldValidation") == Some("Strict") && !found.is_empty() {
        let why = format!("strict decoding error: {}", found.join(", "));
        return Err(wrong(&why));
    }
    Ok(Sent {
        document,
        warnings: found,
    })
}

/// What is not known of an object that was not read from JSON, or was made by a patch.
fn unknown(paths: &[String]) -> Vec<String> {
    let told = paths.iter().take(FINDINGS_MAX);
    told.map(|path| format!("unknown field {path:?}")).collect()
}

fn from_protobuf(fact: &Fact, body: &[u8]) -> Result<Value, protobuf::Unreadable> {
    let envelope = protobuf::open(body)?;
    let mut map = protobuf::message(fact, envelope.raw)?;
    for (member, text) in [
        ("apiVersion", envelope.api_version),
        ("kind", envelope.kind),
    ] {
        if !text.is_empty() {
            map.insert(member.into(), text.into());
        }
    }
    Ok(Value::Object(map))
}

fn undecodable(ty: &Type, why: &str) -> Failure {
    Failure::bad_request(format!(
        "{} in version \"{}\" cannot be handled as a {}: {why}",
        ty.kind, ty.version, ty.kind
    ))
}
