//! The whole API server as one value: dispatch of requests, and the one way to change it.
//!
//! What the verbs decide is in their own files; durability and sockets are others' business.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use sundown_model::{Catalog, ObjectKey, Position, Resource};
use sundown_store::{History, Revision, Store, Transaction, Write};

use crate::authorize::{self, Bindings};
use crate::commit::Access;
use crate::custom::Short;
use crate::custom::names;
use crate::failure::Failure;
use crate::registry::{Registry, Rules, crd_resource};
use crate::render::Form;
use crate::route::{Part, Route, Target, route};
use crate::table::Table;
use crate::{Authorization, Commit, Encoding, Log, Method, Request, Response, Stale, User, Watch};
use crate::{
    builtin, create, delete, delete_collection, discovery, list, logs, negotiate, openapi, options,
    patch, reviews, scale, timeout, tokens, update, yaml,
};

/// The namespaces that every cluster has.
const FIRST_NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// The whole API server as one value: a clone is a snapshot.
#[derive(Debug, Clone)]
pub struct Server {
    store: Store,
    registry: Arc<Registry>,
    config: Config,
    /// Who may do what; None if everybody may do everything.
    bindings: Option<Bindings>,
}

/// What an operator of the server chooses.
#[derive(Debug, Clone)]
pub struct Config {
    /// False: no `orphan` or `foregroundDeletion` finalizer is ever added or removed by DELETE.
    pub garbage_collector: bool,
    /// Who may do what.
    pub authorization: Authorization,
    /// Kinds that somebody acts on here, of those that a server alone only stores.
    pub acted_on: Vec<Resource>,
    /// How much history is kept for watches.
    pub history: History,
    /// Gives the definitions of custom resources that a new server begins with, as JSON.
    ///
    /// Assumes: a POST would take each of them as it is, and store its schemas as they are written.
    /// They are not checked again.
    pub definitions: fn() -> Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            garbage_collector: true,
            authorization: Authorization::default(),
            acted_on: Vec::new(),
            history: History::default(),
            definitions: Vec::new,
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
    /// Something that a pod wrote, kept by whoever runs it.
    Log(Box<Log>),
}

/// What a request came to, commits included.
#[derive(Debug, Clone)]
pub enum Called {
    Response(Response),
    Watch(Watch),
    Log(Log),
}

impl Server {
    /// A server with the namespaces `default`, `kube-system`, `kube-public`, `kube-node-lease`.
    pub fn new(config: Config, cx: &mut Cx<'_>) -> Self {
        let store = Store::new(config.history);
        Self::with_store(config, store, cx)
    }

