//! A delete without the object that was seen.

use sundown_model::{Propagation, Write};

fn main() {
    let _ = Write::Delete { how: Propagation::Background };
}
