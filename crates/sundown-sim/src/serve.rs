//! Requests to the server of a world: handled, committed, recorded and judged; and the meddler who
//! acts at the worst moment.

use std::sync::Arc;

use serde_json::{Value, json};
use sundown_api::{Cx, Method, Request, Verdict, Watch};
use sundown_decide::kinds::{CLUSTER_ROLE, CRD, EVENT, EVENT_K8S_IO};
use sundown_model::{Catalog, ObjectKey, ResourceType};

use crate::checks::{self, Violation};
use crate::fault::Meddle;
use crate::ledger::{Actor, Event, Version};
use crate::op::Op;
use crate::scenario::Stage;
use crate::world::{GUARDIAN, HOLD_FINALIZER, World};

/// How a request ended.
#[derive(Debug)]
pub(crate) enum Ended {
    Answered(u16, Vec<u8>),
    Watching(Box<Watch>),
}

impl World {
    /// Sends a request through the server and judges what it wrote. A meddler acts between the
    /// handling of the request and its commit, the worst moment that there is.
    pub(crate) fn call(
        &mut self,
        request: &Request,
        by: &Actor,
        mut meddle: Option<&(Meddle, ObjectKey)>,
    ) -> Ended {
        loop {
            let mut counter = u64::try_from(self.draw() >> 64).expect("half of the bits");
            let mut entropy = || crate::world::mix(&mut counter);
            let now = self.now;
            let verdict = self.server.handle(
                request,
                &mut Cx {
                    now,
                    entropy: &mut entropy,
                },
            );
            if let Some((meddle, key)) = meddle.take() {
                self.meddle(*meddle, key);
            }
            let commit = match verdict {
                Verdict::Answer(response) => {
                    return Ended::Answered(response.code, response.body);
                }
                Verdict::Watch(watch) => return Ended::Watching(watch),
                // Nothing in this world writes, so there is nothing to read.
                Verdict::Log(_) => {
                    let response = sundown_api::Log::without_node();
                    return Ended::Answered(response.code, response.body);
                }
                Verdict::Commit(commit) => commit,
            };
            #[cfg(feature = "mutants")]
            let commit = {
                let mut commit = commit;
                if let Some(mutation) = self.mutation {
                    mutation.on_commit(request, &mut commit);
                }
                commit
            };
            let before = self.server.clone();
            if let Ok(response) = self.server.commit(&commit, now) {
                self.record(&before, request, by);
                return Ended::Answered(response.code, response.body);
            }
        }
    }

    /// Judges and keeps all that a commit wrote.
    fn record(&mut self, before: &sundown_api::Server, request: &Request, by: &Actor) {
        // Only stories about a plain server define kinds on the way.
        if self.stage == Stage::Plain {
            self.ledger.catalog = Arc::new(told(&self.server, self.stage));
        }
        let since = before.revision();
        let mut written = Vec::new();
        for ty in self.ledger.catalog.iter() {
            let resource = &ty.resource;
            match self.server.store().events_after(resource, since) {
                Ok(events) => written.extend(events.cloned()),
                Err(_) => self
                    .violations
                    .push(Violation::new("S7", format!("{resource}: cut"))),
            }
        }
        written.sort_by_key(|event| event.revision);
        let guard = guard_of(request);
        for (index, event) in written.iter().enumerate() {
            self.writes += 1;
            let number = event.revision.number();
            let new = event.new.as_ref().map(|stored| {
                let json = serde_json::from_slice(stored.json()).expect("the store holds JSON");
                Arc::new(Version::new(number, json))
            });
            let event = Event {
                revision: number,
                at: self.now,
                prev: self.ledger.live.get(&event.key).cloned(),
                new,
                by: by.clone(),
                life: self.lives,
                method: request.method,
                path: request.path.clone(),
                guard: guard.clone(),
                first: !written[..index]
                    .iter()
                    .any(|earlier| earlier.key == event.key),
                key: event.key.clone(),
            };
            self.note(&format!(
                "{number}: {:?} {:?} {}",
                event.by, event.method, event.key
            ));
            self.violations
                .extend(checks::on_event(&event, &self.ledger));
            if let Some(node) = &self.node {
                checks::on_node_event(&event, &self.ledger, node, &mut self.violations);
                checks::on_ray_event(&event, &self.ledger, node, &mut self.violations);
            }
            self.ledger.add(Arc::new(event));
        }
        if self.server.revision().number() != since.number() + written.len() as u64 {
            self.violations
                .push(Violation::new("S1", "revisions and writes do not match"));
        }
    }

    fn removal_of(&self, key: &ObjectKey) -> Op {
        let options = json!({ "propagationPolicy": "Background" });
        let path = self.path_of(key);
        Op::new(
            Method::Delete,
            path,
            Some(&options),
            format!("delete {key}"),
        )
    }

