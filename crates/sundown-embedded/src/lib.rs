//! A Kubernetes-compatible control plane in process: API server and controllers, with a
//! `kube::Client`, optional HTTPS, and a clock that a test may move.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let embedded = sundown_embedded::Embedded::start().await?;
//! let namespaces = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(embedded.client());
//! assert!(namespaces.get_opt("default").await?.is_some());
//! embedded.stop().await?;
//! # Ok(()) }
//! ```
//!
//! The controllers reach the server through the in-process client only, by the same code as on a
//! real cluster. What the server answers and what the controllers decide lies in other crates.

mod builder;
mod data;
mod definitions;
mod embedded;
mod identities;
mod kubeconfig;
#[cfg(target_os = "linux")]
mod local;
#[cfg(target_os = "linux")]
mod machine;
mod node;
mod ports;

pub use builder::{Builder, Listen, StartError};
pub use data::Data;
pub use embedded::{Embedded, StopError};
pub use kubeconfig::{KubeconfigError, is_own_kubeconfig};
#[cfg(target_os = "linux")]
pub use local::Local;
pub use node::NodeOptions;
pub use sundown_api::Authorization;
pub use sundown_decide::RayConfig;
pub use sundown_driver::{Counts, DriverHandle, WaitError, controllers};
pub use sundown_engine::{Engine, Explanation};
pub use sundown_node::ClosedPaths;
pub use sundown_server::Durability;
pub use sundown_server::Usage;
