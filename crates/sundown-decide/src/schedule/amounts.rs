//! Amounts by resource: read off manifests, summed as the scheduler counts them, and written for people.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::json::{items, text};
use crate::quantity;

/// Amounts by resource, in thousandths.
pub type Amounts = BTreeMap<String, i128>;

/// The parts of a pod that say what it asks for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Asking<'a> {
    pub(super) containers: Option<&'a Value>,
    pub(super) init_containers: Option<&'a Value>,
    pub(super) overhead: Option<&'a Value>,
}

/// What a pod asks for: its containers together, or its most demanding init container.
pub(super) fn requests(pod: Asking<'_>) -> Amounts {
    let mut total = Amounts::new();
    for container in items(pod.containers) {
        add(&mut total, container.pointer("/resources/requests"));
    }
    let mut beside = Amounts::new();
    let mut peak = Amounts::new();
    for container in items(pod.init_containers) {
        let own = container.pointer("/resources/requests");
        if text(container, "restartPolicy") == "Always" {
            add(&mut beside, own);
            add(&mut total, own);
            continue;
        }
        let mut now = beside.clone();
        add(&mut now, own);
        for (name, amount) in now {
            let most = peak.entry(name).or_default();
            *most = amount.max(*most);
        }
    }
    for (name, amount) in peak {
        let all = total.entry(name).or_default();
        *all = amount.max(*all);
    }
    add(&mut total, pod.overhead);
    *total.entry("pods".to_owned()).or_default() += 1_000;
    total
}

fn add(total: &mut Amounts, amounts: Option<&Value>) {
    sum(total, &read(amounts));
}

/// Adds some amounts to others.
pub(super) fn sum(total: &mut Amounts, amounts: &Amounts) {
    for (name, amount) in amounts {
        let sum = total.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*amount);
    }
}

/// Amounts as they stand in a manifest; what is no quantity is left out.
pub(super) fn read(amounts: Option<&Value>) -> Amounts {
    let amounts = amounts.and_then(Value::as_object).into_iter().flatten();
    let amount = |value: &Value| match value {
        Value::String(text) => quantity::milli(text),
        Value::Number(number) => quantity::milli(&number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let read = amounts.filter_map(|(name, value)| Some((name.clone(), amount(value)?)));
    read.collect()
}

/// An amount with its unit, as people say it: `0.5 CPU`, `1.5Gi memory`, `1 nvidia.com/gpu`.
pub fn words(name: &str, milli: i128) -> String {
    match name {
        "cpu" => format!("{} CPU", decimal(milli, 1_000, 3)),
        "memory" => format!("{} memory", binary(milli)),
        name => format!("{} {name}", decimal(milli, 1_000, 3)),
    }
}

/// So many parts of a unit, with as many digits as there are and at most so many, rounded down.
fn decimal(amount: i128, unit: i128, digits: u32) -> String {
    let scale = 10_i128.pow(digits);
    let (whole, rest) = (amount.div_euclid(unit), amount.rem_euclid(unit));
    let part = rest * scale / unit;
    let width = usize::try_from(digits).unwrap_or(0);
    let text = format!("{whole}.{part:0width$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Bytes in the largest unit of which there is one.
fn binary(milli: i128) -> String {
    let units = [("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
    let found = units.iter().find(|(_, power)| milli >= 1_000 << power);
    found.map_or_else(
        || decimal(milli, 1_000, 0),
        |(unit, power)| format!("{}{unit}", decimal(milli, 1_000 << power, 1)),
    )
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn amounts_are_written_as_people_say_them() {
        for (name, milli, expect) in [
            ("cpu", 500, "0.5 CPU"),
            ("cpu", 2_000, "2 CPU"),
            ("cpu", 10_000, "10 CPU"),
            ("cpu", 0, "0 CPU"),
            ("cpu", 1_250, "1.25 CPU"),
            ("memory", 1_000 << 30, "1Gi memory"),
            ("memory", 1_500 << 30, "1.5Gi memory"),
            ("memory", 512_000 << 20, "512Mi memory"),
            ("memory", 0, "0 memory"),
            ("memory", 100_000, "100 memory"),
            ("nvidia.com/gpu", 1_000, "1 nvidia.com/gpu"),
        ] {
            assert_eq!(words(name, milli), expect);
        }
    }
}
