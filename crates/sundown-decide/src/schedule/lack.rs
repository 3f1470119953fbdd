//! What a pod lacks on the node, in figures, and what the user can do about it. One function says it for
//! the condition, the event, `sundown run` and `sundown explain`.

use std::fmt::Write as _;

use super::amounts::{Amounts, words};

/// How many of those that take it are named.
const TAKERS_TOLD_MAX: usize = 3;

/// A pod on the node, with what it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Taker {
    pub(super) name: String,
    pub(super) amounts: Amounts,
}

/// A resource of which there is not enough for a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Resource<'a> {
    pub(super) name: &'a str,
    /// By the pod.
    pub(super) needed: i128,
    /// By the pod and those before it that lack it as well.
    pub(super) in_line: i128,
    /// None: the node does not offer it at all.
    pub(super) offered: Option<i128>,
    pub(super) taken: i128,
}

/// What a pod asks for of resources of which there is not enough; empty when it fits.
pub(super) fn lacks(requests: &Amounts, offered: &Amounts, taken: &Amounts) -> Amounts {
    let is_lacking = |(name, needed): &(&String, &i128)| {
        let has = offered.get(*name).copied();
        // A node that does not say how many pods it takes takes any number.
        let has = has.or((*name == "pods").then_some(i128::MAX));
        let taken = taken.get(*name).copied().unwrap_or(0);
        **needed > 0 && taken.saturating_add(**needed) > has.unwrap_or(0)
    };
    let lacking = requests.iter().filter(is_lacking);
    lacking
        .map(|(name, needed)| (name.clone(), *needed))
        .collect()
}

/// That there is not enough, in upstream's words.
pub(super) fn obstacle(name: &str) -> String {
    match name {
        "pods" => "1 Too many pods".to_owned(),
        name => format!("1 Insufficient {name}"),
    }
}

/// What a pod lacks, in figures, and what to do about it.
pub(super) fn advice(lack: &Resource<'_>, takers: &[Taker]) -> String {
    let name = lack.name;
    let needs = words(name, lack.needed);
    let Some(offered) = lack.offered else {
        return format!(
            "It needs {needs}, which this node does not offer; take it out of the requests"
        );
    };
    if name == "pods" {
        let count = words(name, offered);
        return format!("The node already runs {count}, its maximum; delete some");
    }
    let free = offered.saturating_sub(lack.taken).max(0);
    let (free, all) = (bare(name, free), bare(name, offered));
    let mut text = format!("It needs {needs}, {free} of {all} free");
    text.push_str(&told(takers, name));
    text.push_str("; lower the requests");
    // The node offers what it was started with: a flag beside a control plane that is up changes nothing. No command is
    // told: pasted, it would end the control plane of another data directory.
    if let Some(flag) = flag(name, lack.taken.saturating_add(lack.in_line)) {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            ", or offer more: stop this control plane and start it again with {flag}"
        );
    }
    text
}

/// The flag that offers so much.
fn flag(name: &str, wanted: i128) -> Option<String> {
    match name {
        "cpu" => Some(format!("--cpus {}", ceil(wanted, 1_000))),
        "memory" => Some(format!("--memory {}Gi", ceil(wanted, 1_000 << 30))),
        _ => None,
    }
}

/// Who takes it, the largest first.
fn told(takers: &[Taker], name: &str) -> String {
    let amount = |it: &Taker| it.amounts.get(name).copied().unwrap_or(0);
    let mut takers: Vec<&Taker> = takers.iter().filter(|it| amount(it) > 0).collect();
    takers.sort_by(|one, other| {
        let order = amount(other).cmp(&amount(one));
        order.then_with(|| one.name.cmp(&other.name))
    });
    let named = takers.iter().take(TAKERS_TOLD_MAX);
    let mut named: Vec<String> = named
        .map(|it| format!("{} {}", it.name, bare(name, amount(it))))
        .collect();
    let others = takers.len().saturating_sub(TAKERS_TOLD_MAX);
    if others > 0 {
        let rest = takers.iter().skip(TAKERS_TOLD_MAX).copied();
        let rest = rest.fold(0, |sum: i128, it| sum.saturating_add(amount(it)));
        named.push(format!("{others} more {}", bare(name, rest)));
    }
    if named.is_empty() {
        return String::new();
    }
    format!(" ({})", named.join(", "))
}

/// An amount without its unit where the sentence has it already.
fn bare(name: &str, milli: i128) -> String {
    let words = words(name, milli);
    let bare = words.split(' ').next().unwrap_or(&words);
    bare.to_owned()
}

