//! As whom a container runs here. A node with root has every user; one in a user namespace has a
//! single one, who is root inside and whoever started it outside.

use sundown_model::node;
use sundown_node::{Isolation, RunAs};

use super::DeedFailure;

/// The user of a container; None: the node's own.
pub(super) fn of(wanted: node::RunAs, isolation: &Isolation) -> Result<Option<RunAs>, DeedFailure> {
    if isolation.rootless {
        of_single(wanted, isolation)
    } else {
        of_many(wanted)
    }
}

fn of_many(wanted: node::RunAs) -> Result<Option<RunAs>, DeedFailure> {
    let (user, group) = (wanted.user.unwrap_or(0), wanted.group.unwrap_or(0));
    if wanted.not_root && user == 0 {
        return Err(root());
    }
    let is_root = user == 0 && group == 0;
    Ok((!is_root).then_some(RunAs { user, group }))
}

/// Whoever asks for the one who started the node gets him: that is who he is on this machine.
fn of_single(wanted: node::RunAs, isolation: &Isolation) -> Result<Option<RunAs>, DeedFailure> {
    let is_own = |wanted: Option<u32>, own: u32| wanted.is_none_or(|id| id == 0 || id == own);
    let own = (isolation.user, isolation.group);
    if wanted.not_root && (wanted.user == Some(0) || own.0 == 0) {
        return Err(root());
    }
    let odd = [
        ("runAsUser", wanted.user, own.0),
        ("runAsGroup", wanted.group, own.1),
    ];
    for (field, id, own) in odd {
        if !is_own(id, own) {
            let id = id.unwrap_or(0);
            let message = format!(
                "securityContext.{field}: {id} cannot be had: without root, containers run as {own} only"
            );
            return Err(DeedFailure::refused(node::Refused::RunAsInvalid, message));
        }
    }
    Ok(None)
}

/// In the kubelet's words.
fn root() -> DeedFailure {
    let message = "container has runAsNonRoot and image will run as root";
    DeedFailure::refused(node::Refused::RunAsInvalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn isolation(rootless: bool) -> Isolation {
        Isolation {
            rootless,
            reason: String::new(),
            user: 1000,
            group: 100,
        }
    }

    fn asked(user: Option<u32>, group: Option<u32>, not_root: bool) -> node::RunAs {
        node::RunAs {
            user,
            group,
            not_root,
        }
    }

    fn message(result: Result<Option<RunAs>, DeedFailure>) -> String {
        match result {
            Err(DeedFailure::Refused(refusal)) => refusal.message,
            other => panic!("it is refused: {other:?}"),
        }
    }

    #[test]
    fn a_node_with_root_has_every_user() {
        let node = isolation(false);
        let of = |wanted| of(wanted, &node).expect("it can be had");
        assert_eq!(of(asked(None, None, false)), None);
        assert_eq!(of(asked(Some(0), None, false)), None);
        let user = RunAs { user: 7, group: 0 };
        assert_eq!(of(asked(Some(7), None, true)), Some(user));
        let group = RunAs { user: 0, group: 9 };
        assert_eq!(of(asked(None, Some(9), false)), Some(group));
    }

    #[test]
    fn a_node_without_root_has_the_user_who_started_it() {
        let node = isolation(true);
        for (user, group) in [(None, None), (Some(1000), Some(100)), (Some(1000), None)] {
            assert_eq!(of(asked(user, group, true), &node).unwrap(), None);
        }
        let other = message(of(asked(Some(7), None, false), &node));
        assert!(other.contains("securityContext.runAsUser: 7"), "{other}");
        let other = message(of(asked(None, Some(9), false), &node));
        assert!(other.contains("securityContext.runAsGroup: 9"), "{other}");
    }

    #[test]
    fn who_must_not_be_root_is_not_run_as_root() {
        for user in [None, Some(0)] {
            let refused = of(asked(user, None, true), &isolation(false));
            assert!(message(refused).contains("runAsNonRoot"));
        }
        let refused = of(asked(Some(0), None, true), &isolation(true));
        assert!(message(refused).contains("runAsNonRoot"));
    }
}
