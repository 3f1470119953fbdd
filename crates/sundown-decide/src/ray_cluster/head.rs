//! The head of a cluster: one, replaced when it is spent.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use sundown_kinds::constants::{
    ANNOTATION_NO_HEAD_RESTART, ANNOTATION_OPERATOR_VERSION, ANNOTATION_RECREATE_HASH,
};
use sundown_kinds::names::NodeType;
use sundown_kinds::pod;
use sundown_model::{Part, is_redacted};

use super::plan::{Plan, obituary};
use super::view::View;
use crate::actions::patch;
use crate::kinds::POD;
use crate::ray::view::Pod;
use crate::ray::{beside, name_of, place, suffix};

/// How long a head that goes is waited for after its grace period. Two heads at once would split the
/// workers; one on a lost node never goes. A node that is slow to say so would make it longer.
const GOING_TIME_MAX: SignedDuration = SignedDuration::from_secs(30);

/// How old a spent pod must be before it is replaced: what ends at once would be made again as fast as
/// it ends.
pub(super) const LIFE_MIN: SignedDuration = SignedDuration::from_secs(10);

/// How many names are tried for one pod before its maker waits for one to become free.
const NAMES_MAX: u32 = 8;

/// What there is to say about the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    /// It is there or on its way.
    Present,
    /// One is made as soon as the one before it is gone.
    AwaitsEnd { until: Timestamp },
    /// It is lost, and the cluster wants no other.
    Lost,
}

/// Plans the head.
pub(super) fn plan(view: &View<'_>, plan: &mut Plan) -> Head {
    let mut live: Vec<_> = view
        .of_type(NodeType::Head)
        .filter(|it| it.is_live())
        .collect();
    // Ready ones first, then the oldest: extra heads can only come of two operators at once.
    live.sort_by_key(|pod| (!pod.view.is_running_and_ready(), pod.created_at));
    if let Some((kept, extra)) = live.split_first() {
        for pod in extra {
            bury(view, plan, pod);
        }
        replace_if_spent(view, plan, kept);
        return Head::Present;
    }
    if is_not_restarted(view) {
        return Head::Lost;
    }
    let going = view
        .of_type(NodeType::Head)
        .filter_map(|pod| pod.object.deletion());
    let until = going
        .map(|deletion| later(deletion.at, GOING_TIME_MAX))
        .max();
    if let Some(until) = until.filter(|until| view.sight.now < *until) {
        plan.wake(until);
        return Head::AwaitsEnd { until };
    }
    create(view, plan);
    Head::Present
}

/// A head of another operator's making keeps running: its annotations say from now on that it is of
/// ours. One of ours that was made from another spec tells so by its hash.
pub(super) fn is_outdated(view: &View<'_>, plan: &mut Plan) -> bool {
    if view.cluster.spec.upgrade_strategy.as_deref() != Some("Recreate") {
        return false;
    }
    let Some(head) = view.of_type(NodeType::Head).find(|pod| pod.is_live()) else {
        return false;
    };
    let hash = pod::recreate_hash(&view.cluster.spec);
    let made_by = head.annotation(ANNOTATION_OPERATOR_VERSION);
    let version = &view.settings.operator_version;
    if !made_by.is_empty() && made_by != version {
        let annotations = json!({
            ANNOTATION_OPERATOR_VERSION: version,
            ANNOTATION_RECREATE_HASH: hash,
        });
        let taken_over = json!({"metadata": {"annotations": annotations}});
        plan.write(patch(head.object, Part::Main, taken_over));
        return false;
    }
    let made_from = head.annotation(ANNOTATION_RECREATE_HASH);
    // A replayed record does not tell the hash: then nothing is known to have changed.
    !made_from.is_empty() && made_from != hash && !is_redacted(made_from)
}

fn is_not_restarted(view: &View<'_>) -> bool {
    let metadata = &view.cluster.metadata;
    let is_provisioned = view.cluster.status.is_true("RayClusterProvisioned");
    is_provisioned && metadata.annotation(ANNOTATION_NO_HEAD_RESTART) == "true"
}

fn replace_if_spent(view: &View<'_>, plan: &mut Plan, pod: &Pod<'_>) {
    match spent_at(pod) {
        None => {}
        Some(at) if view.sight.now < at => plan.wake(at),
        Some(_) => bury(view, plan, pod),
    }
}

/// From when on a pod is to be replaced; None while it is of use.
pub(super) fn spent_at(pod: &Pod<'_>) -> Option<Timestamp> {
    let born_at = pod.created_at.unwrap_or(Timestamp::MIN);
    pod.is_spent().then(|| later(born_at, LIFE_MIN))
}

fn bury(view: &View<'_>, plan: &mut Plan, pod: &Pod<'_>) {
    plan.delete_pod(pod);
    let message = format!("Deleted head Pod {}", obituary(pod));
    plan.tell(view, "DeletedHeadPod", message);
}

fn create(view: &View<'_>, plan: &mut Plan) {
    let bodies = (0..NAMES_MAX).map(|attempt| {
        let suffix = pod_suffix(view, "", &[attempt]);
        pod::head_pod(&view.cluster, Some(&suffix), view.settings)
    });
    if let Some(body) = first_free(view, bodies.clone()) {
        return plan.create_pod(view, NodeType::Head, body);
    }
    // A name that the template fixes is taken each time: it has to become free first.
    let wanted = bodies.map(|body| name_of(&body).to_owned()).next();
    let wanted = beside(view.object.key(), &POD, &wanted.unwrap_or_default());
    let why = "another Pod has that name";
    plan.fail_pod(view, NodeType::Head, &place(&wanted), why);
}

/// The first body whose name nobody bears.
pub(super) fn first_free(
    view: &View<'_>,
    mut bodies: impl Iterator<Item = serde_json::Value>,
) -> Option<serde_json::Value> {
    bodies.find(|body| !view.is_taken(crate::ray::name_of(body)))
}

/// The same for the same cluster, generation of its spec, group and numbers.
pub(super) fn pod_suffix(view: &View<'_>, group: &str, numbers: &[u32]) -> String {
    let metadata = &view.cluster.metadata;
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    let generation = metadata.generation.to_string();
    let mut parts = vec![metadata.uid.as_str(), &generation, group];
    parts.extend(numbers.iter().map(String::as_str));
    suffix(&parts)
}

/// How many names a pod may be given.
pub(super) fn attempts() -> std::ops::Range<u32> {
    0..NAMES_MAX
}

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.saturating_add(by).unwrap_or(Timestamp::MAX)
}
