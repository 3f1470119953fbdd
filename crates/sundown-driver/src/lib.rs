//! The tokio shell of the engine: carries out effects, feeds inputs, chooses nothing.
//!
//! It speaks to any API server through a `kube::Client` and knows none in particular; time and the
//! read-index barrier are ports, so that an embedded server can bring its own.

mod barrier;
mod clock;
mod connect;
pub mod controllers;
mod counters;
mod driver;
mod effects;
mod handle;
mod listen;
mod log;
pub mod lookup;
mod ports;
mod ray;
mod recorder;
mod requests;
mod watch;

pub use barrier::{Barrier, ListBarrier};
pub use clock::{Clock, SystemClock};
pub use connect::{ConnectError, Connection, connect};
pub use counters::Counts;
pub use driver::Driver;
pub use handle::{DriverHandle, Ended, WaitError};
pub use ports::{NodePort, Ports, RayPort};
pub use ray::{Dashboards, Dial, OwnNetwork};
pub use recorder::{FLIGHT_BYTES_MAX, Flight, FlightError, Recorder, RecorderError, read_flight};
