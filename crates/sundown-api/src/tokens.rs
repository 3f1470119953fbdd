//! Tokens of service accounts: what is written into one, and whom it speaks for.
//!
//! The shell holds the key. Here the claims are decided, and `status.token` carries them unsigned;
//! the shell signs them on the way out. So the core stays free of keys and randomness of its own, and
//! an answer that missed the shell is no valid token.

use std::collections::BTreeSet;
use std::iter;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sundown_model::{ObjectKey, Resource};
use sundown_store::Revision;

use crate::document::{Document, whole_seconds};
use crate::failure::Failure;
use crate::field::{Errors, FieldError};
use crate::registry::Type;
use crate::render::response;
use crate::{Cx, Method, Request, Response, Server, User, negotiate, reviews};

/// Who issues our tokens, and whom they are meant for if nobody else is named.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// The group and kind of the request for a token.
pub(crate) const GROUP: &str = "authentication.k8s.io";
pub(crate) const KIND: &str = "TokenRequest";

/// Upstream's bounds and default of a lifetime.
const SECONDS_MIN: i64 = 600;
const SECONDS_MAX: i64 = 1 << 32;
const SECONDS_DEFAULT: i64 = 3600;

/// The lifetime by which upstream knows the tokens that are put into pods by themselves, and how long
/// those really live: many programs read the file once.
const SECONDS_OF_PODS: i64 = 3607;
const SECONDS_EXTENDED: i64 = 365 * 24 * 60 * 60;

/// How long a token outlives the `deletionTimestamp` of its account or of the object it is bound to,
/// as upstream (`DefaultLeeway`). A pod's is the end of its grace period: a program that tidies up
/// may still ask.
const LEEWAY: SignedDuration = SignedDuration::from_mins(1);

/// The member of claims that names the account.
const ACCOUNT: &str = "serviceaccount";

/// The account that a path asks a token of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account<'a> {
    namespace: &'a str,
    name: &'a str,
}

/// Whether objects of this type have tokens.
pub(crate) fn has_them(ty: &Type) -> bool {
    (ty.resource.group(), ty.resource.plural()) == ("", "serviceaccounts")
}

/// Reads `/api/v1/namespaces/NAMESPACE/serviceaccounts/NAME/token`.
pub(crate) fn find(path: &str) -> Option<Account<'_>> {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    match segments.as_slice() {
        [
            "api",
            "v1",
            "namespaces",
            namespace,
            "serviceaccounts",
            name,
            "token",
        ] => Some(Account { namespace, name }),
        _ => None,
    }
}

/// Answers a request for a token.
pub(crate) fn answer(
    server: &Server,
    account: &Account<'_>,
    request: &Request,
    cx: &mut Cx<'_>,
) -> Response {
    let answered = issue(server, account, request, cx);
    answered.unwrap_or_else(|failure| failure.response())
}

/// Whom verified claims speak for, and to which of these audiences.
pub(crate) fn user(
    server: &Server,
    claims: &[u8],
    audiences: &[&str],
    now: Timestamp,
) -> Result<(User, Vec<String>), &'static str> {
    let claims: Value = serde_json::from_slice(claims).map_err(|_| "the claims are not JSON")?;
    let instant = |member: &str| claims[member].as_i64().unwrap_or(0);
    if claims["iss"] != ISSUER {
        return Err("issued by another server");
    }
    if now.as_second() >= instant("exp") || now.as_second() < instant("nbf") {
        return Err("token has expired or is not valid yet");
    }
    let own = claims["aud"].as_array().into_iter().flatten();
    let own: BTreeSet<&str> = own.filter_map(Value::as_str).collect();
    let shared = audiences.iter().filter(|asked| own.contains(*asked));
    let shared: Vec<String> = shared.map(|asked| (*asked).to_owned()).collect();
    if shared.is_empty() {
        return Err("token audiences are not ours");
    }
    let own = &claims["kubernetes.io"];
    for named in named(own) {
        if !named.is_live(server, now) {
            return Err(match named.member {
                ACCOUNT => "service account has been deleted",
                _ => "the bound object has been deleted",
            });
        }
    }
    let text = |pointer: &str| own.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    let (namespace, name) = (text("/namespace"), text("/serviceaccount/name"));
    let uid = text("/serviceaccount/uid");
    let mut user = User::service_account(namespace, name);
    uid.clone_into(&mut user.uid);
    if let Some(id) = claims["jti"].as_str() {
        let key = "authentication.kubernetes.io/credential-id".to_owned();
        user.extra.insert(key, vec![format!("JTI={id}")]);
    }
    if let Some(pod) = own["pod"]["name"].as_str() {
        let key = "authentication.kubernetes.io/pod-name".to_owned();
        user.extra.insert(key, vec![pod.to_owned()]);
        let key = "authentication.kubernetes.io/pod-uid".to_owned();
        user.extra.insert(key, vec![text("/pod/uid").to_owned()]);
    }
    Ok((user, shared))
}

