//! What the controllers of Ray are told by the environment, with the names that upstream's operator gives
//! these variables. What they mean is `RayConfig`'s business.

use sundown_embedded::RayConfig;

use crate::complaint::Complaint;

/// Reads it.
pub(crate) fn config() -> Result<RayConfig, Complaint> {
    // What is not text cannot be meant; it is refused as what it looks like.
    let variable = |name: &str| std::env::var_os(name).map(|it| it.to_string_lossy().into_owned());
    RayConfig::of(variable).map_err(|error| {
        Complaint::usage(error.to_string()).help("correct it or take it out of the environment")
    })
}
