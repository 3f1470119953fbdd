//! More actions than a decision may carry.

use sundown_model::{Action, Decision};

fn crowd(actions: Vec<Action>) -> Decision<()> {
    let mut decision = Decision::idle(());
    decision.actions = actions;
    decision
}

fn main() {
    crowd(Vec::new());
}
