//! What the tour does with the API: plain requests by a plain client, and watches instead of polls.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::stream::{BoxStream, SelectAll};
use futures::{StreamExt, TryStreamExt};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
    PropagationPolicy, WatchEvent, WatchParams,
};
use serde_json::{Value, json};

use crate::complaint::Complaint;
use crate::output;

/// How long anything on stage may take. It bounds a hang and measures nothing.
const SCENE_TIME_MAX: Duration = Duration::from_mins(1);

/// The kinds of the tour: plural, kind, group.
const CAST: &[(&str, &str, &str)] = &[
    ("configmaps", "ConfigMap", ""),
    ("pods", "Pod", ""),
    ("jobs", "Job", "batch"),
    ("replicasets", "ReplicaSet", "apps"),
    ("deployments", "Deployment", "apps"),
];

/// The namespace `default` of a control plane.
pub(super) struct Stage {
    client: Client,
    kubeconfig: PathBuf,
}

/// Everything that happens to some kinds.
pub(super) type Happenings = SelectAll<BoxStream<'static, kube::Result<WatchEvent<DynamicObject>>>>;

/// The least that a server takes for a kind.
fn least(plural: &str) -> Value {
    let containers = json!([{ "name": "main", "image": "none" }]);
    let labels = json!({ "app": "tour" });
    match plural {
        "pods" => json!({ "spec": { "containers": containers } }),
        "jobs" => {
            let pod = json!({ "restartPolicy": "Never", "containers": containers });
            json!({ "spec": { "template": { "spec": pod } } })
        }
        "replicasets" | "deployments" => json!({ "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": containers } },
        } }),
        _ => json!({}),
    }
}

/// A value with the members of another one.
fn with(base: Value, over: Value) -> Value {
    match (base, over) {
        (Value::Object(mut base), Value::Object(over)) => {
            for (name, value) in over {
                let own = base.remove(&name).unwrap_or_default();
                base.insert(name, with(own, value));
            }
            Value::Object(base)
        }
        (_, over) => over,
    }
}

