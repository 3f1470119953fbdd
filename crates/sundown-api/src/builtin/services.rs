//! Services: what they have when nobody says otherwise, the addresses and ports that are given out,
//! and what they may not have.
//!
//! Addresses are names that nobody routes until there is a node; clients rely on having one.

use core::net::{IpAddr, Ipv4Addr};
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use sundown_model::Resource;
use sundown_store::Store;

use super::place::At;
use super::{each, set};
use crate::dns;
use crate::document::Document;
use crate::field::{Errors, FieldError};

/// The addresses of services: 10.96.0.0/16, as most clusters have it.
const NETWORK: u32 = 0x0a60_0000;
const ADDRESS_COUNT: u32 = 1 << 16;
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

/// Fills in a service.
pub(super) fn default(object: &mut Document) {
    let spec = object.section("spec");
    set(spec, "sessionAffinity", json!("None"));
    set(spec, "type", json!("ClusterIP"));
    let kind = spec["type"].as_str().unwrap_or("").to_owned();
    if spec["sessionAffinity"] == "None" {
        spec.remove("sessionAffinityConfig");
    }
    if spec["sessionAffinity"] == "ClientIP" {
        let config = super::section(spec, "sessionAffinityConfig");
        set(
            super::section(config, "clientIP"),
            "timeoutSeconds",
            json!(10800),
        );
    }
    for port in each(spec, "ports") {
        set(port, "protocol", json!("TCP"));
        let target = port.get("targetPort").cloned().unwrap_or_default();
        if target == json!(0) || target == json!("") || target.is_null() {
            let own = port.get("port").cloned().unwrap_or_default();
            port.insert("targetPort".into(), own);
        }
    }
    let is_external = matches!(kind.as_str(), "NodePort" | "LoadBalancer");
    let has_addresses = spec
        .get("externalIPs")
        .and_then(Value::as_array)
        .is_some_and(|list| !list.is_empty());
    if is_external || (kind == "ClusterIP" && has_addresses) {
        set(spec, "externalTrafficPolicy", json!("Cluster"));
    }
    if is_external || kind == "ClusterIP" {
        set(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", json!(true));
    }
}

/// Gives a service what it needs and has not asked for by itself: addresses, families, ports.
pub(super) fn settle(store: &Store, old: Option<&Document>, new: &mut Document) {
    let seed = seed(&new.metadata.uid);
    let key = (new.metadata.namespace.clone(), new.metadata.name.clone());
    let old_spec = old
        .and_then(|old| old.rest.get("spec"))
        .and_then(Value::as_object);
    let spec = new.section("spec");
    if let Some(old) = old_spec {
        keep(old, spec);
    }
    let is_balanced = spec["type"] == "LoadBalancer";
    if old.is_some() && !is_balanced {
        new.section("status")
            .insert("loadBalancer".into(), json!({}));
    }
    let spec = new.section("spec");
    if spec["type"] == "ExternalName" {
        return;
    }
    let has_selector = spec
        .get("selector")
        .and_then(Value::as_object)
        .is_some_and(|map| !map.is_empty());
    let address = spec.get("clusterIP").and_then(Value::as_str).unwrap_or("");
    let first = spec
        .get("clusterIPs")
        .and_then(|list| list.get(0))
        .and_then(Value::as_str)
        .unwrap_or("");
    let address = if address.is_empty() { first } else { address }.to_owned();
    let address = if address.is_empty() {
        free_address(store, seed)
    } else {
        address
    };
    let is_headless = address == "None";
    set(spec, "clusterIP", json!(address));
    set(spec, "clusterIPs", json!([address]));
    let both = is_headless && !has_selector && old_spec.is_none();
    let policy = spec.get("ipFamilyPolicy").and_then(Value::as_str);
    let family = match address.parse() {
        Ok(IpAddr::V6(_)) => "IPv6",
        _ => "IPv4",
    };
    if both && policy.is_none_or(|policy| policy != "SingleStack") {
        set(spec, "ipFamilies", json!(["IPv4", "IPv6"]));
        set(spec, "ipFamilyPolicy", json!("RequireDualStack"));
    }
    set(spec, "ipFamilies", json!([family]));
    set(spec, "ipFamilyPolicy", json!("SingleStack"));
    let has_node_ports = spec["type"] == "NodePort"
        || (spec["type"] == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] != false);
    if has_node_ports {
        give_node_ports(store, &key, seed, spec);
    }
}

