//! The place in which the containers of a pod run, from the manifest: names, hosts and volumes.

use core::net::IpAddr;

use serde_json::Value;
use sundown_model::node::{Content, Files, Sandbox, Selection, Text, Volume};

use super::downward::{self, Seen};
use super::launch::{Place, Trouble};
use super::memory;
use super::room::Room;
use super::view::{ContainerView, PodView};
use crate::json::{count, is_set, items, list, number, text, texts};
use crate::quantity;

/// The domain of all names.
pub const DOMAIN: &str = "cluster.local";

/// The volume that holds the token of the service account.
pub(super) const ACCOUNT_VOLUME: &str = "kube-api-access";

/// How long a token is valid, as upstream's admission asks for it.
const TOKEN_SECONDS: u64 = 3_607;
const MODE: u32 = 0o644;

/// How much the files may be that tell containers about their pod, of all volumes together.
const TEXTS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The names of the volumes of a pod.
pub(super) fn volumes<'a>(pod: &'a PodView<'_>) -> impl Iterator<Item = &'a str> {
    let volumes = items(pod.object.field("/spec/volumes")).iter();
    volumes.map(|volume| text(volume, "name"))
}

/// Describes the place of a pod.
///
/// Errors: something in the manifest cannot be understood or is not supported, and what.
pub(super) fn sandbox(pod: &PodView<'_>, place: &Place<'_>) -> Result<Sandbox, Trouble> {
    let json = items(pod.object.field("/spec/volumes"));
    let seen = Seen { pod, place };
    let mut room = Room::of(TEXTS_BYTES_MAX);
    let mut volumes = Vec::new();
    for volume in json {
        volumes.push(Volume {
            name: text(volume, "name").to_owned(),
            content: content(&seen, volume, &mut room)?,
        });
    }
    if place.has_token && !self::volumes(pod).any(|name| name == ACCOUNT_VOLUME) {
        volumes.push(account(pod.namespace()));
    }
    let namespace = pod.namespace();
    let svc = format!("svc.{DOMAIN}");
    let mut search = vec![format!("{namespace}.{svc}"), svc, DOMAIN.to_owned()];
    let resolver = pod.object.field("/spec/dnsConfig");
    search.extend(resolver.map_or(Vec::new(), |it| texts(it, "searches")));
    Ok(Sandbox {
        pod: pod.uid.clone(),
        namespace: namespace.into(),
        name: pod.name().into(),
        hostname: hostname(pod),
        domain: domain(pod),
        hosts: hosts(pod)?,
        search,
        shared_memory_bytes: shared_memory(pod, &volumes)
            .or_else(|| memory::shared_bytes(memory::limit(pod))),
        volumes,
    })
}

/// The name by which a pod knows itself.
pub(crate) fn hostname(pod: &PodView<'_>) -> String {
    let own = pod.object.field("/spec/hostname").and_then(Value::as_str);
    let own = own.filter(|name| !name.is_empty());
    let name = own.unwrap_or(pod.name());
    // What the kernel takes, as the kubelet cuts it.
    let cut: String = name.chars().take(63).collect();
    cut.trim_end_matches(['-', '.']).to_owned()
}

/// The domain that `spec.subdomain` names, as the kubelet makes it.
fn domain(pod: &PodView<'_>) -> Option<String> {
    let own = pod.object.field("/spec/subdomain").and_then(Value::as_str);
    let own = own.filter(|name| !name.is_empty())?;
    Some(format!("{own}.{}.svc.{DOMAIN}", pod.namespace()))
}

fn hosts(pod: &PodView<'_>) -> Result<Vec<(IpAddr, Vec<String>)>, Trouble> {
    let aliases = items(pod.object.field("/spec/hostAliases")).iter();
    let read = |alias: &Value| {
        let address = text(alias, "ip");
        let read = address.parse();
        let read =
            read.map_err(|_| Trouble::new(format!("hostAliases: {address:?} is no address")));
        Ok((read?, texts(alias, "hostnames")))
    };
    aliases.map(read).collect()
}

/// A volume in memory that is mounted at `/dev/shm` is its size.
fn shared_memory(pod: &PodView<'_>, volumes: &[Volume]) -> Option<u64> {
    let mounts = pod
        .containers()
        .flat_map(|it| list(it.json, "volumeMounts"));
    let mut shared = mounts.filter(|mount| text(mount, "mountPath") == "/dev/shm");
    let name = text(shared.next()?, "name");
    match &volumes.iter().find(|volume| volume.name == name)?.content {
        Content::Empty {
            in_memory: true,
            size_bytes,
        } => *size_bytes,
        Content::Empty { .. } | Content::HostPath { .. } | Content::Files { .. } => None,
    }
}

