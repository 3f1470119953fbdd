//! The way out of pods, for pip: a proxy behind the node's door, told to it by its own settings together
//! with the index and the certificates that the host uses. Never as `http_proxy`, which Ray would
//! follow for its own connections.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use sundown_node::environment::without_userinfo;
use sundown_node::{EgressRules, Node, NodeError, is_shown};

use super::link::Link;

/// Where pods find the proxy, at the address of the bridge.
const PORT: u16 = 3128;

/// How long to wait before an address is tried again that could not be had.
const PAUSE: Duration = Duration::from_millis(100);

/// What of the host's settings holds inside a pod too.
const PASSED: [&str; 5] = [
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_TRUSTED_HOST",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_RETRIES",
];
/// Those that are addresses, which may hold a user name and a password.
const ADDRESSES: [&str; 2] = ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"];
/// Names of files, which have to be visible inside.
const PASSED_FILES: [&str; 2] = ["PIP_CERT", "REQUESTS_CA_BUNDLE"];

/// The host's settings, as far as they matter to pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Egress {
    settings: Vec<(String, String)>,
    rules: EgressRules,
}

impl Egress {
    /// Of the variables of this process.
    pub(crate) fn of_host(has_credentials: bool) -> Self {
        // A variable that is no text is none of pip's.
        let text = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self::of(&text.collect(), has_credentials)
    }

    /// Code in any pod reads what pods get, so user names and passwords are left out unless the user
    /// wants otherwise.
    fn of(host: &BTreeMap<String, String>, has_credentials: bool) -> Self {
        let passed = PASSED.iter().filter_map(|name| host.get_key_value(*name));
        let files = PASSED_FILES
            .iter()
            .filter_map(|name| host.get_key_value(*name))
            .filter(|(_, path)| is_shown(Path::new(path)));
        let settings = passed.chain(files);
        let indexes = ADDRESSES.iter().filter_map(|name| host.get(*name));
        let indexes = indexes.flat_map(|urls| urls.split_whitespace());
        let loopback: BTreeSet<String> = indexes.filter_map(target).collect();
        Self {
            settings: settings
                .map(|(name, value)| {
                    let is_bare = !has_credentials && ADDRESSES.contains(&&**name);
                    let value = if is_bare { bare(value) } else { value.clone() };
                    (name.clone(), value)
                })
                .collect(),
            rules: EgressRules { loopback },
        }
    }

    /// What tells pip in a pod about it.
    pub(super) fn variables(&self, bridge: Ipv4Addr) -> Vec<(String, String)> {
        let proxy = ("PIP_PROXY".to_owned(), format!("http://{bridge}:{PORT}"));
        self.settings.iter().cloned().chain([proxy]).collect()
    }
}

/// A list of addresses without user names and passwords.
fn bare(addresses: &str) -> String {
    let bare: Vec<String> = addresses.split_whitespace().map(without_userinfo).collect();
    bare.join(" ")
}

/// What a program asks a proxy for, to reach a server. An index on this machine's loopback is reached by
/// pods too, because its owner named it.
fn target(url: &str) -> Option<String> {
    let url: Uri = url.parse().ok()?;
    let usual = if url.scheme_str() == Some("http") {
        80
    } else {
        443
    };
    Some(format!(
        "{}:{}",
        url.host()?,
        url.port_u16().unwrap_or(usual)
    ))
}

/// Offers it on every node that is found, as long as it is polled.
pub(crate) async fn serve(egress: Egress, link: Arc<Link>) {
    let mut found = link.found();
    let mut offered = None;
    while found.changed().await.is_ok() {
        let node = found.borrow_and_update().clone();
        // The old one first: it may hold the address.
        drop(offered.take());
        if let Some(node) = node {
            offered = offer(&egress, &node).await;
        }
    }
}

/// None: that node is gone, wait for another.
async fn offer(egress: &Egress, node: &Node) -> Option<sundown_node::Egress> {
    let at = SocketAddrV4::new(node.bridge(), PORT);
    let mut is_told = false;
    loop {
        match node.offer_egress(at, egress.rules.clone()).await {
            Ok(offered) => return Some(offered),
            // A Sundown that was killed holds the address until the node notices.
            Err(error @ (NodeError::Refused(_) | NodeError::Silent { .. })) => {
                if !std::mem::replace(&mut is_told, true) {
                    tracing::warn!(%error, %at, "pods have no way to a package index yet");
                }
                tokio::time::sleep(PAUSE).await;
            }
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(variables: &[(&str, &str)]) -> Egress {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Egress::of(&variables.iter().map(own).collect(), false)
    }

    /// Every container had the password of a private index in its environment.
    #[test]
    fn pods_get_an_index_without_its_password_unless_the_user_wants_otherwise() {
        let host = BTreeMap::from([
            ("PIP_INDEX_URL", "https://user:word@a.example/simple"),
            (
                "PIP_EXTRA_INDEX_URL",
                "https://b.example https://token@c.example/x",
            ),
            ("PIP_TRUSTED_HOST", "a.example"),
        ]);
        let own = |(name, value): (&&str, &&str)| ((*name).to_owned(), (*value).to_owned());
        let host: BTreeMap<String, String> = host.iter().map(own).collect();
        let told = |has_credentials| {
            let egress = Egress::of(&host, has_credentials);
            let told: BTreeMap<_, _> = egress.variables(Ipv4Addr::LOCALHOST).into_iter().collect();
            (
                told["PIP_INDEX_URL"].clone(),
                told["PIP_EXTRA_INDEX_URL"].clone(),
            )
        };
        let (index, further) = told(false);
        assert_eq!(index, "https://a.example/simple");
        assert_eq!(further, "https://b.example https://c.example/x");
        assert_eq!(told(true).0, host["PIP_INDEX_URL"]);
        assert_eq!(told(true).1, host["PIP_EXTRA_INDEX_URL"]);
    }

    #[test]
    fn pip_is_told_of_the_proxy_and_of_the_hosts_index() {
        let egress = host(&[
            ("PIP_INDEX_URL", "https://user:word@127.0.0.1:8443/simple"),
            ("PIP_CERT", "/etc/ssl/certs/ca-certificates.crt"),
            ("REQUESTS_CA_BUNDLE", "/etc/ssl/private/ca.pem"),
            ("HTTPS_PROXY", "http://elsewhere:1"),
        ]);
        let told = egress.variables(Ipv4Addr::new(10, 88, 0, 1));
        let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["PIP_INDEX_URL", "PIP_CERT", "PIP_PROXY"]);
        assert_eq!(told[2].1, "http://10.88.0.1:3128");
        assert_eq!(
            egress.rules.loopback,
            BTreeSet::from(["127.0.0.1:8443".to_owned()])
        );
    }

    #[test]
    fn without_settings_the_proxy_alone_is_told() {
        let egress = host(&[]);
        assert_eq!(egress.variables(Ipv4Addr::LOCALHOST).len(), 1);
        assert_eq!(egress.rules, EgressRules::default());
    }

    #[test]
    fn a_server_is_named_as_a_program_asks_for_it() {
        for (url, expected) in [
            ("https://index.example/simple", Some("index.example:443")),
            ("http://index.example/simple", Some("index.example:80")),
            ("https://localhost:3141/root", Some("localhost:3141")),
            ("not a url", None),
        ] {
            assert_eq!(target(url).as_deref(), expected, "{url}");
        }
    }
}
