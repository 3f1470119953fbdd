//! What pods take of what the node offers, for people and for programs.

use std::fmt;

use http::Method;
use kube::Client;
use serde::Serialize;
use serde_json::Value;
use sundown_decide::pod::NODE_NAME;
use sundown_decide::schedule::{Amounts, asked_by, taken, words};
use sundown_model::Quantity;

use crate::objects::{list_in, send, text};

/// What all pods take.
#[derive(Debug, Serialize)]
pub(super) struct Resources {
    cpu: Share,
    memory: Share,
}

/// A part of a whole, as quantities of Kubernetes.
#[derive(Debug, Serialize)]
struct Share {
    taken: String,
    offered: String,
    #[serde(skip)]
    words: String,
}

/// What one pod requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Requests {
    cpu: String,
    memory: String,
    #[serde(skip)]
    words: String,
}

impl Resources {
    /// Asks for the node; None: there is none.
    pub(super) async fn read(client: &Client, pods: &[Value]) -> Option<Self> {
        let path = format!("/api/v1/nodes/{NODE_NAME}");
        let node = send(client, Method::GET, &path, &Value::Null).await.ok()?;
        Some(Self::of(&node, pods))
    }

    pub(super) fn of(node: &Value, pods: &[Value]) -> Self {
        let all = taken(node, pods);
        let share = |name: &str| {
            let (taken, offered) = (amount(&all.taken, name), amount(&all.offered, name));
            let bare = words(name, taken);
            let bare = bare.split(' ').next().unwrap_or_default();
            Share {
                words: format!("{bare} of {}", words(name, offered)),
                taken: quantity(name, taken),
                offered: quantity(name, offered),
            }
        };
        Self {
            cpu: share("cpu"),
            memory: share("memory"),
        }
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.cpu.words, self.memory.words)
    }
}

impl Requests {
    /// Of a pod.
    pub(super) fn of(pod: &Value) -> Self {
        let all = asked_by(pod);
        let (cpu, memory) = (amount(&all, "cpu"), amount(&all, "memory"));
        Self {
            words: format!("{}, {}", words("cpu", cpu), words("memory", memory)),
            cpu: quantity("cpu", cpu),
            memory: quantity("memory", memory),
        }
    }
}

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

/// Why a pod has no node, if it is a pod and has none.
pub(super) fn misfit(pod: &Value) -> Option<String> {
    let mut conditions = list_in(pod, "/status/conditions").iter();
    let own = conditions.find(|it| it["type"] == "PodScheduled" && it["status"] == "False");
    own.map(|it| text(it, "/message").to_owned())
}

fn amount(all: &Amounts, name: &str) -> i128 {
    all.get(name).copied().unwrap_or(0)
}

/// Thousandths, as Kubernetes writes them; bytes in binary units.
fn quantity(name: &str, milli: i128) -> String {
    let decimal = Quantity::of_billionths(milli.saturating_mul(1_000_000));
    let binary = || Quantity::parse(&format!("{}Ki", decimal.value() / 1024));
    let is_whole = name == "memory" && decimal.value() % 1024 == 0;
    let amount = is_whole.then(binary).flatten().unwrap_or(decimal);
    amount.canonical()
}
