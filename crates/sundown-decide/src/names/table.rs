//! All names that pods can look up. Nothing stands between a service and its pods here, so a service
//! with a cluster address is answered by the addresses of its pods as well.

use core::net::Ipv4Addr;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sundown_model::{Cache, node};

use super::view::{PodView, SERVICE_NAME, ServiceView};
use crate::json::{items, list, text};
use crate::kinds::{ENDPOINT_SLICE, POD, SERVICE};
use crate::pod::DOMAIN;

/// The whole table, from what there is.
pub(super) fn of(cache: &Cache) -> node::Names {
    let mut table: BTreeMap<String, BTreeSet<Ipv4Addr>> = BTreeMap::new();
    let pods: Vec<_> = cache.of(&POD.resource()).collect();
    let pods: Vec<_> = pods.iter().filter_map(|pod| PodView::of(pod)).collect();
    for object in cache.of(&SERVICE.resource()) {
        let service = ServiceView::of(object);
        // The name of something elsewhere is no address; the node's own resolver knows it.
        if service.is_external {
            continue;
        }
        let key = object.key();
        let name = format!("{}.{}.svc.{DOMAIN}", key.name, key.namespace_str());
        let meant = pods.iter().filter(|pod| service.selects(pod.object));
        for pod in meant.filter(|pod| service.shows(pod)) {
            table.entry(name.clone()).or_default().insert(pod.address);
            if !pod.hostname.is_empty() && pod.subdomain == &*key.name {
                let host = format!("{}.{name}", pod.hostname);
                table.entry(host).or_default().insert(pod.address);
            }
        }
        let all = table.entry(name).or_default();
        if service.selector.is_none() {
            all.extend(by_hand(cache, &service));
        }
    }
    let listed = table.into_iter();
    listed
        .map(|(name, addresses)| (name, addresses.into_iter().collect()))
        .collect()
}

/// The addresses of a service without selector: whoever made it names them in slices.
fn by_hand<'a>(
    cache: &'a Cache,
    service: &'a ServiceView<'_>,
) -> impl Iterator<Item = Ipv4Addr> + 'a {
    let key = service.object.key();
    let resource = ENDPOINT_SLICE.resource();
    let slices: Vec<_> = cache.of(&resource).cloned().collect();
    let own = slices.into_iter().filter(move |slice| {
        let labels = slice.field("/metadata/labels").unwrap_or(&Value::Null);
        slice.key().namespace == key.namespace && text(labels, SERVICE_NAME) == &*key.name
    });
    own.flat_map(|slice| {
        let endpoints = items(slice.field("/endpoints")).iter();
        let is_ready = |it: &&Value| it.pointer("/conditions/ready") != Some(&Value::Bool(false));
        let addresses = endpoints
            .filter(is_ready)
            .flat_map(|it| list(it, "addresses"));
        let read = |it: &Value| it.as_str()?.parse().ok();
        addresses.filter_map(read).collect::<Vec<Ipv4Addr>>()
    })
}
