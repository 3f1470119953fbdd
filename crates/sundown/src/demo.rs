//! `sundown demo`: a short tour. It does what a user would do, with the same commands and clients.

mod stage;

use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use sundown_embedded::{Embedded, Listen};

use crate::arguments::{Explain, Output};
use crate::complaint::Complaint;
use crate::{explain, output};

use stage::Stage;

/// How long the job of the tour is kept after it finished.
const TTL: Duration = Duration::from_secs(3);
/// The finalizer that holds a pod, so that there is something to explain.
const HOLD: &str = "example.com/hold";

/// Gives the tour; fails if anything does not happen as told.
pub(crate) async fn run() -> Result<ExitCode, Complaint> {
    let directory = std::env::temp_dir().join(format!("sundown-demo-{}", std::process::id()));
    let kubeconfig = directory.join("kubeconfig");
    std::fs::create_dir_all(&directory)?;
    let listen = Listen {
        kubeconfig: Some(kubeconfig.clone()),
        ..Listen::default()
    };
    let embedded = Embedded::builder().listen(listen).start().await;
    let embedded = embedded.map_err(|error| Complaint::of(&error))?;
    say(&format!(
        "A control plane is up at {} after {:.1} ms.\n",
        embedded.url().unwrap_or_default(),
        embedded.start_ms(),
    ))?;
    let stage = Stage::new(embedded.client(), kubeconfig);
    let told = tell(&stage).await;
    let stopped = embedded.stop().await.map_err(|error| Complaint::of(&error));
    std::fs::remove_dir_all(&directory)?;
    told?;
    stopped?;
    say("\nThe control plane has ended. No process, file or object is left.\n")?;
    Ok(ExitCode::SUCCESS)
}

async fn tell(stage: &Stage) -> Result<(), Complaint> {
    plant(stage).await?;
    fell(stage).await?;
    expire(stage).await?;
    stage.clear("configmaps", "bystander").await?;
    let left = stage.count().await?;
    if left > 0 {
        return Err(Complaint::new(format!("{left} objects are left")));
    }
    Ok(())
}

/// A tree grows: a Deployment, a `ReplicaSet`, two Pods; and something that nobody owns.
async fn plant(stage: &Stage) -> Result<(), Complaint> {
    say(
        "\n1. A tree: a Deployment owns a ReplicaSet, which owns two Pods. A bystander owns nothing.\n\n",
    )?;
    stage.create("deployments", "app", None, json!({})).await?;
    stage
        .create(
            "replicasets",
            "app-set",
            Some(("deployments", "app")),
            json!({}),
        )
        .await?;
    let held = json!({ "metadata": { "finalizers": [HOLD] } });
    stage
        .create("pods", "app-1", Some(("replicasets", "app-set")), held)
        .await?;
    stage
        .create("pods", "app-2", Some(("replicasets", "app-set")), json!({}))
        .await?;
    stage
        .create("configmaps", "bystander", None, json!({}))
        .await?;
    ask(stage, "pods/app-1").await
}

/// The tree is deleted from its leaves to its root, and one leaf does not want to go.
async fn fell(stage: &Stage) -> Result<(), Complaint> {
    say("\n2. The Deployment is deleted in foreground. A finalizer holds the pod app-1.\n\n")?;
    let mut watch = stage
        .watch(&["deployments", "replicasets", "pods", "configmaps"])
        .await?;
    stage.delete("deployments", "app", "Foreground").await?;
    stage.until_gone(&mut watch, &["app-2"]).await?;
    stage.until_blocked("app").await?;
    ask(stage, "deployments/app").await?;
    say(&format!(
        "\n   The finalizer {HOLD} is removed, and everything goes:\n\n"
    ))?;
    stage.release("pods", "app-1").await?;
    stage
        .until_gone(&mut watch, &["app-1", "app-set", "app"])
        .await?;
    Ok(())
}

/// A job finishes and goes when its time has come, not earlier.
async fn expire(stage: &Stage) -> Result<(), Complaint> {
    say(&format!(
        "\n3. A Job finishes. Its TTL is {} seconds.\n\n",
        TTL.as_secs()
    ))?;
    let mut watch = stage.watch(&["jobs"]).await?;
    let spec = json!({ "spec": { "ttlSecondsAfterFinished": TTL.as_secs() } });
    stage.create("jobs", "report", None, spec).await?;
    let due_at = stage.finish("report").await? + TTL;
    ask(stage, "jobs/report").await?;
    say("\n")?;
    stage.until_gone(&mut watch, &["report"]).await?;
    let late = Timestamp::now().duration_since(due_at);
    if late.is_negative() {
        return Err(Complaint::new(format!(
            "the job went {late:#} before its time"
        )));
    }
    say(&format!(
        "   It went {} ms after its time.\n",
        late.as_millis()
    ))
}

/// Asks as a user would: by the command `sundown explain`, over HTTPS.
async fn ask(stage: &Stage, object: &str) -> Result<(), Complaint> {
    say(&format!("   $ sundown explain {object}\n"))?;
    let arguments = Explain {
        object: object.to_owned(),
        namespace: None,
        kubeconfig: Some(stage.kubeconfig().to_owned()),
        flight_record: None,
    };
    explain::run(&arguments, Output::Text).await?;
    Ok(())
}

fn say(text: &str) -> Result<(), Complaint> {
    Ok(output::print(text)?)
}
