//! Which of the shipped controllers run. The list itself is `sundown_decide::shipped`; whatever
//! runs an engine (operator, embedded server, `explain`, replay) chooses from it here.

use std::collections::BTreeSet;
use std::str::FromStr;

use sundown_decide::rights::Rights;
use sundown_decide::{Crew, OwnerGc, RayConfig, of_ray, shipped, with_node, with_server};
use sundown_engine::{Config, Engine};
use sundown_model::Controller;

/// The name of the garbage collector, which the server's finalizers wait for.
pub const OWNER_GC: &str = OwnerGc::NAME;

/// The names of the controllers that Sundown ships for any API server, in the order in which they are
/// asked.
pub fn all() -> Vec<&'static str> {
    let mut names = Names(Vec::new());
    shipped(&mut names);
    names.0
}

/// Those of a server of our own, for what other API servers do by themselves.
pub fn of_server() -> Vec<&'static str> {
    let mut names = Names(Vec::new());
    with_server(&mut names);
    names.0
}

/// Those of a control plane of our own with a node: what a cluster has already, and Ray, whose
/// dashboards are reached through the node.
pub fn of_node() -> Vec<&'static str> {
    let mut names = Names(Vec::new());
    with_node(&mut names);
    of_ray(&mut names, &RayConfig::default());
    names.0
}

struct Names(Vec<&'static str>);

impl Crew for Names {
    fn take<C: Controller>(&mut self, _: C) {
        self.0.push(C::NAME);
    }
}

/// An engine that takes those that are selected.
struct Chosen<'a> {
    selection: &'a Selection,
    engine: Engine,
}

impl Crew for Chosen<'_> {
    fn take<C: Controller>(&mut self, controller: C) {
        if self.selection.contains(C::NAME) {
            // Nothing has happened in it yet, so that a copy costs nothing.
            self.engine = self.engine.clone().with(controller);
        }
    }
}

/// The rights that those which are selected ask for.
struct Asking<'a> {
    selection: &'a Selection,
    rights: Rights,
}

impl Crew for Asking<'_> {
    fn take<C: Controller>(&mut self, controller: C) {
        if self.selection.contains(C::NAME) {
            self.rights.take(controller);
        }
    }
}

/// Which controllers run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    names: BTreeSet<&'static str>,
}

/// A selection that names what does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no controller is named {name:?}; there are: {}", names().join(", "))]
pub struct UnknownController {
    pub name: String,
}

impl Selection {
    /// All controllers, those of a node too: they run where there is one.
    pub fn all() -> Self {
        Self {
            names: names().into_iter().collect(),
        }
    }

    /// Only these controllers.
    ///
    /// Errors: one of them does not exist.
    pub fn only<'a>(wanted: impl IntoIterator<Item = &'a str>) -> Result<Self, UnknownController> {
        let names: Result<_, _> = wanted.into_iter().map(known).collect();
        names.map(|names| Self { names })
    }

    /// The same selection without one controller.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.names.remove(name);
        self
    }

    /// Whether a controller runs.
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// The names of the controllers that run, in the order in which they are asked.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names = names();
        names.retain(|name| self.contains(name));
        names
    }

    /// What the selected controllers need of a server of our own, with a node or without.
    pub fn rights(&self, has_node: bool) -> Rights {
        let mut asking = Asking {
            selection: self,
            rights: Rights::default(),
        };
        shipped(&mut asking);
        with_server(&mut asking);
        if has_node {
            with_node(&mut asking);
            of_ray(&mut asking, &RayConfig::default());
        }
        asking.rights
    }

    /// An engine with the selected controllers, for any API server.
    pub fn engine(&self, config: Config) -> Engine {
        let engine = Engine::new(config);
        let mut chosen = Chosen {
            selection: self,
            engine,
        };
        shipped(&mut chosen);
        chosen.engine
    }

    /// The same with those of a server of our own.
    pub fn engine_with_server(&self, config: Config) -> Engine {
        let mut chosen = Chosen {
            selection: self,
            engine: self.engine(config),
        };
        with_server(&mut chosen);
        chosen.engine
    }

    /// The same with those of a control plane of our own with a node.
    pub fn engine_with_node(&self, config: Config, ray: &RayConfig) -> Engine {
        let mut chosen = Chosen {
            selection: self,
            engine: self.engine_with_server(config),
        };
        with_node(&mut chosen);
        of_ray(&mut chosen, ray);
        chosen.engine
    }
}

impl Default for Selection {
    fn default() -> Self {
        Self::all()
    }
}

/// Reads what stands on a command line: names, `*` for all, `-name` to leave one out. A list that
/// only leaves out begins with all.
impl FromStr for Selection {
    type Err = UnknownController;

    fn from_str(text: &str) -> Result<Self, UnknownController> {
        let words: Vec<_> = text.split(',').map(str::trim).collect();
        let (left_out, wanted): (Vec<_>, Vec<_>) =
            words.into_iter().partition(|word| word.starts_with('-'));
        let takes_all = wanted.is_empty() || wanted.contains(&"*");
        let mut selection = if takes_all {
            Self::all()
        } else {
            Self::only([])?
        };
        for name in wanted.into_iter().filter(|name| *name != "*") {
            selection.names.insert(known(name)?);
        }
        for word in left_out {
            match &word[1..] {
                "*" => selection.names.clear(),
                name => drop(selection.names.remove(known(name)?)),
            }
        }
        Ok(selection)
    }
}

fn names() -> Vec<&'static str> {
    [all(), of_server(), of_node()].concat()
}

fn known(name: &str) -> Result<&'static str, UnknownController> {
    names()
        .into_iter()
        .find(|known| *known == name)
        .ok_or_else(|| UnknownController {
            name: name.to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::Selection;

    fn check(text: &str, expect: &[&str]) {
        let selection: Selection = text.parse().unwrap();
        let mut names = selection.names();
        // Controllers that come later do not change what these cases say.
        names.retain(|name| ["owner_gc", "ttl"].contains(name));
        assert_eq!(names, expect, "{text:?}");
    }

    #[test]
    fn names_choose_and_a_minus_leaves_out() {
        check("*", &["owner_gc", "ttl"]);
        check("ttl", &["ttl"]);
        check("ttl, owner_gc", &["owner_gc", "ttl"]);
        check("-ttl", &["owner_gc"]);
        check("*,-owner_gc", &["ttl"]);
        check("ttl,-ttl", &[]);
        check("-*", &[]);
    }

    #[test]
    fn those_of_a_node_are_chosen_as_the_others_are() {
        let chosen = |text: &str| text.parse::<Selection>().unwrap();
        assert!(chosen("*").contains("pod"));
        assert!(!chosen("ttl").contains("pod"));
        let without = chosen("*,-batch_job");
        assert!(without.contains("pod") && !without.contains("batch_job"));
        let error = "pods".parse::<Selection>().unwrap_err().to_string();
        assert!(error.contains("schedule, pod, batch_job"), "{error}");
    }

    #[test]
    fn an_unknown_name_is_refused_with_those_that_exist() {
        for text in ["tll", "-tll", "", "*,"] {
            let error = text.parse::<Selection>().unwrap_err().to_string();
            assert!(error.contains("owner_gc, ttl"), "{text:?}: {error}");
        }
    }
}
