//! The rights of root inside a container: few, and none that grow. Which of them a manifest gives up is
//! the caller's choice.

use std::io;

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// What root keeps inside a container, by the names of Kubernetes: enough for servers and package managers.
/// The usual set of container runtimes without the rights to make devices (`MKNOD`) and to write packets in
/// the name of other pods (`NET_RAW`).
const KEPT: [(&str, CapabilitySet); 12] = [
    ("AUDIT_WRITE", CapabilitySet::AUDIT_WRITE),
    ("CHOWN", CapabilitySet::CHOWN),
    ("DAC_OVERRIDE", CapabilitySet::DAC_OVERRIDE),
    ("FOWNER", CapabilitySet::FOWNER),
    ("FSETID", CapabilitySet::FSETID),
    ("KILL", CapabilitySet::KILL),
    ("NET_BIND_SERVICE", CapabilitySet::NET_BIND_SERVICE),
    ("SETFCAP", CapabilitySet::SETFCAP),
    ("SETGID", CapabilitySet::SETGID),
    ("SETPCAP", CapabilitySet::SETPCAP),
    ("SETUID", CapabilitySet::SETUID),
    ("SYS_CHROOT", CapabilitySet::SYS_CHROOT),
];

/// The names of all rights that root can have inside a container.
pub const CAPABILITIES: [&str; KEPT.len()] = {
    let mut names = [""; KEPT.len()];
    let mut index = 0;
    while index < KEPT.len() {
        names[index] = KEPT[index].0;
        index += 1;
    }
    names
};

/// Takes away every right of root that could reach the host, and those that the container gives up, from
/// this thread and all that it starts. No program that is started gets more: setuid bits and rights of
/// files mean nothing.
pub(crate) fn confine(dropped: &[String]) -> io::Result<()> {
    for capability in CapabilitySet::all().difference(kept(dropped)).iter() {
        match remove_capability_from_bounding_set(capability) {
            // A kernel that does not know the capability does not grant it either.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    clear_ambient_capability_set()?;
    // This thread itself keeps what it has: it still has to become another user.
    let own = capabilities(None)?;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { inheritable, ..own })?;
    Ok(set_no_new_privs(true)?)
}

fn kept(dropped: &[String]) -> CapabilitySet {
    let kept = KEPT
        .iter()
        .filter(|(name, _)| !dropped.iter().any(|it| it == name));
    kept.fold(CapabilitySet::empty(), |all, (_, one)| all.union(*one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_container_gives_up_is_not_kept() {
        let all = kept(&[]);
        assert!(all.contains(CapabilitySet::CHOWN) && !all.contains(CapabilitySet::NET_RAW));
        let fewer = kept(&["CHOWN".to_owned(), "SYS_ADMIN".to_owned()]);
        assert_eq!(fewer, all.difference(CapabilitySet::CHOWN));
        assert!(kept(&CAPABILITIES.map(str::to_owned)).is_empty());
    }
}
