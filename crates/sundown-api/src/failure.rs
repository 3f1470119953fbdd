//! Why a request is refused, in the words of upstream: clients match on reason, code and sometimes
//! on the text. What is checked where is the verbs' business.

use serde::Serialize;
use serde_json::json;
use sundown_store::Revision;

use crate::authorize::Attributes;
use crate::field::{Errors, FieldError};
use crate::registry::Type;
use crate::render::JSON;
use crate::{Request, Response};

/// A refusal. Boxed: the good path should not carry its size.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure(Box<Status>);

#[derive(Debug, Clone, PartialEq)]
struct Status {
    reason: Reason,
    message: String,
    details: Option<Details>,
    continue_token: Option<String>,
}

/// The reasons that we give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    AlreadyExists,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    RequestEntityTooLarge,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
    Unauthorized,
    UnsupportedMediaType,
    InternalError,
    /// Code 500 without a reason, as upstream answers a few malformed requests.
    Unnamed,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    kind: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u32>,
}

/// One cause of a refusal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Cause {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) field: String,
}

impl Reason {
    fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Expired => 410,
            Self::RequestEntityTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::TooManyRequests => 429,
            Self::InternalError | Self::Unnamed => 500,
            Self::ServiceUnavailable => 503,
            Self::Timeout => 504,
        }
    }
}