/// What an update does not name stays, as long as the type needs it.
fn keep(old: &Map<String, Value>, new: &mut Map<String, Value>) {
    let has_address = |spec: &Map<String, Value>| spec["type"] != "ExternalName";
    if has_address(old) && has_address(new) {
        for member in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if let Some(value) = old.get(member) {
                set(new, member, value.clone());
            }
        }
    }
    if !has_address(new) && has_address(old) {
        for member in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if new.get(member) == old.get(member) {
                new.remove(member);
            }
        }
    }
    drop_policies(old, new);
    let node_ports = |spec: &Map<String, Value>| {
        matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer"))
    };
    let (had, has) = (node_ports(old), node_ports(new));
    let before = old.get("ports").and_then(Value::as_array).cloned();
    for port in each(new, "ports") {
        let mut before = before.iter().flatten();
        let same =
            before.find(|it| it["port"] == port["port"] && it["protocol"] == port["protocol"]);
        let Some(number) = same.and_then(|it| it.get("nodePort")) else {
            continue;
        };
        if had && has {
            set(port, "nodePort", number.clone());
        } else if had && port.get("nodePort") == Some(number) {
            port.remove("nodePort");
        }
    }
}

/// What only some types have goes with them, unless it was changed at the same time.
fn drop_policies(old: &Map<String, Value>, new: &mut Map<String, Value>) {
    let is_outside = |spec: &Map<String, Value>| {
        matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer"))
    };
    let mut gone = Vec::new();
    if is_outside(old) && !is_outside(new) {
        gone.push("externalTrafficPolicy");
    }
    if old["type"] == "LoadBalancer" && new["type"] != "LoadBalancer" {
        gone.extend(["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if new["type"] == "ExternalName" {
        gone.push("internalTrafficPolicy");
    }
    for member in gone {
        if new.get(member) == old.get(member) {
            new.remove(member);
        }
    }
}

fn services(store: &Store) -> impl Iterator<Item = Value> {
    let resource = Resource::new("", "services");
    let stored: Vec<Value> = store
        .of(&resource)
        .filter_map(|(_, stored)| serde_json::from_slice(stored.json()).ok())
        .collect();
    stored.into_iter()
}

/// An address that no service has. Two services that are made in the same instant begin at places
/// of their own, so that they meet only by a chance of one in thousands.
fn free_address(store: &Store, seed: u32) -> String {
    let taken: BTreeSet<String> = services(store)
        .filter_map(|service| service["spec"]["clusterIP"].as_str().map(str::to_owned))
        .collect();
    let mut candidates = (0..ADDRESS_COUNT).map(|step| {
        // The first addresses are left to services that name their own.
        let index = 256 + (seed.wrapping_add(step) % (ADDRESS_COUNT - 512));
        Ipv4Addr::from(NETWORK + index).to_string()
    });
    candidates
        .find(|address| !taken.contains(address))
        .unwrap_or_else(|| "None".to_owned())
}

fn give_node_ports(
    store: &Store,
    (namespace, name): &(String, String),
    seed: u32,
    spec: &mut Map<String, Value>,
) {
    let is_other = |service: &Value| {
        service["metadata"]["namespace"] != **namespace || service["metadata"]["name"] != **name
    };
    let mut taken: BTreeSet<i64> = services(store)
        .filter(is_other)
        .flat_map(|service| {
            service["spec"]["ports"]
                .as_array()
                .cloned()
                .unwrap_or_default()
        })
        .filter_map(|port| port["nodePort"].as_i64())
        .collect();
    let own = spec
        .get("ports")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    taken.extend(own.filter_map(|port| port["nodePort"].as_i64()));
    let count = NODE_PORTS.end() - NODE_PORTS.start();
    for port in each(spec, "ports") {
        if port.get("nodePort").and_then(Value::as_i64).unwrap_or(0) != 0 {
            continue;
        }
        let mut candidates =
            (0..count).map(|step| NODE_PORTS.start() + (i64::from(seed) + step) % count);
        if let Some(free) = candidates.find(|number| !taken.contains(number)) {
            taken.insert(free);
            port.insert("nodePort".into(), json!(free));
        }
    }
}

/// A number that is another one for each uid.
fn seed(uid: &str) -> u32 {
    uid.bytes().fold(2_166_136_261, |hash: u32, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(16_777_619)
    })
}

/// What is wrong with a service.
pub(super) fn validate(object: &Document) -> Errors {
    let mut errors = Errors::default();
    let spec = At::new(object.rest.get("spec"), "spec");
    let kind = spec.text_of("type");
    let is_headless = spec.text_of("clusterIP") == "None";
    let ports = spec.child("ports");
    let count = ports.items().count();
    if count == 0 && kind != "ExternalName" && !is_headless {
        errors.push(ports.required(""));
    }
    let first = spec.child("clusterIPs").items().next();
    match (kind, first) {
        ("LoadBalancer" | "NodePort", Some(first)) if is_headless => {
            let why = format!("may not be set to 'None' for {kind} services");
            errors.push(first.invalid(&why));
        }
        ("ExternalName", _) => external(&spec, &mut errors),
        _ => {}
    }
    let mut names = BTreeSet::new();
    for port in ports.items() {
        validate_port(&port, count > 1, &mut names, &mut errors);
    }
    spec.child("selector").labels(&mut errors);
    let affinity = spec.child("sessionAffinity");
    affinity.one_of(&["ClientIP", "None"], &mut errors);
    addresses(&spec, &mut errors);
    spec.child("type").one_of(&TYPES, &mut errors);
    if kind == "ClusterIP" {
        for port in ports.items() {
            let number = port.child("nodePort");
            if number.number().unwrap_or(0) != 0 {
                let why = "may not be used when `type` is 'ClusterIP'";
                errors.push(number.forbidden(why));
            }
        }
    }
    duplicates(&ports, &mut errors);
    errors
}

fn external(spec: &At<'_>, errors: &mut Errors) {
    for member in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let own = spec.child(member);
        let is_empty = own.value.as_array().is_some_and(Vec::is_empty);
        if own.is_set() && !is_empty {
            errors.push(own.forbidden("may not be set for ExternalName services"));
        }
    }
    let name = spec.child("externalName");
    if name.text().is_empty() {
        errors.push(name.required(""));
    } else {
        name.named(dns::subdomain, errors);
    }
}

