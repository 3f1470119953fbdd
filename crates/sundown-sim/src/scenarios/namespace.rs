//! Stories about the end of a namespace.

use serde_json::{Value, json};
use sundown_api::Method;

use crate::op::{It, Op, it};
use crate::scenario::Scenario;
use crate::trouble::{KEPT, Trouble};
use crate::workload;
use crate::world::HOLD_FINALIZER;

const APP: It = it("Deployment", "app").within("team");
const POD: It = it("Pod", "pod").within("team");
const OTHER_POD: It = it("Pod", "other-pod").within("team");
const LAST_POD: It = it("Pod", "last-pod").within("team");
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
            .owning(POD, Vec::new(), held())
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
        // A kind is defined, has an instance there, and the namespace goes, all within a moment.
        Scenario::new("namespace-of-a-new-kind")
            .start()
            .does(create())
            .create(BYSTANDER)
            .settle()
            .does(workload::definition())
            .create(it("Widget", "one").within("team"))
            .does(delete())
            .settle(),
        // One object may not be deleted for a while; the others may.
        Scenario::new("namespace-with-something-kept")
            .start()
            .does(create())
            .create(it("ConfigMap", KEPT).within("team"))
            .create(it("ConfigMap", "notes").within("team"))
            .create(it("Secret", "token").within("team"))
            .settle()
            .does(delete())
            .troubled(Trouble::Kept)
            .settle(),
        // What keeps it goes bit by bit, several times in a second.
        Scenario::new("namespace-bit-by-bit")
            .start()
            .does(create())
            .owning(POD, Vec::new(), held())
            .owning(OTHER_POD, Vec::new(), held())
            .owning(LAST_POD, Vec::new(), held())
            .settle()
            .does(delete())
            .work(0)
            .patch(POD, &json!({ "metadata": { "finalizers": null } }))
            .work(0)
            .patch(OTHER_POD, &json!({ "metadata": { "finalizers": null } }))
            .settle(),
        // What is to be told of it does not get through for a while.
        told("namespace-told-in-vain", Trouble::Lost),
        told("namespace-told-and-ignored", Trouble::Ignored),
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

/// Its conditions are due when the trouble begins.
fn told(name: &'static str, trouble: Trouble) -> Scenario {
    Scenario::new(name)
        .start()
        .does(create())
        .owning(POD, Vec::new(), held())
        .owning(OTHER_POD, Vec::new(), held())
        .settle()
        .does(delete())
        .settle()
        .patch(POD, &json!({ "metadata": { "finalizers": null } }))
        .troubled(trouble)
        .settle()
}

fn held() -> Value {
    json!({ "metadata": { "finalizers": [HOLD_FINALIZER] } })
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
