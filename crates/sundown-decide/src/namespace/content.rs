//! What is in each namespace, counted change by change: a namespace with many objects is decided on at
//! each of their ends, and must not count them each time.

use std::collections::{BTreeMap, BTreeSet};

use sundown_model::{Cache, Namespace, Object, ObjectKey};

use crate::kinds::{NAMESPACE, POD};

/// The content of all namespaces, and which of them are terminating.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Content {
    counts: BTreeMap<Namespace, Counts>,
    terminating: BTreeSet<Namespace>,
}

/// How much there is in one namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) pods: Count,
    pub(super) all: Count,
}

/// How many there are, and how many of them are not on their way out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) left: usize,
    pub(super) open: usize,
}

impl Content {
    /// The same, counted anew.
    pub(super) fn of(cache: &Cache) -> Self {
        cache.iter().fold(Self::default(), |mut content, object| {
            content.enter(object);
            content
        })
    }

    pub(super) fn enter(&mut self, object: &Object) {
        if object.key().resource.is(&NAMESPACE) && object.is_deleting() {
            self.terminating
                .insert(Namespace::from(&*object.key().name));
        }
        let Some(namespace) = &object.key().namespace else {
            return;
        };
        let counts = self.counts.entry(namespace.clone()).or_default();
        counts.each(object, |number| *number += 1);
    }

    pub(super) fn take_out(&mut self, object: &Object) {
        if object.key().resource.is(&NAMESPACE) {
            self.terminating
                .remove(&Namespace::from(&*object.key().name));
        }
        let namespace = object.key().namespace.as_ref();
        let counts = namespace.and_then(|it| Some((it, self.counts.get_mut(it)?)));
        let Some((namespace, counts)) = counts else {
            return;
        };
        counts.each(object, |number| *number = number.saturating_sub(1));
        if counts.all.left == 0 {
            self.counts.remove(namespace);
        }
    }

    pub(super) fn counts(&self, namespace: &Namespace) -> Counts {
        self.counts.get(namespace).copied().unwrap_or_default()
    }

    pub(super) fn terminating(&self) -> impl Iterator<Item = &Namespace> {
        self.terminating.iter()
    }

    /// The terminating namespace that an object is in.
    pub(super) fn terminating_around<'a>(&self, key: &'a ObjectKey) -> Option<&'a Namespace> {
        let namespace = key.namespace.as_ref();
        namespace.filter(|it| self.terminating.contains(*it))
    }
}

impl Counts {
    fn each(&mut self, object: &Object, change: impl Fn(&mut usize)) {
        let pods = object.key().resource.is(&POD).then_some(&mut self.pods);
        for count in pods.into_iter().chain([&mut self.all]) {
            change(&mut count.left);
            if !object.is_deleting() {
                change(&mut count.open);
            }
        }
    }
}
