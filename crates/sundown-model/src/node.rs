//! Pods as processes of this machine: what may be asked of the node, what it is told to do, and what
//! it reports. Plain data; who starts processes is `sundown-node`.
//!
//! Secrets never stand here: a volume or a variable names its `ConfigMap` or Secret, and the content is
//! looked up where it is used.

use core::net::{IpAddr, Ipv4Addr};
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{ObjectKey, Subject, Uid};

/// All rights that root can have inside a container, by the names of Kubernetes.
pub const CAPABILITIES: [&str; 12] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// One run of one container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Run {
    pub pod: Uid,
    pub container: Arc<str>,
    /// Counted from 0; a restart is the next one.
    pub attempt: u32,
}

/// What the node does not report by itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Query {
    /// Tries a probe once.
    Probe { run: Run, probe: Probe },
    /// Whether there is an environment for an image, or what to do about it.
    Image { image: Arc<str> },
}

/// How it is found out whether a container is well.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Probe {
    pub how: ProbeKind,
    pub timeout_seconds: u32,
}

/// The kinds of probes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ProbeKind {
    Exec {
        command: Vec<String>,
    },
    Http {
        port: u16,
        path: String,
        tls: bool,
        headers: Vec<(String, String)>,
    },
    Tcp {
        port: u16,
    },
}

/// What the node answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// A probe ended; None: well, else in words what was wrong.
    Probe {
        trouble: Option<String>,
    },
    Image(Image),
}

/// How an image stands on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Image {
    /// There is an environment for it.
    Ready,
    /// There could be one; it has to be made.
    Missing,
    /// It is being made; in words how far.
    Making { progress: String },
    /// It cannot be made, or no rule knows it: what to do about it.
    Unavailable { message: String },
}

/// What the node is told to do. Each call may be repeated: what is done already stays done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Call {
    /// Makes the place in which the containers of a pod run.
    Prepare(Arc<Sandbox>),
    /// Starts one run of a container.
    Start(Arc<Launch>),
    /// Runs a command in a container that is about to be told to end; no longer than this.
    Hook {
        run: Run,
        command: Vec<String>,
        timeout_seconds: u32,
    },
    Signal {
        run: Run,
        signal: i32,
    },
    /// Ends what a pod ran in when nothing of it runs any more: its network, its mounts, its scratch
    /// files. Records and logs stay.
    Release {
        pod: Uid,
    },
    /// Ends and removes everything of a pod: processes, mounts, network, files.
    Remove {
        pod: Uid,
    },
    /// Makes the environment that stands for an image.
    Pull {
        image: Arc<str>,
    },
    /// All names that pods can look up, with their addresses.
    Names(Arc<Names>),
}

/// Names without a final dot, and their addresses.
pub type Names = BTreeMap<String, Vec<Ipv4Addr>>;

/// The place in which the containers of a pod run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sandbox {
    pub pod: Uid,
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub hostname: String,
    /// The domain below which the pod has a name of its own; None: it has none.
    #[serde(default)]
    pub domain: Option<String>,
    /// Further lines of `/etc/hosts`.
    pub hosts: Vec<(IpAddr, Vec<String>)>,
    /// What `/etc/resolv.conf` appends to short names.
    pub search: Vec<String>,
    pub volumes: Vec<Volume>,
    /// The size of `/dev/shm`; None: as usual.
    pub shared_memory_bytes: Option<u64>,
}

/// A volume of a pod.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Volume {
    pub name: String,
    pub content: Content,
}

/// What a volume holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Content {
    Empty {
        in_memory: bool,
        size_bytes: Option<u64>,
    },
    HostPath {
        path: String,
        /// As in the manifest; empty: anything.
        kind: String,
    },
    /// Files from objects, in the order of the manifest; later ones win.
    Files { from: Vec<Files>, mode: u32 },
}

