//! Whether what is left of a removal waits for others alone, which may take for ever: for finalizers that nothing of
//! Sundown removes. Read off the objects as they were seen last. What follows is left to who removes them. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::apply::Applied;
use super::snapshot::{Snapshot, uid};
use super::waits::{OF_THE_COLLECTOR, Wait, is_of_others};
use crate::objects::{condition, text};

/// How long others are waited for, from when nothing else is in the way. What they write meanwhile changes nothing.
pub(super) const OTHERS_TIME_MAX: Duration = Duration::from_secs(30);

/// What is there beside the objects that are removed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Around<'a> {
    /// None: nothing else is watched.
    pub(super) snapshot: Option<&'a Snapshot>,
    /// What is left of the job, if it was deleted before.
    pub(super) of_job: &'a [&'a Value],
}

/// Whether only others can let these go: some are held by them, and the rest waits for those.
pub(super) fn are_held<'a>(all: impl IntoIterator<Item = &'a Value>) -> bool {
    let mut is_one_held = false;
    for object in all {
        match Wait::of(object) {
            Wait::Finalizers(_) => is_one_held = true,
            Wait::Dependents => {}
            Wait::Containers { .. }
            | Wait::Content(_)
            | Wait::Users
            | Wait::Instances
            | Wait::NotAsked
            | Wait::Nothing => return false,
        }
    }
    is_one_held
}

/// The paths of those objects that only others can let go: `left` is waited for, `given_up` is not any more.
pub(super) fn held(
    left: &[(&Applied, &Value)],
    given_up: &[&Value],
    around: Around<'_>,
) -> BTreeSet<String> {
    let is_held = |object: &Value| match Wait::of(object) {
        Wait::Finalizers(_) => true,
        Wait::Dependents => are_held(dependents(object, around.snapshot)),
        Wait::Content(_) => is_content_held(object),
        Wait::Users => are_held(around.of_job.iter().copied()),
        Wait::Instances => {
            let is_instance = |it: &&Value| is_instance(it, object);
            let seen = left.iter().map(|(_, seen)| *seen);
            are_held(seen.chain(given_up.iter().copied()).filter(is_instance))
        }
        Wait::Containers { .. } | Wait::NotAsked | Wait::Nothing => false,
    };
    let held = left.iter().filter(|(_, seen)| is_held(seen));
    held.map(|(it, _)| it.path.clone()).collect()
}

/// What an object owns, also through others, as far as it is watched.
fn dependents<'a>(owner: &Value, snapshot: Option<&'a Snapshot>) -> Vec<&'a Value> {
    let root = uid(owner);
    let all = snapshot.map(|it| it.descendants(&BTreeSet::from([root.to_owned()])));
    let all = all.into_iter().flatten().map(|(_, it)| it);
    all.filter(|it| uid(it) != root).collect()
}

fn is_instance(object: &Value, definition: &Value) -> bool {
    let group = text(object, "/apiVersion").split('/').next();
    group == Some(text(definition, "/spec/group"))
        && text(object, "/kind") == text(definition, "/spec/names/kind")
}

/// Whether the server says of each object in a namespace that it has a finalizer, of others or of an owner that waits, and
/// of one at least that it is held by others. It tells numbers only: an object with two finalizers counts for two.
fn is_content_held(namespace: &Value) -> bool {
    let said = |kind| condition(namespace, kind).map_or("", |it| text(it, "/message"));
    let objects: u64 = counts(said("NamespaceContentRemaining"), " has ")
        .map(|it| it.1)
        .sum();
    let finalizers = || counts(said("NamespaceFinalizersRemaining"), " in ");
    let others = finalizers().filter(|(name, _)| is_of_others(name));
    let others: u64 = others.map(|it| it.1).sum();
    let owners = finalizers().filter(|(name, _)| OF_THE_COLLECTOR.contains(name));
    let owners: u64 = owners.map(|it| it.1).sum();
    objects > 0 && others > 0 && others + owners >= objects
}

