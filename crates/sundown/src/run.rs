//! `sundown run`: a client of the control plane that applies a file, follows its job and cleans up.
//! What is shown and done next is decided by the modules below; here it is only carried out.

mod apply;
mod cleanup;
mod interrupt;
mod logs;
mod manifest;
mod offers;
mod order;
mod outcome;
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

use crate::arguments::{Output, Run};
use crate::complaint::Complaint;
use crate::objects::Known;
use crate::{control, data};

use apply::{Applied, ApplyError, How, Role};
use manifest::Manifest;
use plane::{Plane, Start};
use screen::{Event, Screen};
use session::{Options, Session};
use signals::Signals;
use snapshot::{Seen, Snapshot};
use target::Target;

/// The exit code of a run that was stopped, as a shell tells it of SIGINT.
const STOPPED: u8 = 130;

/// What a user is told who stops a run that cleans up already.
const GOING: &str =
    "what was applied is being deleted already; once more ends this and leaves the rest";

/// How often the file is applied when the control plane is lost meanwhile.
const TRIES_MAX: usize = 3;

/// Runs a file to its end.
pub(crate) async fn run(arguments: &Run, output: Output) -> Result<ExitCode, Complaint> {
    let manifest = read(&arguments.file)?;
    let mut screen = Screen::new(output, arguments.raw);
    for it in manifest.duplicates.iter().filter(|it| !it.is_merged) {
        let (file, line) = (arguments.file.display(), it.line);
        let text = format!(
            "{file}:{line}: {} is given twice; the last one counts",
            it.field
        );
        screen.tell(&Event::Note { text: &text })?;
    }
    let mut signals = Signals::listen(screen.is_live())?;
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
    })?;
    if let Some(text) = offers::note(&plane, arguments.offers).await {
        screen.tell(&Event::Note { text: &text })?;
    }
    let applied = tokio::select! {
        applied = check_and_apply(&mut plane, &manifest, arguments, &mut screen) => applied?,
        _ = signals.next() => {
            let text = "stopped while the file was applied: what was applied of it stays";
            screen.tell(&Event::Note { text })?;
            return Ok(ExitCode::from(STOPPED));
        }
    };
    let (applied, is_repeated) = applied;
    let Some(target) = target(&manifest, &applied, is_repeated)? else {
        if !arguments.rm {
            return Ok(ExitCode::SUCCESS);
        }
        return without_job::remove(&plane, &applied, &mut screen, &mut signals).await;
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
    manifest: &Manifest,
    arguments: &Run,
    screen: &mut Screen,
) -> Result<(Vec<Applied>, bool), Complaint> {
    check_plane(plane, screen).await?;
    apply_all(plane, manifest, arguments, screen).await
}

/// A control plane without pods would let everybody wait.
async fn check_plane(plane: &Plane, screen: &mut Screen) -> Result<(), Complaint> {
    // Lost already: what comes next finds out, and starts another.
    let Ok(standing) = control::status(plane.state()).await else {
        return Ok(());
    };
    if !standing.runs_pods {
        return Err(Complaint::new("the control plane that is up runs no pods")
            .at(plane.directory().display().to_string())
            .help(
                "end it, and start it without --node=false; or take another one: --data-dir DIR",
            ));
    }
    let (theirs, ours) = (&plane.hello().version, env!("CARGO_PKG_VERSION"));
    if theirs != ours {
        let text = format!("the control plane is version {theirs}, this is {ours}");
        screen.tell(&Event::Note { text: &text })?;
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
        Complaint::usage("the manifest cannot be read")
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
                complaint.help("put each job into a file of its own")
            }
            manifest::ManifestError::Empty | manifest::ManifestError::Incomplete { .. } => {
                complaint.at(place)
            }
        }
    })
}

/// Applies everything; a control plane that is lost meanwhile is started again. Gives also whether
/// that happened: then what was there already may be of this very run.
async fn apply_all(
    plane: &mut Plane,
    manifest: &Manifest,
    arguments: &Run,
    screen: &mut Screen,
) -> Result<(Vec<Applied>, bool), Complaint> {
    let mut tries = 1;
    loop {
        match apply_once(plane, manifest, arguments).await {
            Ok(all) => {
                for applied in &all {
                    screen.tell(&Event::Applied(applied))?;
                }
                return Ok((all, tries > 1));
            }
            Err(ApplyError::Away(_)) if tries < TRIES_MAX => plane.join_again().await?,
            Err(error) => return Err(error.into_complaint()),
        }
        tries += 1;
    }
}

async fn apply_once(
    plane: &Plane,
    manifest: &Manifest,
    arguments: &Run,
) -> Result<Vec<Applied>, ApplyError> {
    let client = plane.client();
    let namespace = arguments.namespace.as_deref().unwrap_or("default");
    // A job that would be refused is refused before anything else is there.
    if let Some(job) = manifest.job {
        apply::check(&client, &manifest.objects[job], namespace).await?;
    }
    let mut all: Vec<Applied> = Vec::new();
    for (index, object) in manifest.objects.iter().enumerate() {
        let role = match manifest.job {
            Some(job) if job == index => Role::Job,
            Some(_) | None => Role::Beside,
        };
        match apply::apply(&client, object, role, namespace).await {
            Ok(applied) => all.push(applied),
            Err(ApplyError::Refused(complaint)) => {
                let file = arguments.file.display();
                let complaint = complaint.help(format!("in {file}, document {}", index + 1));
                return Err(ApplyError::Refused(with_applied(complaint, &all)));
            }
            Err(error @ ApplyError::Away(_)) => return Err(error),
        }
    }
    Ok(all)
}

fn with_applied(complaint: Complaint, applied: &[Applied]) -> Complaint {
    if applied.is_empty() {
        return complaint;
    }
    let names: Vec<&str> = applied.iter().map(|it| &*it.object).collect();
    complaint.help(format!("applied before it, and kept: {}", names.join(", ")))
}

/// What is followed: the job, else a cluster or a pod until it is ready.
fn target(
    manifest: &Manifest,
    applied: &[Applied],
    is_repeated: bool,
) -> Result<Option<Target>, Complaint> {
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
    if found.how == How::Unchanged && manifest.job.is_some() && !is_repeated {
        let mut snapshot = Snapshot::default();
        snapshot.take(Seen::Put(target.kind, found.value.clone()));
        if let Some(outcome) = outcome::of(&target.parts(&snapshot)) {
            return Err(has_run(&target, outcome.word));
        }
    }
    Ok(Some(target))
}

fn has_run(target: &Target, how: &str) -> Complaint {
    let (name, namespace) = (target.word(), &target.namespace);
    Complaint::new(format!("{name} has run already: {how}"))
        .help(format!("to run it again delete it first: kubectl delete {name} -n {namespace}"))
        .help("with --rm a run deletes what it applied; with metadata.generateName each run has a name of its own")
}
