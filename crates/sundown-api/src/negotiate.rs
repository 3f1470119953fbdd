//! Which form a client gets and which bodies are read: Accept and Content-Type.

use crate::failure::Failure;
use crate::render::{Form, JSON};
use crate::{Encoding, Request, protobuf, yaml};

/// Upstream's limit of request bodies.
pub(crate) const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// What a clause of Accept comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    As(Form),
    Table,
}

/// The form of objects in the answer: that of the first clause of Accept that we can serve. A Table is
/// made from full objects.
pub(crate) fn form(request: &Request) -> Result<Form, Failure> {
    match choice(request.accept.as_deref()) {
        Some((_, Shape::As(form))) => Ok(form),
        Some((_, Shape::Table)) => Ok(Form::Full),
        None => Err(Failure::not_acceptable(request)),
    }
}

/// Whether the first clause of Accept that we can serve asks for a Table.
pub(crate) fn wants_table(request: &Request) -> bool {
    matches!(choice(request.accept.as_deref()), Some((_, Shape::Table)))
}

/// The encoding of the answer: JSON wherever the same form is acceptable in it.
pub(crate) fn encoding(accept: Option<&str>) -> Option<Encoding> {
    choice(accept).map(|(encoding, _)| encoding)
}

fn choice(accept: Option<&str>) -> Option<(Encoding, Shape)> {
    let accept = accept.unwrap_or("");
    if accept.trim().is_empty() {
        return Some((Encoding::Json, Shape::As(Form::Full)));
    }
    let clauses = clauses(accept);
    let mut served = clauses.iter().filter_map(Clause::serves);
    let (first, shape) = served.next()?;
    // Answers are made in JSON, and another encoding only costs.
    let has_json = served.any(|other| other == (Encoding::Json, shape));
    let encoding = if has_json { Encoding::Json } else { first };
    Some((encoding, shape))
}

/// The clauses of Accept, the most wanted first: by `q`, then as they stand.
fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = accept.split(',').map(Clause::parse).collect();
    clauses.sort_by(|one, other| other.quality().total_cmp(&one.quality()));
    clauses
}

/// The media type of Accept that asks for aggregated discovery, if any comes before plain JSON.
pub(crate) fn aggregated_discovery(request: &Request) -> Option<&'static str> {
    const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    const V2BETA1: &str =
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    let accept = request.accept.as_deref()?;
    for clause in clauses(accept) {
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

/// The first of several media types that the client takes: the most wanted clause of Accept decides,
/// and of two that are wanted alike the one that says more.
pub(crate) fn first_of<T: Copy>(request: &Request, served: &[(&str, T)]) -> Option<T> {
    let accept = request.accept.as_deref().unwrap_or("").trim();
    let mut clauses = clauses(if accept.is_empty() { "*/*" } else { accept });
    clauses.retain(|clause| clause.quality() > 0.0);
    clauses.sort_by(|one, other| {
        let by_quality = other.quality().total_cmp(&one.quality());
        by_quality.then(one.wildcards().cmp(&other.wildcards()))
    });
    let first = |clause: &Clause<'_>| served.iter().find(|(media, _)| clause.takes(media));
    clauses.iter().find_map(first).map(|(_, it)| *it)
}

/// The media type of the body, without parameters; JSON if the client did not say.
pub(crate) fn media_type(request: &Request) -> &str {
    let sent = request.content_type.as_deref().unwrap_or(JSON);
    let media = sent.split(';').next().unwrap_or("").trim();
    if media.is_empty() { JSON } else { media }
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

    /// What an answer to this clause is; None for what we do not have.
    fn serves(&self) -> Option<(Encoding, Shape)> {
        if self.quality() <= 0.0 {
            return None;
        }
        let encoding = match self.media {
            JSON | "*/*" | "application/*" => Encoding::Json,
            yaml::MEDIA => Encoding::Yaml,
            protobuf::MEDIA => Encoding::Protobuf,
            _ => return None,
        };
        let is_meta = self.param("g") == Some("meta.k8s.io") && self.param("v") == Some("v1");
        let shape = match self.param("as") {
            None => Shape::As(Form::Full),
            // Upstream's Table has no message.
            Some("Table") if is_meta && encoding != Encoding::Protobuf => Shape::Table,
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") if is_meta => {
                Shape::As(Form::Metadata)
            }
            Some(_) => return None,
        };
        Some((encoding, shape))
    }

    fn takes(&self, media: &str) -> bool {
        let kind = |media: &str| media.split('/').next().map(str::to_owned);
        match self.media.strip_suffix("/*") {
            Some("*") => true,
            Some(own) => kind(media).as_deref() == Some(own),
            None => self.media == media || self.media == "*",
        }
    }

    fn wildcards(&self) -> usize {
        self.media.matches('*').count()
    }

    /// RFC 9110: between 0 and 1; 1 if it is not said or cannot be read.
    fn quality(&self) -> f32 {
        let said = self.param("q").and_then(|text| text.parse().ok());
        said.map_or(1.0, |quality: f32| quality.clamp(0.0, 1.0))
    }

    fn param(&self, name: &str) -> Option<&'a str> {
        self.params
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests;
