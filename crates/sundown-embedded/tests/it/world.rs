//! A control plane whose time stands still, and objects to put into it.

use std::fmt::Debug;

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;
use sundown_embedded::{Builder, Embedded};

/// When these tests take place.
pub(crate) const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

pub(crate) fn a_world() -> Builder {
    Embedded::builder().manual_clock(NOW)
}

pub(crate) fn config_maps(client: Client) -> Api<ConfigMap> {
    Api::default_namespaced(client)
}

pub(crate) fn jobs(client: Client) -> Api<Job> {
    Api::default_namespaced(client)
}

/// Creates a config map that is owned by these.
pub(crate) async fn create(
    api: &Api<ConfigMap>,
    name: &str,
    owners: &[&ConfigMap],
) -> Result<ConfigMap> {
    let mut config_map = ConfigMap::default();
    config_map.metadata.name = Some(name.to_owned());
    let reference = |owner: &&ConfigMap| {
        let mut reference = owner.owner_ref(&()).context("an owner has a uid")?;
        reference.block_owner_deletion = Some(true);
        anyhow::Ok(reference)
    };
    let references: Result<Vec<_>> = owners.iter().map(reference).collect();
    config_map.metadata.owner_references = Some(references?).filter(|list| !list.is_empty());
    Ok(api.create(&PostParams::default(), &config_map).await?)
}

/// Creates a job that finished now and has this TTL.
pub(crate) async fn create_finished_job(api: &Api<Job>, name: &str, ttl: i32) -> Result<Job> {
    let job = json!({
        "metadata": { "name": name },
        "spec": {
            "ttlSecondsAfterFinished": ttl,
            "template": { "spec": {
                "restartPolicy": "Never",
                "containers": [{ "name": "main", "image": "busybox" }],
            } },
        },
    });
    api.create(&PostParams::default(), &serde_json::from_value(job)?)
        .await?;
    let status = json!({ "status": { "conditions": [{
        "type": "Complete", "status": "True", "lastTransitionTime": NOW.to_string(),
    }] } });
    let params = PatchParams::default();
    Ok(api
        .patch_status(name, &params, &Patch::Merge(status))
        .await?)
}

pub(crate) async fn delete(api: &Api<ConfigMap>, name: &str, how: &DeleteParams) -> Result<()> {
    api.delete(name, how).await?;
    Ok(())
}

/// Everything of a kind that is there, by identity.
pub(crate) async fn identities<K>(api: &Api<K>) -> Result<Vec<(String, String)>>
where
    K: Resource + Clone + Debug + serde::de::DeserializeOwned,
{
    let list = api.list(&ListParams::default()).await?;
    list.iter().map(identity).collect()
}

pub(crate) fn identity(object: &impl Resource) -> Result<(String, String)> {
    Ok((object.name_any(), object.uid().context("no uid")?))
}
