//! Structural schemas of custom resources: pruning, defaulting, validation and CEL rules, in the
//! words of upstream.
//!
//! Values in, values and problems out. What a definition of a custom resource means for the server
//! is the business of `sundown-api`.
#![deny(clippy::wildcard_enum_match_arm)]

mod below;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "expressions are typed as they run: what an operation does not name it does not take"
)]
mod cel;
mod choices;
mod compile;
mod duplicates;
mod embedded;
mod error_list;
mod field_path;
mod formats;
mod lists;
mod member;
mod node;
mod path;
mod pattern;
mod problem;
mod prune;
mod rules;
mod structural;
mod validate;

use serde_json::{Map, Value};

pub use below::{Step, below};
pub use compile::Compiler;
pub use duplicates::{FINDINGS_MAX, duplicate_fields};
pub use error_list::{ERRORS_MAX, ErrorList, Told};
pub use field_path::{FieldPath, FieldPathFault, field_path};
pub use member::{member, value};
pub use path::JsonPath;
pub use problem::{Problem, Problems};
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

    /// Fills in defaults, and drops nulls that the schema does not take.
    pub fn default(&self, object: &mut Value) {
        prune::drop_nulls(&self.root, object);
        prune::default(&self.root, object);
    }

    /// Visits the resources that stand inside of an object, outer ones first.
    pub fn for_each_embedded(
        &self,
        object: &mut Value,
        visit: &mut dyn FnMut(&str, &mut Map<String, Value>),
    ) {
        if self.root.has_embedded {
            embedded::for_each(&self.root, object, "", visit);
        }
    }

    /// All that is wrong with an object; on an update unchanged parts are not judged again.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Problems {
        let mut problems = self.structure(new, old);
        let content = self.content(new, old, &problems);
        problems.append(content);
        problems
    }

    /// What is wrong with the types and values of an object.
    pub fn structure(&self, new: &Value, old: Option<&Value>) -> Problems {
        validate::validate(&self.root, new, old)
    }

    /// The same of its status alone, which is told as if it were an object of its own.
    pub fn structure_of_status(&self, new: &Value, old: Option<&Value>) -> Problems {
        let (Some(schema), Some(new)) = (self.root.property("status"), new.get("status")) else {
            return Problems::default();
        };
        let old = old.and_then(|old| old.get("status"));
        let problems = validate::validate(schema, new, old);
        problems.map(|problem| Problem {
            field: match problem.field.as_str() {
                "<nil>" => "status".to_owned(),
                field => format!("status.{field}"),
            },
            ..problem
        })
    }

    /// What is there twice in lists, and what the rules say. Rules are not looked at when `before`
    /// names something that they could trip over.
    pub fn content(&self, new: &Value, old: Option<&Value>, before: &Problems) -> Problems {
        let was_unique = old.is_none_or(|old| lists::validate(&self.root, old).is_empty());
        let mut problems = if was_unique {
            lists::validate(&self.root, new)
        } else {
            Problems::default()
        };
        if self.root.has_rules {
            // Of more than are kept it is not known, and nothing is lost: the object is refused.
            let is_blocking = before.iter().any(Problem::blocks_rules);
            if is_blocking || before.dropped() > 0 {
                problems.push(Problem::unchecked_rules());
            } else {
                problems.append(cel::validate(&self.root, new, old));
            }
        }
        problems
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
