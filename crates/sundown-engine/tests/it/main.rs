//! The engine with a toy controller and a server that is a table of answers: every input is chosen
//! by the test, and every effect is judged.

mod backoff;
mod barriers;
mod births;
mod brake;
mod broken;
mod cache;
mod discovery;
mod exit;
mod failed;
mod flight;
mod leadership;
mod list_watch;
mod ports;
mod redaction;
mod relist;
mod rest;
mod rig;
mod toy;
mod wire_answers;
mod wire_calls;
mod wire_discovery;
mod wire_lines;
mod wire_writes;
