//! Stories about the end of a namespace.

use serde_json::json;
use sundown_api::Method;

use crate::op::{It, Op, it};
use crate::scenario::Scenario;
use crate::trouble::Trouble;
use crate::world::HOLD_FINALIZER;

const APP: It = it("Deployment", "app").within("team");
const POD: It = it("Pod", "pod").within("team");
const BYSTANDER: It = it("Pod", "bystander");

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        // Content of several kinds goes, owned or not; what lives elsewhere stays.
        Scenario::new("namespace-empties-itself")
            .start()
            .does(create())
            .create(APP)
            .own(POD, &[APP])
            .create(it("ConfigMap", "notes").within("team"))
            .create(BYSTANDER)
            .settle()
            .does(delete())
            .settle(),
        // Somebody's finalizer holds a pod, something tries to get in, and the name is used again.
        Scenario::new("namespace-held-and-made-again")
            .start()
            .does(create())
            .owning(
                POD,
                Vec::new(),
                json!({ "metadata": { "finalizers": [HOLD_FINALIZER] } }),
            )
            .create(it("ConfigMap", "needed").within("team"))
            .settle()
            .does(delete())
            .create(it("Secret", "late").within("team"))
            .settle()
            .patch(POD, &json!({ "metadata": { "finalizers": null } }))
            .settle()
            .does(create())
            .create(POD)
            .settle(),
        // Nothing of it can be deleted for a while.
        Scenario::new("namespace-on-a-full-disk")
            .start()
            .does(create())
            .create(POD)
            .create(it("ConfigMap", "notes").within("team"))
            .settle()
            .does(delete())
            .troubled(Trouble::Full)
            .settle(),
    ]
}

pub(super) fn create() -> Op {
    let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team" } });
    let path = "/api/v1/namespaces".to_owned();
    Op::new(
        Method::Post,
        path,
        Some(&body),
        "create namespace team".to_owned(),
    )
}

pub(super) fn delete() -> Op {
    let path = "/api/v1/namespaces/team".to_owned();
    Op::new(
        Method::Delete,
        path,
        None,
        "delete namespace team".to_owned(),
    )
}
