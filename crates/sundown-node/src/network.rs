//! The node's network: a bridge in a network namespace of its own, and a pair of virtual links per
//! pod. The host's network is never touched: every request goes to a socket of that namespace.

use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd as _;

use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage as Message};
use serde::{Deserialize, Serialize};

use crate::netlink::Netlink;

const BRIDGE_NAME: &str = "sundown0";
const LINK_PREFIX: &str = "pod";

/// The kernel gives this number to the loopback link of every network namespace.
const LOOPBACK_INDEX: u32 = 1;

/// The address of the bridge with the length of the network's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subnet {
    pub bridge: Ipv4Addr,
    pub prefix: u8,
}

impl Default for Subnet {
    fn default() -> Self {
        Self {
            bridge: Ipv4Addr::new(10, 88, 0, 1),
            prefix: 16,
        }
    }
}

impl Subnet {
    fn mask(self) -> u32 {
        u32::MAX
            .checked_shl(32 - u32::from(self.prefix.min(32)))
            .unwrap_or(0)
    }

    /// The lowest and the highest address that a pod may have; the bridge's own is among them.
    fn range(self) -> (u32, u32) {
        let network = self.bridge.to_bits() & self.mask();
        (network + 1, (network | !self.mask()).saturating_sub(1))
    }

    /// Whether a pod may have this address.
    pub(crate) fn offers(self, address: Ipv4Addr) -> bool {
        let (low, high) = self.range();
        (low..=high).contains(&address.to_bits()) && address != self.bridge
    }

    /// The first free address after `last`, going round once.
    pub(crate) fn next_free(
        self,
        last: Ipv4Addr,
        is_taken: impl Fn(Ipv4Addr) -> bool,
    ) -> Option<Ipv4Addr> {
        let (low, high) = self.range();
        let after = last.to_bits().clamp(low, high);
        let candidates = (after + 1..=high)
            .chain(low..=after)
            .map(Ipv4Addr::from_bits);
        candidates
            .into_iter()
            .find(|address| self.offers(*address) && !is_taken(*address))
    }
}

/// Makes the bridge of the present network namespace and gives its index.
pub(crate) fn make_bridge(subnet: Subnet) -> io::Result<u32> {
    let netlink = Netlink::open()?;
    raise(&netlink, LOOPBACK_INDEX)?;
    give_no_ipv6_addresses()?;
    let mut bridge = link_named(BRIDGE_NAME);
    set_up(&mut bridge);
    let info = vec![LinkInfo::Kind(InfoKind::Bridge)];
    bridge.attributes.push(LinkAttribute::LinkInfo(info));
    netlink.create(Message::NewLink(bridge))?;
    let index = index_of(BRIDGE_NAME)?;
    add_address(&netlink, index, subnet.bridge, subnet.prefix)?;
    refuse_what_is_outside(&netlink)?;
    Ok(index)
}

/// Tells pods at once that there is no way out, where dropped packets would make every program wait
/// for its own time limit: Ray asks the addresses where clouds keep their metadata at each start.
///
/// A pod keeps its default route, because programs learn their own address from one. Only a namespace
/// that forwards sends such answers; it has nowhere to forward to but the bridge.
fn refuse_what_is_outside(netlink: &Netlink) -> io::Result<()> {
    netlink.create(Message::NewRoute(default_route(RouteType::Unreachable)))?;
    fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
    // By default one pod would get one such answer a second.
    fs::write("/proc/sys/net/ipv4/icmp_ratelimit", "0")
}

/// Pods have IPv4 addresses. A link that also gave itself one of IPv6 would announce it to all others: at
/// a bridge with many pods that is most of the work of starting one. Loopback keeps its `::1`.
fn give_no_ipv6_addresses() -> io::Result<()> {
    match fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1") {
        // A kernel without IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// The name of the bridge's end of a pod's pair.
pub(crate) fn link_name(address: Ipv4Addr) -> String {
    format!("{LINK_PREFIX}{:08x}", address.to_bits())
}

/// Makes the pair of a pod: one end at the bridge, the other in `pod`, the network namespace of the
/// calling thread, where it becomes `eth0`.
///
/// # Assumes
/// `node` was opened in the node's network namespace, before the thread left it.
pub(crate) fn connect_pod(
    node: &Netlink,
    bridge_index: u32,
    subnet: Subnet,
    address: Ipv4Addr,
) -> io::Result<()> {
    give_no_ipv6_addresses()?;
    let pod = File::open("/proc/thread-self/ns/net")?;
    let mut peer = link_named("eth0");
    peer.attributes
        .push(LinkAttribute::NetNsFd(pod.as_raw_fd()));
    let mut link = link_named(&link_name(address));
    set_up(&mut link);
    link.attributes
        .push(LinkAttribute::Controller(bridge_index));
    link.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
    ]));
    node.create(Message::NewLink(link))?;

    let inside = Netlink::open()?;
    raise(&inside, LOOPBACK_INDEX)?;
    let index = index_of("eth0")?;
    add_address(&inside, index, address, subnet.prefix)?;
    raise(&inside, index)?;
    add_default_route(&inside, subnet.bridge)
}

