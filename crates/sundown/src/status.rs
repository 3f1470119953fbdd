//! `sundown status`: whether a control plane is up, and what runs on it.

mod resources;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use sundown_node::NodeError;

use crate::arguments::{Output, Place};
use crate::complaint::Complaint;
use crate::control::{self, ControlError, Held, Hello, Standing};
use crate::kubectl::Sundown;
use crate::objects::{self, Known, text};
use crate::terminal::one_line;
use crate::{data, output};
use resources::{Requests, Resources};

/// What is told.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    up: bool,
    data: PathBuf,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    hello: Option<Hello>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    standing: Option<Standing>,
    /// Clusters, jobs and pods that are there and have not come to their end.
    runs: Vec<Running>,
    /// Of the node: what pods take of what it offers.
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Resources>,
    /// Of a node whose control plane is gone: its pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    orphans: Vec<String>,
}

/// Something that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Running {
    kind: &'static str,
    namespace: String,
    name: String,
    state: String,
    /// Of a pod: what it requests.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    requests: Option<Requests>,
    /// Of a pod that does not fit: why, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// Tells what is up.
pub(crate) async fn run(place: &Place, output: Output) -> Result<ExitCode, Complaint> {
    let commands = Sundown::of(place.data_dir.as_deref());
    let told = look(data::directory(place.data_dir.as_deref())?).await?;
    match output {
        Output::Text => output::print(&in_words(&told, &commands))?,
        Output::Json => output::print_json(&told)?,
    }
    Ok(ExitCode::from(u8::from(!told.up)))
}

async fn look(directory: PathBuf) -> Result<Told, Complaint> {
    let state = data::find(&directory)?;
    let mut told = Told {
        up: false,
        data: directory,
        hello: None,
        standing: None,
        runs: Vec::new(),
        resources: None,
        orphans: Vec::new(),
    };
    let Some(state) = state else {
        return Ok(told);
    };
    let held = match control::connect(&told.data, &state).await {
        Ok(held) => held,
        Err(ControlError::NotUp) => {
            told.orphans = orphans(&state).await?;
            return Ok(told);
        }
        Err(error) => return Err(error.complaint(&told.data)),
    };
    told.up = true;
    let standing = control::status(&state).await;
    let mut standing = standing.map_err(|error| Complaint::of(&error))?;
    // The connection that is held meanwhile is this command's.
    standing.clients = standing.clients.saturating_sub(1);
    told.standing = Some(standing);
    (told.runs, told.resources) = runs(&held).await?;
    told.hello = Some(held.hello);
    Ok(told)
}

/// Pods that a node runs without a control plane.
async fn orphans(directory: &std::path::Path) -> Result<Vec<String>, Complaint> {
    let node = match sundown_node::Node::connect(directory).await {
        Ok(Some(node)) => node,
        Err(error @ (NodeError::Foreign { .. } | NodeError::Version { .. })) => {
            return Err(Complaint::of(&error));
        }
        // None, or one that does not answer.
        Ok(None) | Err(_) => return Ok(Vec::new()),
    };
    let pods = node.snapshot().await.unwrap_or_default().into_iter();
    let pods = pods.filter(|pod| !pod.has_ended());
    let names = pods.map(|pod| format!("{}/{}", pod.namespace, pod.name));
    Ok(names.collect())
}

async fn runs(held: &Held) -> Result<(Vec<Running>, Option<Resources>), Complaint> {
    let failed = |error: &(dyn std::error::Error + 'static)| {
        Complaint::new("cannot list what runs on the control plane")
            .at(held.hello.url.clone())
            .because(error)
    };
    let connection = sundown_driver::connect(Some(&held.kubeconfig)).await;
    let client = connection.map_err(|error| failed(&error))?.client;
    let mut found = Vec::new();
    let mut resources = None;
    for kind in [Known::RayJob, Known::RayCluster, Known::Job, Known::Pod] {
        let all = objects::list(&client, kind, None).await;
        let all = all.map_err(|error| failed(&error))?;
        let is_shown =
            |it: &&serde_json::Value| kind == Known::RayCluster || objects::is_unfinished(kind, it);
        found.extend(all.iter().filter(is_shown).map(|object| Running {
            kind: kind.word(),
            namespace: text(object, "/metadata/namespace").to_owned(),
            name: text(object, "/metadata/name").to_owned(),
            state: objects::state(kind, object),
            requests: (kind == Known::Pod).then(|| Requests::of(object)),
            message: resources::misfit(object),
        }));
        if kind == Known::Pod {
            resources = Resources::read(&client, &all).await;
        }
    }
    Ok((found, resources))
}

