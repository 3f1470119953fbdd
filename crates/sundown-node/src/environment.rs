//! Environments that stand for images: a virtual environment with that Ray for `rayproject/ray`, the
//! host's own tools for small images. Each is made once, in a cache of the user's, and bound
//! read-only into the pods that name its image.
//!
//! Which image stands for what is in `recipe`; how a virtual environment is made is in `make`, and what
//! keeps a checkout out of it in `tool`.

mod entry;
mod hidden;
mod limits;
mod lock;
mod make;
mod mark;
mod python;
mod recipe;
mod reference;
mod sources;
mod store;
mod tool;

pub use entry::Entry;
pub use hidden::Hidden;
pub use limits::{LimitError, Limits, in_words as size_in_words};
pub use make::{MakeError, Progress};
pub use recipe::{Recipe, RuleError, Rules, Unknown};
pub use reference::Reference;
pub use sources::without_userinfo;
pub use store::{Environments, Removal};

use std::path::PathBuf;

/// What a container gets of the environment that stands for its image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// Directories of the host that have to be seen inside, at the same place.
    pub binds: Vec<PathBuf>,
    /// Variables that an image would set; the manifest's own come after them.
    pub variables: Vec<(String, String)>,
    /// What runs if the manifest names no command.
    pub command: Vec<String>,
}

/// How an image stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Ready(Environment),
    /// It has to be made first.
    Missing,
    /// Nothing stands for it, or what it needs is not on this machine; what to do about it.
    Unavailable(String),
}
