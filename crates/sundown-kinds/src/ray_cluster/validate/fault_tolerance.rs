//! Fault tolerance: asked for in one way only, with settings in one place only.

use crate::constants::{ANNOTATION_FT_ENABLED, ANNOTATION_STORAGE_NAMESPACE};
use crate::invalid::{Invalid, Validated, refuse_if};
use crate::ray_cluster::{ClusterSpec, FaultToleranceOptions};
use crate::template::list;
use crate::{Gates, Metadata};

const REDIS_ADDRESS: &str = "RAY_REDIS_ADDRESS";
const VOLUME: &str = "gcs-storage";
const MOUNT: &str = "/data/gcs";

pub(super) fn validate(spec: &ClusterSpec, metadata: &Metadata, gates: &Gates) -> Validated {
    let options = spec.fault_tolerance.as_ref();
    let is_annotated = !metadata.annotation(ANNOTATION_FT_ENABLED).is_empty();
    refuse_if(is_annotated && options.is_some(), || {
        format!(
            "{ANNOTATION_FT_ENABLED} annotation and GcsFaultToleranceOptions are both set. Please use \
             only GcsFaultToleranceOptions to configure GCS fault tolerance"
        )
    })?;
    let is_implied = spec.head.template.has_env(REDIS_ADDRESS);
    refuse_if(!spec.is_fault_tolerant(metadata) && is_implied, || {
        format!(
            "{REDIS_ADDRESS} is set which implicitly enables GCS fault tolerance, but \
             GcsFaultToleranceOptions is not set. Please set GcsFaultToleranceOptions to enable GCS \
             fault tolerance"
        )
    })?;
    if let Some(options) = options {
        elsewhere(spec, metadata)?;
        backend(spec, options, gates)?;
    }
    let has_param = |name: &str| {
        spec.head
            .ray_start_params
            .get(name)
            .is_some_and(|it| !it.is_empty())
    };
    refuse_if(
        has_param("redis-username") || spec.head.template.has_env("REDIS_USERNAME"),
        || {
            "cannot set redis username in rayStartParams or environment variables - use \
         GcsFaultToleranceOptions.RedisUsername instead"
                .to_owned()
        },
    )
}

/// What the options say must not be said elsewhere.
fn elsewhere(spec: &ClusterSpec, metadata: &Metadata) -> Validated {
    let head = &spec.head;
    let password = head.ray_start_params.get("redis-password");
    let rules = [
        (
            password.is_some_and(|password| !password.is_empty()),
            "`redis-password` in rayStartParams",
            "RedisPassword",
        ),
        (
            head.template.has_env("REDIS_PASSWORD"),
            "`REDIS_PASSWORD` env var in head Pod",
            "RedisPassword",
        ),
        (
            head.template.has_env(REDIS_ADDRESS),
            "`RAY_REDIS_ADDRESS` env var in head Pod",
            "RedisAddress",
        ),
        (
            !metadata.annotation(ANNOTATION_STORAGE_NAMESPACE).is_empty(),
            "`ray.io/external-storage-namespace` annotation",
            "ExternalStorageNamespace",
        ),
    ];
    rules.into_iter().try_for_each(|(is_said, place, field)| {
        refuse_if(is_said, || {
            format!(
                "cannot set {place} when GcsFaultToleranceOptions is enabled - use \
                 GcsFaultToleranceOptions.{field} instead"
            )
        })
    })
}

fn backend(spec: &ClusterSpec, options: &FaultToleranceOptions, gates: &Gates) -> Validated {
    if options.is_embedded() {
        return embedded(spec, options, gates);
    }
    refuse_if(options.storage.is_some(), || {
        "cannot set GcsFaultToleranceOptions.Storage when backend is 'redis' - it only applies to the \
         'rocksdb' backend"
            .to_owned()
    })
}

fn embedded(spec: &ClusterSpec, options: &FaultToleranceOptions, gates: &Gates) -> Validated {
    refuse_if(!gates.gcs_fault_tolerance_embedded_storage, || {
        "the embedded RocksDB GCS fault tolerance backend (GcsFaultToleranceOptions.Backend: \
         'rocksdb') requires the GCSFaultToleranceEmbeddedStorage feature gate to be enabled"
            .to_owned()
    })?;
    let of_redis = [
        (!options.redis_address.is_empty(), "RedisAddress"),
        (options.redis_username.is_some(), "RedisUsername"),
        (options.redis_password.is_some(), "RedisPassword"),
        (
            !options.external_storage_namespace.is_empty(),
            "ExternalStorageNamespace",
        ),
    ];
    if let Some((_, field)) = of_redis.into_iter().find(|(is_set, _)| *is_set) {
        return Err(Invalid(format!(
            "cannot set GcsFaultToleranceOptions.{field} when backend is 'rocksdb'"
        )));
    }
    let storage = options.storage.as_ref();
    let is_both = storage.is_some_and(|it| !it.claim_name.is_empty() && it.describes_claim);
    refuse_if(is_both, || {
        "GcsFaultToleranceOptions.Storage.ClaimName is mutually exclusive with size, storageClassName, \
         and accessModes"
            .to_owned()
    })?;
    managed(spec)
}

/// What is injected must not be there already.
fn managed(spec: &ClusterSpec) -> Validated {
    let template = &spec.head.template;
    let has_env = ["RAY_gcs_storage", "RAY_gcs_storage_path"]
        .iter()
        .any(|name| template.has_env(name));
    refuse_if(has_env, || {
        "cannot set `RAY_gcs_storage` or `RAY_gcs_storage_path` env var in head Pod when the embedded \
         GCS FT backend is used - these are managed by KubeRay"
            .to_owned()
    })?;
    let mounts = list(
        template
            .ray_container()
            .and_then(|container| container.get("volumeMounts")),
    );
    let is_taken = mounts
        .iter()
        .any(|mount| mount["mountPath"] == MOUNT || mount["name"] == VOLUME);
    refuse_if(is_taken, || {
        format!(
            "cannot set a volume mount named {VOLUME:?} or mounted at {MOUNT} in the head container \
             when the embedded GCS FT backend is used - it is managed by KubeRay"
        )
    })?;
    refuse_if(
        template
            .volumes()
            .iter()
            .any(|volume| volume["name"] == VOLUME),
        || {
            format!(
                "cannot set a volume named {VOLUME:?} in the head Pod when the embedded GCS FT backend is \
             used - it is managed by KubeRay"
            )
        },
    )
}
