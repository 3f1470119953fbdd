//! The whole API server as one value: dispatch of requests, and the one way to change it.
//!
//! What the verbs decide is in their own files; durability and sockets are others' business.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use sundown_model::{Catalog, Position, Resource};
use sundown_store::{History, Revision, Store, Write};

use crate::failure::Failure;
use crate::registry::{Registry, crd_resource};
use crate::route::{Part, Route, Target, route};
use crate::{Commit, Method, Request, Response, Stale, Watch};
use crate::{
    create, delete, delete_collection, discovery, list, negotiate, openapi, options, patch, update,
};

/// The namespaces that every cluster has.
const FIRST_NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// The whole API server as one value: a clone is a snapshot.
#[derive(Debug, Clone)]
pub struct Server {
    store: Store,
    registry: Arc<Registry>,
    config: Config,
}

/// What an operator of the server chooses.
#[derive(Debug, Clone)]
pub struct Config {
    /// False: no `orphan` or `foregroundDeletion` finalizer is ever added or removed by DELETE.
    pub garbage_collector: bool,
    /// How much history is kept for watches.
    pub history: History,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            garbage_collector: true,
            history: History::default(),
        }
    }
}

/// What a handler may use besides the snapshot.
pub struct Cx<'a> {
    pub now: Timestamp,
    pub entropy: &'a mut dyn FnMut() -> u128,
}

impl std::fmt::Debug for Cx<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cx")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// What a request comes to on a snapshot.
#[derive(Debug, Clone)]
pub enum Verdict {
    Answer(Response),
    Commit(Box<Commit>),
    Watch(Box<Watch>),
}

/// What a request came to, commits included.
#[derive(Debug, Clone)]
pub enum Called {
    Response(Response),
    Watch(Watch),
}

impl Server {
    /// A server with the namespaces `default`, `kube-system`, `kube-public`, `kube-node-lease`.
    pub fn new(config: Config, cx: &mut Cx<'_>) -> Self {
        let store = Store::new(config.history);
        let mut server = Self {
            registry: Arc::new(Registry::of(&store)),
            store,
            config,
        };
        for name in FIRST_NAMESPACES {
            let namespace = json!({ "metadata": { "name": name } });
            let request = Request {
                method: Method::Post,
                path: "/api/v1/namespaces".into(),
                query: Vec::new(),
                content_type: None,
                accept: None,
                user_agent: None,
                if_none_match: None,
                user: crate::User::admin(),
                body: namespace.to_string().into_bytes(),
            };
            server.call(&request, cx);
        }
        server
    }

    /// Decides on a request: reads the snapshot, changes nothing.
    pub fn handle(&self, request: &Request, cx: &mut Cx<'_>) -> Verdict {
        let route = route(&self.registry, &request.path);
        let Route::Resource(target) = &route else {
            return Verdict::Answer(self.document(&route, request));
        };
        let verdict = self.verb(target, request, cx);
        verdict.unwrap_or_else(|failure| Verdict::Answer(failure.response()))
    }

    /// Checks what the commit was decided on, then makes it visible whole.
    ///
    /// Errors: something it was decided on changed since; handle the request again.
    pub fn commit(&mut self, commit: &Commit, now: Timestamp) -> Result<Response, Stale> {
        let response = commit.apply(&mut self.store, now)?;
        let definitions = crd_resource();
        let changes_types = commit.transaction.writes.iter().any(|write| match write {
            Write::Put { key, .. } | Write::Delete { key } => key.resource == definitions,
        });
        if changes_types {
            self.registry = Arc::new(Registry::of(&self.store));
        }
        Ok(response)
    }

    /// Handles and commits until nothing is stale any more. Watches are given back as they are.
    pub fn call(&mut self, request: &Request, cx: &mut Cx<'_>) -> Called {
        loop {
            match self.handle(request, cx) {
                Verdict::Answer(response) => return Called::Response(response),
                Verdict::Watch(watch) => return Called::Watch(*watch),
                Verdict::Commit(commit) => {
                    if let Ok(response) = self.commit(&commit, cx.now) {
                        return Called::Response(response);
                    }
                }
            }
        }
    }

    /// The newest revision at which objects of this resource changed; 0 if never.
    pub fn position(&self, resource: &Resource) -> Position {
        Position::new(resource.clone(), self.store.newest(resource).rv())
    }

    /// The revision of the newest write.
    pub fn revision(&self) -> Revision {
        self.store.revision()
    }

    /// All live objects and the log.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What is served, as the controllers of the same process see it.
    pub fn catalog(&self) -> Catalog {
        self.registry.catalog()
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    fn verb(
        &self,
        target: &Target,
        request: &Request,
        cx: &mut Cx<'_>,
    ) -> Result<Verdict, Failure> {
        if request.body.len() > negotiate::BODY_BYTES_MAX {
            return Err(Failure::too_large(negotiate::BODY_BYTES_MAX));
        }
        let is_named = target.name.is_some();
        match (request.method, is_named, target.part) {
            (Method::Get, _, Part::Main) if options::flag(request, "watch")? == Some(true) => Ok(
                Verdict::Watch(Box::new(Watch::open(self, target, request, cx)?)),
            ),
            (Method::Get, true, Part::Main | Part::Status) => {
                Ok(Verdict::Answer(list::get(self, target, request)?))
            }
            (Method::Get, false, _) => Ok(Verdict::Answer(list::list(self, target, request)?)),
            (Method::Post, false, _) => create::create(self, target, request, cx),
            (Method::Put, true, _) => update::update(self, target, request, cx),
            (Method::Patch, true, _) => patch::patch(self, target, request, cx),
            (Method::Delete, true, Part::Main) => delete::delete(self, target, request, cx),
            (Method::Delete, false, _) => {
                delete_collection::delete_collection(self, target, request, cx)
            }
            (method, ..) => Err(Failure::method_not_allowed(&target.ty, verb_name(method))),
        }
    }

    fn document(&self, route: &Route<'_>, request: &Request) -> Response {
        if request.method != Method::Get {
            return discovery::page_not_found();
        }
        match route {
            Route::Version => discovery::version(),
            Route::Health => discovery::health(),
            Route::CoreVersions => discovery::core_versions(&self.registry, request),
            Route::Groups => discovery::groups(&self.registry, request),
            Route::Group(group) => discovery::group(&self.registry, group),
            Route::GroupVersion(group, version) => {
                discovery::group_version(&self.registry, group, version)
            }
            Route::OpenApiIndex => openapi::index(&self.registry),
            Route::OpenApi(group, version) => openapi::document(&self.registry, group, version),
            Route::Resource(_) | Route::Unknown => discovery::page_not_found(),
        }
    }
}

fn verb_name(method: Method) -> &'static str {
    match method {
        Method::Get => "get",
        Method::Post => "create",
        Method::Put => "update",
        Method::Patch => "patch",
        Method::Delete => "delete",
    }
}