    /// A server that goes on with what was kept; what every cluster has is added if it is missing.
    pub fn with_store(config: Config, store: Store, cx: &mut Cx<'_>) -> Self {
        let is_fresh = store.revision() == Revision::ZERO;
        let mut server = Self {
            registry: Arc::new(Registry::of(&store)),
            store,
            config,
            bindings: None,
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
        if server.config.authorization == Authorization::Rbac {
            authorize::lay_in(&mut server, cx);
            server.bindings = Some(Bindings::of(&server.store));
        }
        if is_fresh {
            server.begin_with_definitions(cx);
            // As with upstream's watch cache, nobody watches the installation itself.
            server.store.begin_history();
        }
        server
    }

    /// Definitions of half a megabyte take a POST longer than all the rest of a start. Nothing that
    /// is done to them looks at their schemas, which are put in as they come.
    fn begin_with_definitions(&mut self, cx: &mut Cx<'_>) {
        let definitions = crd_resource();
        let ty = self
            .registry
            .find(definitions.group(), "v1", definitions.plural());
        let Some(ty) = ty.cloned() else {
            return;
        };
        for text in (self.config.definitions)() {
            let short = Short::of(&text);
            let value = serde_json::from_str(&short.text);
            let value = value.expect("what comes with the server is JSON");
            let mut object = create::given(self, &ty, value, cx);
            let key = ObjectKey::cluster(&definitions, &object.metadata.name);
            names::settle_new(&self.store, &key, &mut object, cx.now);
            let write = Write::Put {
                key,
                body: short.fill(object.encode(&ty)),
            };
            let transaction = Transaction {
                reads: Vec::new(),
                writes: vec![write],
            };
            self.lay(&transaction, cx.now);
        }
        self.registry = Arc::new(self.registry.following(&self.store));
    }

    /// Writes what comes with the server.
    pub(crate) fn lay(&mut self, transaction: &Transaction, now: Timestamp) {
        let committed = self.store.commit(transaction, now);
        committed.expect("what reads nothing is never stale");
    }

    /// Decides on a request: reads the snapshot, changes nothing.
    pub fn handle(&self, request: &Request, cx: &mut Cx<'_>) -> Verdict {
        if let Err(refused) = self.authorize(request) {
            return Verdict::Answer(refused);
        }
        if let Err(failure) = timeout::check(request) {
            return Verdict::Answer(failure.response());
        }
        if let Some((review, namespace)) = reviews::find(&request.path) {
            return Verdict::Answer(review.answer(self, namespace, request, cx));
        }
        if let Some(account) = tokens::find(&request.path) {
            return Verdict::Answer(tokens::answer(self, &account, request, cx));
        }
        let route = route(&self.registry, &request.path);
        let Route::Resource(target) = &route else {
            return Verdict::Answer(self.document(&route, request));
        };
        let converted = match yaml::as_json(&target.ty, request) {
            Ok(converted) => converted,
            Err(failure) => return Verdict::Answer(failure.response()),
        };
        let request = converted.as_ref().unwrap_or(request);
        let verdict = self.verb(target, request, cx);
        let verdict = verdict.and_then(|verdict| self.shown(verdict, target, request, cx.now));
        let verdict = verdict.unwrap_or_else(|failure| Verdict::Answer(failure.response()));
        let verdict = match verdict {
            Verdict::Commit(commit) => Verdict::Commit(Box::new(commit.judged_on(self.access()))),
            other @ (Verdict::Answer(_) | Verdict::Watch(_) | Verdict::Log(_)) => other,
        };
        let Some(warning) = &target.ty.deprecation else {
            return verdict;
        };
        match verdict {
            Verdict::Answer(response) => Verdict::Answer(response.warned(warning)),
            Verdict::Commit(commit) => Verdict::Commit(Box::new(commit.warned(warning))),
            // Of a watch it is read from its type.
            other @ (Verdict::Watch(_) | Verdict::Log(_)) => other,
        }
    }

    /// The verdict with its objects as a Table, if that is what the client asks for.
    fn shown(
        &self,
        verdict: Verdict,
        target: &Target,
        request: &Request,
        now: Timestamp,
    ) -> Result<Verdict, Failure> {
        if !negotiate::wants_table(request) {
            return Ok(verdict);
        }
        let table = Table::asked(self, &target.ty, request)?;
        Ok(match verdict {
            Verdict::Answer(response) => Verdict::Answer(table.answer(response, now)),
            Verdict::Commit(commit) => Verdict::Commit(Box::new(commit.shown_as(table, now))),
            Verdict::Watch(mut watch) => {
                watch.show_as(table);
                Verdict::Watch(watch)
            }
            log @ Verdict::Log(_) => log,
        })
    }

    /// Checks what the commit was decided on, then makes it visible whole.
    ///
    /// Errors: something it was decided on changed since, who may do what included; decide on the request
    /// again.
    pub fn commit(&mut self, commit: &Commit, now: Timestamp) -> Result<Response, Stale> {
        if !commit.is_judged_on(self.access()) {
            return Err(Stale);
        }
        let response = commit.apply(&mut self.store, now)?;
        let definitions = crd_resource();
        if keys(commit).any(|key| key.resource == definitions) {
            self.settle(commit, now);
        }
        if let Some(bindings) = &mut self.bindings {
            for key in keys(commit) {
                bindings.follow(key, self.store.get(key));
            }
        }
        Ok(response)
    }

    /// What follows from a commit that changed definitions: their names, and what is served.
    fn settle(&mut self, commit: &Commit, now: Timestamp) {
        let definitions = crd_resource();
        let (group, plural) = (definitions.group(), definitions.plural());
        if let Some(ty) = self.registry.find(group, "v1", plural) {
            names::settle(&mut self.store, ty, keys(commit), now);
        }
        self.registry = Arc::new(self.registry.following(&self.store));
    }

    /// Handles and commits until nothing is stale any more. Watches are given back as they are.
    pub fn call(&mut self, request: &Request, cx: &mut Cx<'_>) -> Called {
        loop {
            match self.handle(request, cx) {
                Verdict::Answer(response) => return Called::Response(response),
                Verdict::Watch(watch) => return Called::Watch(*watch),
                Verdict::Log(log) => return Called::Log(*log),
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
        let stored = self.registry.storage(resource);
        Position::new(resource.clone(), self.store.newest(stored).rv())
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

    /// Whom a `ServiceAccount` token speaks for, and to which of these audiences. The signature is the
    /// caller's to check.
    ///
    /// Errors: expired, meant for none of these audiences, or the account or bound object is gone.
    pub fn token_user(
        &self,
        claims: &[u8],
        audiences: &[&str],
        now: Timestamp,
    ) -> Result<(User, Vec<String>), &'static str> {
        tokens::user(self, claims, audiences, now)
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn bindings(&self) -> Option<&Bindings> {
        self.bindings.as_ref()
    }

    fn access(&self) -> Access {
        self.bindings
            .as_ref()
            .map(Bindings::access)
            .unwrap_or_default()
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
        let is_binary = Encoding::of(request) == Encoding::Protobuf;
        // Of a custom resource only the metadata has a message; its scale is a built-in kind.
        let has_message = !target.ty.is_custom() || target.part == Part::Scale;
        if is_binary && !has_message && negotiate::form(request)? == Form::Full {
            let forms = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
            return Err(Failure::not_acceptable_here(forms));
        }
        let is_named = target.name.is_some();
        if target.ty.rules == Rules::Binding {
            if request.method != Method::Post || is_named {
                return Err(Failure::no_such_method());
            }
            return builtin::bind(self, target, request, cx);
        }
        match (request.method, is_named, target.part) {
            (Method::Get, false, Part::Main) if options::flag(request, "watch")? == Some(true) => {
                Ok(Verdict::Watch(Box::new(Watch::open(
                    self, target, request, cx,
                )?)))
            }
            (Method::Get, true, Part::Main | Part::Status) => {
                Ok(Verdict::Answer(list::get(self, target, request)?))
            }
            (Method::Get, true, Part::Scale) => scale::get(self, target, request),
            (Method::Post, true, Part::Binding) => builtin::bind(self, target, request, cx),
            (Method::Post, true, Part::Eviction) => builtin::evict(self, target, request, cx),
            (Method::Get, true, Part::Log) => logs::get(self, target, request, cx),
            (Method::Put, true, Part::Scale) => scale::put(self, target, request, cx),
            (Method::Patch, true, Part::Scale) => scale::patch(self, target, request, cx),
            (_, true, Part::Binding | Part::Eviction | Part::Log) => Err(Failure::no_such_method()),
            (Method::Get, false, _) => Ok(Verdict::Answer(list::list(self, target, request)?)),
            (Method::Post, false, _) => create::create(self, target, request, cx),
            (Method::Put, true, _) => update::update(self, target, request, cx),
            (Method::Patch, true, _) => patch::patch(self, target, request, cx),
            (Method::Delete, true, Part::Main) => delete::delete(self, target, request, cx),
            (Method::Delete, false, _) => {
                delete_collection::delete_collection(self, target, request, cx)
            }
            _ => Err(Failure::no_such_method()),
        }
    }

    fn document(&self, route: &Route<'_>, request: &Request) -> Response {
        if let Route::NoPart(ty, name) = route {
            return Failure::not_found(ty, name).response();
        }
        if let Route::NotYet(ty, action) = route {
            return Failure::not_supported(ty, action).response();
        }
        if request.method != Method::Get {
            return discovery::page_not_found();
        }
        match route {
            Route::Version => discovery::version(),
            Route::Health => discovery::health(request),
            Route::CoreVersions => discovery::core_versions(&self.registry, request),
            Route::Groups => discovery::groups(&self.registry, request),
            Route::Group(group) => discovery::group(&self.registry, group),
            Route::GroupVersion(group, version) => {
                discovery::group_version(&self.registry, group, version)
            }
            Route::OpenApiV2 => openapi::document_v2(&self.registry, request),
            Route::OpenApiIndex => openapi::index(&self.registry),
            Route::OpenApi(group, version) => openapi::document(&self.registry, group, version),
            Route::NoResource => Failure::no_such_resource().response(),
            Route::Resource(_) | Route::NoPart(..) | Route::NotYet(..) | Route::Unknown => {
                discovery::page_not_found()
            }
        }
    }
}

/// What a commit writes.
fn keys(commit: &Commit) -> impl Iterator<Item = &ObjectKey> {
    commit.transaction.writes.iter().map(|write| match write {
        Write::Put { key, .. } | Write::Delete { key } => key,
    })
}
