//! What tests wait with: every wait has a bound and says what it waited for. A test that fails says
//! why; one that hangs takes the whole run with it and says nothing.
//!
//! Bounds are generous, since machines are shared and busy: reaching one is a failure, never a measurement.
//! What is waited for, and in which order, is left to the tests.

mod child;
mod wait;

pub use child::{Lines, end, output, write_program};
pub use wait::{TestBound, eventually, within};

use std::time::Duration;

/// How long a single wait may take.
pub const BOUND: Duration = Duration::from_mins(3);

/// How long a whole test may take, whatever it does.
pub const TEST_BOUND: Duration = Duration::from_mins(10);