impl Failure {
    fn new(reason: Reason, message: impl Into<String>, details: Option<Details>) -> Self {
        Self(Box::new(Status {
            reason,
            message: message.into(),
            details,
            continue_token: None,
        }))
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message, None)
    }

    pub(crate) fn not_found(ty: &Type, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", ty.resource);
        Self::new(Reason::NotFound, message, Some(Details::of(ty, name)))
    }

    /// A missing object of the core group, known by its resource only.
    pub(crate) fn not_found_as(plural: &str, name: &str) -> Self {
        let message = format!("{plural} \"{name}\" not found");
        let details = Details {
            name: name.into(),
            kind: plural.into(),
            ..Details::default()
        };
        Self::new(Reason::NotFound, message, Some(details))
    }

    /// Something that is missing, known by what upstream's lister calls it.
    pub(crate) fn not_found_in(group: &str, kind: &str, name: &str) -> Self {
        let details = Details {
            name: name.into(),
            group: group.into(),
            kind: kind.into(),
            ..Details::default()
        };
        let message = format!("{kind}.{group} {name:?} not found");
        Self::new(Reason::NotFound, message, Some(details))
    }

    /// A conflict about an object of the core group, known by its resource only.
    pub(crate) fn conflict_as(plural: &str, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {plural} \"{name}\": {why}");
        let details = Details {
            name: name.into(),
            kind: plural.into(),
            ..Details::default()
        };
        Self::new(Reason::Conflict, message, Some(details))
    }

    pub(crate) fn namespace_not_found(name: &str) -> Self {
        let details = Details {
            name: name.into(),
            kind: "namespaces".into(),
            ..Details::default()
        };
        Self::new(
            Reason::NotFound,
            format!("namespaces \"{name}\" not found"),
            Some(details),
        )
    }

    pub(crate) fn already_exists(ty: &Type, name: &str, is_deleting: bool) -> Self {
        let prefix = if is_deleting {
            "object is being deleted: "
        } else {
            ""
        };
        let message = format!("{prefix}{} \"{name}\" already exists", ty.resource);
        Self::new(Reason::AlreadyExists, message, Some(Details::of(ty, name)))
    }

    /// All names that generateName came up with are taken.
    pub(crate) fn names_exhausted(ty: &Type, name: &str) -> Self {
        let message = format!(
            "{} \"{name}\" already exists, the server was not able to generate a unique name for the object",
            ty.resource
        );
        let details = Details {
            retry_after_seconds: Some(1),
            ..Details::of(ty, name)
        };
        Self::new(Reason::AlreadyExists, message, Some(details))
    }

    pub(crate) fn conflict(ty: &Type, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            ty.resource
        );
        Self::new(Reason::Conflict, message, Some(Details::of(ty, name)))
    }

    pub(crate) fn modified(ty: &Type, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::conflict(ty, name, why)
    }

    /// A precondition of DELETE does not hold; upstream names the kind here, not the resource.
    pub(crate) fn precondition(ty: &Type, name: &str, why: &str) -> Self {
        let kind = ty.qualified_kind();
        let message = format!("Operation cannot be fulfilled on {kind} \"{name}\": {why}");
        let details = Details {
            kind: ty.kind.to_string(),
            ..Details::of(ty, name)
        };
        Self::new(Reason::Conflict, message, Some(details))
    }

    pub(crate) fn forbidden(ty: &Type, name: &str, why: &str, cause: Option<Cause>) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", ty.resource);
        let causes = cause.into_iter().collect();
        Self::new(
            Reason::Forbidden,
            message,
            Some(Details {
                causes,
                ..Details::of(ty, name)
            }),
        )
    }

    /// The caller is not known, or not any more.
    pub(crate) fn unauthenticated() -> Self {
        Self::new(Reason::Unauthorized, "Unauthorized", None)
    }

    /// The caller has no right to this (apiserver, handlers/responsewriters/errors.go).
    pub(crate) fn unauthorized(asked: &Attributes<'_>, reason: &str) -> Self {
        let (user, verb) = (&asked.user.name, asked.verb);
        let mut why = if asked.is_resource {
            let place = match asked.namespace {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {namespace:?}"),
            };
            format!(
                "User {user:?} cannot {verb} resource {:?} in API group {:?} {place}",
                asked.combined(),
                asked.group
            )
        } else {
            format!("User {user:?} cannot {verb} path {:?}", asked.path)
        };
        // Nothing that a browser would take for a page.
        for (from, to) in [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")] {
            why = why.replace(from, to);
        }
        if !reason.is_empty() {
            why = format!("{why}: {reason}");
        }
        Self::forbidden_as(asked.group, asked.resource, asked.name, &why)
    }

    /// A refusal about something that is known by its resource only.
    pub(crate) fn forbidden_as(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let dot = if group.is_empty() { "" } else { "." };
        let what = match (plural, name) {
            ("", _) => String::new(),
            (_, "") => format!("{plural}{dot}{group} is "),
            (_, name) => format!("{plural}{dot}{group} {name:?} is "),
        };
        let details = Details {
            name: name.into(),
            group: group.into(),
            kind: plural.into(),
            ..Details::default()
        };
        let message = format!("{what}forbidden: {why}");
        Self::new(Reason::Forbidden, message, Some(details))
    }

    /// The object does not pass validation. Assumes: `errors` is not empty.
    pub(crate) fn invalid(ty: &Type, name: &str, errors: &Errors) -> Self {
        Self::invalid_as(&ty.kind, ty.storage().group(), name, errors)
    }

    /// The options of the request do not pass validation.
    pub(crate) fn invalid_options(kind: &str, errors: &Errors) -> Self {
        Self::invalid_as(kind, "meta.k8s.io", "", errors)
    }

    pub(crate) fn invalid_as(kind: &str, group: &str, name: &str, errors: &Errors) -> Self {
        let dot = if group.is_empty() { "" } else { "." };
        let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let mut causes: Vec<Cause> = errors.iter().map(FieldError::cause).collect();
        // Upstream has no bound here. Told in both: kubectl shows the causes and not the message.
        if errors.dropped() > 0 {
            let message = format!("and {} more errors", errors.dropped());
            texts.push(message.clone());
            causes.push(Cause {
                reason: "",
                message,
                field: "<nil>".into(),
            });
        }
        let text = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{kind}{dot}{group} \"{name}\" is invalid: {text}");
        let details = Details {
            name: name.into(),
            group: group.into(),
            kind: kind.into(),
            causes,
            retry_after_seconds: None,
        };
        Self::new(Reason::Invalid, message, Some(details))
    }

    /// What upstream takes for its own failure, in its words.
    pub(crate) fn internal(why: &str) -> Self {
        let cause = Cause {
            reason: "",
            message: why.to_owned(),
            field: String::new(),
        };
        let details = Details {
            causes: vec![cause],
            ..Details::default()
        };
        let message = format!("Internal error occurred: {why}");
        Self::new(Reason::InternalError, message, Some(details))
    }

    /// A JSON patch that does not apply.
    pub(crate) fn patch_failed() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::new(Reason::Invalid, message, Some(Details::default()))
    }

    /// A media type that upstream's router knows nothing of.
    pub(crate) fn unknown_media() -> Self {
        let message = "415: Unsupported Media Type";
        let details = Some(Details::default());
        Self::new(Reason::UnsupportedMediaType, message, details)
    }

    /// A path of a group and version that are served, but without such a resource.
    pub(crate) fn no_such_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(Reason::NotFound, message, Some(Details::default()))
    }

    pub(crate) fn unsupported_media(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(Reason::UnsupportedMediaType, message, None)
    }

    /// An Accept that names nothing that we have; upstream's router says what there is.
    pub(crate) fn not_acceptable(request: &Request) -> Self {
        let forms = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
        let streams = ", application/json;stream=watch, \
                       application/vnd.kubernetes.protobuf;stream=watch";
        let is_watch = request.param("watch").is_some();
        let streams = if is_watch { streams } else { "" };
        let message = format!("406: Not Acceptable\n\nAvailable representations: {forms}{streams}");
        Self::new(Reason::NotAcceptable, message, Some(Details::default()))
    }

    /// A form that others of its kind have, and this one not.
    pub(crate) fn not_acceptable_here(forms: &str) -> Self {
        let message = format!("only the following media types are accepted: {forms}");
        Self::new(Reason::NotAcceptable, message, None)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(Reason::RequestEntityTooLarge, message, None)
    }

    /// A request that is small and stands for too much.
    pub(crate) fn too_costly(why: &str) -> Self {
        let message = format!("Request entity too large: {why}");
        Self::new(Reason::RequestEntityTooLarge, message, None)
    }

    /// Not now: the client may try again, after so many seconds if there are any.
    pub(crate) fn too_many(message: &str, retry_after_seconds: u32, cause: Cause) -> Self {
        let details = Details {
            causes: vec![cause],
            retry_after_seconds: (retry_after_seconds > 0).then_some(retry_after_seconds),
            ..Details::default()
        };
        Self::new(Reason::TooManyRequests, message, Some(details))
    }

    /// A method that a path does not take, in the words of upstream's router.
    pub(crate) fn no_such_method() -> Self {
        let message = "the server does not allow this method on the requested resource";
        let details = Some(Details::default());
        Self::new(Reason::MethodNotAllowed, message, details)
    }

    /// Something that upstream does with this resource, and this server not yet.
    pub(crate) fn not_supported(ty: &Type, action: &str) -> Self {
        let message = format!(
            "{action} is not supported on resources of kind {:?}",
            ty.resource.plural()
        );
        Self::new(Reason::MethodNotAllowed, message, Some(Details::of(ty, "")))
    }

    /// Something that is missing here, and not the client's fault.
    pub(crate) fn unavailable(message: &str) -> Self {
        Self::new(Reason::ServiceUnavailable, message, None)
    }

    pub(crate) fn unnamed(message: impl Into<String>) -> Self {
        Self::new(Reason::Unnamed, message, None)
    }

    /// A watch that asks for history which is gone.
    pub(crate) fn too_old(asked: Revision, floor: Revision) -> Self {
        Self::new(
            Reason::Expired,
            format!("too old resource version: {asked} ({floor})"),
            None,
        )
    }

    /// A list at a revision which is gone; the token goes on at the newest one, inconsistently.
    pub(crate) fn expired(message: &str, continue_token: Option<String>) -> Self {
        let mut failure = Self::new(Reason::Expired, message, None);
        failure.0.continue_token = continue_token;
        failure
    }

    /// A read at a revision that is not there yet.
    pub(crate) fn too_new(asked: Revision, current: Revision) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let cause = Cause {
            reason: "ResourceVersionTooLarge",
            message: "Too large resource version".into(),
            field: String::new(),
        };
        let details = Details {
            causes: vec![cause],
            retry_after_seconds: Some(1),
            ..Details::default()
        };
        Self::new(Reason::Timeout, message, Some(details))
    }

    /// The Status object.
    pub(crate) fn status(&self) -> serde_json::Value {
        let status = &*self.0;
        let mut json = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": status.message, "code": status.reason.code(),
        });
        if status.reason != Reason::Unnamed {
            json["reason"] = format!("{:?}", status.reason).into();
        }
        if let Some(details) = &status.details {
            json["details"] = json!(details);
        }
        if let Some(token) = &status.continue_token {
            json["metadata"]["continue"] = token.as_str().into();
        }
        json
    }

    /// The whole answer.
    pub(crate) fn response(&self) -> Response {
        Response {
            code: self.0.reason.code(),
            content_type: JSON,
            warnings: Vec::new(),
            headers: Vec::new(),
            body: self.status().to_string().into_bytes(),
        }
    }
}

impl Details {
    fn of(ty: &Type, name: &str) -> Self {
        Self {
            name: name.into(),
            group: ty.resource.group().into(),
            kind: ty.resource.plural().into(),
            ..Self::default()
        }
    }
}
