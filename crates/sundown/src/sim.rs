//! `sundown sim`: lives in the simulator, or a recorded flight once more.

mod lives;
mod replay;

use std::process::ExitCode;

use crate::arguments::{Output, Sim};
use crate::complaint::Complaint;

pub(crate) use replay::engine_of;

// A mutated rule belongs in the simulator's lab and nowhere else.
const _: () = assert!(
    !sundown_decide::HAS_MUTANTS,
    "a shipped build has no mutants"
);

/// Does what the arguments ask for.
pub(crate) fn run(arguments: &Sim, output: Output) -> Result<ExitCode, Complaint> {
    match &arguments.replay {
        Some(path) => replay::run(path, output),
        None => lives::run(arguments, output),
    }
}