    fn meddle(&mut self, meddle: Meddle, key: &ObjectKey) {
        self.meddled = true;
        let Some(version) = self.ledger.live.get(key).cloned() else {
            return;
        };
        let op = match meddle {
            Meddle::Annotate => self.op_on(
                key,
                &json!({ "metadata": { "annotations": { "touched": "yes" } } }),
            ),
            Meddle::Adopt => {
                let uid = self.find(GUARDIAN).map(|guardian| guardian.uid.to_string());
                let owner = json!({
                    "apiVersion": "v1", "kind": "ConfigMap", "name": GUARDIAN.name, "uid": uid,
                });
                self.op_on(key, &json!({ "metadata": { "ownerReferences": [owner] } }))
            }
            Meddle::RaiseTtl => self.op_on(
                key,
                &json!({ "spec": { "ttlSecondsAfterFinished": 2_000_000_000 } }),
            ),
            Meddle::Hold => {
                let mut finalizers: Vec<_> = version.finalizers().collect();
                finalizers.push(HOLD_FINALIZER);
                self.op_on(key, &json!({ "metadata": { "finalizers": finalizers } }))
            }
            Meddle::Remove => self.removal_of(key),
            Meddle::Recreate => {
                let delete = self.removal_of(key);
                self.user(&delete);
                let path = self.path_of(key);
                let mut body = version.json.clone();
                body["metadata"] = json!({ "name": &*key.name });
                let (collection, _) = path.rsplit_once('/').expect("a path has parts");
                Op::new(
                    Method::Post,
                    collection.to_owned(),
                    Some(&body),
                    format!("create {key}"),
                )
            }
        };
        self.user(&op);
    }
}

/// A kind by its group and its plural.
type Kind = (&'static str, &'static str);

/// The built-in kinds that stories are about. Of the many others none is ever made here, and each
/// would cost two requests at the beginning of every life.
const KINDS: [Kind; 9] = [
    ("", "configmaps"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apps", "deployments"),
    ("batch", "jobs"),
    ("coordination.k8s.io", "leases"),
    ("", "namespaces"),
    ("", "pods"),
    ("apps", "replicasets"),
    ("", "secrets"),
];

/// The groups of the kinds that stories define on the way.
const DEFINED: [&str; 3] = ["batch.volcano.sh", "example.com", "scheduling.volcano.sh"];

/// The kinds that a world with storage has beside them.
const STORAGE_KINDS: [Kind; 2] = [("", "persistentvolumeclaims"), ("", "persistentvolumes")];

/// The kinds that a world with a node has beside them.
const NODE_KINDS: [Kind; 3] = [
    ("discovery.k8s.io", "endpointslices"),
    ("", "nodes"),
    ("", "services"),
];

/// The kinds of a world with Ray. Its definitions are long and hardly ever change: they are not read
/// again at the beginning of every life.
const RAY_KINDS: [Kind; 8] = [
    ("", "configmaps"),
    ("discovery.k8s.io", "endpointslices"),
    ("batch", "jobs"),
    ("", "nodes"),
    ("", "pods"),
    ("ray.io", "rayclusters"),
    ("ray.io", "rayjobs"),
    ("", "services"),
];

/// What the server serves, as far as the world is told.
pub(crate) fn told(server: &sundown_api::Server, stage: Stage) -> Catalog {
    only_told(&server.catalog(), stage)
}

/// The kinds that the world is told of.
pub(crate) fn only_told(catalog: &Catalog, stage: Stage) -> Catalog {
    let is_told = |ty: &&Arc<ResourceType>| {
        let resource = &ty.resource;
        let is_one_of = |kinds: &[Kind]| kinds.contains(&(resource.group(), resource.plural()));
        match stage {
            Stage::Plain => is_one_of(&KINDS) || DEFINED.contains(&resource.group()),
            Stage::Roles => is_one_of(&KINDS) || resource.is(&CLUSTER_ROLE),
            Stage::Events => is_one_of(&KINDS) || resource.is(&EVENT) || resource.is(&EVENT_K8S_IO),
            Stage::Storage => is_one_of(&KINDS) || is_one_of(&STORAGE_KINDS),
            Stage::Node => is_one_of(&KINDS) || is_one_of(&NODE_KINDS),
            Stage::Ray => is_one_of(&RAY_KINDS),
            Stage::RayKinds => is_one_of(&RAY_KINDS) || resource.is(&CRD),
        }
    };
    Catalog::new(catalog.iter().filter(is_told).map(|ty| (**ty).clone()))
}

/// Uid and revision that a request insists on.
fn guard_of(request: &Request) -> (Option<String>, Option<String>) {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let from = match request.method {
        Method::Delete => &body["preconditions"],
        Method::Put | Method::Patch => &body["metadata"],
        Method::Get | Method::Post => return (None, None),
    };
    let text = |name: &str| {
        from.get(name)
            .and_then(Value::as_str)
            .map(ToOwned::to_owned)
    };
    (text("uid"), text("resourceVersion"))
}
