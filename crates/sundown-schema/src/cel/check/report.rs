//! Faults of an expression as upstream's compiler shows them.

use super::super::parse::Fault;

/// All faults of an expression, each with its place.
pub(super) fn told(text: &str, faults: &[Fault]) -> String {
    let mut faults: Vec<&Fault> = faults.iter().collect();
    faults.sort_by_key(|fault| fault.at);
    let told: Vec<String> = faults.into_iter().map(|fault| one(text, fault)).collect();
    format!("compilation failed: {}", told.join("\n"))
}

fn one(text: &str, fault: &Fault) -> String {
    let before = text.get(..fault.at).unwrap_or(text);
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or("").chars().count();
    let shown = text.lines().nth(line).unwrap_or("");
    let dots = ".".repeat(column);
    format!(
        "ERROR: <input>:{}:{}: {}\n | {shown}\n | {dots}^",
        line + 1,
        column + 1,
        fault.why
    )
}
