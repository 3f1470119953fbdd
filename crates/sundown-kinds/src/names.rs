//! Names of what is made: upstream's forms, cut where upstream cuts them.
//!
//! Random parts are passed in. Names of `RayJob`s and `RayCluster`s are checked in their `validate`.

use crate::constants::{SUFFIX_ALPHABET, SUFFIX_LENGTH};

/// Longer prefixes are cut: Kubernetes appends five characters, and `-worker-` takes eight.
const PREFIX_MAX: usize = 50;
const LABEL_MAX: usize = 63;

/// Which part of a cluster a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeType {
    Head,
    Worker,
}

impl NodeType {
    /// As it stands in labels and names.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Worker => "worker",
        }
    }
}

/// A random suffix out of as many random bytes as it is long; each byte picks a character.
pub fn suffix(random: [u8; SUFFIX_LENGTH]) -> String {
    let pick = |byte: u8| char::from(SUFFIX_ALPHABET[usize::from(byte) % SUFFIX_ALPHABET.len()]);
    random.into_iter().map(pick).collect()
}

/// A name with a random suffix: of a `RayJob`'s cluster, of its submission, of a replica.
pub fn with_suffix(name: &str, suffix: &str) -> String {
    format!("{name}-{suffix}")
}

/// What the names of heads begin with; also the whole name of one that is called the same each time.
pub fn head_pod_prefix(cluster: &str) -> String {
    pod_prefix(cluster, NodeType::Head)
}

/// What the names of the workers of a group begin with.
pub fn worker_pod_prefix(cluster: &str, group: &str) -> String {
    pod_prefix(&format!("{cluster}-{group}"), NodeType::Worker)
}

fn pod_prefix(prefix: &str, node_type: NodeType) -> String {
    format!("{}-{}", first(prefix, PREFIX_MAX), node_type.as_str()).to_lowercase()
}

/// The service of a head, of a cluster or of a `RayJob`.
pub fn head_service(owner: &str) -> String {
    format!("{owner}-head-svc")
}

/// The service of groups with several hosts.
pub fn headless_service(cluster: &str) -> String {
    format!("{cluster}-headless")
}

/// The value of the identifier label: the end of it, where it is too long.
pub fn identifier(owner: &str, node_type: NodeType) -> String {
    label_value(&format!("{owner}-{}", node_type.as_str()))
}

/// A text as the value of a label: its end, and a letter for a mark at the front.
pub fn label_value(text: &str) -> String {
    let kept = last(text, LABEL_MAX);
    match kept.strip_prefix(|c: char| c.is_ascii_punctuation()) {
        Some(rest) => format!("r{rest}"),
        None => kept.to_owned(),
    }
}

/// A text as the name of an object: its end, and a letter for a digit or mark at the front.
pub fn object_name(text: &str) -> String {
    let kept = last(text, PREFIX_MAX);
    match kept.strip_prefix(|c: char| c.is_ascii_punctuation() || c.is_ascii_digit()) {
        Some(rest) => format!("r{rest}"),
        None => kept.to_owned(),
    }
}

/// Where pods of the cluster find a service.
pub fn domain_name(service: &str, namespace: &str, cluster_domain: &str) -> String {
    format!("{service}.{namespace}.svc.{cluster_domain}")
}

// Names are ASCII; a text that is not is cut before the character that does not fit.
fn first(text: &str, bytes_max: usize) -> &str {
    let ends = (0..=bytes_max.min(text.len())).rev();
    ends.into_iter()
        .find_map(|end| text.get(..end))
        .unwrap_or("")
}

fn last(text: &str, bytes_max: usize) -> &str {
    let starts = text.len().saturating_sub(bytes_max)..=text.len();
    starts
        .into_iter()
        .find_map(|start| text.get(start..))
        .unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_called_after_the_first_fifty_characters() {
        let long = "c".repeat(53);
        assert_eq!(head_pod_prefix("Demo"), "demo-head");
        assert_eq!(head_pod_prefix(&long), format!("{}-head", "c".repeat(50)));
        assert_eq!(worker_pod_prefix("demo", "GPU"), "demo-gpu-worker");
        let worker = worker_pod_prefix(&long, "small");
        assert_eq!(worker, format!("{}-worker", "c".repeat(50)));
    }

    #[test]
    fn services_of_the_longest_names_are_not_cut() {
        let longest = "c".repeat(53);
        assert_eq!(head_service(&longest), format!("{longest}-head-svc"));
        assert!(head_service(&longest).len() <= 63);
    }

    #[test]
    fn labels_keep_the_end_and_start_with_a_letter_or_digit() {
        let long = format!("a-{}", "b".repeat(62));
        assert_eq!(label_value(&long), format!("r{}", "b".repeat(62)));
        assert_eq!(identifier("demo", NodeType::Head), "demo-head");
    }

    #[test]
    fn object_names_keep_the_last_fifty_and_start_with_a_letter() {
        assert_eq!(
            object_name(&format!("{}9{}", "x".repeat(9), "y".repeat(49))),
            { format!("r{}", "y".repeat(49)) }
        );
        assert_eq!(object_name("plain"), "plain");
        assert_eq!(object_name(""), "");
    }

    #[test]
    fn suffixes_use_the_alphabet_only() {
        assert_eq!(suffix([0, 1, 26, 27, 255]), "bc9bq");
        assert_eq!(with_suffix("job", "bc9bc"), "job-bc9bc");
    }

    #[test]
    fn texts_that_are_not_ascii_are_cut_between_characters() {
        assert_eq!(first("aé", 2), "a");
        assert_eq!(last("éa", 2), "a");
    }
}
