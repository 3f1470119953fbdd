//! Which form a client gets and which bodies are read: Accept and Content-Type.

use crate::Request;
use crate::failure::Failure;
use crate::render::{Form, JSON};

/// Upstream's limit of request bodies.
pub(crate) const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// The form of objects in the answer: the first clause of Accept that we can serve.
pub(crate) fn form(request: &Request) -> Result<Form, Failure> {
    let Some(accept) = request
        .accept
        .as_deref()
        .filter(|accept| !accept.trim().is_empty())
    else {
        return Ok(Form::Full);
    };
    accept
        .split(',')
        .find_map(clause_form)
        .ok_or_else(Failure::not_acceptable)
}

/// The media type of Accept that asks for aggregated discovery, if any comes before plain JSON.
pub(crate) fn aggregated_discovery(request: &Request) -> Option<&'static str> {
    const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    const V2BETA1: &str =
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    let accept = request.accept.as_deref()?;
    for clause in accept.split(',').map(Clause::parse) {
        if clause.media != JSON {
            continue;
        }
        match (clause.param("as"), clause.param("g"), clause.param("v")) {
            (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2")) => {
                return Some(V2);
            }
            (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2beta1")) => {
                return Some(V2BETA1);
            }
            (None, _, _) => return None,
            _ => {}
        }
    }
    None
}

/// The media type of the body, without parameters; JSON if the client did not say.
pub(crate) fn media_type(request: &Request) -> &str {
    let sent = request.content_type.as_deref().unwrap_or(JSON);
    let media = sent.split(';').next().unwrap_or("").trim();
    if media.is_empty() { JSON } else { media }
}

/// Refuses bodies that are no JSON.
pub(crate) fn require_json(request: &Request) -> Result<(), Failure> {
    if media_type(request) == JSON {
        Ok(())
    } else {
        Err(Failure::unsupported_media(&[JSON]))
    }
}

fn clause_form(text: &str) -> Option<Form> {
    let clause = Clause::parse(text);
    if !matches!(clause.media, JSON | "*/*" | "application/*") {
        return None;
    }
    match clause.param("as") {
        None => Some(Form::Full),
        Some("PartialObjectMetadata" | "PartialObjectMetadataList")
            if clause.param("v") == Some("v1") =>
        {
            Some(Form::Metadata)
        }
        Some(_) => None,
    }
}

struct Clause<'a> {
    media: &'a str,
    params: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().unwrap_or("");
        let params = parts.filter_map(|part| part.split_once('=')).collect();
        Self { media, params }
    }

    fn param(&self, name: &str) -> Option<&'a str> {
        self.params
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| *value)
    }
}
