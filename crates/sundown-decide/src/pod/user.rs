//! As whom a container runs: its own word, else that of its pod. Whether the node has such a user is
//! for the node to say.

use sundown_model::node::RunAs;

use super::view::{ContainerView, PodView};
use crate::json::{list, number};

/// What the manifest says.
pub(super) fn run_as(pod: &PodView<'_>, container: &ContainerView<'_>) -> RunAs {
    let own = container.json.get("securityContext");
    let of_pod = pod.object.field("/spec/securityContext");
    let all = [own, of_pod];
    let id = |name: &str| {
        let mut said = all
            .iter()
            .filter_map(|it| it.and_then(|it| number(it, name)));
        said.next().and_then(|id| u32::try_from(id).ok())
    };
    let mut not_root = all
        .iter()
        .filter_map(|it| it.and_then(|it| it.get("runAsNonRoot")?.as_bool()));
    RunAs {
        user: id("runAsUser"),
        group: id("runAsGroup"),
        not_root: not_root.next().unwrap_or(false),
    }
}

/// Whether a pod asks for groups beside the first one.
pub(super) fn has_further_groups(pod: &PodView<'_>) -> bool {
    let context = pod.object.field("/spec/securityContext");
    context.is_some_and(|it| !list(it, "supplementalGroups").is_empty())
}
