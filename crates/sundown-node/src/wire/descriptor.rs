//! File descriptors across a Unix socket. The one door through which a connection of the node's
//! network reaches the host.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Sends a descriptor with one byte that carries it.
pub(crate) fn send_with_descriptor(to: impl AsFd, descriptor: impl AsFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(to, &[IoSlice::new(b"+")], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// One byte of a stream that carries descriptors.
#[derive(Debug)]
pub(crate) enum Received {
    Descriptor(OwnedFd),
    /// A byte without a descriptor: a refusal follows as a line.
    Byte,
    Closed,
}

/// Receives exactly one byte and what it carries. A reader with a buffer would lose descriptors.
///
/// # Errors
/// The socket failed; `WouldBlock` on one that does not block.
pub(crate) fn receive_with_descriptor(from: impl AsFd) -> io::Result<Received> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    let received = recvmsg(from, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Ok(Received::Closed);
    }
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message
            && let Some(descriptor) = descriptors.next()
        {
            return Ok(Received::Descriptor(descriptor));
        }
    }
    Ok(Received::Byte)
}
