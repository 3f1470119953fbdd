//! A scenario: a story that users tell, step by step, in a world with an operator.

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::node::Mishap;
use crate::op::{It, Op};

/// One step of a story.
#[derive(Debug, Clone)]
pub enum Step {
    /// Somebody does something.
    Do(Box<Told>),
    /// The operator comes to rest.
    Settle,
    /// Time goes by.
    Advance(SignedDuration),
    /// The operator starts; before it, nobody collects.
    Start,
    /// Something befalls the node.
    Node(Mishap),
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
    /// Whether there is a node, and who speaks to it. Stories without one do not pay for it.
    pub has_node: bool,
}

impl Scenario {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            steps: Vec::new(),
            has_node: false,
        }
    }

    pub(crate) fn with_node(mut self) -> Self {
        self.has_node = true;
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

    pub(crate) fn settle(mut self) -> Self {
        self.steps.push(Step::Settle);
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