fn ceil(milli: i128, unit: i128) -> i128 {
    milli.saturating_add(unit - 1) / unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::amounts::{read, sum};
    use serde_json::{Value, json};

    fn amounts(json: &Value) -> Amounts {
        read(Some(json))
    }

    fn taker(name: &str, json: &Value) -> Taker {
        Taker {
            name: name.into(),
            amounts: amounts(json),
        }
    }

    fn said(requests: &Value, offered: &Value, takers: &[Taker]) -> Vec<(String, String)> {
        said_in_line(requests, offered, takers, &Amounts::new())
    }

    fn said_in_line(
        requests: &Value,
        offered: &Value,
        takers: &[Taker],
        before: &Amounts,
    ) -> Vec<(String, String)> {
        let offered = amounts(offered);
        let mut taken = Amounts::new();
        for taker in takers {
            sum(&mut taken, &taker.amounts);
        }
        let lacking = lacks(&amounts(requests), &offered, &taken);
        let said = lacking.iter().map(|(name, needed)| {
            let lack = Resource {
                name,
                needed: *needed,
                in_line: needed + before.get(name).copied().unwrap_or(0),
                offered: offered.get(name).copied(),
                taken: taken.get(name).copied().unwrap_or(0),
            };
            (obstacle(name), advice(&lack, takers))
        });
        said.collect()
    }

    fn advice_of(requests: &Value, offered: &Value, takers: &[Taker]) -> String {
        let mut all = said(requests, offered, takers);
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0).1
    }

    #[test]
    fn what_fits_lacks_nothing() {
        let one = [taker("a", &json!({ "cpu": "1" }))];
        let has = json!({ "cpu": "2", "memory": "1Gi" });
        assert!(said(&json!({ "cpu": "1", "memory": "1Gi" }), &has, &one).is_empty());
        // Nothing is asked for, so nothing is missing.
        assert!(said(&json!({ "gpu": "0", "pods": "1" }), &has, &one).is_empty());
    }

    /// `RayJob`s of 1 + 1 CPUs whose submitter of 500m waited for ever, with `1 Insufficient cpu` and no figure.
    #[test]
    fn needed_free_takers_and_what_to_do_are_said() {
        let takers = [
            taker("worker", &json!({ "cpu": "1" })),
            taker("head", &json!({ "cpu": "1" })),
        ];
        let has = json!({ "cpu": "2" });
        let [(obstacle, advice)] = &said(&json!({ "cpu": "500m" }), &has, &takers)[..] else {
            panic!("one lack");
        };
        assert_eq!(obstacle, "1 Insufficient cpu");
        assert_eq!(
            advice,
            "It needs 0.5 CPU, 0 of 2 free (head 1, worker 1); lower the requests, or offer more: \
             stop this control plane and start it again with --cpus 3"
        );
    }

    #[test]
    fn memory_is_told_in_the_units_of_people() {
        let takers = [taker("a", &json!({ "memory": "1536Mi" }))];
        let has = json!({ "memory": "2Gi" });
        assert_eq!(
            advice_of(&json!({ "memory": "700Mi" }), &has, &takers),
            "It needs 700Mi memory, 512Mi of 2Gi free (a 1.5Gi); lower the requests, or offer more: \
             stop this control plane and start it again with --memory 3Gi"
        );
    }

    /// Who followed the advice had the next pod in line that did not fit.
    #[test]
    fn what_is_advised_is_enough_for_those_before_it_too() {
        let takers = [taker("head", &json!({ "cpu": "8" }))];
        let (asks, has) = (json!({ "cpu": "4" }), json!({ "cpu": "8" }));
        let all = said_in_line(&asks, &has, &takers, &amounts(&json!({ "cpu": "4" })));
        assert!(all[0].1.ends_with("again with --cpus 16"), "{all:?}");
    }

    #[test]
    fn only_the_largest_takers_are_named() {
        let takers: Vec<Taker> = (0..5)
            .map(|number| taker(&format!("p{number}"), &json!({ "cpu": number })))
            .collect();
        let text = advice_of(&json!({ "cpu": "1" }), &json!({ "cpu": "10" }), &takers);
        assert!(
            text.contains("0 of 10 free (p4 4, p3 3, p2 2, 1 more 1)"),
            "{text}"
        );
    }

    #[test]
    fn less_may_be_offered_than_is_taken() {
        let takers = [taker("a", &json!({ "cpu": "4" }))];
        let text = advice_of(&json!({ "cpu": "1" }), &json!({ "cpu": "2" }), &takers);
        assert!(text.contains("0 of 2 free (a 4)"), "{text}");
        assert!(text.ends_with("again with --cpus 5"), "{text}");
    }

    #[test]
    fn what_no_flag_offers_is_not_advised() {
        let text = advice_of(&json!({ "nvidia.com/gpu": 1 }), &json!({ "cpu": "2" }), &[]);
        assert_eq!(
            text,
            "It needs 1 nvidia.com/gpu, which this node does not offer; take it out of the requests"
        );
        let full = [taker("a", &json!({ "pods": "1" }))];
        let text = advice_of(&json!({ "pods": "1" }), &json!({ "pods": "1" }), &full);
        assert_eq!(
            text,
            "The node already runs 1 pods, its maximum; delete some"
        );
    }
}
