//! Reads a flight back. A last line that was cut off by a crash is reported, not an error; any other
//! damage is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sundown_engine::flight::Record;

use super::{CURRENT, PREVIOUS};

/// A flight, in the order in which it was flown.
#[derive(Debug, Clone, PartialEq)]
pub struct Flight {
    pub records: Vec<Record>,
    /// Files whose last line was cut off.
    pub cut_off: Vec<PathBuf>,
}

/// Why a flight cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FlightError {
    /// The file is not there or not ours to read.
    #[error("read the flight {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A line in the middle is not one of a flight record.
    #[error("{} line {line} is not of a flight record", path.display())]
    Line {
        path: PathBuf,
        line: usize,
        #[source]
        source: serde_json::Error,
    },
}

/// Reads one file of a flight, or both of a directory.
pub fn read_flight(path: &Path) -> Result<Flight, FlightError> {
    let mut flight = Flight {
        records: Vec::new(),
        cut_off: Vec::new(),
    };
    if !path.is_dir() {
        read_file(path, &mut flight)?;
        return Ok(flight);
    }
    let previous = path.join(PREVIOUS);
    if previous.exists() {
        read_file(&previous, &mut flight)?;
    }
    read_file(&path.join(CURRENT), &mut flight)?;
    Ok(flight)
}

fn read_file(path: &Path, flight: &mut Flight) -> Result<(), FlightError> {
    let text = fs::read_to_string(path).map_err(|source| FlightError::Read {
        path: path.to_owned(),
        source,
    })?;
    let lines: Vec<_> = text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        match serde_json::from_str(line) {
            Ok(record) => flight.records.push(record),
            Err(_) if index + 1 == lines.len() => flight.cut_off.push(path.to_owned()),
            Err(source) => {
                return Err(FlightError::Line {
                    path: path.to_owned(),
                    line: index + 1,
                    source,
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{FlightError, read_flight};

    const TURN: &str =
        r#"{"line":"turn","at":"1970-01-01T00:00:00Z","inputs":[{"Lead":true}],"effects":[]}"#;

    fn check(text: &str, expect: Result<(usize, usize), usize>) -> anyhow::Result<()> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), text)?;
        let read = match read_flight(file.path()) {
            Ok(flight) => Ok((flight.records.len(), flight.cut_off.len())),
            Err(FlightError::Line { line, .. }) => Err(line),
            Err(error) => return Err(error.into()),
        };
        assert_eq!(read, expect, "{text:?}");
        Ok(())
    }

    #[test]
    fn tolerates_a_torn_last_line_and_nothing_else() -> anyhow::Result<()> {
        check("", Ok((0, 0)))?;
        check(&format!("{TURN}\n{TURN}\n"), Ok((2, 0)))?;
        check(&format!("{TURN}\n{{\"line\":\"tu"), Ok((1, 1)))?;
        check(&format!("{TURN}\nno\n{TURN}\n"), Err(2))
    }
}
