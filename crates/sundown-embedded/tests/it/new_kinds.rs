//! Kinds that are defined in the moment in which their first instance matters.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::{Value, json};
use sundown_embedded::Embedded;
use sundown_testing::{BOUND, TestBound};

use crate::world::{a_world, config_maps, create};

const ROUNDS: usize = 200;
const DEFINITION: &str = "widgets.example.com";

struct Round {
    owners: Api<ConfigMap>,
    definitions: Api<CustomResourceDefinition>,
    widgets: Api<DynamicObject>,
    widget: ApiResource,
}

impl Round {
    fn new(client: &Client) -> Self {
        let kind = GroupVersionKind::gvk("example.com", "v1", "Widget");
        let widget = ApiResource::from_gvk_with_plural(&kind, "widgets");
        Self {
            owners: config_maps(client.clone()),
            definitions: Api::all(client.clone()),
            widgets: Api::default_namespaced_with(client.clone(), &widget),
            widget,
        }
    }

    /// Defines the kind, makes an instance that is owned, and deletes the owner, without a pause.
    async fn at_once(&self, how: &DeleteParams, finalizers: Value) -> Result<()> {
        let owner = create(&self.owners, "owner", &[]).await?;
        let mut reference = owner.owner_ref(&()).context("an owner has a uid")?;
        reference.block_owner_deletion = Some(true);
        let mut one = DynamicObject::new("one", &self.widget);
        one.metadata = serde_json::from_value(json!({
            "name": "one", "ownerReferences": [reference], "finalizers": finalizers,
        }))?;
        let params = PostParams::default();
        self.definitions.create(&params, &definition()?).await?;
        self.widgets.create(&params, &one).await?;
        self.owners.delete("owner", how).await?;
        Ok(())
    }

    /// Removes the kind, and with it what is left of the round.
    async fn clear(&self, embedded: &Embedded) -> Result<()> {
        let params = DeleteParams::default();
        self.definitions.delete(DEFINITION, &params).await?;
        embedded.until_at_rest(BOUND).await?;
        anyhow::ensure!(self.definitions.get_opt(DEFINITION).await?.is_none());
        Ok(())
    }
}

fn definition() -> Result<CustomResourceDefinition> {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    Ok(serde_json::from_value(json!({
        "metadata": { "name": DEFINITION },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    }))?)
}

/// The collector did not know the kind yet, saw no dependents, let the owner go, and took the instance for
/// garbage.
#[tokio::test]
async fn an_instance_of_a_new_kind_is_orphaned_and_not_lost() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let embedded = a_world().start().await?;
    let round = Round::new(&embedded.client());
    for number in 0..ROUNDS {
        round
            .at_once(&DeleteParams::orphan(), Value::Null)
            .await
            .with_context(|| format!("round {number}"))?;
        embedded.until_at_rest(BOUND).await?;
        assert!(round.owners.get_opt("owner").await?.is_none(), "{number}");
        let one = round.widgets.get_opt("one").await?;
        let one = one.with_context(|| format!("the instance of round {number} is lost"))?;
        assert_eq!(one.owner_references(), [], "{number}");
        round.clear(&embedded).await?;
    }
    embedded.stop().await?;
    Ok(())
}

#[tokio::test]
async fn an_instance_of_a_new_kind_goes_before_its_foreground_owner() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let embedded = a_world().start().await?;
    let round = Round::new(&embedded.client());
    for number in 0..ROUNDS {
        round
            .at_once(&DeleteParams::foreground(), json!(["example.com/hold"]))
            .await
            .with_context(|| format!("round {number}"))?;
        embedded.until_at_rest(BOUND).await?;
        assert!(round.owners.get_opt("owner").await?.is_some(), "{number}");
        let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        let params = PatchParams::default();
        round.widgets.patch("one", &params, &patch).await?;
        embedded.until_at_rest(BOUND).await?;
        assert!(round.owners.get_opt("owner").await?.is_none(), "{number}");
        assert!(round.widgets.get_opt("one").await?.is_none(), "{number}");
        round.clear(&embedded).await?;
    }
    embedded.stop().await?;
    Ok(())
}
