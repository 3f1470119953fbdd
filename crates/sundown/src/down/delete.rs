//! `sundown down --delete`: jobs and clusters go before the control plane does, so that nothing comes back.

use std::path::Path;
use std::time::Duration;

use http::Method;
use kube::Client;
use serde_json::{Value, json};
use sundown_model::path::part;
use tokio::time::{Instant, sleep};

use crate::arguments::Output;
use crate::complaint::Complaint;
use crate::control::{self, ControlError};
use crate::objects::{self, Known, text};
use crate::output;
use crate::terminal::one_line;

/// Pods have their graces, and clusters many pods.
const GONE_TIME_MAX: Duration = Duration::from_mins(5);
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Deletes all jobs that have not come to their end and all clusters, and waits until they are gone.
pub(super) async fn all(data: &Path, state: &Path, output: Output) -> Result<(), Complaint> {
    let held = match control::connect(data, state).await {
        Ok(held) => held,
        Err(ControlError::NotUp) => {
            let complaint = Complaint::new("no control plane is up that could delete anything");
            return Err(complaint.at(data.display().to_string()).help(
                "start one with `sundown up`; what is stored goes as a whole with `sundown reset`",
            ));
        }
        Err(error) => return Err(error.complaint(data)),
    };
    let connection = sundown_driver::connect(Some(&held.kubeconfig)).await;
    let client = connection.map_err(|error| Complaint::of(&error))?.client;
    for kind in [Known::RayJob, Known::Job, Known::RayCluster] {
        let found = objects::list(&client, kind, None).await;
        let found = found.map_err(|error| Complaint::of(&error))?;
        let goes = |it: &&Value| kind == Known::RayCluster || objects::is_unfinished(kind, it);
        for object in found.iter().filter(goes) {
            delete(&client, kind, object).await?;
            if output == Output::Text {
                let name = text(object, "/metadata/name");
                let line = format!("{}/{name} deleted", kind.word());
                output::print(&format!("{}\n", one_line(&line)))?;
            }
        }
    }
    Ok(())
}

async fn delete(client: &Client, kind: Known, object: &Value) -> Result<(), Complaint> {
    let (namespace, name) = (
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name"),
    );
    let uid = text(object, "/metadata/uid");
    let path = format!("{}/{}", kind.path(Some(namespace)), part(name));
    let failed = |error: &kube::Error| {
        Complaint::new(format!("{}/{name} is not deleted", kind.word())).because(error)
    };
    let foreground = json!({ "propagationPolicy": "Foreground" });
    let deleted = objects::delete(client, &path, uid, &foreground).await;
    deleted.map_err(|error| failed(&error))?;
    let begun_at = Instant::now();
    loop {
        match objects::send(client, Method::GET, &path, &Value::Null).await {
            Ok(found) if text(&found, "/metadata/uid") != uid => return Ok(()),
            Ok(_) => {}
            Err(error) if objects::is_missing(&error) => return Ok(()),
            Err(error) => return Err(failed(&error)),
        }
        if begun_at.elapsed() > GONE_TIME_MAX {
            let word = kind.word();
            let complaint = Complaint::new(format!("{word}/{name} was deleted but is still there"));
            return Err(
                complaint.help(format!("why: sundown explain {word}/{name} -n {namespace}"))
            );
        }
        sleep(LOOK_INTERVAL).await;
    }
}
