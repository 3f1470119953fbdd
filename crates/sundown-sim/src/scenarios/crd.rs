//! Stories about the end of a `CustomResourceDefinition`.

use serde_json::json;
use sundown_api::Method;

use crate::op::{It, Op, it};
use crate::scenario::Scenario;
use crate::trouble::{KEPT, Trouble};
use crate::workload;
use crate::world::HOLD_FINALIZER;

const ONE: It = it("Widget", "one");
const HELD: It = it("Widget", "held");
const BYSTANDER: It = it("Pod", "bystander");

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        // Everything within a moment, before it is known that the kind is served.
        at_once("definition-at-once-orphan", "Orphan"),
        at_once("definition-at-once-foreground", "Foreground"),
        // Instances go with their definition; the rest stays.
        Scenario::new("definition-takes-its-instances")
            .start()
            .does(workload::definition())
            .create(ONE)
            .create(it("Widget", "two"))
            .create(BYSTANDER)
            .settle()
            .does(delete())
            .settle(),
        // One instance may not be deleted for a while; the others may.
        Scenario::new("definition-with-something-kept")
            .start()
            .does(workload::definition())
            .create(it("Widget", KEPT))
            .create(ONE)
            .settle()
            .does(delete())
            .troubled(Trouble::Kept)
            .settle(),
        // What an instance owns goes too, although nobody can prove that an owner is gone once its
        // kind is not served any more.
        Scenario::new("definition-of-an-owner")
            .start()
            .does(workload::definition())
            .create(ONE)
            .own(it("Pod", "owned"), &[ONE])
            .create(BYSTANDER)
            .settle()
            .does(delete())
            .settle(),
        // Somebody's finalizer holds an instance, another one tries to get in, and the kind comes
        // back afterwards, empty.
        Scenario::new("definition-held-and-made-again")
            .start()
            .does(workload::definition())
            .owning(
                HELD,
                Vec::new(),
                json!({ "metadata": { "finalizers": [HOLD_FINALIZER] } }),
            )
            .create(ONE)
            .settle()
            .does(delete())
            .create(it("Widget", "late"))
            .settle()
            .patch(HELD, &json!({ "metadata": { "finalizers": null } }))
            .settle()
            .does(workload::definition())
            .create(ONE)
            .settle(),
    ]
}

/// An owner of an instance is deleted in the moment in which the kind of the instance is defined.
fn at_once(name: &'static str, policy: &str) -> Scenario {
    let owner = it("ConfigMap", "owner");
    Scenario::new(name)
        .start()
        .create(owner)
        .create(BYSTANDER)
        .settle()
        .does(workload::definition())
        .own(ONE, &[owner])
        .delete(owner, policy)
        .settle()
}

fn delete() -> Op {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    Op::new(
        Method::Delete,
        path.to_owned(),
        None,
        "delete the definition of Widget".to_owned(),
    )
}
