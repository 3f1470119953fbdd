//! What may be done to files of a machine that others share: whether a path belongs to us, and the one
//! removal of directories. Which paths those are is for the callers to say.

mod remove;
mod trust;

pub use remove::{Root, remove};
pub use trust::{Distrust, Sort, Step, TrustError, Us, check, judge, own, way};
