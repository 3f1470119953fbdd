//! What the node has reported, answered and been told.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Uid;
use crate::node::{Answer, Call, Image, Names, Pod, Query, Report};

/// What the node has reported.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct NodeFacts {
    /// Whether all of its pods were reported: from then on absence is a fact.
    pub(super) is_complete: bool,
    pub(super) pods: BTreeMap<Uid, Pod>,
    pub(super) images: BTreeMap<Arc<str>, Image>,
    /// The names that were announced last; None: it is not known what the node has.
    pub(super) names: Option<Arc<Names>>,
}

impl NodeFacts {
    pub(super) fn take(&mut self, report: Report) {
        match report {
            Report::All(pods) => {
                let pods = pods.into_iter().map(|pod| (pod.pod.clone(), pod));
                self.pods = pods.collect();
                self.is_complete = true;
                // It may be another node than before; names are announced again.
                self.names = None;
            }
            Report::Pod(pod) => {
                self.pods.insert(pod.pod.clone(), pod);
            }
            Report::Removed { pod } => {
                self.pods.remove(&pod);
            }
            Report::Image { image, is } => {
                self.images.insert(image, is);
            }
            Report::Away { .. } => self.is_complete = false,
        }
    }

    pub(super) fn note_answer(&mut self, query: &Query, answer: &Answer) {
        if let (Query::Image { image }, Answer::Image(is)) = (query, answer) {
            self.images.insert(Arc::clone(image), is.clone());
        }
    }

    pub(super) fn note_done(&mut self, call: &Call) {
        if let Call::Names(names) = call {
            self.names = Some(Arc::clone(names));
        }
    }

    /// What it would report of each pod that is known.
    pub(super) fn reports(&self) -> impl Iterator<Item = Report> {
        self.pods.values().cloned().map(Report::Pod)
    }
}
