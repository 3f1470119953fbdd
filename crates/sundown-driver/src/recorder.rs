//! The flight recorder: a ring of two files in one directory. What a line holds, and that it holds
//! no secret, is decided by the engine's `flight`.

mod read;

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sundown_engine::Engine;
use sundown_engine::flight::{Record, Veil};

pub use read::{Flight, FlightError, read_flight};

/// How many bytes of turns one file holds; two files are kept.
///
/// The checkpoint that a file begins with comes on top, because a cache that is larger than the
/// bound would otherwise begin a new file with every turn. More would record a longer past.
pub const FLIGHT_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The file that is written.
pub(crate) const CURRENT: &str = "flight.jsonl";
/// The one before it.
pub(crate) const PREVIOUS: &str = "flight.previous.jsonl";

/// Writes the turns of an engine.
///
/// A failure ends the recording with a word in the log, never the controllers.
#[derive(Debug)]
pub struct Recorder {
    directory: PathBuf,
    bytes_max: u64,
    veil: Veil,
    file: Option<BufWriter<File>>,
    turn_bytes: u64,
}

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
#[error("record the flight in {}", directory.display())]
pub struct RecorderError {
    directory: PathBuf,
    #[source]
    source: io::Error,
}

impl Recorder {
    /// A recorder in this directory, which is made if need be. An earlier flight becomes the
    /// previous one.
    pub fn create(directory: &Path) -> Result<Self, RecorderError> {
        let failed = |source| RecorderError {
            directory: directory.to_owned(),
            source,
        };
        // What is recorded tells what the user's jobs are called and how they went.
        let mut private = fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut private, 0o700);
        let made = private.recursive(true).create(directory);
        made.map_err(failed)?;
        let mut recorder = Self {
            directory: directory.to_owned(),
            bytes_max: FLIGHT_BYTES_MAX,
            veil: veil(),
            file: None,
            turn_bytes: 0,
        };
        recorder.open().map_err(failed)?;
        Ok(recorder)
    }

    /// The same recorder with another bound on the turns of one file.
    #[must_use]
    pub fn bytes_max(self, bytes_max: u64) -> Self {
        Self { bytes_max, ..self }
    }

    /// Writes the first line of a file.
    pub(crate) fn begin(&mut self, engine: &Engine, at: Timestamp) {
        self.write(&Record::begin(engine, at, &self.veil));
        self.turn_bytes = 0;
    }

    /// Writes a turn; begins a new file, from the engine as it is now, when this one is full.
    pub(crate) fn turn(&mut self, turn: &Record, engine: &Engine, now: Timestamp) {
        self.write(turn);
        if self.turn_bytes > self.bytes_max {
            let opened = self.open();
            self.check(opened);
            self.begin(engine, now);
        }
    }

    /// Hands everything to the operating system.
    pub(crate) fn flush(&mut self) {
        let flushed = self.file.as_mut().map_or(Ok(()), BufWriter::flush);
        self.check(flushed);
    }

    fn write(&mut self, record: &Record) {
        let Some(file) = &mut self.file else {
            return;
        };
        let line = record.line(&self.veil) + "\n";
        self.turn_bytes += line.len() as u64;
        let written = file.write_all(line.as_bytes());
        self.check(written);
    }

    /// Opens a new current file; the one before it becomes the previous one.
    fn open(&mut self) -> io::Result<()> {
        if let Some(mut file) = self.file.take() {
            file.flush()?;
        }
        let current = self.directory.join(CURRENT);
        match fs::rename(&current, self.directory.join(PREVIOUS)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.file = Some(BufWriter::new(create_private(&current)?));
        Ok(())
    }

    fn check(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            tracing::warn!(%error, directory = %self.directory.display(), "the flight recorder ends");
            self.file = None;
        }
    }
}

/// The key of the marks is drawn at random, stays in this process and ends with it: what a record hides
/// can be compared within the record and guessed from nothing.
fn veil() -> Veil {
    let key = RandomState::new();
    Veil::new(move |text| key.hash_one(text))
}

/// Objects are named in it, so nobody else may read it.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use jiff::Timestamp;
    use sundown_engine::flight::Record;
    use sundown_engine::{Config, Engine, Input};

    use super::{CURRENT, PREVIOUS, Recorder, read_flight};

    const AT: Timestamp = Timestamp::UNIX_EPOCH;

    fn a_turn() -> Record {
        Record::Turn {
            at: AT,
            inputs: vec![Input::Lead(true)],
            effects: Vec::new(),
        }
    }

    #[test]
    fn keeps_two_files_that_each_begin_with_a_checkpoint() -> anyhow::Result<()> {
        let directory = tempfile::tempdir()?;
        let engine = Engine::new(Config::default());
        let mut recorder = Recorder::create(directory.path())?.bytes_max(200);
        recorder.begin(&engine, AT);
        for _ in 0..20 {
            recorder.turn(&a_turn(), &engine, AT);
        }
        recorder.flush();
        for name in [PREVIOUS, CURRENT] {
            let path = directory.path().join(name);
            let mode = std::fs::metadata(&path)?.permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
            let flight = read_flight(&path)?;
            assert!(
                matches!(flight.records[0], Record::Begin { .. }),
                "{name} begins with a checkpoint"
            );
            assert!(flight.records.len() < 10, "{name} is bounded");
        }
        let names = std::fs::read_dir(directory.path())?.count();
        assert_eq!(names, 2, "nothing but the ring");
        Ok(())
    }

    #[test]
    fn a_new_life_keeps_the_flight_of_the_one_before() -> anyhow::Result<()> {
        let directory = tempfile::tempdir()?;
        let engine = Engine::new(Config::default());
        for _ in 0..2 {
            let mut recorder = Recorder::create(directory.path())?;
            recorder.begin(&engine, AT);
            recorder.turn(&a_turn(), &engine, AT);
            recorder.flush();
        }
        assert_eq!(read_flight(directory.path())?.records.len(), 4);
        Ok(())
    }
}