/// Removes the pair of a pod at once; the kernel would do so some time after the namespace ended.
pub(crate) fn disconnect_pod(address: Ipv4Addr) -> io::Result<()> {
    let gone = |error: &io::Error| error.raw_os_error() == Some(NO_SUCH_DEVICE);
    match Netlink::open()?.change(Message::DelLink(link_named(&link_name(address)))) {
        Err(error) if !gone(&error) => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

const NO_SUCH_DEVICE: i32 = rustix::io::Errno::NODEV.raw_os_error();

/// Whether the pair of a pod is there.
pub(crate) fn is_connected(address: Ipv4Addr) -> io::Result<bool> {
    match index_of(&link_name(address)) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(NO_SUCH_DEVICE) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The names of all pods' links at the bridge.
pub(crate) fn pod_links() -> io::Result<Vec<String>> {
    let links = Netlink::open()?.dump(Message::GetLink(LinkMessage::default()))?;
    let names = links.into_iter().filter_map(|message| match message {
        Message::NewLink(link) => link.attributes.into_iter().find_map(|each| match each {
            LinkAttribute::IfName(name) => Some(name),
            _ => None,
        }),
        _ => None,
    });
    Ok(names.filter(|name| name.starts_with(LINK_PREFIX)).collect())
}

fn link_named(name: &str) -> LinkMessage {
    let mut link = LinkMessage::default();
    link.attributes.push(LinkAttribute::IfName(name.to_owned()));
    link
}

fn set_up(link: &mut LinkMessage) {
    link.header.flags = LinkFlags::Up;
    link.header.change_mask = LinkFlags::Up;
}

fn index_of(name: &str) -> io::Result<u32> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    Ok(rustix::net::netdevice::name_to_index(socket, name)?)
}

fn raise(netlink: &Netlink, index: u32) -> io::Result<()> {
    let mut link = LinkMessage::default();
    link.header.index = index;
    set_up(&mut link);
    netlink.change(Message::SetLink(link))
}

fn add_address(netlink: &Netlink, index: u32, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = prefix;
    message.header.index = index;
    let address = IpAddr::V4(address);
    message.attributes.push(AddressAttribute::Address(address));
    message.attributes.push(AddressAttribute::Local(address));
    netlink.create(Message::NewAddress(message))
}

fn add_default_route(netlink: &Netlink, gateway: Ipv4Addr) -> io::Result<()> {
    let mut message = default_route(RouteType::Unicast);
    let gateway = RouteAddress::Inet(gateway);
    message.attributes.push(RouteAttribute::Gateway(gateway));
    netlink.create(Message::NewRoute(message))
}

fn default_route(kind: RouteType) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = AddressFamily::Inet;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Static;
    message.header.scope = RouteScope::Universe;
    message.header.kind = kind;
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_go_round_and_leave_out_bridge_and_broadcast() {
        let subnet = Subnet {
            bridge: Ipv4Addr::new(10, 0, 0, 1),
            prefix: 30,
        };
        let first = subnet.next_free(subnet.bridge, |_| false);
        assert_eq!(first, Some(Ipv4Addr::new(10, 0, 0, 2)));
        let again = subnet.next_free(Ipv4Addr::new(10, 0, 0, 2), |_| false);
        assert_eq!(again, first);
        assert_eq!(subnet.next_free(subnet.bridge, |_| true), None);
        assert!(!subnet.offers(Ipv4Addr::new(10, 0, 0, 3)));
        assert!(!subnet.offers(Ipv4Addr::new(10, 0, 1, 2)));
    }
}
