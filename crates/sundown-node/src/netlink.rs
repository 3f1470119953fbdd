//! Requests to the kernel's routing socket, one at a time. Blocking on purpose: a thread that has
//! moved into another network namespace asks there, and an asynchronous runtime would not follow it.

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// A routing socket of the network namespace in which it was opened, wherever its thread goes.
pub(crate) struct Netlink {
    socket: Socket,
}

impl Netlink {
    /// Opens a socket in the thread's present network namespace.
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket })
    }

    /// Makes something new; an object that exists is an error.
    pub(crate) fn create(&self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.acknowledged(message, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Changes or deletes something.
    pub(crate) fn change(&self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.acknowledged(message, 0)
    }

    /// Lists all objects of a kind.
    pub(crate) fn dump(
        &self,
        message: RouteNetlinkMessage,
    ) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.send(message, NLM_F_DUMP)?;
        let mut found = Vec::new();
        loop {
            for payload in self.receive()? {
                match payload {
                    NetlinkPayload::InnerMessage(message) => found.push(message),
                    NetlinkPayload::Done(_) => return Ok(found),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    _ => {}
                }
            }
        }
    }

    fn acknowledged(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.send(message, NLM_F_ACK | flags)?;
        loop {
            for payload in self.receive()? {
                if let NetlinkPayload::Error(answer) = payload {
                    // An error without a code is the acknowledgement.
                    return match answer.code {
                        None => Ok(()),
                        Some(_) => Err(answer.to_io()),
                    };
                }
            }
        }
    }

    fn send(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(message));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        Ok(())
    }

    fn receive(&self) -> io::Result<Vec<NetlinkPayload<RouteNetlinkMessage>>> {
        let (bytes, _) = self.socket.recv_from_full()?;
        let mut payloads = Vec::new();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let packet = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                .map_err(io::Error::other)?;
            // Messages are padded to four bytes; one of no length would never end.
            let length = usize::try_from(packet.header.length).map_err(io::Error::other)?;
            rest = rest
                .get(length.max(4).next_multiple_of(4)..)
                .unwrap_or_default();
            payloads.push(packet.payload);
        }
        Ok(payloads)
    }
}
