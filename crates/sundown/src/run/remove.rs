//! Deletes what a run applied, each very object and no other of its name, and waits until it is gone.

use std::io;
use std::time::Duration;

use http::Method;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::apply::{Applied, How};
use super::screen::{Event, Screen};
use super::snapshot::uid;
use crate::complaint::Complaint;
use crate::objects;

/// How long an object without dependents may take to go.
const GONE_TIME_MAX: Duration = Duration::from_secs(30);
const GONE_INTERVAL: Duration = Duration::from_millis(50);

/// Deletes what stands beside the job, last applied first, and waits until each is gone. Of the whole
/// server only what this run created goes: others may live in such a namespace.
pub(super) async fn delete_all(
    client: &Client,
    applied: &[Applied],
) -> Result<Vec<String>, Complaint> {
    let mut gone = Vec::new();
    for it in applied.iter().rev() {
        if it.namespace.is_none() && it.how != How::Created {
            continue;
        }
        let failed = |error: &kube::Error| {
            Complaint::new(format!("{} is not deleted", it.object)).because(error)
        };
        let deleted = delete(client, &it.path, uid(&it.value)).await;
        deleted.map_err(|error| failed(&error))?;
        let begun_at = Instant::now();
        while is_there(client, it).await.map_err(|error| failed(&error))? {
            if begun_at.elapsed() > GONE_TIME_MAX {
                let complaint =
                    Complaint::new(format!("{} was deleted but is still there", it.object));
                return Err(complaint.help("why: sundown explain TYPE/NAME"));
            }
            sleep(GONE_INTERVAL).await;
        }
        gone.push(it.object.clone());
    }
    Ok(gone)
}

/// Somebody does not wait until all is deleted.
pub(super) fn tell_left(screen: &mut Screen, applied: &[Applied]) -> io::Result<()> {
    let names: Vec<&str> = applied.iter().map(|it| &*it.object).collect();
    let text = format!("stopped; parts of these may be left: {}", names.join(", "));
    screen.tell(&Event::Note { text: &text })
}

async fn is_there(client: &Client, applied: &Applied) -> Result<bool, kube::Error> {
    match objects::send(client, Method::GET, &applied.path, &Value::Null).await {
        Ok(found) => Ok(uid(&found) == uid(&applied.value)),
        Err(error) if objects::is_missing(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Deletes this very object after all that it owns. Not finding it is success.
pub(super) async fn delete(client: &Client, path: &str, uid: &str) -> Result<(), kube::Error> {
    let foreground = json!({ "propagationPolicy": "Foreground" });
    objects::delete(client, path, uid, &foreground).await
}
