//! The files below `/etc` that each pod has its own of.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

use crate::spec::PodSpec;

/// Their names and texts. `name_services` is the host's nsswitch.conf, where there is one.
pub(super) fn files(
    bridge: Ipv4Addr,
    spec: &PodSpec,
    address: Ipv4Addr,
    name_services: Option<&str>,
) -> BTreeMap<String, String> {
    let mut files = BTreeMap::from([
        ("hosts".to_owned(), hosts(spec, address)),
        ("hostname".to_owned(), format!("{}\n", spec.hostname)),
        ("resolv.conf".to_owned(), resolver(bridge, spec)),
    ]);
    if let Some(text) = name_services {
        files.insert("nsswitch.conf".to_owned(), without_host_services(text));
    }
    files
}

fn hosts(spec: &PodSpec, address: Ipv4Addr) -> String {
    let mut text = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n".to_owned();
    let hostname = &spec.hostname;
    let _ = match &spec.domain {
        Some(domain) => writeln!(text, "{address}\t{hostname}.{domain}\t{hostname}"),
        None => writeln!(text, "{address}\t{hostname}"),
    };
    for entry in &spec.hosts {
        let _ = writeln!(text, "{}\t{}", entry.address, entry.names.join("\t"));
    }
    text
}

fn resolver(bridge: Ipv4Addr, spec: &PodSpec) -> String {
    let search = match spec.search_domains.as_slice() {
        [] => String::new(),
        domains => format!("search {}\n", domains.join(" ")),
    };
    format!("nameserver {bridge}\n{search}options ndots:5\n")
}

/// The host may ask services that a pod cannot reach, and wait for them.
fn without_host_services(text: &str) -> String {
    let mut changed = String::with_capacity(text.len());
    for line in text.lines() {
        let is_hosts = line.trim_start().starts_with("hosts:");
        changed.push_str(if is_hosts { "hosts: files dns" } else { line });
        changed.push('\n');
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_line_of_host_names_is_changed() {
        let text = "passwd: files systemd\nhosts: files mymachines resolve dns\n";
        let changed = without_host_services(text);
        assert_eq!(changed, "passwd: files systemd\nhosts: files dns\n");
    }
}
