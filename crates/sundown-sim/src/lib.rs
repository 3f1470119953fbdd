//! The simulator: the shipped engine and the shipped API server in one cloneable world with virtual
//! time. Every crash point and every reply of every scenario is tried; seeds try the rest.
//!
//! Nothing here decides or serves: it only schedules, breaks things and judges.
#![deny(clippy::wildcard_enum_match_arm)]

mod checks;
mod explore;
mod fault;
mod hunt;
mod late;
mod ledger;
mod mutation;
mod node;
mod op;
mod operator;
mod perform;
mod ray;
mod scenario;
mod scenarios;
mod serve;
mod swarm;
mod tape;
mod trace;
mod trouble;
mod workload;
mod world;

pub use checks::{Violation, invariants};
pub use explore::{Exploration, Found, explore, rerun};
pub use fault::{Meddle, Variant};
pub use hunt::hunt;
pub use mutation::{Expected, Mutation};
pub use node::Mishap;
pub use scenario::{Scenario, Stage, Step};
pub use scenarios::all as scenarios;
pub use swarm::{Swarm, retell, swarm};
pub use tape::{Recording, record};
pub use world::World;