fn content(seen: &Seen<'_>, volume: &Value, room: &mut Room) -> Result<Content, Trouble> {
    if let Some(empty) = volume.get("emptyDir") {
        let size = text(empty, "sizeLimit");
        let bytes = quantity::units(size).filter(|_| !size.is_empty());
        let in_memory = text(empty, "medium") == "Memory";
        return Ok(Content::Empty {
            in_memory,
            // Zero is what is written for "no limit of its own".
            size_bytes: memory::volume_bytes(
                bytes
                    .and_then(|bytes| u64::try_from(bytes).ok())
                    .filter(|bytes| *bytes > 0),
                memory::limit(seen.pod).filter(|_| in_memory),
            ),
        });
    }
    if let Some(host) = volume.get("hostPath") {
        return Ok(Content::HostPath {
            path: text(host, "path").to_owned(),
            kind: text(host, "type").to_owned(),
        });
    }
    for (member, name) in [("configMap", "name"), ("secret", "secretName")] {
        if let Some(source) = volume.get(member) {
            let selection = selection(source, name);
            let files = match member {
                "secret" => Files::Secret(selection),
                _ => Files::ConfigMap(selection),
            };
            return Ok(files_of(vec![files], source));
        }
    }
    if let Some(source) = volume.get("downwardAPI") {
        return Ok(files_of(vec![texts_of(seen, source, room)?], source));
    }
    if let Some(source) = volume.get("projected") {
        let mut from = Vec::new();
        for part in list(source, "sources") {
            from.push(projected(seen, part, room)?);
        }
        return Ok(files_of(from, source));
    }
    Err(unknown(volume))
}

/// Whether the kind of a volume is one of those above.
pub(super) fn check_kind(volume: &Value) -> Result<(), Trouble> {
    const KINDS: [&str; 6] = [
        "emptyDir",
        "hostPath",
        "configMap",
        "secret",
        "downwardAPI",
        "projected",
    ];
    let is_known = KINDS.iter().any(|kind| volume.get(kind).is_some());
    if is_known {
        Ok(())
    } else {
        Err(unknown(volume))
    }
}

fn unknown(volume: &Value) -> Trouble {
    let name = text(volume, "name");
    let mut members = volume.as_object().into_iter().flat_map(|it| it.keys());
    let kind = members.find(|member| *member != "name");
    let kind = kind.map_or("an empty source", String::as_str);
    Trouble::new(format!("volume {name:?}: {kind} is not supported here"))
}

fn files_of(from: Vec<Files>, source: &Value) -> Content {
    Content::Files {
        from,
        mode: count(source, "defaultMode", MODE),
    }
}

fn selection(source: &Value, name: &str) -> Selection {
    let item = |item: &Value| {
        (
            text(item, "key").to_owned(),
            text(item, "path").to_owned(),
            mode(item),
        )
    };
    let items = list(source, "items");
    Selection {
        name: text(source, name).to_owned(),
        items: (!items.is_empty()).then(|| items.iter().map(item).collect()),
        optional: is_set(source, "optional"),
    }
}

fn mode(item: &Value) -> Option<u32> {
    number(item, "mode").and_then(|mode| u32::try_from(mode).ok())
}

fn projected(seen: &Seen<'_>, part: &Value, room: &mut Room) -> Result<Files, Trouble> {
    if let Some(source) = part.get("configMap") {
        return Ok(Files::ConfigMap(selection(source, "name")));
    }
    if let Some(source) = part.get("secret") {
        return Ok(Files::Secret(selection(source, "name")));
    }
    if let Some(source) = part.get("downwardAPI") {
        return texts_of(seen, source, room);
    }
    if let Some(token) = part.get("serviceAccountToken") {
        let audience = text(token, "audience");
        let seconds = number(token, "expirationSeconds").unwrap_or(3_600);
        return Ok(Files::Token {
            path: text(token, "path").to_owned(),
            audience: (!audience.is_empty()).then(|| audience.to_owned()),
            expiration_seconds: u64::try_from(seconds).unwrap_or(3_600),
        });
    }
    Err(Trouble::new("a projected source is not supported here"))
}

fn texts_of(seen: &Seen<'_>, source: &Value, room: &mut Room) -> Result<Files, Trouble> {
    let mut files = std::collections::BTreeMap::new();
    for item in list(source, "items") {
        let value = match (item.get("fieldRef"), item.get("resourceFieldRef")) {
            (Some(field), _) => downward::field(seen, text(field, "fieldPath"))?,
            (None, Some(resource)) => downward::resource(seen, resource, first(seen.pod)?)?,
            (None, None) => return Err(Trouble::new("a downward API item without a source")),
        };
        room.take(value.len()).map_err(|_| {
            Trouble::new(format!(
                "downward API item {:?} is too large: up to it, all of them have more than \
                 {TEXTS_BYTES_MAX} bytes together",
                text(item, "path")
            ))
        })?;
        let file = Text {
            text: value,
            mode: mode(item),
        };
        files.insert(text(item, "path").to_owned(), file);
    }
    Ok(Files::Texts(files))
}

fn first<'a, 'b>(pod: &'a PodView<'b>) -> Result<&'a ContainerView<'b>, Trouble> {
    let first = pod.main.first();
    first.ok_or_else(|| Trouble::new("the pod has no containers"))
}

/// Token, authority and namespace, as upstream's admission puts them into every pod.
fn account(namespace: &str) -> Volume {
    let name = Text {
        text: namespace.to_owned(),
        mode: None,
    };
    let from = vec![
        Files::Token {
            path: "token".to_owned(),
            audience: None,
            expiration_seconds: TOKEN_SECONDS,
        },
        Files::Authority {
            path: "ca.crt".to_owned(),
        },
        Files::Texts([("namespace".to_owned(), name)].into()),
    ];
    Volume {
        name: ACCOUNT_VOLUME.to_owned(),
        content: Content::Files { from, mode: MODE },
    }
}
