//! GET of one object and of a collection, in pages if asked.
//!
//! A page at an older revision is rebuilt from the live state and the log, so that a continue token
//! pins nothing in memory.

use std::sync::Arc;

use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD};
use base64::{DecodeError, Engine, alphabet};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sundown_model::{Namespace, ObjectKey};
use sundown_store::{Revision, Stored};

use crate::failure::Failure;
use crate::field::{Errors, FieldError};
use crate::registry::Type;
use crate::render::{self, ListMeta};
use crate::route::Target;
use crate::selector::Selector;
use crate::{Request, Response, Server};
use crate::{go_json, negotiate, options};

const TOKEN_VERSION: &str = "meta.k8s.io/v1";

/// What a list asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ListOptions {
    pub(crate) selector: Selector,
    limit: Option<usize>,
    token: Option<Token>,
    revision: Option<Revision>,
    is_exact: bool,
}

/// The items of a list and where it goes on.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) items: Vec<(ObjectKey, Arc<Stored>)>,
    pub(crate) meta: ListMeta,
}

/// A continue token, in upstream's layout.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Token {
    v: String,
    /// -1: at the newest revision, whatever the pages before were.
    rv: i64,
    start: String,
}

/// Answers a GET of one object.
pub(crate) fn get(
    server: &Server,
    target: &Target,
    request: &Request,
) -> Result<Response, Failure> {
    let form = negotiate::form(request)?;
    check_reached(server, read_revision(request).map_err(Failure::unnamed)?)?;
    let name = target.name.as_deref().unwrap_or("");
    let stored = server.store().get(&target.key(name));
    let stored = stored.ok_or_else(|| Failure::not_found(&target.ty, name))?;
    Ok(render::response(
        200,
        render::object(stored, &target.ty, form),
    ))
}

/// Answers a GET of a collection.
pub(crate) fn list(
    server: &Server,
    target: &Target,
    request: &Request,
) -> Result<Response, Failure> {
    let form = negotiate::form(request)?;
    let page = ListOptions::read(request, &target.ty)?.page(server, target)?;
    let items: Vec<Arc<Stored>> = page.items.into_iter().map(|(_, stored)| stored).collect();
    Ok(render::response(
        200,
        render::list(&items, &target.ty, form, &page.meta),
    ))
}

impl ListOptions {
    /// Reads and checks the options of a list.
    pub(crate) fn read(request: &Request, ty: &Type) -> Result<Self, Failure> {
        let text = |name| request.param(name).filter(|text: &&str| !text.is_empty());
        let errors = match_errors(request);
        if !errors.is_empty() {
            return Err(Failure::invalid_options("ListOptions", &errors));
        }
        let token = text("continue").map(Token::read).transpose()?;
        let revision = read_revision(request)
            .map_err(|why| Failure::bad_request(format!("invalid resource version: {why}")))?;
        if token.is_some() && revision.is_some() {
            let why = "specifying resource version is not allowed when using continue";
            return Err(Failure::bad_request(why));
        }
        let limit =
            options::number(request, "limit")?.and_then(|limit| usize::try_from(limit).ok());
        Ok(Self {
            selector: Selector::read(request, ty)?,
            limit: limit.filter(|limit| *limit > 0),
            token,
            revision,
            is_exact: text("resourceVersionMatch") == Some("Exact"),
        })
    }

    /// The asked-for items as of this snapshot.
    pub(crate) fn page(&self, server: &Server, target: &Target) -> Result<Page, Failure> {
        let current = server.revision();
        check_reached(server, self.revision)?;
        let at = match &self.token {
            Some(token) => u64::try_from(token.rv).map_or(current, Revision::new),
            None => self.revision.filter(|_| self.is_exact).unwrap_or(current),
        };
        let items = self.items(server, target, at)?;
        let count = items.len();
        let mut items: Vec<_> = items;
        items.truncate(self.limit.unwrap_or(count));
        let mut meta = ListMeta {
            revision: at,
            ..ListMeta::default()
        };
        if let (true, Some((last, _))) = (items.len() < count, items.last()) {
            let start = format!("{}\0", path_of(last));
            let rv = i64::try_from(at.number()).unwrap_or(-1);
            meta.continue_token = Some(Token::new(rv, start).write());
            meta.remaining = self.selector.is_empty().then_some(count - items.len());
        }
        Ok(Page { items, meta })
    }

    fn items(
        &self,
        server: &Server,
        target: &Target,
        at: Revision,
    ) -> Result<Vec<(ObjectKey, Arc<Stored>)>, Failure> {
        let (store, resource) = (server.store(), target.ty.storage());
        let matches = |key: &ObjectKey, stored: &Stored| {
            let is_after = self.token.as_ref().is_none_or(|token| token.is_before(key));
            is_after && self.selector.matches(key, stored)
        };
        if at == server.revision() {
            let found: Box<dyn Iterator<Item = _>> = match target.namespace.as_deref() {
                Some(namespace) => Box::new(store.within(resource, &Namespace::from(namespace))),
                None => Box::new(store.of(resource)),
            };
            let found = found.filter(|(key, stored)| matches(key, stored));
            return Ok(found
                .map(|(key, stored)| (key.clone(), Arc::clone(stored)))
                .collect());
        }
        let past = store.at(resource, at).map_err(|_| self.expired())?;
        let in_namespace = |key: &ObjectKey| {
            target
                .namespace
                .as_deref()
                .is_none_or(|namespace| key.namespace_str() == namespace)
        };
        Ok(past
            .into_iter()
            .filter(|(key, old)| in_namespace(key) && matches(key, old))
            .collect())
    }

