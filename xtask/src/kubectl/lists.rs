//! Where kubectl validates by itself, with `OpenAPI` v2: lists, several objects in one editor, and kinds
//! that are not served yet.

use super::tour::{Call, DELETED_WITHIN, call, edited, refused, with};

const LIST: &str = r"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: first}, data: {value: before}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: second}, data: {value: before}}
- apiVersion: v1
  kind: Service
  metadata: {name: third}
  spec: {selector: {a: b}, ports: [{port: 80, targetPort: 8080}]}
";
const UNKNOWN_FIELD: &str = r"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: fourth}, stranger: 1}
";
const WRONG_TYPE: &str = r"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Service, metadata: {name: fourth}, spec: {ports: [{port: many}]}}
";
const DEFINITION_AND_OBJECT: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.lists.sundown.dev}
spec:
  group: lists.sundown.dev
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              port: {x-kubernetes-int-or-string: true}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
---
apiVersion: lists.sundown.dev/v1
kind: Widget
metadata: {name: first}
spec: {port: 80, free: {any: [1, two]}}
";
/// `enum`, `default` and `example` hold any JSON; kubectl refused all but objects in them.
const LISTED_DEFINITION: &str = r"
apiVersion: v1
kind: List
items:
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: gadgets.lists.sundown.dev}
  spec:
    group: lists.sundown.dev
    scope: Namespaced
    names: {plural: gadgets, singular: gadget, kind: Gadget}
    versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                size: {type: string, enum: [small, large], default: small, example: 1}
                many: {type: array, items: {type: integer}, default: [1, 2]}
";
const OBJECTS: &str = r"
apiVersion: v1
kind: List
items:
- apiVersion: lists.sundown.dev/v1
  kind: Widget
  metadata: {name: second}
  spec: {port: http, free: {any: thing}}
";
const UNKNOWN_IN_OBJECT: &str = r"
apiVersion: v1
kind: List
items:
- {apiVersion: lists.sundown.dev/v1, kind: Widget, metadata: {name: third}, spec: {stranger: 1}}
";
const REVIEW: &str = r"
apiVersion: authorization.k8s.io/v1
kind: SelfSubjectAccessReview
spec: {resourceAttributes: {verb: get, resource: pods}}
";

const WIDGETS: &str = "crd/widgets.lists.sundown.dev";

/// What is asked and said.
pub(super) const CALLS: &[Call] = &[
    with(LIST, &["create", "-f", "-"], "configmap/second created"),
    with(LIST, &["apply", "-f", "-"], "service/third configured"),
    refused(
        UNKNOWN_FIELD,
        &["create", "-f", "-"],
        "unknown field \"stranger\" in io.k8s.api.core.v1.ConfigMap",
    ),
    refused(
        WRONG_TYPE,
        &["apply", "-f", "-"],
        "invalid type for io.k8s.api.core.v1.ServicePort.port: got \"string\", expected \"integer\"",
    ),
    edited(
        "sed -i s/before/after/",
        &["edit", "cm", "first", "second"],
        "configmap/second edited",
    ),
    call(
        &[
            "get",
            "cm",
            "first",
            "second",
            "-o",
            "jsonpath={.items[*].data.value}",
        ],
        "after after",
    ),
    edited(
        "true",
        &["edit", "cm", "first", "second"],
        "no changes made",
    ),
    // kubectl looks for all kinds before it makes the first object; upstream's server gets the same.
    refused(
        DEFINITION_AND_OBJECT,
        &["apply", "-f", "-"],
        "ensure CRDs are installed first",
    ),
    call(
        &["wait", "--for=condition=Established", WIDGETS],
        "condition met",
    ),
    with(
        DEFINITION_AND_OBJECT,
        &["apply", "-f", "-"],
        "widget.lists.sundown.dev/first created",
    ),
    with(
        OBJECTS,
        &["apply", "-f", "-"],
        "widget.lists.sundown.dev/second created",
    ),
    refused(
        UNKNOWN_IN_OBJECT,
        &["apply", "-f", "-"],
        "unknown field \"stranger\" in dev.sundown.lists.v1.Widget.spec",
    ),
    call(&["delete", WIDGETS, DELETED_WITHIN], "deleted"),
    with(
        DEFINITION_AND_OBJECT,
        &["create", "-f", "-"],
        "widget.lists.sundown.dev/first created",
    ),
    with(
        LISTED_DEFINITION,
        &["create", "-f", "-"],
        "gadgets.lists.sundown.dev created",
    ),
    call(
        &["delete", "crd/gadgets.lists.sundown.dev", DELETED_WITHIN],
        "deleted",
    ),
    with(REVIEW, &["create", "-f", "-"], "created"),
    call(
        &[
            "delete",
            WIDGETS,
            "cm/first",
            "cm/second",
            "svc/third",
            DELETED_WITHIN,
        ],
        "deleted",
    ),
];
