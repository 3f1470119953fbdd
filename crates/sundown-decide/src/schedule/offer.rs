//! What the node offers to pods: what the user says, else what follows from the machine.

use serde_json::{Value, json};
use sundown_model::Quantity;

/// Requests are about fairness here: nothing holds a process to its request, the kernel shares the cores
/// among all that want to run, and public manifests ask for a cluster's cores. So the machine's cores are
/// offered several times over. A job that fails because it gets its cores too late would change our mind.
const CPU_FACTOR: u64 = 4;
/// The least that is offered: a small machine, too, runs the usual manifest of a head, a few workers and a
/// submitter.
const CPU_COUNT_MIN: u64 = 8;
/// How many pods there may be at once: the kubelet's default.
const POD_COUNT: u64 = 110;
/// Less memory is no offer but a unit that was forgotten.
const MEMORY_BYTES_MIN: i64 = 1 << 20;

/// The label of the Node object that says how many cores the machine has, whatever is offered: so many
/// heavy pods may start at once.
pub const CORES_LABEL: &str = "sundown.dev/cores";

/// What the user asked for; None: what follows from the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked {
    pub cpus: Option<Quantity>,
    pub memory: Option<Quantity>,
}

/// What the machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    pub cores: u64,
    pub memory_kilobytes: u64,
}

/// What pods are offered, as the Node object says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    cpus: String,
    memory: String,
}

impl Offer {
    /// What is asked for, else what follows from the machine.
    pub fn of(asked: Asked, machine: Machine) -> Self {
        let usual = machine.cores.saturating_mul(CPU_FACTOR).max(CPU_COUNT_MIN);
        let cpus = asked
            .cpus
            .map_or_else(|| usual.to_string(), Quantity::canonical);
        let memory = asked.memory.map_or_else(
            || format!("{}Ki", machine.memory_kilobytes),
            Quantity::canonical,
        );
        Self { cpus, memory }
    }

    /// As `capacity` and `allocatable` of a node.
    pub fn to_json(&self) -> Value {
        json!({ "cpu": self.cpus, "memory": self.memory, "pods": POD_COUNT.to_string() })
    }
}

/// Reads how many CPUs are to be offered.
///
/// Errors: why the text is no such number.
pub fn parse_cpus(text: &str) -> Result<Quantity, String> {
    match Quantity::parse(text) {
        Some(amount) if amount.billionths() > 0 => Ok(amount),
        Some(_) => Err("it must be more than 0".to_owned()),
        None => Err("it must be a number of CPUs, such as 4 or 1500m".to_owned()),
    }
}

/// Reads how much memory is to be offered.
///
/// Errors: why the text is no such amount.
pub fn parse_memory(text: &str) -> Result<Quantity, String> {
    match Quantity::parse(text) {
        Some(amount) if amount.value() >= MEMORY_BYTES_MIN => Ok(amount),
        Some(_) => Err(format!(
            "less than 1Mi; is a unit missing, as in {}Gi?",
            text.trim().trim_start_matches(['-', '+'])
        )),
        None => Err("it must be an amount of memory, such as 8Gi or 512Mi".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: Machine = Machine {
        cores: 2,
        memory_kilobytes: 4096,
    };

    fn offered(asked: Asked, machine: Machine) -> (String, String) {
        let Offer { cpus, memory } = Offer::of(asked, machine);
        (cpus, memory)
    }

    #[test]
    fn more_cpus_are_offered_than_the_machine_has_and_its_memory_as_it_is() {
        let usual = |cores| offered(Asked::default(), Machine { cores, ..MACHINE });
        assert_eq!(usual(1), ("8".into(), "4096Ki".into()));
        assert_eq!(usual(2), ("8".into(), "4096Ki".into()));
        assert_eq!(usual(16), ("64".into(), "4096Ki".into()));
    }

    #[test]
    fn what_the_user_says_counts() {
        let asked = Asked {
            cpus: Some(parse_cpus("1500m").unwrap()),
            memory: Some(parse_memory("0.5Gi").unwrap()),
        };
        assert_eq!(offered(asked, MACHINE), ("1500m".into(), "512Mi".into()));
        let json = Offer::of(asked, MACHINE).to_json();
        assert_eq!(
            json,
            json!({ "cpu": "1500m", "memory": "512Mi", "pods": "110" })
        );
    }

    #[test]
    fn what_is_no_offer_is_refused_with_what_would_be_one() {
        for (text, why) in [
            ("four", "such as 4 or 1500m"),
            ("", "such as 4"),
            ("0", "more than 0"),
            ("-1", "more than 0"),
        ] {
            let said = parse_cpus(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
        for (text, why) in [
            ("8GB", "such as 8Gi"),
            ("8", "as in 8Gi?"),
            ("-8Gi", "less than 1Mi"),
        ] {
            let said = parse_memory(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