/// The objects that verified claims depend on, as they are now.
pub(crate) fn reads(server: &Server, claims: &[u8]) -> Vec<(ObjectKey, Option<Revision>)> {
    let claims: Value = serde_json::from_slice(claims).unwrap_or_default();
    let named = named(&claims["kubernetes.io"]).map(|named| {
        let stored = server.store().get(&named.key);
        let revision = stored.map(|stored| stored.revision());
        (named.key, revision)
    });
    named.collect()
}

/// An object without which a token is worth nothing.
struct Named<'a> {
    member: &'static str,
    key: ObjectKey,
    uid: Option<&'a str>,
}

impl Named<'_> {
    fn is_live(&self, server: &Server, now: Timestamp) -> bool {
        let Some(stored) = server.store().get(&self.key) else {
            return false;
        };
        let ends_at = Document::deletion_at(stored).map(|deletion_at| {
            let ends_at = deletion_at.saturating_add(LEEWAY);
            ends_at.unwrap_or(Timestamp::MAX)
        });
        ends_at.is_none_or(|ends_at| now <= ends_at) && self.uid == Some(&*stored.uid().to_string())
    }
}

/// The account that claims name, and what else they are bound to.
fn named(own: &Value) -> impl Iterator<Item = Named<'_>> {
    let bound = [("pod", "pods"), ("secret", "secrets"), ("node", "nodes")];
    let account = iter::once((ACCOUNT, "serviceaccounts"));
    account.chain(bound).filter_map(|(member, plural)| {
        let name = own[member]["name"].as_str();
        // Claims without an account name none that exists.
        let name = name.or((member == ACCOUNT).then_some(""))?;
        let namespace = own["namespace"].as_str().unwrap_or("");
        let namespace = (member != "node").then_some(namespace);
        Some(Named {
            member,
            key: key(plural, namespace, name),
            uid: own[member]["uid"].as_str(),
        })
    })
}

fn issue(
    server: &Server,
    account: &Account<'_>,
    request: &Request,
    cx: &mut Cx<'_>,
) -> Result<Response, Failure> {
    if request.method != Method::Post {
        return Err(Failure::no_such_method());
    }
    negotiate::form(request)?;
    let sent = reviews::read(GROUP, KIND, request)?;
    let Account { namespace, name } = *account;
    let accounts = server.registry().find("", "v1", "serviceaccounts");
    let uid = uid_of(server, "serviceaccounts", Some(namespace), name);
    let (Some(uid), Some(_)) = (uid, accounts) else {
        return Err(Failure::not_found_as("serviceaccounts", name));
    };
    let seconds = lifetime(&sent)?;
    let audiences = match sent.pointer("/spec/audiences").and_then(Value::as_array) {
        Some(asked) if !asked.is_empty() => asked.clone(),
        _ => vec![ISSUER.into()],
    };
    let mut own = json!({
        "namespace": namespace, "serviceaccount": { "name": name, "uid": uid },
    });
    if let Some(bound) = sent
        .pointer("/spec/boundObjectRef")
        .filter(|it| !it.is_null())
    {
        bind(server, namespace, bound, &mut own)?;
    }
    let issued_at = whole_seconds(cx.now);
    let expires_at = issued_at
        .saturating_add(SignedDuration::from_secs(seconds))
        .unwrap_or(Timestamp::MAX);
    let mut ends_at = expires_at;
    if seconds == SECONDS_OF_PODS && audiences == [ISSUER] {
        own["warnafter"] = expires_at.as_second().into();
        ends_at = issued_at
            .saturating_add(SignedDuration::from_secs(SECONDS_EXTENDED))
            .unwrap_or(Timestamp::MAX);
    }
    let claims = json!({
        "aud": audiences, "exp": ends_at.as_second(), "iat": issued_at.as_second(),
        "iss": ISSUER, "jti": uuid((cx.entropy)()), "kubernetes.io": own,
        "nbf": issued_at.as_second(),
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
    });
    let body = json!({
        "kind": KIND, "apiVersion": format!("{GROUP}/v1"),
        "metadata": {
            "name": name, "namespace": namespace, "uid": uid,
            "creationTimestamp": issued_at.to_string(),
        },
        "spec": {
            "audiences": audiences, "expirationSeconds": seconds,
            "boundObjectRef": sent.pointer("/spec/boundObjectRef"),
        },
        "status": {
            "token": URL_SAFE_NO_PAD.encode(claims.to_string()),
            "expirationTimestamp": expires_at.to_string(),
        },
    });
    Ok(response(201, body.to_string().into_bytes()))
}

