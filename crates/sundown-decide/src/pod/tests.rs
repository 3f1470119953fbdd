//! The life of a pod, told step by step: what is decided, what the node did, what is on record.

mod ends;
mod life;
mod manifest;
mod memory;
mod missing;
mod probes;
mod refusals;
mod stories;