/// Where files come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Files {
    ConfigMap(Selection),
    Secret(Selection),
    /// Known when the pod was decided on: downward API.
    Texts(BTreeMap<String, Text>),
    /// A token of the pod's service account.
    Token {
        path: String,
        audience: Option<String>,
        expiration_seconds: u64,
    },
    /// The certificate by which pods know the API server.
    Authority {
        path: String,
    },
}

/// A file whose content is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    pub text: String,
    /// None: that of the volume.
    pub mode: Option<u32>,
}

/// Which keys of a `ConfigMap` or a Secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    pub name: String,
    /// Key, path and mode of each; None: all keys under their own names.
    pub items: Option<Vec<(String, String, Option<u32>)>>,
    pub optional: bool,
}

/// One run of a container, complete but for what must not stand here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    pub run: Run,
    pub image: Arc<str>,
    /// Empty: what the image would run.
    pub command: Vec<String>,
    pub args: Vec<String>,
    /// In order; values may name earlier ones as `$(NAME)`.
    pub variables: Vec<Variable>,
    /// Empty: what the image says.
    pub directory: String,
    pub mounts: Vec<Mount>,
    pub read_only_root: bool,
    /// Rights of root that it gives up, of [`CAPABILITIES`].
    #[serde(default)]
    pub dropped: Vec<String>,
    /// As whom it runs.
    #[serde(default)]
    pub run_as: RunAs,
}

/// As whom a container runs, as far as the manifest says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAs {
    pub user: Option<u32>,
    pub group: Option<u32>,
    /// It must not be root.
    pub not_root: bool,
}

/// One or many environment variables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Variable {
    Text {
        name: String,
        value: String,
    },
    ConfigMapKey {
        name: String,
        of: String,
        key: String,
        optional: bool,
    },
    SecretKey {
        name: String,
        of: String,
        key: String,
        optional: bool,
    },
    /// All keys of a `ConfigMap`.
    ConfigMap {
        of: String,
        prefix: String,
        optional: bool,
    },
    /// All keys of a Secret.
    Secret {
        of: String,
        prefix: String,
        optional: bool,
    },
}

/// Where a container sees a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    pub volume: String,
    pub path: String,
    pub sub_path: String,
    pub read_only: bool,
}

/// What the node says by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// All pods of the node. From here on a pod that was not reported is not there.
    All(Vec<Pod>),
    /// A pod as it is now.
    Pod(Pod),
    /// Nothing of a pod is left.
    Removed { pod: Uid },
    /// How an image stands changed.
    Image { image: Arc<str>, is: Image },
    /// The node cannot be reached: what was known of pods may be old. Why, in words.
    Away { message: String },
}

/// A pod on the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pod {
    pub pod: Uid,
    pub address: Option<Ipv4Addr>,
    /// The last run of each container.
    pub containers: BTreeMap<Arc<str>, Container>,
    /// What it ran in is gone, lost or released: why, in words.
    pub lost: Option<String>,
}

/// The last run of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    pub attempt: u32,
    pub state: State,
    /// How the run before it ended.
    pub last: Option<Ended>,
}

/// What a run does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    Running { started_at: Timestamp },
    Ended(Ended),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// 128 and the signal for a run that a signal ended.
    pub exit_code: i32,
    pub signal: Option<i32>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Timestamp,
    /// As kubectl shows it: `Completed`, `Error`, `OOMKilled`, `StartError`.
    pub reason: String,
    pub message: String,
}

/// Why the node did not do what it was told; nothing was done, for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Refused {
    /// No node runs here, or one that is not ours.
    NoNode,
    /// The node was not reached, so nothing was sent.
    Unreachable,
    /// Sundown itself broke at it.
    Panicked,
    /// The pod has no place on the node.
    NoSuchPod,
    /// The place of the pod could not be made.
    FailedCreatePodSandBox,
    /// The node could not, and said why in its own words.
    NotDone,
    ConfigMapNotFound,
    SecretNotFound,
    ServiceAccountNotFound,
    /// A key of a `ConfigMap` or of a Secret.
    KeyNotFound,
    /// The pod of a token was deleted meanwhile.
    PodGone,
    /// The API server did not give what the pod refers to.
    LookupFailed,
    /// A name that cannot be asked for.
    NameInvalid,
    EnvironmentInvalid,
    RunAsInvalid,
    VolumesTooLarge,
    BadHostPathType,
    /// A hostPath that the node does not give to pods.
    ClosedHostPath,
    FailedPreStopHook,
    ImageNotReady,
    ErrImagePull,
}

