//! What the node says by itself, passed on for ever. Whoever tells it may panic; then it is listened to
//! anew, and the engine knows until the next complete report that it knows less.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use sundown_engine::Input;
use sundown_model::{Report, node};

use crate::NodePort;
use crate::effects::Outbox;
use crate::requests::Requests;

/// How long to wait before a teller that panicked is listened to again, at first and at most.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// Passes reports on until there will be no more.
pub(crate) async fn run(port: Arc<dyn NodePort>, outbox: Outbox, requests: Requests) {
    let mut pause = PAUSE_FIRST;
    loop {
        let heard = AssertUnwindSafe(pass_on(port.as_ref(), &outbox, &mut pause));
        if heard.catch_unwind().await.is_ok() {
            return;
        }
        requests.counters().panicked();
        tracing::error!(what = "reports", "what tells of the node panicked");
        let message = "Sundown panicked while it listened to the node".to_owned();
        let away = Report::Node(node::Report::Away { message });
        outbox.put(Input::Reported(away)).await;
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

async fn pass_on(port: &dyn NodePort, outbox: &Outbox, pause: &mut Duration) {
    let mut reports = port.reports();
    while let Some(report) = reports.next().await {
        let is_complete = matches!(report, node::Report::All(_));
        outbox.put(Input::Reported(Report::Node(report))).await;
        if !is_complete {
            // Every stream begins with all pods; one that comes further than that is well.
            *pause = PAUSE_FIRST;
        }
    }
}
