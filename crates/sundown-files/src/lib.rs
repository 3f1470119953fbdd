//! What may be done to files of a machine that others share: whether a path belongs to us, the one opening
//! of a path that stays in a directory, the one removal of directories, and whether a directory is still where it was.
//! Which paths those are is for the callers to say.

mod remove;
mod scoped;
mod trust;
mod watched;

pub use remove::{Root, remove};
pub use scoped::open_scoped;
pub use trust::{Distrust, Sort, Step, TrustError, Us, check, judge, own, way};
pub use watched::{AtPath, Identity, WatchedDirectory, Whereabouts, locate};
