//! Runs any [`Controller`](sundown_model::Controller): list and watch, queue, back-off, timers,
//! brakes, leadership and a single guarded exit, as a state machine without I/O and without a clock.
//!
//! It knows no controller and no server. A shell feeds [`Input`]s and carries out [`Effect`]s; the
//! tokio driver is one, the simulator another.
#![deny(clippy::wildcard_enum_match_arm)]

mod asks;
mod backoff;
mod barrier;
mod broken;
mod checkpoint;
mod effect;
mod engine;
mod exit;
mod explain;
mod failed;
pub mod flight;
mod lapse;
mod ports;
mod propose;
mod queue;
mod replies;
mod sent;
mod slot;
mod streams;
mod tally;
pub mod wire;

pub use broken::broken;
pub use effect::{Brake, Effect, EffectId, Failure, Input, Page, WatchEvent};
pub use engine::{Config, Engine};
pub use explain::Explanation;
pub use lapse::Lapse;
pub use sent::{SentEffect, SentTarget, SentWrite};
pub use tally::{Backlog, Tally};
