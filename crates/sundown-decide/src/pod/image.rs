//! Images: whether there is an environment for each, and what is done about it. One key for each
//! image, so that ten pods of one image ask once.

use jiff::Timestamp;
use sundown_model::{
    Action, Decision, Deed, Facts, Need, ObjectKey, Question, Subject, What, node,
};

use super::chart::Scene;
use super::reason::Reason;
use super::view::ContainerView;
use crate::json::after;

/// For so long a failed attempt is shown as such; then as a back-off.
const SHOWN_SECONDS: i64 = 10;
/// How long an image that cannot be had is left alone at first, and at most.
const RETRY_FIRST: i64 = 10;
const RETRY_MAX: i64 = 300;

/// Why a container waits for its image: reason and message as the kubelet has them.
pub(super) fn waits_for(
    scene: &Scene<'_>,
    container: &ContainerView<'_>,
) -> Option<(String, String)> {
    let image = &container.image;
    match scene.facts.image(image) {
        Some(node::Image::Ready) => None,
        None | Some(node::Image::Missing) => Some(("ContainerCreating".to_owned(), String::new())),
        // The kubelet says nothing here; whoever waits for minutes wants to know what for.
        Some(node::Image::Making { progress }) => {
            Some(("ContainerCreating".to_owned(), progress.clone()))
        }
        Some(node::Image::Unavailable { message }) => {
            let is_fresh = shown_until(image, scene.facts).is_some_and(|until| scene.now < until);
            Some(if is_fresh {
                let message = format!("failed to pull image \"{}\": {message}", shown(image));
                ("ErrImagePull".to_owned(), message)
            } else {
                let image = shown(image);
                let message =
                    format!("Back-off pulling image \"{image}\": ErrImagePull: {message}");
                ("ImagePullBackOff".to_owned(), message)
            })
        }
    }
}

/// How much of an image is shown: as long as any name in a registry, since some are no names at all.
const SHOWN_LEN_MAX: usize = 512;

/// An image as sentences about it show it.
pub(super) fn shown(image: &str) -> String {
    let mut start: String = image.chars().take(SHOWN_LEN_MAX).collect();
    if start.len() < image.len() {
        start.push_str("...");
    }
    start
}

/// When the way in which a missing image is shown changes by itself.
pub(super) fn shown_until(image: &str, facts: &Facts) -> Option<Timestamp> {
    tried_at(image, facts).map(|at| after(at, SHOWN_SECONDS))
}

/// Decides what is asked or done about an image that a pod wants.
pub(super) fn decide(
    image: &str,
    about: &ObjectKey,
    facts: &Facts,
    now: Timestamp,
) -> Decision<Reason> {
    let query = node::Query::Image {
        image: image.into(),
    };
    let named = || shown(image);
    match facts.image(image) {
        Some(node::Image::Ready) => Decision::idle(Reason::ImageReady { image: named() }),
        Some(node::Image::Making { progress }) => Decision::idle(Reason::ImageMade {
            image: named(),
            progress: progress.clone(),
        }),
        Some(node::Image::Missing) => {
            let what = What::Node(node::Call::Pull {
                image: image.into(),
            });
            let about = about.clone();
            let pull = Action::Do(Deed { about, what });
            let until = super::settles_at(facts, &Subject::Image(image.into()), now);
            let reason = Reason::ImagePulled { image: named() };
            until.map_or_else(
                || Decision::act(pull, reason.clone()),
                |until| Decision::wake_at(until, reason.clone()),
            )
        }
        Some(node::Image::Unavailable { message }) => {
            let reason = Reason::ImageUnavailable {
                image: named(),
                message: message.clone(),
            };
            let question = Question::Node(query.clone());
            let failures = facts.streak(&question).filter(|it| !it.is_well);
            let failures = failures.map_or(1, |it| it.count).min(6);
            let delay = (RETRY_FIRST << (failures.max(1) - 1)).min(RETRY_MAX);
            let due_at = tried_at(image, facts).map_or(now, |at| after(at, delay));
            if now < due_at {
                return Decision::wake_at(due_at, reason);
            }
            Decision::need(vec![Need::Node(query)], reason)
        }
        None => Decision::need(
            vec![Need::Node(query)],
            Reason::ImageUnknown { image: named() },
        ),
    }
}

/// When an image was asked or made last.
fn tried_at(image: &str, facts: &Facts) -> Option<Timestamp> {
    let image: std::sync::Arc<str> = image.into();
    let question = Question::Node(node::Query::Image {
        image: image.clone(),
    });
    let asked = facts.reply(&question).map(|reply| reply.answered_at);
    let made = facts.deed(&Subject::Image(image)).map(|it| it.ended_at);
    asked.max(made)
}
