//! Structural schemas of custom resources: pruning, defaulting, validation and CEL rules, in the
//! words of upstream.
//!
//! Values in, values and problems out. What a definition of a custom resource means for the server
//! is the business of `sundown-api`.
#![deny(clippy::wildcard_enum_match_arm)]

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "expressions are typed as they run: what an operation does not name it does not take"
)]
mod cel;
mod compile;
mod duplicates;
mod formats;
mod lists;
mod node;
mod path;
mod pattern;
mod problem;
mod prune;
mod structural;
mod validate;

use serde_json::Value;

pub use compile::Compiler;
pub use duplicates::duplicate_fields;
pub use path::JsonPath;
pub use problem::Problem;
pub use structural::check;

use node::Ref;

/// A compiled schema. Equal parts of all schemas of one `Compiler` are shared.
#[derive(Debug, Clone)]
pub struct Schema {
    root: Ref,
}

impl Schema {
    /// Removes what the schema does not know; the paths of what went.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(&self.root, object)
    }

    /// Fills in defaults, and drops nulls where the schema has a default and takes no null.
    pub fn default(&self, object: &mut Value) {
        prune::default(&self.root, object);
    }

    /// What is wrong with an object; on an update unchanged parts are not judged again.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<Problem> {
        let mut problems = validate::validate(&self.root, new, old);
        problems.extend(lists::validate(&self.root, new));
        if !self.root.has_rules {
            return problems;
        }
        if problems.is_empty() {
            cel::validate(&self.root, new, old)
        } else {
            problems.push(Problem::unchecked_rules());
            problems
        }
    }

    /// How many distinct nodes the schema has.
    pub fn node_count(&self) -> usize {
        let mut seen = std::collections::BTreeSet::new();
        self.root.visit(&mut seen);
        seen.len()
    }
}

#[cfg(test)]
mod tests;
