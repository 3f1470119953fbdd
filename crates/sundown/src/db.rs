//! `sundown db`: a look into a data directory, with the eyes of a start. Nothing in it is changed.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use sundown_disk::{Disk, Summary};
use sundown_store::Store;

use crate::arguments::{Db, DbCommand, Output};
use crate::complaint::Complaint;
use crate::{data, output};

/// What `kubectl create -f` takes for many objects.
const LIST_BEGIN: &str = r#"{"kind":"List","apiVersion":"v1","metadata":{},"items":["#;

/// What `verify` tells.
#[derive(Debug, Serialize)]
struct Verified<'a> {
    directory: &'a Path,
    revision: u64,
    objects: usize,
    events: usize,
    /// Watches can resume after this revision.
    floor: u64,
}

/// Runs one of its commands.
pub(crate) fn run(arguments: &Db, output: Output) -> Result<ExitCode, Complaint> {
    let directory = data::directory(arguments.data_dir.as_deref())?;
    if data::find(&directory)?.is_none() {
        return Err(Complaint::new("there is no data directory")
            .at(directory.display().to_string())
            .help("name one: --data-dir DIR"));
    }
    let found = Disk::inspect(&directory);
    let (summary, store) = found.map_err(|error| data::refused(&error))?;
    match arguments.what {
        DbCommand::Verify => verify(&directory, summary, output)?,
        DbCommand::Dump => dump(&store, output)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn verify(directory: &Path, summary: Summary, output: Output) -> Result<(), Complaint> {
    let verified = Verified {
        directory,
        revision: summary.revision.number(),
        objects: summary.objects,
        events: summary.events,
        floor: summary.floor.number(),
    };
    match output {
        Output::Json => output::print_json(&verified)?,
        Output::Text => output::print(&format!(
            "{} is sound\n\n  revision  {}\n  objects   {}\n  history   {} events, watches resume after {}\n",
            directory.display(),
            verified.revision,
            verified.objects,
            verified.events,
            verified.floor,
        ))?,
    }
    Ok(())
}

fn dump(store: &Store, output: Output) -> Result<(), Complaint> {
    let stdout = std::io::stdout().lock();
    let mut to = std::io::BufWriter::new(stdout);
    let (begin, between, end) = match output {
        Output::Json => (LIST_BEGIN, ",\n", "]}\n"),
        Output::Text => ("", "\n", "\n"),
    };
    to.write_all(begin.as_bytes())?;
    for (number, (_, stored)) in store.iter().enumerate() {
        if number > 0 {
            to.write_all(between.as_bytes())?;
        }
        to.write_all(stored.json())?;
    }
    to.write_all(end.as_bytes())?;
    to.flush()?;
    Ok(())
}
