//! Questions about callers: who am I, may I, whose token is this. Nothing is stored.
//!
//! What somebody may do is answered by the function that judges requests (`authorize`). Whose a token
//! is only the shell can tell, because it holds the keys: it fills in the status of a `TokenReview`.

mod access;

use serde_json::{Map, Value, json};

use crate::document::whole_seconds;
use crate::facts::facts;
use crate::failure::Failure;
use crate::field::{Errors, FieldError};
use crate::render::{JSON, response};
use crate::{Cx, Method, Request, Response, Server, User, negotiate, protobuf};

/// One kind of question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Review {
    pub(crate) group: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) singular: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) namespaced: bool,
    question: Question,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    WhoAmI,
    WhoseToken,
    MayI,
    MaySomebody,
    MaySomebodyHere,
    WhatMayI,
}

/// All of them, in the order of discovery.
pub(crate) const REVIEWS: [Review; 6] = [
    Review {
        group: "authentication.k8s.io",
        plural: "selfsubjectreviews",
        singular: "selfsubjectreview",
        kind: "SelfSubjectReview",
        namespaced: false,
        question: Question::WhoAmI,
    },
    Review {
        group: "authentication.k8s.io",
        plural: "tokenreviews",
        singular: "tokenreview",
        kind: "TokenReview",
        namespaced: false,
        question: Question::WhoseToken,
    },
    Review {
        group: "authorization.k8s.io",
        plural: "localsubjectaccessreviews",
        singular: "localsubjectaccessreview",
        kind: "LocalSubjectAccessReview",
        namespaced: true,
        question: Question::MaySomebodyHere,
    },
    Review {
        group: "authorization.k8s.io",
        plural: "selfsubjectaccessreviews",
        singular: "selfsubjectaccessreview",
        kind: "SelfSubjectAccessReview",
        namespaced: false,
        question: Question::MayI,
    },
    Review {
        group: "authorization.k8s.io",
        plural: "selfsubjectrulesreviews",
        singular: "selfsubjectrulesreview",
        kind: "SelfSubjectRulesReview",
        namespaced: false,
        question: Question::WhatMayI,
    },
    Review {
        group: "authorization.k8s.io",
        plural: "subjectaccessreviews",
        singular: "subjectaccessreview",
        kind: "SubjectAccessReview",
        namespaced: false,
        question: Question::MaySomebody,
    },
];

/// No review has columns.
const FORMS: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The version of all of them.
pub(crate) const VERSION: &str = "v1";

/// The review behind a path, and the namespace in it.
pub(crate) fn find(path: &str) -> Option<(&'static Review, Option<&str>)> {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (group, namespace, plural) = match segments.as_slice() {
        ["apis", group, VERSION, plural] => (group, None, plural),
        ["apis", group, VERSION, "namespaces", namespace, plural] => {
            (group, Some(*namespace), plural)
        }
        _ => return None,
    };
    let is_it = |it: &&Review| {
        (it.group, it.plural, it.namespaced) == (*group, *plural, namespace.is_some())
    };
    Some((REVIEWS.iter().find(is_it)?, namespace))
}

impl Review {
    /// Answers the question.
    pub(crate) fn answer(
        &self,
        server: &Server,
        namespace: Option<&str>,
        request: &Request,
        cx: &Cx<'_>,
    ) -> Response {
        let answered = self.answered(server, namespace, request, cx);
        answered.unwrap_or_else(|failure| failure.response())
    }

    fn answered(
        &self,
        server: &Server,
        namespace: Option<&str>,
        request: &Request,
        cx: &Cx<'_>,
    ) -> Result<Response, Failure> {
        if request.method != Method::Post {
            return Err(Failure::no_such_method());
        }
        negotiate::form(request)?;
        if negotiate::wants_table(request) {
            return Err(Failure::not_acceptable_here(FORMS));
        }
        let sent = read(self.group, self.kind, request)?;
        let spec = sent.get("spec").cloned().unwrap_or_else(|| json!({}));
        let mut metadata = kept_metadata(&sent);
        let mut spec = Some(spec);
        let status = match self.question {
            Question::WhoAmI => {
                metadata["creationTimestamp"] = whole_seconds(cx.now).to_string().into();
                spec = None;
                json!({ "userInfo": user_info(&request.user) })
            }
            Question::WhoseToken => {
                let token = sent.pointer("/spec/token").and_then(Value::as_str);
                if token.is_none_or(str::is_empty) {
                    let message = "token is required for TokenReview in authentication";
                    return Err(Failure::bad_request(message));
                }
                json!({ "user": {}, "error": "invalid bearer token" })
            }
            Question::MayI => {
                check(self, &access_errors(&sent))?;
                access::status(server, &request.user, &sent)
            }
            Question::MaySomebody => {
                let mut errors = access_errors(&sent);
                errors.append(subject_errors(&sent));
                check(self, &errors)?;
                access::status(server, &access::subject(&sent), &sent)
            }
            Question::MaySomebodyHere => {
                let mut errors = access_errors(&sent);
                errors.append(subject_errors(&sent));
                errors.append(place_errors(&sent, namespace.unwrap_or("")));
                check(self, &errors)?;
                metadata["namespace"] = namespace.into();
                access::status(server, &access::subject(&sent), &sent)
            }
            Question::WhatMayI => {
                let namespace = sent.pointer("/spec/namespace").and_then(Value::as_str);
                let Some(namespace) = namespace.filter(|it| !it.is_empty()) else {
                    return Err(Failure::bad_request("no namespace on request"));
                };
                spec = Some(json!({}));
                access::rules(server, &request.user, namespace)
            }
        };
        let mut body = json!({
            "kind": self.kind, "apiVersion": format!("{}/{VERSION}", self.group),
            "metadata": metadata, "status": status,
        });
        if let Some(spec) = spec {
            body["spec"] = spec;
        }
        Ok(response(201, body.to_string().into_bytes()))
    }
}

