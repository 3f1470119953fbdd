//! One round through kubectl's commands, as a user would make it: each says what it should.

use anyhow::{Result, ensure};

use crate::control_plane::{CALL_DURATION_MAX, ControlPlane};
use crate::process;

/// A call and what has to be in its output or, where it has to fail, in its complaint.
pub(super) struct Call {
    arguments: &'static [&'static str],
    manifest: &'static str,
    /// The program that `kubectl edit` opens.
    editor: &'static str,
    says: &'static str,
    fails: bool,
}

pub(super) const fn call(arguments: &'static [&'static str], says: &'static str) -> Call {
    Call {
        arguments,
        manifest: "",
        editor: "",
        says,
        fails: false,
    }
}

pub(super) const fn with(
    manifest: &'static str,
    arguments: &'static [&'static str],
    says: &'static str,
) -> Call {
    Call {
        arguments,
        manifest,
        editor: "",
        says,
        fails: false,
    }
}

pub(super) const fn refused(
    manifest: &'static str,
    arguments: &'static [&'static str],
    says: &'static str,
) -> Call {
    Call {
        arguments,
        manifest,
        editor: "",
        says,
        fails: true,
    }
}

pub(super) const fn edited(
    editor: &'static str,
    arguments: &'static [&'static str],
    says: &'static str,
) -> Call {
    Call {
        editor,
        ..call(arguments, says)
    }
}

/// By itself kubectl waits for a week until what it deleted is gone.
pub(super) const DELETED_WITHIN: &str = "--timeout=3m";

const FIRST: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: tour, labels: {a: b}}\n\
                     data: {first: '1'}\n";
const SECOND: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: tour, labels: {a: c}}\n\
                      data: {second: '2'}\n";
