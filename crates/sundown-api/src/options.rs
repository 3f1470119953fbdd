//! Options of requests: `DeleteOptions` from body or query, and the dry run that all writes have.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::facts::facts;
use crate::failure::Failure;
use crate::field::{Errors, FieldError};
use crate::{Request, decode};

const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// What a DELETE asks for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DeleteOptions {
    pub(crate) grace_seconds: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) policy: Option<Policy>,
    pub(crate) dry_run: bool,
}

/// What happens to dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    Orphan,
    Background,
    Foreground,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Wire {
    grace_period_seconds: Option<i64>,
    preconditions: Option<Preconditions>,
    orphan_dependents: Option<bool>,
    propagation_policy: Option<String>,
    dry_run: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

impl Wire {
    fn of(map: Map<String, Value>) -> Self {
        serde_json::from_value(Value::Object(map)).expect("read as this type before")
    }
}

impl DeleteOptions {
    /// Reads the options; a body makes the query meaningless.
    pub(crate) fn read(request: &Request) -> Result<Self, Failure> {
        let wire = if request.body.is_empty() {
            from_query(request)?
        } else {
            from_body(request)?
        };
        Self::checked(wire)
    }

    /// The options inside of another object; read by its type already.
    pub(crate) fn of(map: Map<String, Value>) -> Result<Self, Failure> {
        Self::checked(Wire::of(map))
    }

    fn checked(wire: Wire) -> Result<Self, Failure> {
        let dry_run = wire.dry_run.unwrap_or_default();
        let mut errors = Errors::default();
        if wire.orphan_dependents.is_some()
            && let Some(policy) = &wire.propagation_policy
        {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(
                "propagationPolicy",
                policy.as_str(),
                why,
            ));
        }
        let policy = wire.propagation_policy.as_deref().and_then(|text| {
            let policy = parse_policy(text);
            if policy.is_none() {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::unsupported("propagationPolicy", text, &known));
            }
            policy
        });
        errors.append(dry_run_errors(&dry_run));
        if !errors.is_empty() {
            return Err(Failure::invalid_options("DeleteOptions", &errors));
        }
        let preconditions = wire.preconditions.unwrap_or_default();
        Ok(Self {
            grace_seconds: wire.grace_period_seconds,
            uid: preconditions.uid,
            resource_version: preconditions.resource_version,
            orphan_dependents: wire.orphan_dependents,
            policy,
            dry_run: !dry_run.is_empty(),
        })
    }
}

/// Whether a write is only to be tried. The options that all writes have are checked here.
pub(crate) fn dry_run(request: &Request, kind: &str) -> Result<bool, Failure> {
    let values = params(request, "dryRun");
    let mut errors = dry_run_errors(&values);
    let known = ["", "Ignore", "Strict", "Warn"];
    if let Some(level) = request
        .param("fieldValidation")
        .filter(|level| !known.contains(level))
    {
        errors.push(FieldError::unsupported("fieldValidation", level, &known));
    }
    if errors.is_empty() {
        Ok(!values.is_empty())
    } else {
        Err(Failure::invalid_options(kind, &errors))
    }
}

/// A boolean of the query, as Go reads it: present without a value is true.
pub(crate) fn flag(request: &Request, name: &str) -> Result<Option<bool>, Failure> {
    match request.param(name) {
        None => Ok(None),
        Some("" | "1" | "true" | "True" | "TRUE" | "t" | "T") => Ok(Some(true)),
        Some("0" | "false" | "False" | "FALSE" | "f" | "F") => Ok(Some(false)),
        Some(other) => Err(Failure::bad_request(format!(
            "invalid value {other:?} of query parameter {name:?}"
        ))),
    }
}

/// A number of the query.
pub(crate) fn number(request: &Request, name: &str) -> Result<Option<i64>, Failure> {
    let text = request.param(name).filter(|text| !text.is_empty());
    let unreadable = |text: &str| {
        Failure::bad_request(format!(
            "strconv.ParseInt: parsing {text:?}: invalid syntax"
        ))
    };
    text.map(|text| text.parse().map_err(|_| unreadable(text)))
        .transpose()
}

fn from_body(request: &Request) -> Result<Wire, Failure> {
    let map = decode::options(facts().named(DELETE_OPTIONS), request)?;
    let text = |member: &str| map.get(member).and_then(Value::as_str).unwrap_or("");
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    if !matches!(kind, "" | "DeleteOptions") {
        return Err(Failure::bad_request(format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \
             \"pkg/runtime/scheme.go:111\""
        )));
    }
    Ok(Wire::of(map))
}

fn from_query(request: &Request) -> Result<Wire, Failure> {
    let text = |name| request.param(name).map(str::to_owned);
    Ok(Wire {
        grace_period_seconds: number(request, "gracePeriodSeconds")?,
        preconditions: Some(Preconditions {
            uid: text("uid"),
            resource_version: text("resourceVersion"),
        }),
        orphan_dependents: flag(request, "orphanDependents")?,
        propagation_policy: text("propagationPolicy"),
        dry_run: Some(params(request, "dryRun")),
    })
}

fn params(request: &Request, name: &str) -> Vec<String> {
    let found = request
        .query
        .iter()
        .filter(|(key, value)| key == name && !value.is_empty());
    found.map(|(_, value)| value.clone()).collect()
}

fn dry_run_errors(values: &[String]) -> Errors {
    if values.iter().all(|value| value == "All") {
        return Errors::default();
    }
    Errors::from([FieldError::unsupported("dryRun", values.to_vec(), &["All"])])
}

fn parse_policy(text: &str) -> Option<Policy> {
    match text {
        "Orphan" => Some(Policy::Orphan),
        "Background" => Some(Policy::Background),
        "Foreground" => Some(Policy::Foreground),
        _ => None,
    }
}
