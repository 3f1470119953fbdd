//! `sundown run`: a client of the control plane that applies a file, follows its job and cleans up.
//! What is shown and done next is decided by the modules below; here it is only carried out.

mod apply;
mod applying;
mod cleanup;
mod interrupt;
mod logs;
mod manifest;
mod offers;
mod order;
mod outcome;
mod patience;
mod plane;
mod progress;
mod remove;
mod screen;
mod session;
mod signals;
mod snapshot;
mod step;
mod target;
mod trouble;
mod waits;
mod watch;
mod without_job;

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use tokio::time::timeout;

use crate::arguments::{Output, Run};
use crate::complaint::Complaint;
use crate::kubectl::{Kubectl, Sundown};
use crate::objects::Known;
use crate::{control, data};

use apply::{Applied, How};
use applying::{Applying, Stopped};
use manifest::Manifest;
use plane::{Plane, Start};
use screen::{Event, Screen};
use session::{Options, Session};
use signals::Signals;
use snapshot::{Seen, Snapshot};
use target::Target;
use without_job::Removing;

/// The exit code of a run that was stopped, as a shell tells it of SIGINT.
const STOPPED: u8 = 130;

/// What a user is told who stops a run that cleans up already.
const GOING: &str =
    "already deleting; press Ctrl-C again to exit now and leave the remaining objects";

/// How long a run that was stopped waits for whoever reads what it said last: longer than standard error waits for
/// standard output.
const PARTING_TIME_MAX: Duration = Duration::from_secs(2);

/// Runs a file to its end.
pub(crate) async fn run(arguments: &Run, output: Output) -> Result<ExitCode, Complaint> {
    let manifest = read(&arguments.file)?;
    let screen = Screen::new(output, arguments.raw);
    let mut screen =
        screen.map_err(|error| Complaint::new("cannot start a thread").because(&error))?;
    let mut signals = Signals::listen(screen.is_live())?;
    let end = follow(arguments, &manifest, &mut screen, &mut signals).await;
    if !is_written(&screen, &mut signals).await {
        if let Err(complaint) = end {
            screen.complain(&complaint);
            // Nobody reads that either: the exit code still tells it.
            let _ = timeout(PARTING_TIME_MAX, screen.told()).await;
        }
        return Ok(ExitCode::from(STOPPED));
    }
    let end = match (end, screen.failure()) {
        (Ok(_), Some(why)) if !signals.is_heard() => {
            Err(Complaint::new("cannot write to standard output").because_of(&why))
        }
        (end, _) => end,
    };
    let Err(complaint) = end else {
        return end;
    };
    screen.complain(&complaint);
    let is_told = is_written(&screen, &mut signals).await;
    Ok(if is_told {
        complaint.exit_code()
    } else {
        ExitCode::from(STOPPED)
    })
}

/// Waits until all that was said is written; false: somebody does not want to wait for a reader that does not read.
async fn is_written(screen: &Screen, signals: &mut Signals) -> bool {
    if signals.is_heard() {
        return timeout(PARTING_TIME_MAX, screen.written()).await.is_ok();
    }
    tokio::select! {
        () = screen.written() => true,
        _ = signals.next() => false,
    }
}

async fn follow(
    arguments: &Run,
    manifest: &Manifest,
    screen: &mut Screen,
    signals: &mut Signals,
) -> Result<ExitCode, Complaint> {
    for it in manifest.duplicates.iter().filter(|it| !it.is_merged) {
        let (file, line) = (arguments.file.display(), it.line);
        let text = format!(
            "{file}:{line}: duplicate key {}; using the last value",
            it.field
        );
        screen.tell(&Event::Note { text: &text });
    }
    let directory = data::directory(arguments.place.data_dir.as_deref())?;
    let directory = std::path::absolute(directory)?;
    let start = Start {
        directory,
        image_rules: arguments.image_rules.clone(),
        offers: arguments.offers,
    };
    let mut plane = tokio::select! {
        plane = Plane::join(start) => plane?,
        // Nothing was applied yet, so there is nothing to clean up.
        _ = signals.next() => return Ok(ExitCode::from(STOPPED)),
    };
    let hello = plane.hello();
    screen.tell(&Event::ControlPlane {
        state: if plane.was_started {
            "started"
        } else {
            "joined"
        },
        pid: hello.pid,
        url: &hello.url,
    });
    let namespace = arguments.namespace.as_deref().unwrap_or("default");
    let mut applying = Applying::new(&arguments.file, manifest, namespace);
    tokio::select! {
        applied = check_and_apply(&mut plane, &mut applying, arguments, screen) => applied?,
        _ = signals.next() => {
            tell_stopped(screen, &applying.stopped(plane.kubectl()));
            return Ok(ExitCode::from(STOPPED));
        }
    }
    let target = target(manifest, &applying, plane.kubectl())?;
    let applied = applying.applied;
    let Some(target) = target else {
        if !arguments.rm {
            return Ok(ExitCode::SUCCESS);
        }
        let removing = Removing::begin(plane, &applied, screen, signals);
        return removing.run().await;
    };
    let options = Options {
        removes: arguments.rm,
        offers_dashboard: !arguments.no_dashboard,
    };
    let session = Session::new(plane, target, applied, options, screen, signals);
    session.run().await
}

