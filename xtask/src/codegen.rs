//! `cargo xtask codegen`: facts about the built-in kinds, out of the public API packages, the default
//! roles and bindings, the schemas of the custom resources that are shipped, and what upstream publishes of
//! the built-in kinds, for a test.
//!
//! Writes field names, types, protobuf numbers, list types and patch strategies, and
//! nothing that is code. What the server makes of them is written by hand in `sundown-api`.

mod go;
mod openapi;
mod policy;
mod published;
mod schemas;
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{process, workspace};

const API: &str = "k8s.io/api@v0.37.1";
const MACHINERY: &str = "k8s.io/apimachinery@v0.37.1";
const EXTENSIONS: &str = "k8s.io/apiextensions-apiserver@v0.37.1";
const AGGREGATOR: &str = "k8s.io/kube-aggregator@v0.37.1";
const KUBERNETES: &str = "k8s.io/kubernetes@v1.37.1";
/// Where the default roles and bindings are written down, for the tests of upstream.
const POLICY: &str = "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata";

/// The kinds whose facts are wanted; what they are made of follows.
const ROOTS: &[(&str, &[&str])] = &[
    (
        "k8s.io/api/core/v1",
        &[
            "Namespace",
            "ConfigMap",
            "Secret",
            "Event",
            "ServiceAccount",
            "Node",
            "Pod",
            "Service",
            "Endpoints",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "LimitRange",
            "ResourceQuota",
            "PodTemplate",
            "ReplicationController",
            "Binding",
        ],
    ),
    ("k8s.io/api/events/v1", &["Event"]),
    ("k8s.io/api/coordination/v1", &["Lease"]),
    (
        "k8s.io/api/rbac/v1",
        &["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"],
    ),
    ("k8s.io/api/batch/v1", &["Job", "CronJob"]),
    (
        "k8s.io/api/apps/v1",
        &[
            "Deployment",
            "ReplicaSet",
            "StatefulSet",
            "DaemonSet",
            "ControllerRevision",
        ],
    ),
    ("k8s.io/api/policy/v1", &["PodDisruptionBudget", "Eviction"]),
    ("k8s.io/api/scheduling/v1", &["PriorityClass"]),
    (
        "k8s.io/api/admissionregistration/v1",
        &[
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("k8s.io/api/discovery/v1", &["EndpointSlice"]),
    (
        "k8s.io/api/networking/v1",
        &["Ingress", "IngressClass", "NetworkPolicy"],
    ),
    ("k8s.io/api/storage/v1", &["StorageClass"]),
    ("k8s.io/api/autoscaling/v1", &["Scale"]),
    ("k8s.io/api/autoscaling/v2", &["HorizontalPodAutoscaler"]),
    (
        "k8s.io/api/authentication/v1",
        &["TokenReview", "TokenRequest", "SelfSubjectReview"],
    ),
    (
        "k8s.io/api/authorization/v1",
        &[
            "SelfSubjectAccessReview",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
            "LocalSubjectAccessReview",
        ],
    ),
    (
        "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
        &["CustomResourceDefinition"],
    ),
    (
        "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1",
        &["APIService"],
    ),
    (
        "k8s.io/apimachinery/pkg/apis/meta/v1",
        &["DeleteOptions", "Status", "ListMeta"],
    ),
];

/// Writes the files anew.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if !arguments.is_empty() {
        bail!("usage: cargo xtask codegen");
    }
    let modules = modules()?;
    let mut source = go::Source::new(&modules);
    let documents =
        openapi::Documents::read(&modules.join(KUBERNETES).join("api/openapi-spec/v3"))?;
    let facts = table::make(&mut source, &documents, ROOTS)?;
    let target = workspace::root().join("crates/sundown-api/src/generated");
    std::fs::create_dir_all(&target).context("make the directory of generated files")?;
    std::fs::write(target.join("facts.txt"), &facts).context("write facts.txt")?;
    println!("facts.txt: {} bytes", facts.len());
    let policy = policy::make(&modules.join(KUBERNETES).join(POLICY))?;
    std::fs::write(target.join("policy.txt"), &policy).context("write policy.txt")?;
    println!("policy.txt: {} bytes", policy.len());
    write_published(&modules)?;
    write_schemas(&documents, &mut source)
}

/// What upstream publishes of the same kinds, for a test.
fn write_published(modules: &Path) -> Result<()> {
    let document = modules
        .join(KUBERNETES)
        .join("api/openapi-spec/swagger.json");
    let published = published::make(&document, ROOTS)?;
    let target = "crates/sundown-api/tests/it/openapi_v2/generated.json";
    std::fs::write(workspace::root().join(target), &published).context("write generated.json")?;
    println!("generated.json: {} bytes", published.len());
    Ok(())
}

/// The schemas of the custom resources that are shipped.
fn write_schemas(documents: &openapi::Documents, source: &mut go::Source) -> Result<()> {
    let kinds = workspace::root().join("crates/sundown-kinds/src");
    let table = std::fs::read_to_string(kinds.join("crd/fields.txt")).context("read fields.txt")?;
    let schemas = schemas::make(&table, documents, source)?;
    std::fs::create_dir_all(kinds.join("generated")).context("make the directory of schemas")?;
    std::fs::write(kinds.join("generated/schemas.json"), &schemas).context("write schemas.json")?;
    println!("schemas.json: {} bytes", schemas.len());
    Ok(())
}

/// The directory of a package inside the module cache.
fn package_directory(modules: &Path, package: &str) -> Result<PathBuf> {
    for module in [API, MACHINERY, EXTENSIONS, AGGREGATOR] {
        let path = module.split('@').next().unwrap_or(module);
        if let Some(rest) = package
            .strip_prefix(path)
            .filter(|rest| rest.starts_with('/'))
        {
            return Ok(modules.join(module).join(&rest[1..]));
        }
    }
    bail!("no module is known for the package {package}")
}

fn modules() -> Result<PathBuf> {
    let mut go = Command::new("go");
    go.args(["env", "GOMODCACHE"]);
    let output = process::output(&mut go)?;
    let modules = PathBuf::from(output.trim());
    if !modules.join(KUBERNETES).is_dir() {
        bail!("the module cache has no {KUBERNETES}: run `go mod download` in xtask/kube first");
    }
    Ok(modules)
}
