//! What a run says when it asks for other CPUs or memory than the control plane that it joined offers. What
//! is offered changes with a start only: a run must not change it under the pods of another.

use http::Method;
use serde_json::Value;
use sundown_decide::pod::NODE_NAME;
use sundown_model::Quantity;

use super::plane::Plane;
use crate::arguments::Offers;
use crate::kubectl::Sundown;
use crate::objects::{send, text};

/// What to tell; None if what was asked for is offered, or cannot be told.
pub(super) async fn note(plane: &Plane, asked: Offers, commands: &Sundown) -> Option<String> {
    if plane.was_started || asked == Offers::default() {
        return None;
    }
    let path = format!("/api/v1/nodes/{NODE_NAME}");
    let node = send(&plane.client(), Method::GET, &path, &Value::Null).await;
    difference(asked, &node.ok()?, commands)
}

/// The first flag that the node does not follow.
fn difference(asked: Offers, node: &Value, commands: &Sundown) -> Option<String> {
    let flags = [
        ("--cpus", "cpu", asked.cpus),
        ("--memory", "memory", asked.memory),
    ];
    flags.into_iter().find_map(|(flag, name, asked)| {
        let offered = text(node, &format!("/status/allocatable/{name}"));
        let is_so = Quantity::parse(offered)?.billionths() == asked?.billionths();
        (!is_so).then(|| {
            format!(
                "{flag} {} ignored: the running control plane offers {offered}; \
                 run `{}` first",
                asked.map_or_else(String::new, Quantity::canonical),
                commands.command("down")
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_flag_that_changes_nothing_is_told() {
        let node = json!({"status": {"allocatable": {"cpu": "8", "memory": "2Gi"}}});
        let asked = |cpus: &str, memory: &str| Offers {
            cpus: Quantity::parse(cpus),
            memory: Quantity::parse(memory),
        };
        let commands = Sundown::of(Some(Path::new("/d")));
        let difference = |asked| difference(asked, &node, &commands);
        assert_eq!(difference(asked("8000m", "2048Mi")), None);
        assert_eq!(difference(asked("", "")), None);
        let text = difference(asked("8", "4Gi")).unwrap();
        assert!(
            text.ends_with("run `sundown down --data-dir /d` first"),
            "{text}"
        );
        assert!(text.starts_with("--memory 4Gi ignored"), "{text}");
        assert!(text.contains("offers 2Gi"), "{text}");
        assert!(difference(asked("2", "")).is_some());
    }
}
