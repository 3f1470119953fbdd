//! How long it takes from nothing to the first answered list, in this process.
#![allow(clippy::print_stdout, reason = "the figure is the output")]

use std::time::Instant;

use sundown_embedded::Embedded;

/// How many starts are measured.
const STARTS: usize = 21;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut millis = Vec::new();
    for _ in 0..STARTS {
        let begun_at = Instant::now();
        let embedded = runtime.block_on(Embedded::start())?;
        millis.push(begun_at.elapsed().as_secs_f64() * 1000.0);
        runtime.block_on(embedded.stop())?;
    }
    millis.sort_by(f64::total_cmp);
    println!("{:.3}", millis[STARTS / 2]);
    Ok(())
}