fn in_words(told: &Told, commands: &Sundown) -> String {
    let data = told.data.display();
    let (Some(hello), Some(standing)) = (&told.hello, &told.standing) else {
        let (run, up) = (commands.command("run FILE"), commands.command("up"));
        let mut text = format!(
            "no control plane is running\n\n  data  {data}\n\nto start one: {run}, or {up}\n"
        );
        if !told.orphans.is_empty() {
            let count = told.orphans.len();
            let _ = write!(
                text,
                "\n{count} of its pods still run: {}\n  to stop them: {}; to continue: {up}\n",
                one_line(&told.orphans.join(", ")),
                commands.command("down")
            );
        }
        return text;
    };
    let node = match (&standing.node, standing.runs_pods) {
        (_, false) => "disabled (--node=false)".to_owned(),
        (None, true) => "not started (no pods yet)".to_owned(),
        (Some(node), true) => {
            let how = if node.rootless { "rootless" } else { "rootful" };
            format!("{how}: {}", node.reason)
        }
    };
    let ends = if standing.while_used {
        "automatically after 1 minute idle"
    } else {
        "when it is told to (`down`), or on a signal"
    };
    let access = hello.authorization.warning();
    let access = access.map_or(String::new(), |warning| {
        format!("  access      {warning}\n")
    });
    let taken = told.resources.as_ref();
    let taken = taken.map_or(String::new(), |it| format!("  requested   {it}\n"));
    let mut text = format!(
        "sundown {} is running, process {}\n\n  \
         API server  {}\n  \
         kubeconfig  {}\n  \
         data        {data}\n  \
         node        {node}\n\
         {taken}  \
         clients     {}\n  \
         stops       {ends}\n{access}\n",
        hello.version,
        hello.pid,
        hello.url,
        hello.kubeconfig.display(),
        standing.clients,
    );
    if told.runs.is_empty() {
        text.push_str("no workloads\n");
        return text;
    }
    text.push_str(&rows(&told.runs));
    text
}

/// One line for each, in columns; below a pod that does not fit, why.
fn rows(runs: &[Running]) -> String {
    let name = |it: &Running| one_line(&format!("{}/{}/{}", it.kind, it.namespace, it.name));
    let cells = runs.iter().map(|it| (name(it), one_line(&it.state), it));
    let cells: Vec<(String, String, &Running)> = cells.collect();
    let widest = |cell: fn(&(String, String, &Running)) -> usize| cells.iter().map(cell).max();
    let of_name = widest(|it| it.0.chars().count()).unwrap_or_default();
    let of_state = widest(|it| it.1.chars().count()).unwrap_or_default();
    let mut text = String::new();
    for (name, state, it) in &cells {
        let requests = it.requests.as_ref().map(ToString::to_string);
        let requests = requests.unwrap_or_default();
        let row = format!("  {name:of_name$}  {state:of_state$}  {requests}");
        let _ = writeln!(text, "{}", row.trim_end());
        if let Some(message) = &it.message {
            let _ = writeln!(text, "    {}", one_line(message));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::arguments::Authorization;

    /// Pasted, they ended the control plane of the default data directory.
    #[test]
    fn what_to_do_about_orphans_names_their_data_directory() {
        let told = Told {
            up: false,
            data: "/d".into(),
            hello: None,
            standing: None,
            runs: Vec::new(),
            resources: None,
            orphans: vec!["default/p".to_owned()],
        };
        let text = in_words(&told, &Sundown::of(Some(std::path::Path::new("/d"))));
        let how =
            "to stop them: sundown down --data-dir /d; to continue: sundown up --data-dir /d\n";
        assert!(text.ends_with(how), "{text}");
    }

    #[test]
    fn says_what_is_up_and_what_runs() {
        let told = Told {
            up: true,
            data: "/d".into(),
            hello: Some(Hello {
                version: "0.1.0".into(),
                pid: 7,
                url: "https://127.0.0.1:1".into(),
                kubeconfig: "/d/kubeconfig".into(),
                deletes_finished: false,
                authorization: Authorization::AlwaysAllow,
            }),
            standing: Some(Standing {
                while_used: true,
                runs_pods: true,
                clients: 1,
                node: None,
            }),
            runs: vec![
                Running {
                    kind: "pod",
                    namespace: "default".into(),
                    name: "p".into(),
                    state: "Running".into(),
                    requests: Some(Requests::of(&json!({"spec": {"containers": [
                        {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]}}))),
                    message: None,
                },
                Running {
                    kind: "rayjob",
                    namespace: "default".into(),
                    name: "j".into(),
                    state: "Running\n  pod/default/q  Failed".into(),
                    requests: None,
                    message: None,
                },
            ],
            resources: Some(Resources::of(
                &json!({"metadata": {"name": "sundown"},
                    "status": {"allocatable": {"cpu": "8", "memory": "2Gi"}}}),
                &[json!({"spec": {"nodeName": "sundown", "containers": [
                    {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]}})],
            )),
            orphans: Vec::new(),
        };
        let text = in_words(&told, &Sundown::of(None));
        assert!(text.contains("not started"), "{text}");
        assert!(text.contains("--authorization=AlwaysAllow"), "{text}");
        let rows = [
            "  pod/default/p     Running                       0.5 CPU, 1Gi memory",
            "  rayjob/default/j  Running pod/default/q Failed",
        ];
        assert!(text.ends_with(&(rows.join("\n") + "\n")), "{text}");
        let json = serde_json::to_value(&told).unwrap();
        assert_eq!(json["up"], true);
        assert_eq!(json["pid"], 7);
        assert_eq!(json["runsPods"], true);
        let line = "  requested   0.5 of 8 CPU, 1Gi of 2Gi memory\n";
        assert!(text.contains(line), "{text}");
        assert_eq!(
            json["resources"]["cpu"],
            json!({"taken": "500m", "offered": "8"})
        );
        assert_eq!(json["runs"][0]["memory"], "1Gi");
    }
}