fn lifetime(sent: &Value) -> Result<i64, Failure> {
    let asked = sent.pointer("/spec/expirationSeconds");
    let seconds = asked.and_then(Value::as_i64).unwrap_or(SECONDS_DEFAULT);
    let why = match seconds {
        ..SECONDS_MIN => "may not specify a duration less than 10 minutes",
        SECONDS_MIN..=SECONDS_MAX => return Ok(seconds),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let error = FieldError::invalid("spec.expirationSeconds", seconds, why);
    Err(Failure::invalid_as(KIND, GROUP, "", &Errors::from([error])))
}

/// Binds the token to an object: it is worth nothing once the object is gone.
fn bind(server: &Server, namespace: &str, bound: &Value, own: &mut Value) -> Result<(), Failure> {
    let text = |member: &str| bound[member].as_str().unwrap_or("");
    let (kind, name) = (text("kind"), text("name"));
    let (member, plural, place) = match kind {
        "Pod" => ("pod", "pods", Some(namespace)),
        "Secret" => ("secret", "secrets", Some(namespace)),
        "Node" => ("node", "nodes", None),
        _ => {
            let api_version = text("apiVersion");
            return Err(Failure::bad_request(format!(
                "cannot bind token for object of type {api_version}, Kind={kind}"
            )));
        }
    };
    let Some(uid) = uid_of(server, plural, place, name) else {
        return Err(Failure::not_found_as(plural, name));
    };
    if !text("uid").is_empty() && text("uid") != uid {
        return Err(Failure::conflict_as(
            plural,
            name,
            &format!(
                "the UID in the bound object reference ({}) does not match the UID in record. The \
                 object might have been deleted and then recreated",
                text("uid")
            ),
        ));
    }
    own[member] = json!({ "name": name, "uid": uid });
    Ok(())
}

fn uid_of(server: &Server, plural: &str, namespace: Option<&str>, name: &str) -> Option<String> {
    let stored = server.store().get(&key(plural, namespace, name))?;
    Some(stored.uid().to_string())
}

fn key(plural: &str, namespace: Option<&str>, name: &str) -> ObjectKey {
    let resource = Resource::new("", plural);
    match namespace {
        Some(namespace) => ObjectKey::namespaced(&resource, namespace, name),
        None => ObjectKey::cluster(&resource, name),
    }
}

fn uuid(bits: u128) -> String {
    let bits = (bits & !(0xf000 << 64) & !(0b11 << 62)) | (0x4000 << 64) | (0b10 << 62);
    let hex = format!("{bits:032x}");
    let (a, b, c) = (&hex[..8], &hex[8..12], &hex[12..16]);
    format!("{a}-{b}-{c}-{}-{}", &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::find;

    /// A custom resource may be called as it likes: what it stores is never signed.
    #[test]
    fn only_the_accounts_of_the_core_group_have_tokens() {
        let own = find("/api/v1/namespaces/n/serviceaccounts/a/token");
        assert_eq!(own.map(|own| (own.namespace, own.name)), Some(("n", "a")));
        for path in [
            "/apis/x.dev/v1/namespaces/n/serviceaccounts/a/token",
            "/api/v1/namespaces/n/secrets/a/token",
            "/api/v1/namespaces/n/serviceaccounts/a/token/more",
            "/api/v1/serviceaccounts/a/token",
        ] {
            assert!(find(path).is_none(), "{path}");
        }
    }
}