fn validate_port<'a>(
    port: &At<'a>,
    needs_name: bool,
    names: &mut BTreeSet<&'a str>,
    errors: &mut Errors,
) {
    let name = port.child("name");
    if !name.text().is_empty() {
        name.named(dns::label, errors);
        if !names.insert(name.text()) {
            errors.push(name.duplicate());
        }
    } else if needs_name {
        errors.push(name.required(""));
    }
    port.child("port").port(errors);
    port.child("protocol").one_of(&PROTOCOLS, errors);
    port.child("targetPort").port_or_name(errors);
    let protocol = port.child("appProtocol");
    if protocol.is_set() {
        protocol.named(dns::qualified_name, errors);
    }
}

fn addresses(spec: &At<'_>, errors: &mut Errors) {
    for address in spec.child("clusterIPs").items() {
        let text = address.text();
        if text != "None" && text.parse::<IpAddr>().is_err() {
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            errors.push(address.invalid(why));
        }
    }
    let policy = spec.child("ipFamilyPolicy");
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    if policy.is_set() {
        policy.one_of(&policies, errors);
    }
}

fn duplicates(ports: &At<'_>, errors: &mut Errors) {
    let mut numbers = BTreeSet::new();
    for port in ports.items() {
        let number = port.child("nodePort");
        let found = number.number().unwrap_or(0);
        if found != 0 && !numbers.insert((port.text_of("protocol"), found)) {
            errors.push(number.duplicate());
        }
    }
    let mut numbers = BTreeSet::new();
    for port in ports.items() {
        let number = port.child("port").number().unwrap_or(0);
        let protocol = port.text_of("protocol");
        if !numbers.insert((protocol, number)) {
            // Upstream prints its own struct here.
            let shown = json!({
                "Name": "", "Protocol": protocol, "AppProtocol": null, "Port": number,
                "TargetPort": 0, "NodePort": 0,
            });
            let order = [
                "Name",
                "Protocol",
                "AppProtocol",
                "Port",
                "TargetPort",
                "NodePort",
            ];
            let members = order.map(|member| format!("\"{member}\":{}", shown[member]));
            let text = format!("Duplicate value: {{{}}}", members.join(","));
            errors.push(FieldError::raw("FieldValueDuplicate", port.path, text));
        }
    }
}

/// What is wrong with endpoints.
pub(super) fn validate_endpoints(object: &Document) -> Errors {
    let mut errors = Errors::default();
    for subset in At::new(object.rest.get("subsets"), "subsets").items() {
        let ports = subset.child("ports");
        let needs_name = ports.items().count() > 1;
        for port in ports.items() {
            let name = port.child("name");
            if !name.text().is_empty() {
                name.named(dns::label, &mut errors);
            } else if needs_name {
                errors.push(name.required(""));
            }
            port.child("port").port(&mut errors);
            port.child("protocol").one_of(&PROTOCOLS, &mut errors);
        }
    }
    errors
}

/// The address of a service stays, unless its type changes.
pub(super) fn validate_change(old: &Document, new: &Document) -> Errors {
    let address = |service: &Document| service.text_at(&["spec", "clusterIP"]).to_owned();
    let (before, after) = (address(old), address(new));
    if before.is_empty() || before == after || new.text_at(&["spec", "type"]) == "ExternalName" {
        return Errors::default();
    }
    let why = "may not change once set";
    let shown = json!([after]);
    Errors::from([FieldError::invalid("spec.clusterIPs[0]", shown, why)])
}
