//! A comparison of how far two resources have come.

use sundown_model::{Position, Resource, Rv};

fn main() {
    let pods = Position::new(Resource::new("", "pods"), Rv::new(1));
    let jobs = Position::new(Resource::new("batch", "jobs"), Rv::new(2));
    let _ = pods < jobs;
}
