//! Famous bugs, put back in on purpose: each has to be found, or the simulator proves nothing.
//!
//! A mutation is a value that the world applies where requests leave and answers enter. A mutated
//! rule lives behind the feature `mutants`, which no shipped build has.

use serde_json::Value;
#[cfg(feature = "mutants")]
use sundown_decide::OwnerGc;
use sundown_decide::{Crew, of_ray, shipped, with_node};
use sundown_engine::{Engine, wire};
use sundown_model::Controller;

use crate::explore::{Exploration, explore};
use crate::node::Flaws;
use crate::scenario::Stage;
use crate::scenarios;
use crate::swarm::{Swarm, swarm};

/// A bug of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// kubernetes#114603: the collector deletes without the revision that it judged.
    CollectWithoutRv,
    /// The TTL controller deletes without the revision that it judged.
    TtlWithoutRv,
    /// kubernetes#77988: a DELETE and an added finalizer race in the server.
    DeleteRacesFinalizer,
    /// A write whose answer was lost is taken for one that was not made.
    LostReplyIsFailure,
    /// kubernetes#65200, #92743: owners are found by uid alone.
    #[cfg(feature = "mutants")]
    UidOnlyOwner,
}

/// What is said of a mutation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    pub name: &'static str,
    pub story: &'static str,
}

impl Mutation {
    /// All that this build knows.
    pub const ALL: &'static [Self] = &[
        Self::CollectWithoutRv,
        Self::TtlWithoutRv,
        Self::DeleteRacesFinalizer,
        Self::LostReplyIsFailure,
        #[cfg(feature = "mutants")]
        Self::UidOnlyOwner,
    ];

    /// The name on the command line.
    pub fn expected(self) -> Expected {
        let (name, story) = match self {
            Self::CollectWithoutRv => (
                "kubernetes#114603",
                "the collector deletes what was adopted in between",
            ),
            Self::TtlWithoutRv => ("ttl-without-rv", "a job goes although its TTL was raised"),
            Self::DeleteRacesFinalizer => (
                "kubernetes#77988",
                "an object goes although its finalizer was acknowledged",
            ),
            Self::LostReplyIsFailure => (
                "lost-reply",
                "a write of unknown fate is repeated without a look",
            ),
            #[cfg(feature = "mutants")]
            Self::UidOnlyOwner => (
                "kubernetes#92743",
                "an owner in another namespace counts by its uid alone",
            ),
        };
        Expected { name, story }
    }

    /// Whether the shipped binary can put it back as well: it changes requests or answers, no rule.
    pub fn is_shipped(self) -> bool {
        match self {
            Self::CollectWithoutRv
            | Self::TtlWithoutRv
            | Self::DeleteRacesFinalizer
            | Self::LostReplyIsFailure => true,
            #[cfg(feature = "mutants")]
            Self::UidOnlyOwner => false,
        }
    }

    /// Finds a mutation by name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|mutation| mutation.expected().name == name)
    }

    /// Changes a request on its way out.
    pub(crate) fn on_call(self, by: &str, call: &mut wire::Call) {
        let culprit = match self {
            Self::CollectWithoutRv => "owner_gc",
            Self::TtlWithoutRv => "ttl",
            Self::DeleteRacesFinalizer | Self::LostReplyIsFailure => return,
            #[cfg(feature = "mutants")]
            Self::UidOnlyOwner => return,
        };
        if by == culprit
            && call.method == wire::Method::Delete
            && let Ok(mut options) = serde_json::from_slice::<Value>(&call.body)
        {
            options["preconditions"]["resourceVersion"] = Value::Null;
            call.body = options.to_string().into_bytes();
        }
    }

    /// Changes an answer on its way in.
    pub(crate) fn on_reply(self, reply: wire::Reply) -> wire::Reply {
        match (self, reply) {
            (Self::LostReplyIsFailure, wire::Reply::Lost(why)) => wire::Reply::NotSent(why),
            (_, reply) => reply,
        }
    }
}

/// What is wrong with the node of a world.
pub(crate) fn flaws(_mutation: Option<Mutation>) -> Flaws {
    Flaws::default()
}

/// The controllers of an operator, with a mutated rule if there is one.
pub(crate) fn controllers(engine: Engine, mutation: Option<Mutation>, stage: Stage) -> Engine {
    let mut hands = Hands { engine, mutation };
    shipped(&mut hands);
    if stage != Stage::Plain {
        with_node(&mut hands);
    }
    if stage == Stage::Ray {
        of_ray(&mut hands);
    }
    hands.engine
}

struct Hands {
    engine: Engine,
    mutation: Option<Mutation>,
}

impl Crew for Hands {
    fn take<C: Controller + Default>(&mut self) {
        #[cfg(feature = "mutants")]
        if self.mutation == Some(Mutation::UidOnlyOwner) && C::NAME == OwnerGc::NAME {
            self.engine = self.engine.clone().with(OwnerGc::default().by_uid_only());
            return;
        }
        let _ = self.mutation;
        self.engine = self.engine.clone().with(C::default());
    }
}

/// Looks for a mutation in every scenario first and in seeds then; gives what was found, if so.
pub fn hunt(mutation: Mutation, seeds_max: u64) -> (Exploration, Option<Swarm>) {
    let mut total = Exploration::default();
    for scenario in scenarios::all() {
        total.add(explore(&scenario, Some(mutation)));
        if !total.found.is_empty() {
            return (total, None);
        }
    }
    (total, Some(swarm(0..seeds_max, Some(mutation))))
}
