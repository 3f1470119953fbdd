//! Addresses and networks.

use core::net::IpAddr;

use super::super::eval::{Error, told};
use super::super::value::Val;
use super::Library;

/// An address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ip(pub(super) IpAddr);

/// A network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cidr {
    address: IpAddr,
    length: u8,
}

impl Ip {
    /// Reads an address; none with a zone, and no IPv4 written as IPv6.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let address: IpAddr = text.parse().ok()?;
        let is_mapped = matches!(address, IpAddr::V6(it) if it.to_ipv4_mapped().is_some());
        (!is_mapped).then_some(Self(address))
    }

    pub(super) fn call<'a>(self, name: &str, args: &[Val<'a>]) -> Option<Val<'a>> {
        if !args.is_empty() {
            return None;
        }
        let is_link_local = match self.0 {
            IpAddr::V4(it) => it.is_link_local(),
            IpAddr::V6(it) => it.segments()[0] & 0xffc0 == 0xfe80,
        };
        let is_link_multicast = match self.0 {
            IpAddr::V4(it) => it.octets()[..3] == [224, 0, 0],
            IpAddr::V6(it) => it.segments()[0] & 0xff0f == 0xff02,
        };
        let is_broadcast = matches!(self.0, IpAddr::V4(it) if it.is_broadcast());
        Some(match name {
            "family" => Val::Int(if self.0.is_ipv4() { 4 } else { 6 }),
            "isUnspecified" => Val::Bool(self.0.is_unspecified()),
            "isLoopback" => Val::Bool(self.0.is_loopback()),
            "isLinkLocalMulticast" => Val::Bool(is_link_multicast),
            "isLinkLocalUnicast" => Val::Bool(is_link_local),
            "isGlobalUnicast" => Val::Bool(
                !(is_broadcast
                    || self.0.is_unspecified()
                    || self.0.is_loopback()
                    || self.0.is_multicast()
                    || is_link_local),
            ),
            _ => return None,
        })
    }
}

impl Cidr {
    /// Reads a network such as `10.0.0.0/8`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let Ip(address) = Ip::read(address)?;
        let is_plain = length.bytes().all(|it| it.is_ascii_digit())
            && (length.len() == 1 || !length.starts_with('0'));
        let length: u8 = length.parse().ok().filter(|_| is_plain)?;
        let length_max = if address.is_ipv4() { 32 } else { 128 };
        (length <= length_max).then_some(Self { address, length })
    }

    pub(super) fn text(&self) -> String {
        format!("{}/{}", self.address, self.length)
    }

    fn bits(address: IpAddr) -> u128 {
        match address {
            IpAddr::V4(it) => u128::from(it.to_bits()) << 96,
            IpAddr::V6(it) => it.to_bits(),
        }
    }

    fn masked_bits(self, address: IpAddr) -> u128 {
        let mask = u128::MAX
            .checked_shl(128 - u32::from(self.length))
            .unwrap_or(0);
        Self::bits(address) & mask
    }

    fn masked(self) -> Self {
        let bits = self.masked_bits(self.address);
        let address = match self.address {
            IpAddr::V4(_) => {
                let bits = u32::try_from(bits >> 96).unwrap_or(0);
                IpAddr::from(bits.to_be_bytes())
            }
            IpAddr::V6(_) => IpAddr::from(bits.to_be_bytes()),
        };
        Self { address, ..self }
    }

    fn has(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && self.masked_bits(self.address) == self.masked_bits(address)
    }

    pub(super) fn call<'a>(
        self,
        name: &str,
        args: &[Val<'a>],
    ) -> std::result::Result<Option<Val<'a>>, Error> {
        let unreadable = |what: &str, text: &str| {
            told(format!(
                "{what} parse error during conversion from string: {text}"
            ))
        };
        let within = |other: Self| self.length <= other.length && self.has(other.address);
        Ok(Some(match (name, args) {
            ("ip", []) => Val::library(Library::Ip(Ip(self.address))),
            ("prefixLength", []) => Val::Int(i64::from(self.length)),
            ("masked", []) => Val::library(Library::Cidr(self.masked())),
            ("containsIP", [Val::Text(text)]) => match Ip::read(text) {
                Some(ip) => Val::Bool(self.has(ip.0)),
                None => return unreadable("IP Address", text),
            },
            ("containsCIDR", [Val::Text(text)]) => match Cidr::read(text) {
                Some(other) => Val::Bool(within(other)),
                None => return unreadable("network address", text),
            },
            ("containsIP", [Val::Library(it)]) => match &**it {
                Library::Ip(ip) => Val::Bool(self.has(ip.0)),
                _ => return Ok(None),
            },
            ("containsCIDR", [Val::Library(it)]) => match &**it {
                Library::Cidr(other) => Val::Bool(within(*other)),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::{Cidr, Ip};

    #[test]
    fn networks_hold_their_addresses() {
        let network = Cidr::read("10.1.2.3/8").unwrap();
        assert!(network.has("10.200.0.1".parse().unwrap()));
        assert!(!network.has("11.0.0.1".parse().unwrap()));
        assert!(!network.has("::1".parse().unwrap()));
        assert_eq!(network.masked().text(), "10.0.0.0/8");
        assert_eq!(
            Cidr::read("2001:db8::1/32").unwrap().masked().text(),
            "2001:db8::/32"
        );
        assert!(
            Cidr::read("0.0.0.0/0")
                .unwrap()
                .has("255.1.1.1".parse().unwrap())
        );
        for text in ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/08", "x/8", "::/129"] {
            assert!(Cidr::read(text).is_none(), "{text}");
        }
        assert!(Ip::read("::ffff:1.2.3.4").is_none());
        assert!(Ip::read("fe80::1%eth0").is_none());
    }
}
