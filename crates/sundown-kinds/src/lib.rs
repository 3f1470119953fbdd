//! `RayJob` and `RayCluster`: their definitions, typed views, validation, and the objects that are made
//! of them. Of Volcano: the definitions of three kinds, and the phases of its Job.
//!
//! Values in, values out: names get their random part from the caller, instants are arguments. What is
//! done with all this, and when, is decided in `sundown-decide`.
#![deny(clippy::wildcard_enum_match_arm)]

pub mod constants;
pub mod crd;
mod gates;
mod invalid;
mod json;
mod metadata;
pub mod names;
pub mod pod;
pub mod ray_cluster;
pub mod ray_job;
mod reader;
mod resources;
pub mod service;
mod settings;
mod template;
mod version;
pub mod volcano;

pub use gates::Gates;
pub use invalid::Invalid;
pub use metadata::Metadata;
pub use ray_cluster::RayCluster;
pub use ray_job::RayJob;
pub use reader::Malformed;
pub use settings::Settings;
pub use template::PodTemplate;

#[cfg(test)]
mod testing;
