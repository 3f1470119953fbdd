//! The shipped controllers, in one list. Whatever runs an engine (embedded server, operator,
//! `explain`, replay, simulator) takes them from here.

use sundown_model::Controller;

use crate::{Definitions, Namespaces, OwnerGc, Ttl};

/// Somebody who takes controllers. Their types differ, so a list of values cannot hold them.
pub trait Crew {
    /// Takes one controller.
    fn take<C: Controller + Default>(&mut self);
}

/// Names every controller that Sundown ships, in the order in which they are asked.
pub fn shipped(crew: &mut impl Crew) {
    crew.take::<OwnerGc>();
    crew.take::<Ttl>();
    crew.take::<Namespaces>();
    crew.take::<Definitions>();
}
