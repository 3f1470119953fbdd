//! The shipped binary as a user calls it.

mod commands;
mod db;
mod dependencies;
mod node_end_to_end;
mod process;
mod run_end_to_end;
mod up;
