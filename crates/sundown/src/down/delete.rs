//! `sundown down --delete`: jobs and clusters go before the control plane does, so that nothing comes back. How long
//! they are waited for, and what is told meanwhile, is decided by a pure function of what is left.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use kube::Client;
use serde::Serialize;
use serde_json::{Value, json};
use sundown_kinds::constants::FINALIZER_RAY_JOB;
use sundown_model::path::part;
use tokio::time::{Instant, sleep};

use crate::arguments::Output;
use crate::complaint::Complaint;
use crate::control::{self, ControlError};
use crate::kubectl::Sundown;
use crate::objects::{self, Known, list_in, text};
use crate::output;
use crate::terminal::one_line;

/// Pods have their graces, and clusters many pods.
const GONE_TIME_MAX: Duration = Duration::from_mins(5);
/// How long objects are waited for that only others can let go.
const OTHERS_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a wait may last before it is told.
const SILENT_TIME_MAX: Duration = Duration::from_secs(3);
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// What goes, in the order in which it is asked to.
const KINDS: [Known; 3] = [Known::RayJob, Known::Job, Known::RayCluster];
/// Finalizers that the garbage collector and the controllers of Sundown remove.
const OF_SUNDOWN: [&str; 3] = ["foregroundDeletion", "orphan", FINALIZER_RAY_JOB];

/// An object that is still there, or a kind of which that is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct NotDeleted {
    kind: &'static str,
    /// None: whatever there is of the kind.
    #[serde(flatten)]
    object: Option<Named>,
    why: String,
}

/// Which object of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Named {
    namespace: String,
    name: String,
}

/// An object that was asked to go, as it was seen last.
#[derive(Debug, Clone)]
struct Going {
    kind: Known,
    object: Value,
}

/// What to do about objects that were asked to go.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Done,
    /// With what is waited for, if it is time to tell.
    Wait(Option<String>),
    GiveUp,
}

/// Deletes all jobs that have not come to their end and all clusters, and waits until they are gone; gives what is
/// left. What an API server refuses or does not answer is left, and keeps nothing else up.
///
/// Errors: no control plane is up, or it does not answer at its socket, so that it could not be ended either.
pub(super) async fn all(
    data: &Path,
    state: &Path,
    commands: &Sundown,
    output: Output,
) -> Result<Vec<NotDeleted>, Complaint> {
    let held = match control::connect(data, state).await {
        Ok(held) => held,
        Err(ControlError::NotUp) => {
            let complaint = Complaint::new("no control plane is running");
            let (up, reset) = (commands.command("up"), commands.command("reset"));
            return Err(complaint.at(data.display().to_string()).help(format!(
                "start one with `{up}`; `{reset}` removes everything that is stored"
            )));
        }
        Err(error) => return Err(error.complaint(data)),
    };
    let connection = sundown_driver::connect(Some(&held.kubeconfig)).await;
    let client = match connection {
        Ok(connection) => connection.client,
        Err(error) => {
            let of_kind = |kind| NotDeleted::all_of(kind, &error);
            return Ok(KINDS.into_iter().map(of_kind).collect());
        }
    };
    let (mut going, mut left) = (Vec::new(), Vec::new());
    for kind in KINDS {
        let found = match list(&client, kind).await {
            Ok(found) => found,
            Err(error) => {
                left.push(NotDeleted::all_of(kind, &error));
                continue;
            }
        };
        for it in found.into_iter().filter(Going::is_to_go) {
            match it.delete(&client).await {
                Ok(()) => going.push(it),
                Err(error) => left.push(it.not_deleted(error.to_string())),
            }
        }
    }
    left.extend(until_gone(&client, going, output).await);
    Ok(left)
}

/// Waits for all together; gives those that are left.
async fn until_gone(client: &Client, mut going: Vec<Going>, output: Output) -> Vec<NotDeleted> {
    let begun_at = Instant::now();
    let mut told = None;
    loop {
        let found = match look(client).await {
            Ok(found) => found,
            Err(error) => {
                let all = going.iter().map(|it| it.not_deleted(error.to_string()));
                return all.collect();
            }
        };
        let (still, gone) = split(going, &found);
        for it in gone {
            tell(output, &format!("{} deleted", it.name()));
        }
        going = still;
        match step(&going, begun_at.elapsed()) {
            Step::Done => return Vec::new(),
            Step::GiveUp => return going.iter().map(|it| it.not_deleted(it.why())).collect(),
            Step::Wait(said) => {
                if let Some(said) = said.as_ref().filter(|_| said != told) {
                    tell(output, said);
                }
                told = said.or(told);
            }
        }
        sleep(LOOK_INTERVAL).await;
    }
}

/// All objects of the kinds that go.
async fn look(client: &Client) -> Result<Vec<Going>, kube::Error> {
    let mut all = Vec::new();
    for kind in KINDS {
        all.extend(list(client, kind).await?);
    }
    Ok(all)
}

async fn list(client: &Client, kind: Known) -> Result<Vec<Going>, kube::Error> {
    let found = objects::list(client, kind, None).await?;
    let found = found.into_iter().map(|object| Going { kind, object });
    Ok(found.collect())
}

fn tell(output: Output, line: &str) {
    if output == Output::Text {
        // A user who does not read it any more still wants the end.
        let _ = output::print(&format!("{}\n", one_line(line)));
    }
}

/// Those that are still there, as they are now, and those that are gone.
fn split(going: Vec<Going>, found: &[Going]) -> (Vec<Going>, Vec<Going>) {
    let (mut still, mut gone) = (Vec::new(), Vec::new());
    for it in going {
        match found.iter().find(|found| found.uid() == it.uid()) {
            Some(now) => still.push(now.clone()),
            None => gone.push(it),
        }
    }
    (still, gone)
}