/// Reads a body that is not stored, JSON or protobuf.
pub(crate) fn read(group: &str, kind: &str, request: &Request) -> Result<Value, Failure> {
    match negotiate::media_type(request) {
        JSON => serde_json::from_slice(&request.body)
            .map_err(|error| Failure::bad_request(format!("json parse error: {error}"))),
        protobuf::MEDIA => {
            let fact = facts().kind(group, VERSION, kind);
            let message = fact.and_then(|fact| {
                let envelope = protobuf::open(&request.body).ok()?;
                protobuf::message(fact, envelope.raw).ok()
            });
            message
                .map(Value::Object)
                .ok_or_else(|| Failure::bad_request(format!("no {kind} in the protobuf body")))
        }
        _ => Err(Failure::unsupported_media(&[JSON, protobuf::MEDIA])),
    }
}

/// A caller as authentication.k8s.io/v1 shows it.
pub fn user_info(user: &User) -> Value {
    let mut info = json!({ "username": user.name, "groups": user.groups });
    if !user.uid.is_empty() {
        info["uid"] = user.uid.as_str().into();
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

fn kept_metadata(sent: &Value) -> Value {
    let mut kept = Map::new();
    for member in ["name", "labels", "annotations"] {
        if let Some(value) = sent.pointer(&format!("/metadata/{member}")) {
            kept.insert(member.to_owned(), value.clone());
        }
    }
    Value::Object(kept)
}

fn check(review: &Review, errors: &Errors) -> Result<(), Failure> {
    if errors.is_empty() {
        Ok(())
    } else {
        // Upstream leaves the kind out here.
        Err(Failure::invalid_as("", review.group, "", errors))
    }
}

fn access_errors(sent: &Value) -> Errors {
    let part = |member: &str| {
        let value = sent.pointer(&format!("/spec/{member}"));
        value.filter(|value| !value.is_null())
    };
    let (resource, other) = (part("resourceAttributes"), part("nonResourceAttributes"));
    if resource.is_some() != other.is_some() {
        return Errors::default();
    }
    let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    Errors::from([FieldError::invalid(
        "spec",
        other.map_or(Value::Null, path_and_verb),
        why,
    )])
}

fn subject_errors(sent: &Value) -> Errors {
    let user = sent.pointer("/spec/user").and_then(Value::as_str);
    let groups = sent.pointer("/spec/groups").and_then(Value::as_array);
    if user.is_some_and(|user| !user.is_empty()) || groups.is_some_and(|it| !it.is_empty()) {
        return Errors::default();
    }
    let why = "at least one of user or group must be specified";
    Errors::from([FieldError::invalid("spec.user", "", why)])
}

fn place_errors(sent: &Value, namespace: &str) -> Errors {
    let mut errors = Errors::default();
    if let Some(other) = sent.pointer("/spec/nonResourceAttributes") {
        let why = "disallowed on this kind of request";
        let field = "spec.nonResourceAttributes";
        errors.push(FieldError::invalid(field, path_and_verb(other), why));
    }
    if let Some(resource) = sent.pointer("/spec/resourceAttributes") {
        let asked = resource["namespace"].as_str().unwrap_or("");
        if asked != namespace {
            let field = "spec.resourceAttributes.namespace";
            errors.push(FieldError::invalid(
                field,
                asked,
                "must match metadata.namespace",
            ));
        }
    }
    errors
}

/// The attributes in the words of the Go type.
fn path_and_verb(attributes: &Value) -> Value {
    let text = |member: &str| attributes[member].as_str().unwrap_or("").to_owned();
    json!({ "Path": text("path"), "Verb": text("verb") })
}