/// The names and numbers in a message such as `Some resources are remaining: pods. has 2 resource instances, ...`.
fn counts<'a>(message: &'a str, word: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
    let list = message.split_once(": ").map_or("", |(_, list)| list);
    list.split(", ").filter_map(move |part| {
        let (name, rest) = part.split_once(word)?;
        let count = rest.strip_suffix(" resource instances")?;
        Some((name, count.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::objects::Known;
    use crate::run::apply::How;
    use crate::run::snapshot::Seen;

    const AT: &str = "2026-01-01T00:00:00Z";

    fn going(name: &str, finalizers: &[&str]) -> Value {
        json!({"metadata": {"name": name, "uid": name, "deletionTimestamp": AT, "finalizers": finalizers}})
    }

    fn owned(mut object: Value, owner: &str) -> Value {
        object["metadata"]["ownerReferences"] = json!([{"uid": owner}]);
        object
    }

    fn applied(object: &Value) -> Applied {
        let name = text(object, "/metadata/name");
        Applied {
            object: name.to_owned(),
            namespace: None,
            how: How::Created,
            path: name.to_owned(),
            value: Value::Null,
        }
    }

    fn check(left: &[Value], given_up: &[Value], around: Around<'_>, expect: &[&str]) {
        let applied: Vec<Applied> = left.iter().map(applied).collect();
        let left: Vec<(&Applied, &Value)> = applied.iter().zip(left).collect();
        let given_up: Vec<&Value> = given_up.iter().collect();
        let found = held(&left, &given_up, around);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expect);
    }

    /// A job with a finalizer of its own, or a pod with one, was waited for without end.
    #[test]
    fn a_job_is_held_when_nothing_else_of_it_is_in_the_way() {
        let job = going("job", &["foregroundDeletion"]);
        let held = going("pod", &["a/b"]);
        assert!(are_held([&going("job", &["a/b"])]));
        assert!(are_held([&job, &held]));
        assert!(!are_held([&job]));
        assert!(!are_held([]));
        let tracked = going("pod", &["batch.kubernetes.io/job-tracking"]);
        assert!(!are_held([&tracked]));
        let asked = going("job", &["ray.io/rayjob-finalizer"]);
        assert!(!are_held([&asked]));
        // Its containers end first, in the time that they have.
        let mut ending = held.clone();
        ending["metadata"]["deletionGracePeriodSeconds"] = json!(300);
        assert!(!are_held([&job, &ending]));
        assert!(!are_held([&held, &json!({"metadata": {"name": "next"}})]));
    }

    fn namespace(remaining: &str, finalizers: &str) -> Value {
        let mut it = going("team", &[]);
        it["spec"] = json!({"finalizers": ["kubernetes"]});
        it["status"] = json!({"conditions": [
            {"type": "NamespaceContentRemaining", "status": "True",
             "message": format!("Some resources are remaining: {remaining}")},
            {"type": "NamespaceFinalizersRemaining", "status": "True",
             "message": format!("Some content in the namespace has finalizers remaining: {finalizers}")},
        ]});
        it
    }

    /// The object was given up, and its namespace was waited for without end.
    #[test]
    fn a_namespace_is_held_when_all_that_is_in_it_is() {
        let one = "configmaps. has 1 resource instances";
        let two = "configmaps. has 1 resource instances, pods. has 1 resource instances";
        let hold = "a/b in 1 resource instances";
        let owner = "a/b in 1 resource instances, foregroundDeletion in 1 resource instances";
        let tracked =
            "a/b in 1 resource instances, batch.kubernetes.io/job-tracking in 1 resource instances";
        for (remaining, finalizers, expect) in [
            (one, hold, true),
            (two, hold, false),
            (two, owner, true),
            (two, tracked, false),
            (one, "foregroundDeletion in 1 resource instances", false),
            (one, "", false),
            ("", "", false),
        ] {
            let expect: &[&str] = if expect { &["team"] } else { &[] };
            let namespace = namespace(remaining, finalizers);
            check(&[namespace], &[], Around::default(), expect);
        }
        let mut fresh = going("team", &[]);
        fresh["spec"] = json!({"finalizers": ["kubernetes"]});
        check(&[fresh], &[], Around::default(), &[]);
    }

    #[test]
    fn a_definition_is_held_when_its_instances_of_the_file_are() {
        let mut definition = going("crd", &["customresourcecleanup.apiextensions.k8s.io"]);
        definition["spec"] = json!({"group": "example.com", "names": {"kind": "Thing"}});
        let thing = |finalizers: &[&str]| {
            let mut it = going("thing", finalizers);
            it["apiVersion"] = json!("example.com/v1");
            it["kind"] = json!("Thing");
            it
        };
        let all = [definition.clone(), thing(&["a/b"])];
        check(&all, &[], Around::default(), &["crd", "thing"]);
        let all = [definition.clone(), thing(&[])];
        check(&all, &[], Around::default(), &[]);
        let other = going("other", &["a/b"]);
        check(&[definition.clone()], &[other], Around::default(), &[]);
        let given_up = [thing(&["a/b"])];
        check(&[definition], &given_up, Around::default(), &["crd"]);
    }

    #[test]
    fn an_owner_is_held_when_all_that_it_owns_is_and_a_claim_when_the_job_is() {
        let owner = going("cluster", &["foregroundDeletion"]);
        check(std::slice::from_ref(&owner), &[], Around::default(), &[]);
        let mut snapshot = Snapshot::default();
        let head = owned(going("head", &["a/b"]), "cluster");
        snapshot.take(Seen::Put(Known::Pod, head));
        let around = Around {
            snapshot: Some(&snapshot),
            of_job: &[],
        };
        check(std::slice::from_ref(&owner), &[], around, &["cluster"]);
        let worker = owned(going("worker", &[]), "cluster");
        snapshot.take(Seen::Put(Known::Pod, worker));
        let around = Around {
            snapshot: Some(&snapshot),
            of_job: &[],
        };
        check(&[owner], &[], around, &[]);

        let claim = going("claim", &["kubernetes.io/pvc-protection"]);
        check(std::slice::from_ref(&claim), &[], Around::default(), &[]);
        let pod = going("pod", &["a/b"]);
        let around = Around {
            snapshot: None,
            of_job: &[&pod],
        };
        check(&[claim], &[], around, &["claim"]);
    }
}
