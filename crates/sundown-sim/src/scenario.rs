//! A scenario: a story that users tell, step by step, in a world with an operator.

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::node::Mishap;
use crate::op::{It, Op};
use crate::trouble::Trouble;

/// One step of a story.
#[derive(Debug, Clone)]
pub enum Step {
    /// Somebody does something.
    Do(Box<Told>),
    /// The operator comes to rest.
    Settle,
    /// The operator works for so long, and need not come to rest.
    Work(SignedDuration),
    /// Time goes by.
    Advance(SignedDuration),
    /// The operator starts; before it, nothing is collected.
    Start,
    /// The operator is gone until it starts again: nothing of it survives.
    Stop,
    /// A user submits a job to Ray by hand, with this id and entrypoint.
    Submit(&'static str, &'static str),
    /// Something befalls the node.
    Node(Mishap),
    /// Trouble begins, or ends.
    Trouble(Option<Trouble>),
}

/// An act of a user. Owners are named by what exists then, so that their uids are right.
#[derive(Debug, Clone)]
pub enum Told {
    Request(Op),
    /// Creates an object that names these owners; the flag says whether it blocks them.
    Own {
        it: It,
        owners: Vec<(It, bool)>,
        extra: Value,
    },
    /// Deletes every `RayCluster`, as `kubectl delete` does by itself: in background.
    DeleteClusters,
    /// Gives an object these owners instead of those that it has.
    Adopt {
        it: It,
        owners: Vec<(It, bool)>,
    },
}

/// A story with a name.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub name: &'static str,
    pub steps: Vec<Step>,
    pub stage: Stage,
    /// Whether its user wants something else at every step, instead of something going wrong there.
    pub has_whims: bool,
}

/// What there is in a world, and who speaks to it. A story does not pay for what it does not need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// A server.
    Plain,
    /// A server alone, with roles: their kind is told to nobody else.
    Roles,
    /// A server alone, with claims and volumes: their kinds are told to nobody else.
    Storage,
    /// A server alone, with Events under both of their names: their kind is told to nobody else.
    Events,
    /// A node that runs pods, too.
    Node,
    /// Ray on that node, with its definitions.
    Ray,
    /// The same, and its definitions are told, with schemas that say nothing: they may go.
    RayKinds,
}

impl Stage {
    /// Whether there is a node.
    pub(crate) fn has_node(self) -> bool {
        match self {
            Self::Plain | Self::Roles | Self::Storage | Self::Events => false,
            Self::Node | Self::Ray | Self::RayKinds => true,
        }
    }

    /// Whether there is Ray.
    pub(crate) fn has_ray(self) -> bool {
        match self {
            Self::Plain | Self::Roles | Self::Storage | Self::Events | Self::Node => false,
            Self::Ray | Self::RayKinds => true,
        }
    }
}

impl Scenario {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            steps: Vec::new(),
            stage: Stage::Plain,
            has_whims: false,
        }
    }

    pub(crate) fn with_whims(mut self) -> Self {
        self.has_whims = true;
        self
    }

    pub(crate) fn with_roles(mut self) -> Self {
        self.stage = Stage::Roles;
        self
    }

    pub(crate) fn with_storage(mut self) -> Self {
        self.stage = Stage::Storage;
        self
    }

    pub(crate) fn with_events(mut self) -> Self {
        self.stage = Stage::Events;
        self
    }

    pub(crate) fn with_node(mut self) -> Self {
        self.stage = Stage::Node;
        self
    }

    pub(crate) fn with_ray(mut self) -> Self {
        self.stage = Stage::Ray;
        self
    }

    /// Tells the definitions of Ray, too.
    pub(crate) fn with_kinds(mut self) -> Self {
        self.stage = Stage::RayKinds;
        self
    }

    pub(crate) fn node(mut self, mishap: Mishap) -> Self {
        self.steps.push(Step::Node(mishap));
        self
    }

    pub(crate) fn start(mut self) -> Self {
        self.steps.push(Step::Start);
        self
    }

    /// Writes of the operator end alike, for ten minutes.
    pub(crate) fn troubled(self, trouble: Trouble) -> Self {
        self.troubled_for(600, trouble)
    }

    /// The same for so long.
    pub(crate) fn troubled_for(mut self, seconds: i64, trouble: Trouble) -> Self {
        self.steps.push(Step::Trouble(Some(trouble)));
        self = self.work(seconds);
        self.steps.push(Step::Trouble(None));
        self
    }

    /// No operator is there for so long. Longer than every bound, it must still keep what it promised.
    pub(crate) fn away(mut self, seconds: i64) -> Self {
        self.steps.push(Step::Stop);
        self.advance(seconds).start()
    }

    pub(crate) fn stop(mut self) -> Self {
        self.steps.push(Step::Stop);
        self
    }

    pub(crate) fn submit(mut self, id: &'static str, entrypoint: &'static str) -> Self {
        self.steps.push(Step::Submit(id, entrypoint));
        self
    }

    pub(crate) fn settle(mut self) -> Self {
        self.steps.push(Step::Settle);
        self
    }

    /// Something that does not rest by itself goes on for a while.
    pub(crate) fn work(mut self, seconds: i64) -> Self {
        let duration = SignedDuration::from_secs(seconds);
        self.steps.push(Step::Work(duration));
        self
    }

    pub(crate) fn advance(mut self, seconds: i64) -> Self {
        self.steps
            .push(Step::Advance(SignedDuration::from_secs(seconds)));
        self
    }

    pub(crate) fn does(mut self, op: Op) -> Self {
        self.steps.push(Step::Do(Box::new(Told::Request(op))));
        self
    }

    pub(crate) fn create(self, it: It) -> Self {
        self.does(Op::create(it, &json!({})))
    }

    pub(crate) fn delete(self, it: It, policy: &str) -> Self {
        self.does(Op::delete(it, policy))
    }

    pub(crate) fn delete_clusters(mut self) -> Self {
        let told = Box::new(Told::DeleteClusters);
        self.steps.push(Step::Do(told));
        self
    }

    pub(crate) fn patch(self, it: It, patch: &Value) -> Self {
        self.does(Op::patch(it, patch))
    }

    /// Creates an object that blocks the deletion of its owners.
    pub(crate) fn own(self, it: It, owners: &[It]) -> Self {
        let owners = owners.iter().map(|owner| (*owner, true)).collect();
        self.owning(it, owners, json!({}))
    }

    pub(crate) fn owning(mut self, it: It, owners: Vec<(It, bool)>, extra: Value) -> Self {
        self.steps
            .push(Step::Do(Box::new(Told::Own { it, owners, extra })));
        self
    }

    pub(crate) fn adopt(mut self, it: It, owners: &[It]) -> Self {
        let owners = owners.iter().map(|owner| (*owner, true)).collect();
        self.steps
            .push(Step::Do(Box::new(Told::Adopt { it, owners })));
        self
    }
}