    fn expired(&self) -> Failure {
        let Some(token) = &self.token else {
            return Failure::expired(
                "The resourceVersion for the provided list is too old.",
                None,
            );
        };
        let message = "The provided continue parameter is too old to display a consistent list \
                       result. You can start a new list without the continue parameter, or use the \
                       continue token in this response to retrieve the remainder of the results. \
                       Continuing with the provided token results in an inconsistent list - objects \
                       that were created, modified, or deleted between the time the first chunk was \
                       returned and now may show up in the list.";
        Failure::expired(message, Some(Token::new(-1, token.start.clone()).write()))
    }
}

impl Token {
    fn new(rv: i64, start: String) -> Self {
        Self {
            v: TOKEN_VERSION.into(),
            rv,
            start,
        }
    }

    /// Compared as keys are ordered: as text, `a-b/x` would come before `a/x`.
    fn is_before(&self, key: &ObjectKey) -> bool {
        let start = self.start.split_once('/').unwrap_or(("", &self.start));
        (key.namespace_str(), &*key.name) >= start
    }

    fn read(text: &str) -> Result<Self, Failure> {
        Self::decode(text).map_err(|why| {
            let text = format!("invalid continue token: continue key is not valid: {why}");
            Failure::bad_request(text)
        })
    }

    fn decode(text: &str) -> Result<Self, String> {
        // As Go's: what is left of the last character does not matter.
        let lenient = NO_PAD.with_decode_allow_trailing_bits(true);
        let engine = GeneralPurpose::new(&alphabet::URL_SAFE, lenient);
        let bytes = engine.decode(text.trim_end_matches('='));
        let bytes = bytes.map_err(|error| match error {
            DecodeError::InvalidByte(at, _) => format!("illegal base64 data at input byte {at}"),
            DecodeError::InvalidLastSymbol { .. }
            | DecodeError::InvalidLength(_)
            | DecodeError::InvalidPadding => {
                format!("illegal base64 data at input byte {}", text.len())
            }
        })?;
        let value: Value =
            serde_json::from_slice(&bytes).map_err(|_| go_json::syntax_error(&bytes))?;
        if !value.is_object() {
            let found = go_json::name_of(&value);
            return Err(format!(
                "json: cannot unmarshal {found} into Go value of type storage.continueToken"
            ));
        }
        let token: Self = serde_json::from_value(value).map_err(|error| error.to_string())?;
        match &token {
            Self { v, .. } if v != TOKEN_VERSION => Err(format!(
                "server does not recognize this encoded version {v}"
            )),
            Self { rv: 0, .. } => Err(format!(
                "incorrect encoded start resourceVersion (version {TOKEN_VERSION})"
            )),
            Self { start, .. } if start.is_empty() => {
                Err(format!("encoded start key empty (version {TOKEN_VERSION})"))
            }
            _ => Ok(token),
        }
    }

    fn write(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).expect("a token is plain data"))
    }
}

/// The resourceVersion of a read; None if it asks for nothing.
///
/// Errors: the words that upstream has for one that is no number.
pub(crate) fn read_revision(request: &Request) -> Result<Option<Revision>, String> {
    let text = request.param("resourceVersion").unwrap_or("");
    if text.is_empty() || text == "0" {
        return Ok(None);
    }
    let unreadable = || {
        let why = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
        FieldError::invalid("resourceVersion", text, &why).to_string()
    };
    Revision::parse(text).map(Some).ok_or_else(unreadable)
}

fn check_reached(server: &Server, asked: Option<Revision>) -> Result<(), Failure> {
    match asked {
        Some(asked) if asked > server.revision() => Err(Failure::too_new(asked, server.revision())),
        Some(_) | None => Ok(()),
    }
}

fn match_errors(request: &Request) -> Errors {
    let text = |name| request.param(name).unwrap_or("");
    let mut errors = Errors::default();
    let mut forbid = |field: &str, why: &str| errors.push(FieldError::forbidden(field, why));
    let (asked, revision) = (text("resourceVersionMatch"), text("resourceVersion"));
    let is_streamed = request.param("sendInitialEvents").is_some();
    let only_lists = "sendInitialEvents is forbidden for list";
    if asked.is_empty() {
        if is_streamed {
            forbid("sendInitialEvents", only_lists);
        }
        return errors;
    }
    let field = "resourceVersionMatch";
    if revision.is_empty() {
        forbid(
            field,
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        );
    }
    if !text("continue").is_empty() {
        forbid(
            field,
            "resourceVersionMatch is forbidden when continue is provided",
        );
    }
    if asked == "Exact" && revision == "0" {
        forbid(
            field,
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        );
    }
    if !["Exact", "NotOlderThan"].contains(&asked) {
        errors.push(FieldError::unsupported(
            field,
            asked,
            &["Exact", "NotOlderThan", ""],
        ));
    }
    if is_streamed {
        errors.push(FieldError::forbidden("sendInitialEvents", only_lists));
    }
    errors
}

/// The key inside its resource, as it stands in continue tokens.
fn path_of(key: &ObjectKey) -> String {
    match &key.namespace {
        Some(namespace) => format!("{namespace}/{}", key.name),
        None => key.name.to_string(),
    }
}
