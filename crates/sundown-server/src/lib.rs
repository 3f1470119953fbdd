//! The shell around `sundown-api`: one published state, one tower service, HTTPS in front of it.
//!
//! [`Shared`] owns the state, [`ApiService`] speaks HTTP for it, in process or through [`Https`].
//! What a request means is decided in `sundown-api`; nothing here knows a resource or a verb.

mod access;
mod bodies;
mod body;
mod clock;
mod compressed;
mod entropy;
mod full_disk;
mod https;
mod identity;
mod keys;
mod kubeconfig;
mod logs;
mod metrics;
mod notices;
mod pretty;
mod sequencer;
mod service;
mod shared;
mod status;
mod stop;
mod tasks;
mod wire;

pub use body::Body;
pub use clock::{Clock, ManualClock, SystemClock};
pub use entropy::Entropy;
pub use https::{Front, Https, HttpsError};
pub use identity::{Identity, IdentityError, KeepError};
pub use kubeconfig::{Credential, write_private};
pub use logs::PodLogs;
pub use metrics::Usage;
pub use sequencer::Durability;
pub use service::{ApiService, BODY_BYTES_MAX};
pub use shared::{OpenError, Reply, Shared};
pub use stop::Stop;
pub use tasks::{TaskError, Tasks};
