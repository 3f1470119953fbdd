//! `pods/eviction`: a deletion that the disruption budgets of a pod allow.

use serde_json::{Value, json};
use sundown_model::{ObjectKey, Resource};
use sundown_store::{Revision, Stored, Transaction, Write};

use super::binding::{set_condition, success};
use super::labels;
use crate::commit::{Answer, Commit};
use crate::document::{Document, whole_seconds};
use crate::failure::{Cause, Failure};
use crate::options::{self, DeleteOptions};
use crate::registry::part_type;
use crate::route::Target;
use crate::{Cx, Request, Server, Verdict};
use crate::{decode, delete};

/// Evictions that their budget has not confirmed yet, as upstream bounds them.
const PENDING_MAX: usize = 2000;
const VIOLATION: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// Decides on a POST of an eviction.
pub(crate) fn evict(
    server: &Server,
    target: &Target,
    request: &Request,
    cx: &Cx<'_>,
) -> Result<Verdict, Failure> {
    let is_dry = options::dry_run(request, "CreateOptions")?;
    let eviction = decode::body(&part_type("policy", "Eviction"), request)?.document;
    let name = target.name.as_deref().unwrap_or("");
    if eviction.metadata.name != name && !eviction.metadata.name.is_empty() {
        let why = "name in URL does not match name in Eviction object";
        return Err(Failure::bad_request(why));
    }
    let options = eviction.at(&["deleteOptions"]).and_then(Value::as_object);
    let options = DeleteOptions::of(options.cloned().unwrap_or_default())?;
    let key = target.key(name);
    let stored = server.store().get(&key);
    let stored = stored.ok_or_else(|| Failure::not_found(&target.ty, name))?;
    let mut reads = vec![(key.clone(), Some(stored.revision()))];
    let mut writes = Vec::new();
    let mut pod = Document::of(stored);
    if let Some(budget) = budget(server, &pod)? {
        reads.push((budget.key.clone(), Some(budget.revision)));
        writes.extend(budget.spend(server, &pod, cx)?);
    }
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    });
    set_condition(&mut pod, condition, cx);
    let body = pod.encode(&target.ty);
    // The rest of the way is that of a DELETE of the state that was just decided on.
    let marked: Stored = body.stamp(stored.revision());
    let removal = delete::remove(server, &target.ty, &key, &marked, &options, cx.now)?;
    if is_dry || options.dry_run {
        return Ok(Verdict::Answer(success()));
    }
    writes.push(Write::Put { key, body });
    writes.extend(removal.writes);
    Ok(Verdict::Commit(Box::new(Commit::new(
        Transaction { reads, writes },
        Answer::Fixed(success()),
    ))))
}

struct Budget {
    key: ObjectKey,
    revision: Revision,
    object: Document,
}

/// The budget that guards a pod; none if the pod is in a state in which nothing is disrupted.
fn budget(server: &Server, pod: &Document) -> Result<Option<Budget>, Failure> {
    let phase = pod.text_at(&["status", "phase"]);
    if matches!(phase, "Succeeded" | "Failed" | "Pending") || pod.is_deleting() {
        return Ok(None);
    }
    let resource = Resource::new("policy", "poddisruptionbudgets");
    let namespace = pod.metadata.namespace.as_str();
    let mut found = server
        .store()
        .of(&resource)
        .filter(|(key, _)| key.namespace_str() == namespace)
        .map(|(key, stored)| Budget {
            key: key.clone(),
            revision: stored.revision(),
            object: Document::of(stored),
        })
        .filter(|budget| {
            let selector = budget.object.at(&["spec", "selector"]);
            selector.is_some_and(|selector| labels::selects(selector, &pod.metadata.labels))
        });
    let first = found.next();
    if found.next().is_some() {
        let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does \
                   not support.";
        return Err(Failure::unnamed(why));
    }
    Ok(first)
}

impl Budget {
    fn number(&self, member: &str) -> i64 {
        let number = self.object.at(&["status", member]);
        number.and_then(Value::as_i64).unwrap_or(0)
    }

    /// Takes one disruption out of the budget; nothing if the pod does not count.
    fn spend(
        mut self,
        server: &Server,
        pod: &Document,
        cx: &Cx<'_>,
    ) -> Result<Option<Write>, Failure> {
        let name = self.object.metadata.name.clone();
        let (current, desired) = (self.number("currentHealthy"), self.number("desiredHealthy"));
        if !is_ready(pod) {
            let policy = self.object.text_at(&["spec", "unhealthyPodEvictionPolicy"]);
            if policy == "AlwaysAllow" || (current >= desired && desired > 0) {
                return Ok(None);
            }
        }
        if self.number("observedGeneration") < self.object.metadata.generation {
            let why =
                format!("The disruption budget {name} is still being processed by the server.");
            return Err(Failure::too_many(VIOLATION, 10, cause(why)));
        }
        let allowed = self.number("disruptionsAllowed");
        let disrupted = self.object.at(&["status", "disruptedPods"]);
        let pending = disrupted
            .and_then(Value::as_object)
            .map_or(0, serde_json::Map::len);
        if allowed <= 0 || pending > PENDING_MAX {
            let why = if current <= desired {
                format!(
                    "The disruption budget {name} needs {desired} healthy pods and has {current} \
                     currently"
                )
            } else {
                format!("The disruption budget {name} does not allow evicting pods currently")
            };
            return Err(Failure::too_many(VIOLATION, 0, cause(why)));
        }
        let ty = server
            .registry()
            .find("policy", "v1", "poddisruptionbudgets");
        let Some(ty) = ty else { return Ok(None) };
        let status = self.object.section("status");
        status.insert("disruptionsAllowed".into(), json!(allowed - 1));
        let disrupted = super::section(status, "disruptedPods");
        let now = whole_seconds(cx.now).to_string();
        disrupted.insert(pod.metadata.name.clone(), json!(now));
        Ok(Some(Write::Put {
            body: self.object.encode(ty),
            key: self.key,
        }))
    }
}

fn cause(message: String) -> Cause {
    Cause {
        reason: "DisruptionBudget",
        message,
        field: String::new(),
    }
}

fn is_ready(pod: &Document) -> bool {
    let conditions = pod.at(&["status", "conditions"]).and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
}
