//! Names on the wire that clients, Ray itself and other operators rely on.

/// The name of the cluster, on everything that belongs to one.
pub const LABEL_CLUSTER: &str = "ray.io/cluster";
/// `head`, `worker` or `redis-cleanup`.
pub const LABEL_NODE_TYPE: &str = "ray.io/node-type";
/// The group of a pod: `headgroup`, or the name of a worker group.
pub const LABEL_GROUP: &str = "ray.io/group";
/// `yes` on pods that run Ray.
pub const LABEL_IS_RAY_NODE: &str = "ray.io/is-ray-node";
/// `<cluster>-head` or `<cluster>-worker`.
pub const LABEL_IDENTIFIER: &str = "ray.io/identifier";
/// `kuberay`, unless the template says otherwise.
pub const LABEL_APPLICATION: &str = "app.kubernetes.io/name";
/// `kuberay-operator`, unless the template says otherwise.
pub const LABEL_CREATED_BY: &str = "app.kubernetes.io/created-by";
/// The name of the object that something was made for.
pub const LABEL_ORIGIN_NAME: &str = "ray.io/originated-from-cr-name";
/// Its kind.
pub const LABEL_ORIGIN_KIND: &str = "ray.io/originated-from-crd";
/// How the `RayJob` that made a cluster submits.
pub const LABEL_SUBMISSION_MODE: &str = "ray.io/job-submission-mode";
/// On services and pods that serve.
pub const LABEL_SERVE: &str = "ray.io/serve";
/// On the service of groups with several hosts.
pub const LABEL_HEADLESS_WORKERS: &str = "ray.io/headless-worker-svc";
/// The replica that a pod is one of the hosts of.
pub const LABEL_REPLICA_NAME: &str = "ray.io/worker-group-replica-name";
/// The index of a replica in its group.
pub const LABEL_REPLICA_INDEX: &str = "ray.io/worker-group-replica-index";
/// The index of a host in its replica.
pub const LABEL_HOST_INDEX: &str = "ray.io/replica-host-index";

/// Value of [`LABEL_APPLICATION`].
pub const APPLICATION: &str = "kuberay";
/// Value of [`LABEL_CREATED_BY`].
pub const CREATED_BY: &str = "kuberay-operator";
/// Value of [`LABEL_GROUP`] on the head.
pub const HEAD_GROUP: &str = "headgroup";

/// GCS fault tolerance, the old way to ask for it.
pub const ANNOTATION_FT_ENABLED: &str = "ray.io/ft-enabled";
/// The namespace of a cluster inside its external storage.
pub const ANNOTATION_STORAGE_NAMESPACE: &str = "ray.io/external-storage-namespace";
/// Seconds that the clean-up of the external storage may take.
pub const ANNOTATION_FT_DELETION_TIMEOUT: &str = "ray.io/gcs-ft-deletion-timeout";
/// `true`: the container's own command is left alone.
pub const ANNOTATION_OVERWRITE_COMMAND: &str = "ray.io/overwrite-container-cmd";
/// `true`: a service for serve is wanted.
pub const ANNOTATION_SERVE_SERVICE: &str = "ray.io/enable-serve-service";
/// `true`: a head that is lost after provisioning is not made again.
pub const ANNOTATION_NO_HEAD_RESTART: &str = "ray.io/disable-provisioned-head-restart";
/// The hash of the spec that a head was made from.
pub const ANNOTATION_RECREATE_HASH: &str = "ray.io/upgrade-strategy-recreate-hash";
/// The version of the operator that made a head.
pub const ANNOTATION_OPERATOR_VERSION: &str = "ray.io/kuberay-version";

/// Holds a `RayJob` until its job is stopped.
pub const FINALIZER_RAY_JOB: &str = "ray.io/rayjob-finalizer";
/// Holds a `RayCluster` until its external storage is clean.
pub const FINALIZER_REDIS_CLEANUP: &str = "ray.io/gcs-ft-redis-cleanup-finalizer";

/// Port of Ray's client server.
pub const PORT_CLIENT: i32 = 10001;
/// Port of the global control service.
pub const PORT_GCS: i32 = 6379;
/// Port of the dashboard.
pub const PORT_DASHBOARD: i32 = 8265;
/// Port of metrics.
pub const PORT_METRICS: i32 = 8080;
/// Port of serve.
pub const PORT_SERVE: i32 = 8000;
/// Port of the agent that each node has.
pub const PORT_DASHBOARD_AGENT: i32 = 52365;

/// The container that submits.
pub const CONTAINER_SUBMITTER: &str = "ray-job-submitter";
/// The container that makes workers wait for the head.
pub const CONTAINER_WAIT_FOR_GCS: &str = "wait-gcs-ready";
/// The volume of the object store.
pub const VOLUME_SHARED_MEMORY: &str = "shared-mem";

/// Who reconciles an object when `managedBy` does not say otherwise.
pub const MANAGED_BY_OPERATOR: &str = "ray.io/kuberay-operator";

/// The fence of a submitter: the only session that it may submit to.
pub const ENV_SESSION: &str = "SUNDOWN_RAY_SESSION";
/// The runtime environment of a submitter, as JSON.
pub const ENV_RUNTIME_ENV: &str = "SUNDOWN_RAY_RUNTIME_ENV";

/// How long the name of a `RayCluster` may be: its services and pods add to it.
pub const CLUSTER_NAME_MAX: usize = 53;
/// How long the name of a `RayJob` may be: its cluster adds to it.
pub const JOB_NAME_MAX: usize = 47;
/// What random suffixes are made of: no vowels, nothing that looks like something else.
pub const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// How long random suffixes are.
pub const SUFFIX_LENGTH: usize = 5;
