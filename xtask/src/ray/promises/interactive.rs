//! A driver outside of the cluster (Ray Client, as in a notebook) in `InteractiveMode`: the job is followed by
//! its job id to its end.

use anyhow::{Result, ensure};

use super::super::home::Home;
use super::{Counts, STATE};

pub(super) fn all(home: &mut Home) -> Result<()> {
    let counts = Counts::with(
        home,
        "interactive",
        &[("client.py", include_str!("client.py"))],
    )?;
    home.create("interactive", include_str!("interactive.yaml"))?;
    home.until_told("rayjob/interactive", STATE, "Waiting")?;
    let name = "jsonpath={.status.rayClusterName}";
    let cluster = home.kubectl(&["get", "rayjob/interactive", "-o", name])?;
    let client = counts.manifest(include_str!("client.yaml"));
    home.create("client", &client.replace("CLUSTER", &cluster))?;
    let id = counts.await_word("job")?;
    let patch = format!(r#"{{"spec":{{"jobId":"{id}"}}}}"#);
    home.kubectl(&[
        "patch",
        "rayjob/interactive",
        "--type=merge",
        "--patch",
        &patch,
    ])?;
    home.until_told("rayjob/interactive", STATE, "Running RUNNING")?;
    counts.say_enough()?;
    home.until_told("rayjob/interactive", STATE, "Complete SUCCEEDED")?;
    let answer = counts.await_word("answer")?;
    ensure!(answer == "42", "the driver computed {answer}");
    home.kubectl(&["delete", "pod/client", "--timeout=60s"])?;
    home.kubectl(&["delete", "rayjob/interactive", "--timeout=120s"])?;
    Ok(())
}