/// Decides whether to wait on, by what is left after so long.
fn step(left: &[Going], waited: Duration) -> Step {
    let Some(first) = left.first() else {
        return Step::Done;
    };
    let is_held = |it: &&Going| !it.finalizers_of_others().is_empty();
    let time_max = if left.iter().all(|it| is_held(&it)) {
        OTHERS_TIME_MAX
    } else {
        GONE_TIME_MAX
    };
    if waited >= time_max {
        return Step::GiveUp;
    }
    // The cause before those who may wait for it.
    let told = left.iter().find(is_held).unwrap_or(first);
    let is_time = waited >= SILENT_TIME_MAX;
    Step::Wait(is_time.then(|| format!("waiting for {}: {}", told.name(), told.why())))
}

impl Going {
    fn is_to_go(&self) -> bool {
        self.kind == Known::RayCluster || objects::is_unfinished(self.kind, &self.object)
    }

    async fn delete(&self, client: &Client) -> Result<(), kube::Error> {
        let (namespace, name) = (
            text(&self.object, "/metadata/namespace"),
            text(&self.object, "/metadata/name"),
        );
        let path = format!("{}/{}", self.kind.path(Some(namespace)), part(name));
        let foreground = json!({ "propagationPolicy": "Foreground" });
        objects::delete(client, &path, self.uid(), &foreground).await
    }

    fn uid(&self) -> &str {
        text(&self.object, "/metadata/uid")
    }

    fn name(&self) -> String {
        let name = text(&self.object, "/metadata/name");
        format!("{}/{name}", self.kind.word())
    }

    fn finalizers_of_others(&self) -> Vec<&str> {
        let all = list_in(&self.object, "/metadata/finalizers").iter();
        let all = all.filter_map(Value::as_str);
        all.filter(|it| !OF_SUNDOWN.contains(it)).collect()
    }

    /// Why it is still there.
    fn why(&self) -> String {
        match &self.finalizers_of_others()[..] {
            [] => "its dependents are being deleted".to_owned(),
            [one] => format!("finalizer {one} is not removed"),
            all => format!("finalizers {} are not removed", all.join(", ")),
        }
    }

    fn not_deleted(&self, why: String) -> NotDeleted {
        let object = Named {
            namespace: text(&self.object, "/metadata/namespace").to_owned(),
            name: text(&self.object, "/metadata/name").to_owned(),
        };
        NotDeleted {
            kind: self.kind.word(),
            object: Some(object),
            why,
        }
    }
}

impl NotDeleted {
    /// Whatever there is of a kind: it cannot be asked.
    fn all_of(kind: Known, error: &(dyn Error + 'static)) -> Self {
        let mut why = "cannot be listed".to_owned();
        let mut cause = Some(error);
        while let Some(error) = cause {
            let text = error.to_string();
            // Some print their cause themselves.
            if !why.contains(&text) {
                why = format!("{why}: {text}");
            }
            cause = error.source();
        }
        Self {
            kind: kind.word(),
            object: None,
            why,
        }
    }

    /// An object, by its kind, namespace and name.
    #[cfg(test)]
    pub(super) fn of([kind, namespace, name]: [&'static str; 3], why: &str) -> Self {
        let object = Named {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        Self {
            kind,
            object: Some(object),
            why: why.to_owned(),
        }
    }

    /// For people.
    pub(super) fn in_words(&self) -> String {
        let what = match &self.object {
            Some(it) => format!("{}/{} -n {}", self.kind, it.name, it.namespace),
            None => format!("all of kind {}", self.kind),
        };
        format!("{}  {}", one_line(&what), one_line(&self.why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn going(name: &str, finalizers: &[&str]) -> Going {
        let metadata = json!({"name": name, "uid": name, "finalizers": finalizers});
        Going {
            kind: Known::RayCluster,
            object: json!({"metadata": metadata}),
        }
    }

    /// Each object had five minutes in silence, and the first that did not go ended the command with everything up.
    #[test]
    fn all_are_waited_for_together_and_what_is_waited_for_is_told() {
        let goes = going("goes", &["foregroundDeletion", "ray.io/rayjob-finalizer"]);
        let held = going("held", &["foregroundDeletion", "a/b"]);
        let told = |text: &str| Step::Wait(Some(format!("waiting for raycluster/{text}")));
        let cases = [
            (vec![], 0, Step::Done),
            (vec![goes.clone()], 1, Step::Wait(None)),
            (
                vec![goes.clone()],
                3,
                told("goes: its dependents are being deleted"),
            ),
            (
                vec![goes.clone(), held.clone()],
                20,
                told("held: finalizer a/b is not removed"),
            ),
            (
                vec![held.clone()],
                9,
                told("held: finalizer a/b is not removed"),
            ),
            (vec![held.clone()], 10, Step::GiveUp),
            (vec![goes, held], 300, Step::GiveUp),
        ];
        for (left, seconds, expect) in cases {
            let found = step(&left, Duration::from_secs(seconds));
            assert_eq!(found, expect, "{left:?} after {seconds} s");
        }
    }

    #[test]
    fn one_of_the_same_name_is_another() {
        let mut other = going("a", &[]);
        other.object["metadata"]["uid"] = json!("new");
        let (still, gone) = split(
            vec![going("a", &[]), going("b", &[])],
            &[other, going("b", &["x/y"])],
        );
        assert_eq!(gone.len(), 1);
        assert_eq!(still[0].why(), "finalizer x/y is not removed");
    }
}