async fn check_and_apply(
    plane: &mut Plane,
    applying: &mut Applying<'_>,
    arguments: &Run,
    screen: &mut Screen,
) -> Result<(), Complaint> {
    let commands = Sundown::of(arguments.place.data_dir.as_deref());
    if let Some(text) = offers::note(plane, arguments.offers, &commands).await {
        screen.tell(&Event::Note { text: &text });
    }
    check_plane(plane, screen).await?;
    let mut tell = |applied: &Applied| screen.tell(&Event::Applied(applied));
    applying.run(plane, &mut tell).await
}

fn tell_stopped(screen: &mut Screen, stopped: &Stopped) {
    screen.tell(&Event::Note {
        text: &stopped.text,
    });
    if !stopped.objects.is_empty() {
        screen.tell(&Event::Kept {
            objects: &stopped.objects,
            later: None,
            remove: Some(&stopped.remove),
        });
    }
}

/// A control plane without pods would let everybody wait.
async fn check_plane(plane: &Plane, screen: &mut Screen) -> Result<(), Complaint> {
    // Lost already: what comes next finds out, and starts another.
    let Ok(standing) = control::status(plane.state()).await else {
        return Ok(());
    };
    if !standing.runs_pods {
        let what = "the running control plane has pods disabled (--node=false)";
        return Err(Complaint::new(what)
            .at(plane.directory().display().to_string())
            .help("stop it and start it without --node=false, or use another: --data-dir DIR"));
    }
    let (theirs, ours) = (&plane.hello().version, env!("CARGO_PKG_VERSION"));
    if theirs != ours {
        let text = format!("the control plane is version {theirs}, this is {ours}");
        screen.tell(&Event::Note { text: &text });
    }
    Ok(())
}

fn read(file: &Path) -> Result<Manifest, Complaint> {
    let place = file.display().to_string();
    let content = if file == Path::new("-") {
        let mut content = String::new();
        std::io::stdin()
            .read_to_string(&mut content)
            .map(|_| content)
    } else {
        std::fs::read_to_string(file)
    };
    let content = content.map_err(|error| {
        Complaint::usage("cannot read the manifest")
            .at(place.clone())
            .because(&error)
    })?;
    manifest::read(&content).map_err(|error| {
        let complaint = Complaint::usage(error.to_string());
        match error {
            manifest::ManifestError::Unreadable(error) => {
                complaint.at(format!("{place}:{}:{}", error.line, error.column))
            }
            manifest::ManifestError::ManyJobs(_) => {
                let complaint = complaint.at(place);
                complaint.help("put each job into its own file")
            }
            manifest::ManifestError::Empty | manifest::ManifestError::Incomplete { .. } => {
                complaint.at(place)
            }
        }
    })
}

/// What is followed: the job, else a cluster or a pod until it is ready.
fn target(
    manifest: &Manifest,
    applying: &Applying<'_>,
    kubectl: &Kubectl,
) -> Result<Option<Target>, Complaint> {
    let applied = &applying.applied;
    let by_kind = |kind| {
        applied
            .iter()
            .position(|it| Known::of(&it.value) == Some(kind))
    };
    let index = manifest.job;
    let index = index
        .or_else(|| by_kind(Known::RayCluster))
        .or_else(|| by_kind(Known::Pod));
    let Some(index) = index else {
        return Ok(None);
    };
    let found = &applied[index];
    let Some(target) = Target::of(&found.value) else {
        return Ok(None);
    };
    if found.how == How::Unchanged && manifest.job.is_some() && !applying.is_repeated {
        let mut snapshot = Snapshot::default();
        snapshot.take(Seen::Put(target.kind, found.value.clone()));
        if let Some(outcome) = outcome::of(&target.parts(&snapshot)) {
            return Err(has_run(&target, outcome.word, kubectl));
        }
    }
    Ok(Some(target))
}

fn has_run(target: &Target, how: &str, kubectl: &Kubectl) -> Complaint {
    let name = target.word();
    let delete = kubectl.command("delete", Some(&target.namespace), &[&name]);
    Complaint::new(format!("{name} already exists and has finished ({how})"))
        .help(format!("to run it again, delete it first: {delete}"))
        .help("with --rm a run deletes what it applied; with metadata.generateName each run gets a new name")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Pasted, the command deleted the job of the same name on another cluster.
    #[test]
    fn the_advice_to_delete_a_job_names_the_control_plane() {
        let job = json!({"apiVersion": "ray.io/v1", "kind": "RayJob",
            "metadata": {"name": "train", "namespace": "team", "uid": "u"}});
        let kubectl = Kubectl::of_data(Path::new("/d"));
        let told = has_run(&Target::of(&job).unwrap(), "failed", &kubectl).text();
        let command = "kubectl --kubeconfig /d/kubeconfig delete -n team rayjob/train\n";
        assert!(told.contains(command), "{told}");
    }
}
