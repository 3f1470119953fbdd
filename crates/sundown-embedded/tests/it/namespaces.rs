//! How a namespace goes, as kubectl would see it.

use std::fmt::Debug;

use anyhow::Result;
use k8s_openapi::api::core::v1::{
    ConfigMap, Event, Namespace, PersistentVolumeClaim, Pod, ServiceAccount,
};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::world::{a_world, identities};
use sundown_testing::{BOUND, TestBound};

const TEAM: &str = "team";

async fn make<K>(api: &Api<K>, json: Value) -> Result<K>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    let object = serde_json::from_value(json)?;
    Ok(api.create(&PostParams::default(), &object).await?)
}

fn within<K>(client: &Client) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
{
    Api::namespaced(client.clone(), TEAM)
}

/// Type, status, reason and message of each condition.
fn conditions(namespace: &Namespace) -> Vec<String> {
    let status = namespace.status.as_ref();
    let all = status.and_then(|it| it.conditions.as_ref()).into_iter();
    let text = |it: &Option<String>| it.clone().unwrap_or_default();
    all.flatten()
        .map(|it| {
            let (reason, message) = (text(&it.reason), text(&it.message));
            format!("{} {} {reason}: {message}", it.type_, it.status)
        })
        .collect()
}

/// A pod on some node that mounts a claim; no kubelet ends it but the test.
async fn a_team(client: &Client) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    make(&namespaces, json!({ "metadata": { "name": TEAM } })).await?;
    make::<ConfigMap>(&within(client), json!({ "metadata": { "name": "needed" } })).await?;
    let claim = json!({ "metadata": { "name": "data" }, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
    } });
    make::<PersistentVolumeClaim>(&within(client), claim).await?;
    let pod = json!({ "metadata": { "name": "user" }, "spec": {
        "nodeName": "far", "containers": [{ "name": "main", "image": "none" }],
        "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "data" } }],
    } });
    make::<Pod>(&within(client), pod).await?;
    Ok(())
}

/// The claim was marked along with the pod, and stayed for ever; so did the namespace.
#[tokio::test]
async fn a_namespace_gives_up_its_pods_first_and_its_claims_with_their_last_user() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let embedded = a_world().start().await?;
    let client = embedded.client();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    a_team(&client).await?;
    namespaces.delete(TEAM, &DeleteParams::default()).await?;
    embedded.until_at_rest(BOUND).await?;

    let maps: Api<ConfigMap> = within(&client);
    assert!(
        maps.get_opt("needed").await?.is_some(),
        "the pod may need it"
    );
    let claims: Api<PersistentVolumeClaim> = within(&client);
    let claim = claims.get("data").await?;
    assert_eq!(claim.meta().deletion_timestamp, None);
    let pods: Api<Pod> = within(&client);
    assert!(pods.get("user").await?.meta().deletion_timestamp.is_some());
    let told = conditions(&namespaces.get(TEAM).await?);
    let expected = [
        "NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources successfully discovered",
        "NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy kube types successfully parsed",
        "NamespaceDeletionContentFailure False ContentDeleted: All content successfully deleted, may be waiting on finalization",
        "NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: pods. has 1 resource instances",
        "NamespaceFinalizersRemaining False ContentHasNoFinalizers: All content-preserving finalizers finished",
    ];
    assert_eq!(told, expected);

    pods.delete("user", &DeleteParams::default().grace_period(0))
        .await?;
    embedded.until_at_rest(BOUND).await?;
    assert!(namespaces.get_opt(TEAM).await?.is_none());
    assert_eq!(identities(&claims).await?, []);
    embedded.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_claim_that_is_deleted_while_in_use_goes_after_its_pod() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let embedded = a_world().start().await?;
    let client = embedded.client();
    a_team(&client).await?;
    let claims: Api<PersistentVolumeClaim> = within(&client);
    claims.delete("data", &DeleteParams::default()).await?;
    embedded.until_at_rest(BOUND).await?;
    assert!(claims.get_opt("data").await?.is_some(), "it is in use");
    let pods: Api<Pod> = within(&client);
    pods.delete("user", &DeleteParams::default().grace_period(0))
        .await?;
    embedded.until_at_rest(BOUND).await?;
    assert!(claims.get_opt("data").await?.is_none());
    embedded.stop().await?;
    Ok(())
}

/// Both names of an Event were followed: each was deleted twice.
#[tokio::test]
async fn everything_in_a_namespace_goes_by_one_request_each() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let embedded = a_world().start().await?;
    let client = embedded.client();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    make(&namespaces, json!({ "metadata": { "name": TEAM } })).await?;
    let events: Api<Event> = within(&client);
    let about = json!({ "apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": TEAM });
    for number in 0..100 {
        let event = json!({
            "metadata": { "name": format!("e-{number}") }, "involvedObject": about,
            "reason": "Said", "message": "m", "type": "Normal",
        });
        make(&events, event).await?;
    }
    embedded.until_at_rest(BOUND).await?;
    let accounts: Api<ServiceAccount> = within(&client);
    let others = identities(&accounts).await?.len();
    let before = embedded.counts();
    namespaces.delete(TEAM, &DeleteParams::default()).await?;
    embedded.until_at_rest(BOUND).await?;
    assert!(namespaces.get_opt(TEAM).await?.is_none());
    let after = embedded.counts();
    let deleted = usize::try_from(after.delete - before.delete)?;
    assert_eq!(deleted, 100 + others, "{after:?}");
    embedded.stop().await?;
    Ok(())
}