const UNKNOWN_FIELD: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: tour}\nstranger: 1\n";
/// A rule of the schema: no more than ten, and never less than before.
const DEFINITION: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: steps.tour.sundown.dev}
spec:
  group: tour.sundown.dev
  scope: Namespaced
  names: {plural: steps, singular: step, kind: Step, shortNames: [stp]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns: [{name: Count, type: integer, jsonPath: .spec.count}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              count:
                type: integer
                description: How many.
                x-kubernetes-validations:
                - {rule: self <= 10, message: no more than ten}
                - {rule: self >= oldSelf, message: never less}
";
const TOO_MANY: &str =
    "apiVersion: tour.sundown.dev/v1\nkind: Step\nmetadata: {name: one}\nspec: {count: 11}\n";
const FIVE: &str =
    "apiVersion: tour.sundown.dev/v1\nkind: Step\nmetadata: {name: one}\nspec: {count: 5}\n";
const LESS: &str =
    "apiVersion: tour.sundown.dev/v1\nkind: Step\nmetadata: {name: one}\nspec: {count: 4}\n";

const TOUR: &[Call] = &[
    call(&["version"], "Server Version: v1.37"),
    call(&["api-resources"], "customresourcedefinitions"),
    with(FIRST, &["apply", "-f", "-"], "configmap/tour created"),
    with(SECOND, &["apply", "-f", "-"], "configmap/tour configured"),
    call(&["get", "cm", "tour", "-o", "yaml"], "second: \"2\""),
    call(&["get", "cm", "-o", "wide"], "tour   1"),
    call(&["get", "cm", "-l", "a=c", "-o", "name"], "configmap/tour"),
    refused(
        UNKNOWN_FIELD,
        &["apply", "-f", "-"],
        "unknown field \"stranger\"",
    ),
    call(&["label", "cm", "tour", "l=1"], "configmap/tour labeled"),
    call(
        &["annotate", "cm", "tour", "n=2"],
        "configmap/tour annotated",
    ),
    call(
        &["patch", "cm", "tour", "-p", r#"{"data":{"third":"3"}}"#],
        "configmap/tour patched",
    ),
    call(
        &[
            "wait",
            "--for=jsonpath={.data.third}=3",
            "cm/tour",
            "--timeout=30s",
        ],
        "condition met",
    ),
    call(&["describe", "cm", "tour"], "third:"),
    call(
        &["create", "secret", "generic", "tour", "--from-literal=a=b"],
        "secret/tour created",
    ),
    call(&["describe", "secret", "tour"], "a:  1 bytes"),
    call(
        &["create", "job", "tour", "--image=busybox", "--", "true"],
        "job.batch/tour created",
    ),
    call(&["describe", "job", "tour"], "Backoff Limit:    6"),
    call(
        &["create", "deployment", "tour", "--image=busybox"],
        "deployment.apps/tour created",
    ),
    call(
        &["scale", "deployment", "tour", "--replicas=3"],
        "deployment.apps/tour scaled",
    ),
    call(&["get", "deployment", "tour"], "0/3"),
    call(
        &["set", "image", "deployment/tour", "busybox=busybox:2"],
        "image updated",
    ),
    call(&["get", "deployment", "tour", "-o", "wide"], "busybox:2"),
    call(&["run", "tour", "--image=busybox"], "pod/tour created"),
    call(&["get", "pods"], "tour   0/1     Pending"),
    call(&["explain", "pod.spec.containers.image"], "FIELD: image"),
    call(&["explain", "deployment.spec.strategy"], "rollingUpdate"),
    call(&["events"], ""),
    call(&["auth", "can-i", "create", "pods"], "yes"),
    call(&["auth", "whoami"], "Username"),
    call(
        &["create", "serviceaccount", "tour"],
        "serviceaccount/tour created",
    ),
    call(&["create", "token", "tour"], "eyJ"),
    // It runs nowhere yet, so that nothing is written.
    call(&["logs", "tour"], ""),
    with(
        DEFINITION,
        &["create", "-f", "-"],
        "steps.tour.sundown.dev created",
    ),
    call(
        &[
            "wait",
            "--for=condition=Established",
            "crd/steps.tour.sundown.dev",
        ],
        "condition met",
    ),
    refused(TOO_MANY, &["apply", "-f", "-"], "no more than ten"),
    with(
        FIVE,
        &["apply", "-f", "-"],
        "step.tour.sundown.dev/one created",
    ),
    refused(LESS, &["apply", "-f", "-"], "never less"),
    call(&["get", "stp"], "one    5"),
    call(&["explain", "step.spec.count"], "How many."),
    call(
        &["delete", "crd", "steps.tour.sundown.dev", DELETED_WITHIN],
        "deleted",
    ),
    // Not by its name: kubectl goes by what it discovered a moment ago.
    refused(
        "",
        &["get", "--raw", "/apis/tour.sundown.dev/v1/steps"],
        "the server could not find the requested resource",
    ),
    call(
        &[
            "delete",
            "cm,secret,job,deployment,pod,serviceaccount",
            "tour",
            DELETED_WITHIN,
        ],
        "deleted",
    ),
    call(&["create", "namespace", "tour"], "namespace/tour created"),
    call(&["delete", "namespace", "tour", DELETED_WITHIN], "deleted"),
];

/// Makes the round.
pub(super) fn make(plane: &ControlPlane) -> Result<()> {
    let calls = || TOUR.iter().chain(super::lists::CALLS);
    for call in calls() {
        let line = call.arguments.join(" ");
        let mut kubectl = plane.kubectl(call.arguments);
        kubectl.env("KUBE_EDITOR", call.editor);
        let manifest = call.manifest.as_bytes();
        let done = process::output_of_within(&mut kubectl, manifest, CALL_DURATION_MAX)?;
        ensure!(
            done.succeeded != call.fails,
            "kubectl {line} should {}; it said:\n{}",
            if call.fails { "be refused" } else { "work" },
            done.said
        );
        ensure!(
            done.said.contains(call.says),
            "kubectl {line} should say `{}`; it said:\n{}",
            call.says,
            done.said
        );
    }
    println!(
        "kubectl: {} commands said what they should",
        calls().count()
    );
    Ok(())
}