impl Refused {
    /// Whether something that the pod refers to is not there.
    pub fn is_lack(self) -> bool {
        match self {
            Self::ConfigMapNotFound
            | Self::SecretNotFound
            | Self::ServiceAccountNotFound
            | Self::KeyNotFound => true,
            Self::NoNode
            | Self::Unreachable
            | Self::Panicked
            | Self::NoSuchPod
            | Self::FailedCreatePodSandBox
            | Self::NotDone
            | Self::PodGone
            | Self::LookupFailed
            | Self::NameInvalid
            | Self::EnvironmentInvalid
            | Self::RunAsInvalid
            | Self::VolumesTooLarge
            | Self::BadHostPathType
            | Self::ClosedHostPath
            | Self::FailedPreStopHook
            | Self::ImageNotReady
            | Self::ErrImagePull => false,
        }
    }

    /// Whether the manifest has to change, or what it refers to.
    pub fn is_flaw(self) -> bool {
        self.is_lack()
            || matches!(
                self,
                Self::NameInvalid | Self::EnvironmentInvalid | Self::RunAsInvalid
            )
    }
}

impl Query {
    /// What it asks, in words.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Probe { run, .. } => format!("probe container {}", run.container),
            Self::Image { image } => format!("look for an environment {image}"),
        }
    }

    /// The answer of a node that broke at it.
    pub(crate) fn broken(&self, message: String) -> Result<Answer, String> {
        match self {
            // Of an image that nothing is known about it would be asked again at once.
            Self::Image { .. } => Ok(Answer::Image(Image::Unavailable { message })),
            Self::Probe { .. } => Err(message),
        }
    }
}

impl Answer {
    /// A probe that found all well; an image that can be had.
    pub(crate) fn is_well(&self) -> bool {
        match self {
            Self::Probe { trouble } => trouble.is_none(),
            Self::Image(is) => match is {
                Image::Ready | Image::Missing | Image::Making { .. } => true,
                Image::Unavailable { .. } => false,
            },
        }
    }
}

impl Call {
    /// What it is done to, so that its outcome can be found again.
    pub(crate) fn subject(&self) -> Subject {
        match self {
            Self::Prepare(sandbox) => Subject::Pod(sandbox.pod.clone()),
            Self::Start(launch) => Subject::Run(launch.run.clone()),
            Self::Hook { run, .. } => Subject::Hook(run.clone()),
            Self::Signal { run, signal } => Subject::Signal(run.clone(), *signal),
            Self::Release { pod } => Subject::Release(pod.clone()),
            Self::Remove { pod } => Subject::Removal(pod.clone()),
            Self::Pull { image } => Subject::Image(image.clone()),
            Self::Names(_) => Subject::Names,
        }
    }

    /// What it does, in words, without what it carries.
    pub(crate) fn in_words(&self, about: &ObjectKey) -> String {
        let of = |run: &Run| format!("container {} of {about}", run.container);
        match self {
            Self::Prepare(_) => format!("make room for {about}"),
            Self::Start(launch) => format!("start {}", of(&launch.run)),
            Self::Hook { run, .. } => format!("run the last command of {}", of(run)),
            Self::Signal { run, signal } => format!("send signal {signal} to {}", of(run)),
            Self::Release { .. } => format!("end what {about} ran in"),
            Self::Remove { .. } => format!("remove the processes of {about}"),
            Self::Pull { image } => format!("make the environment {image}"),
            Self::Names(names) => format!("announce {} names", names.len()),
        }
    }
}
