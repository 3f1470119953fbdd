//! The shipped binary as a user calls it.

mod access_end_to_end;
mod checkout;
mod commands;
mod db;
mod dependencies;
mod down_end_to_end;
mod explain_end_to_end;
mod first_day_end_to_end;
mod foreign;
mod foreign_sockets;
mod home;
mod hostile_manifests_end_to_end;
mod node_end_to_end;
mod other_users;
mod plane;
mod process;
mod removal_end_to_end;
mod run_end_to_end;
mod up;
