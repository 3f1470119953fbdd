//! Why a pod, an image or a probe stands as it does.

use jiff::Timestamp;
use sundown_model::{Blocker, Explain};

/// What the decision concluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    Gone,
    /// It runs elsewhere, or nowhere yet.
    NotOurs,
    /// The node has not said what it runs.
    NodeAway,
    Malformed,
    Unsupported {
        message: String,
    },
    Places,
    Lost,
    Starts {
        containers: Vec<String>,
    },
    Waits {
        container: String,
        why: String,
        message: String,
    },
    Unhealthy,
    BacksOff {
        until: Timestamp,
    },
    Runs,
    Records,
    Finished,
    /// Nothing of it runs any more, and its end is on record.
    Vacates {
        at: Timestamp,
    },
    Stops {
        until: Timestamp,
    },
    Removes,
    Finishes,
    /// Nothing of it is left on the node; a finalizer of somebody else holds the object.
    Released,
    NothingToProbe,
    ProbesLater {
        at: Timestamp,
    },
    Probes {
        container: String,
    },
    ImageUnwanted,
    ImageUnknown {
        image: String,
    },
    ImageReady {
        image: String,
    },
    ImagePulled {
        image: String,
    },
    ImageMade {
        image: String,
        progress: String,
    },
    ImageUnavailable {
        image: String,
        message: String,
    },
    /// Something on the node belongs to a pod that is no more.
    Stray,
    NotStray,
}

impl Explain for Reason {
    fn code(&self) -> &'static str {
        match self {
            Self::Gone => "Gone",
            Self::NotOurs => "NotOurs",
            Self::NodeAway => "NodeAway",
            Self::Malformed => "Malformed",
            Self::Unsupported { .. } => "Unsupported",
            Self::Places => "Places",
            Self::Lost => "Lost",
            Self::Starts { .. } => "Starts",
            Self::Waits { .. } => "Waits",
            Self::Unhealthy => "Unhealthy",
            Self::BacksOff { .. } => "BacksOff",
            Self::Runs => "Runs",
            Self::Records => "Records",
            Self::Finished => "Finished",
            Self::Vacates { .. } => "Vacates",
            Self::Stops { .. } => "Stops",
            Self::Removes => "Removes",
            Self::Finishes => "Finishes",
            Self::Released => "Released",
            Self::NothingToProbe => "NothingToProbe",
            Self::ProbesLater { .. } => "ProbesLater",
            Self::Probes { .. } => "Probes",
            Self::ImageUnwanted => "ImageUnwanted",
            Self::ImageUnknown { .. } => "ImageUnknown",
            Self::ImageReady { .. } => "ImageReady",
            Self::ImagePulled { .. } => "ImagePulled",
            Self::ImageMade { .. } => "ImageMade",
            Self::ImageUnavailable { .. } => "ImageUnavailable",
            Self::Stray => "Stray",
            Self::NotStray => "NotStray",
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Gone => "the pod is gone".to_owned(),
            Self::NotOurs => "the pod is not bound to this node".to_owned(),
            Self::NodeAway => "the node has not reported what it runs".to_owned(),
            Self::Malformed => "the pod has no containers".to_owned(),
            Self::Unsupported { message } => format!("the pod cannot be placed: {message}"),
            Self::Places => "the pod gets its place on the node".to_owned(),
            Self::Lost => "the processes of the pod are lost".to_owned(),
            Self::Starts { containers } => format!("starts {}", containers.join(", ")),
            Self::Waits {
                container,
                why,
                message,
            } if message.is_empty() => format!("container {container} waits: {why}"),
            Self::Waits {
                container,
                why,
                message,
            } => format!("container {container} waits: {why}: {message}"),
            Self::Unhealthy => "a container failed its probe and is restarted".to_owned(),
            Self::BacksOff { until } => format!("a container ended and is restarted at {until}"),
            Self::Runs => "all containers run".to_owned(),
            Self::Records => "the status is brought up to date".to_owned(),
            Self::Finished => "the pod is finished; its logs stay until it is deleted".to_owned(),
            Self::Vacates { at } => {
                format!("the pod is finished and gives its place on the node back at {at}")
            }
            Self::Stops { until } => format!("the containers end, at the latest at {until}"),
            Self::Removes => "what is left on the node is removed".to_owned(),
            Self::Finishes => "nothing is left on the node; the deletion is finished".to_owned(),
            Self::Released => {
                "nothing is left on the node; a finalizer holds the object".to_owned()
            }
            Self::NothingToProbe => "there is nothing to probe now".to_owned(),
            Self::ProbesLater { at } => format!("the next probe is at {at}"),
            Self::Probes { container } => format!("container {container} is probed"),
            Self::ImageUnwanted => "no pod waits for the image".to_owned(),
            Self::ImageUnknown { image } => format!("asks for image {image}"),
            Self::ImageReady { image } => format!("image {image} is there"),
            Self::ImagePulled { image } => format!("image {image} is to be made"),
            Self::ImageMade { image, progress } => format!("image {image}: {progress}"),
            Self::ImageUnavailable { image, message } => {
                format!("image {image} cannot be had: {message}")
            }
            Self::Stray => "its pod is gone, so it is removed from the node".to_owned(),
            Self::NotStray => "its pod is there, or it is not on the node".to_owned(),
        }
    }

    fn blockers(&self) -> Vec<Blocker> {
        match self {
            Self::Stops { until } | Self::BacksOff { until } => vec![Blocker::Until { at: *until }],
            Self::ProbesLater { at } | Self::Vacates { at } => {
                vec![Blocker::Until { at: *at }]
            }
            Self::Gone
            | Self::NotOurs
            | Self::NodeAway
            | Self::Malformed
            | Self::Unsupported { .. }
            | Self::Places
            | Self::Lost
            | Self::Starts { .. }
            | Self::Waits { .. }
            | Self::Unhealthy
            | Self::Runs
            | Self::Records
            | Self::Finished
            | Self::Removes
            | Self::Finishes
            | Self::Released
            | Self::NothingToProbe
            | Self::Probes { .. }
            | Self::ImageUnwanted
            | Self::ImageUnknown { .. }
            | Self::ImageReady { .. }
            | Self::ImagePulled { .. }
            | Self::ImageMade { .. }
            | Self::ImageUnavailable { .. }
            | Self::Stray
            | Self::NotStray => Vec::new(),
        }
    }
}