impl Stage {
    pub(super) fn new(client: Client, kubeconfig: PathBuf) -> Self {
        Self { client, kubeconfig }
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(super) async fn create(
        &self,
        plural: &str,
        name: &str,
        owner: Option<(&str, &str)>,
        extra: Value,
    ) -> Result<(), Complaint> {
        let resource = resource(plural);
        let mut object = DynamicObject::new(name, &resource).data(with(least(plural), extra));
        if let Some(finalizers) = object.data["metadata"]["finalizers"].take().as_array() {
            let finalizers = finalizers
                .iter()
                .filter_map(Value::as_str)
                .map(ToOwned::to_owned);
            object.metadata.finalizers = Some(finalizers.collect());
        }
        if let Some(map) = object.data.as_object_mut() {
            map.remove("metadata");
        }
        if let Some((kind, owner)) = owner {
            let found = self.api(kind).get(owner).await.map_err(complain)?;
            let mut reference = json!({
                "apiVersion": resource_version(kind), "kind": self::resource(kind).kind,
                "name": owner, "uid": found.metadata.uid,
            });
            reference["blockOwnerDeletion"] = json!(true);
            let reference = serde_json::from_value(reference).expect("written just above");
            object.metadata.owner_references = Some(vec![reference]);
        }
        self.api(plural)
            .create(&PostParams::default(), &object)
            .await
            .map_err(complain)?;
        Ok(())
    }

    pub(super) async fn delete(
        &self,
        plural: &str,
        name: &str,
        policy: &str,
    ) -> Result<(), Complaint> {
        let policy = match policy {
            "Foreground" => PropagationPolicy::Foreground,
            _ => PropagationPolicy::Background,
        };
        let how = DeleteParams {
            propagation_policy: Some(policy),
            ..DeleteParams::default()
        };
        self.api(plural)
            .delete(name, &how)
            .await
            .map_err(complain)?;
        Ok(())
    }

    /// Removes all finalizers of an object.
    pub(super) async fn release(&self, plural: &str, name: &str) -> Result<(), Complaint> {
        let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        self.api(plural)
            .patch(name, &PatchParams::default(), &patch)
            .await
            .map_err(complain)?;
        Ok(())
    }

    /// Deletes an object and waits until it is gone.
    pub(super) async fn clear(&self, plural: &str, name: &str) -> Result<(), Complaint> {
        let mut watch = self.watch(&[plural]).await?;
        self.delete(plural, name, "Background").await?;
        self.until_gone(&mut watch, &[name]).await
    }

    /// Lets a job be complete since now; gives the instant as it is stored.
    pub(super) async fn finish(&self, name: &str) -> Result<Timestamp, Complaint> {
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let done = json!({ "type": "Complete", "status": "True", "lastTransitionTime": now });
        let patch = Patch::Merge(json!({ "status": { "conditions": [done] } }));
        let params = PatchParams::default();
        self.api("jobs")
            .patch_status(name, &params, &patch)
            .await
            .map_err(complain)?;
        Ok(now.parse().expect("written just above"))
    }

    /// Begins to watch these kinds from now on.
    pub(super) async fn watch(&self, plurals: &[&str]) -> Result<Happenings, Complaint> {
        let mut all = Happenings::new();
        for plural in plurals {
            let api = self.api(plural);
            let list = api.list(&ListParams::default()).await.map_err(complain)?;
            let since = list.metadata.resource_version.unwrap_or_default();
            let params = WatchParams::default();
            let events = api.watch(&params, &since).await.map_err(complain)?;
            all.push(events.boxed());
        }
        Ok(all)
    }

    /// Tells what happens until all of these are gone.
    pub(super) async fn until_gone(
        &self,
        watch: &mut Happenings,
        names: &[&str],
    ) -> Result<(), Complaint> {
        let mut left: Vec<_> = names.to_vec();
        let scene = async {
            while !left.is_empty() {
                let event = watch.try_next().await.map_err(complain)?;
                match event {
                    Some(WatchEvent::Modified(object)) if is_new_deletion(&object) => {
                        tell("is terminating", &object)?;
                    }
                    Some(WatchEvent::Deleted(object)) => {
                        tell("is gone", &object)?;
                        left.retain(|name| Some(*name) != object.metadata.name.as_deref());
                    }
                    Some(_) => {}
                    None => return Err(Complaint::new("a watch ended during the tour")),
                }
            }
            Ok(())
        };
        let ended = tokio::time::timeout(SCENE_TIME_MAX, scene).await;
        ended.map_err(|_| Complaint::new(format!("{names:?} did not go in time")))?
    }

    /// Waits until the `ReplicaSet` below this Deployment is deleted and waits itself.
    pub(super) async fn until_blocked(&self, name: &str) -> Result<(), Complaint> {
        let set = format!("{name}-set");
        let mut watch = self.watch(&["replicasets"]).await?;
        let scene = async {
            loop {
                let object = self.api("replicasets").get(&set).await.map_err(complain)?;
                if object.metadata.deletion_timestamp.is_some() {
                    return Ok(());
                }
                watch.try_next().await.map_err(complain)?;
            }
        };
        let ended = tokio::time::timeout(SCENE_TIME_MAX, scene).await;
        ended.map_err(|_| Complaint::new(format!("{set} is not deleted in time")))?
    }

    /// How many objects of the tour's kinds there are.
    pub(super) async fn count(&self) -> Result<usize, Complaint> {
        let mut count = 0;
        for (plural, ..) in CAST {
            let list = self
                .api(plural)
                .list(&ListParams::default())
                .await
                .map_err(complain)?;
            count += list.items.len();
        }
        Ok(count)
    }

    fn api(&self, plural: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), "default", &resource(plural))
    }
}

fn resource(plural: &str) -> ApiResource {
    let found = CAST.iter().find(|(name, ..)| *name == plural);
    let (plural, kind, group) = found.expect("the tour names kinds of the table");
    ApiResource {
        group: (*group).to_owned(),
        version: "v1".to_owned(),
        api_version: if group.is_empty() {
            "v1".to_owned()
        } else {
            format!("{group}/v1")
        },
        kind: (*kind).to_owned(),
        plural: (*plural).to_owned(),
    }
}

fn resource_version(plural: &str) -> String {
    resource(plural).api_version
}

/// The update that marked an object, and none that came after it.
fn is_new_deletion(object: &DynamicObject) -> bool {
    let Some(at) = &object.metadata.deletion_timestamp else {
        return false;
    };
    Timestamp::now().duration_since(at.0) < SignedDuration::from_secs(2)
}

fn tell(what: &str, object: &DynamicObject) -> Result<(), Complaint> {
    let kind = object
        .types
        .as_ref()
        .map_or("", |types| types.kind.as_str());
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let now = Timestamp::now().strftime("%H:%M:%S%.3f");
    Ok(output::print(&format!("   {now}  {kind} {name} {what}\n"))?)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "made for map_err, which gives the error away"
)]
fn complain(error: kube::Error) -> Complaint {
    Complaint::new("a request of the tour failed").because(&error)
}
