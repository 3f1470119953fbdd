//! The encoding of answers: JSON wherever the client takes it, otherwise YAML or protobuf.
//!
//! All answers are made in JSON. Whoever asks for nothing but another encoding gets it converted on
//! the way out, so that no verb has to know of it.

use serde_json::Value;

use crate::render::JSON;
use crate::{Request, Response, negotiate, protobuf, yaml};

/// How the bytes of an answer are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

impl Encoding {
    /// What a client asks for.
    pub fn of(request: &Request) -> Self {
        Self::accepted(request.accept.as_deref())
    }

    /// The same, of the header `Accept` alone.
    pub fn accepted(accept: Option<&str>) -> Self {
        negotiate::encoding(accept).unwrap_or(Self::Json)
    }

    /// Converts an answer; one that the encoding has no form for stays as it is.
    pub fn apply(self, response: &mut Response) {
        if self == Self::Json || response.content_type != JSON {
            return;
        }
        let Ok(value) = serde_json::from_slice::<Value>(&response.body) else {
            return;
        };
        let converted = match self {
            Self::Json => None,
            Self::Yaml => yaml::text(&value).map(|text| (yaml::MEDIA, text.into_bytes())),
            Self::Protobuf => protobuf::envelope(&value).map(|body| (protobuf::MEDIA, body)),
        };
        if let Some((media, body)) = converted {
            response.content_type = media;
            response.body = body;
        }
    }
}
