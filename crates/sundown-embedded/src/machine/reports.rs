//! What the node says by itself, in the words of the controllers.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use sundown_model::{Uid, node};
use sundown_node::{Change, ContainerState, Exit, ExitReason, NodeError, PodState, Watch};
use tokio::sync::{Mutex, mpsc};

use super::link::Link;
use super::words;

/// How long to wait before a lost node is looked for again.
const PAUSE: Duration = Duration::from_millis(500);

/// Reports about pods and about images, for ever.
pub(super) fn stream(
    link: Arc<Link>,
    images: Arc<Mutex<mpsc::Receiver<node::Report>>>,
) -> BoxStream<'static, node::Report> {
    let pods = stream::unfold(Following::new(link), |mut following| async {
        let report = following.next().await;
        Some((report, following))
    });
    let images = stream::unfold(images, |images| async {
        // Shared, so that a stream which takes the place of one that panicked hears the rest.
        let report = images.lock().await.recv().await?;
        Some((report, images))
    });
    stream::select(pods.boxed(), images.boxed()).boxed()
}

/// A watch that is opened again when it ends.
struct Following {
    link: Arc<Link>,
    watch: Option<Watch>,
    /// What was told before the list was complete.
    first: Option<Vec<node::Pod>>,
    is_away: bool,
    /// Whether it was asked if there is anything to follow.
    has_looked: bool,
}

impl Following {
    fn new(link: Arc<Link>) -> Self {
        Self {
            link,
            watch: None,
            first: Some(Vec::new()),
            is_away: false,
            has_looked: false,
        }
    }

    async fn next(&mut self) -> node::Report {
        loop {
            match self.step().await {
                Ok(Some(report)) => return report,
                Ok(None) => {}
                Err(error) => {
                    self.watch = None;
                    self.first = Some(Vec::new());
                    self.link.lost().await;
                    // Said once; the rest is silence until it is back.
                    if !std::mem::replace(&mut self.is_away, true) {
                        let message = words(&error);
                        return node::Report::Away { message };
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn step(&mut self) -> Result<Option<node::Report>, NodeError> {
        if !std::mem::replace(&mut self.has_looked, true) && !self.link.is_needed().await {
            // No node, no pods: known without starting one.
            return Ok(Some(node::Report::All(Vec::new())));
        }
        if self.watch.is_none() && !self.link.is_needed().await {
            self.link.until_needed().await;
        }
        let watch = if let Some(watch) = &mut self.watch {
            watch
        } else {
            let opened = self.link.node().await?.watch().await?;
            self.watch.insert(opened)
        };
        let change = watch.next().await?;
        Ok(self.told(change))
    }

    fn told(&mut self, change: Change) -> Option<node::Report> {
        match change {
            Change::Pod(state) => {
                self.link.pods().heard(&state);
                let pod = pod(state);
                match &mut self.first {
                    Some(first) => {
                        first.push(pod);
                        None
                    }
                    None => Some(node::Report::Pod(pod)),
                }
            }
            Change::Removed { uid } => {
                self.link.pods().removed(&uid);
                let pod = Uid::from(uid.as_str());
                if let Some(first) = &mut self.first {
                    first.retain(|it| it.pod != pod);
                    return None;
                }
                Some(node::Report::Removed { pod })
            }
            Change::Listed => {
                self.is_away = false;
                let all = self.first.take();
                if let Some(all) = &all {
                    let named: Vec<&str> = all.iter().map(|pod| pod.pod.as_str()).collect();
                    self.link.pods().listed(&named);
                }
                all.map(node::Report::All)
            }
        }
    }
}

fn pod(state: PodState) -> node::Pod {
    let lost = state.lost;
    let containers = state.containers.into_iter().map(|(name, status)| {
        let container = node::Container {
            attempt: status.attempt,
            state: container(status.state, lost.as_deref()),
            last: None,
        };
        (Arc::from(name), container)
    });
    node::Pod {
        pod: Uid::from(state.uid.as_str()),
        address: Some(state.address),
        containers: containers.collect(),
        lost: lost.clone(),
    }
}

fn container(state: ContainerState, lost: Option<&str>) -> node::State {
    match state {
        ContainerState::Running { started_at, .. } => node::State::Running { started_at },
        ContainerState::Exited(exit) => node::State::Ended(ended(exit)),
        // As the kubelet tells of a container that it cannot find any more.
        ContainerState::Lost { started_at } => node::State::Ended(node::Ended {
            exit_code: 137,
            signal: None,
            started_at: Some(started_at),
            finished_at: started_at,
            reason: "ContainerStatusUnknown".to_owned(),
            message: lost.unwrap_or("its processes are gone").to_owned(),
        }),
    }
}

fn ended(exit: Exit) -> node::Ended {
    let reason = match exit.reason {
        ExitReason::Completed => "Completed",
        ExitReason::Error => "Error",
        ExitReason::StartError => "StartError",
    };
    node::Ended {
        exit_code: exit.kubelet_code(),
        signal: exit.signal,
        started_at: Some(exit.started_at),
        finished_at: exit.finished_at,
        reason: reason.to_owned(),
        message: exit.message,
    }
}
