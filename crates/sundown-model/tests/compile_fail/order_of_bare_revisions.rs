//! A comparison of revisions without saying of what.

use sundown_model::Rv;

fn main() {
    let _ = Rv::new(1) < Rv::new(2);
}
