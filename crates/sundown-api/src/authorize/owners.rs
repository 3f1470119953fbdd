//! Who may make an object the dependent of another: upstream's admission plugin
//! `OwnerReferencesPermissionEnforcement` (plugin/pkg/admission/gc), which is off by default there.
//!
//! An owner reference decides when an object is deleted, and a blocking one holds up the deletion of its
//! owner; so the first needs the right to delete the dependent, the second that to finalize the owner.

use super::{Attributes, Change, is_master};
use crate::document::OwnerReference;
use crate::failure::Failure;
use crate::registry::{Rules, Type};
use crate::route::Part;

impl Change<'_> {
    /// Checks the rights that a change of owners needs.
    pub(super) fn check_owners(&self) -> Result<(), Failure> {
        let before = self.old.map(|old| old.metadata.owner_references.as_slice());
        let after = self.new.metadata.owner_references.as_slice();
        // Pods take no owners from their status.
        let is_exempt = self.target.ty.rules == Rules::Pod && self.target.part == Part::Status;
        let is_same = before.unwrap_or_default() == after;
        if is_same || is_exempt || is_master(self.user) || self.server.bindings().is_none() {
            return Ok(());
        }
        // Whoever creates an object could as well not have created it.
        if self.old.is_some() {
            self.check_dependent()?;
        }
        let mut blocking = after
            .iter()
            .filter(|it| is_newly_blocking(it, before))
            .peekable();
        let anything = Attributes {
            subresource: "finalizers",
            name: "*",
            ..Attributes::on(self.user, "update", "*", "*")
        };
        if blocking.peek().is_none() || self.server.may(&anything).is_allowed() {
            return Ok(());
        }
        blocking.try_for_each(|reference| self.check_owner(reference))
    }

    fn check_dependent(&self) -> Result<(), Failure> {
        let resource = &self.target.ty.resource;
        let asked = Attributes {
            namespace: self.namespace(),
            name: &self.new.metadata.name,
            subresource: self.target.part.name(),
            ..Attributes::on(self.user, "delete", resource.group(), resource.plural())
        };
        let decision = self.server.may(&asked);
        if decision.is_allowed() {
            return Ok(());
        }
        let why = "cannot set an ownerRef on a resource you can't delete";
        Err(self.forbidden(&format!("{why}: {decision}, <nil>")))
    }

    fn check_owner(&self, reference: &OwnerReference) -> Result<(), Failure> {
        let (group, version) = match reference.api_version.split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", reference.api_version.as_str()),
        };
        let types = self.server.registry().group_version(group, version);
        let is_it = |ty: &&Type| *ty.kind == *reference.kind;
        let types = types.into_iter().flat_map(|types| types.values());
        let owners: Vec<&Type> = types.map(|ty| &**ty).filter(is_it).collect();
        if owners.is_empty() {
            let (kind, api_version) = (&reference.kind, &reference.api_version);
            return Err(self.forbidden(&format!(
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion \
                 {api_version} Kind {kind}: no matches for kind {kind:?} in version {api_version:?}"
            )));
        }
        for owner in owners {
            let asked = Attributes {
                subresource: "finalizers",
                name: &reference.name,
                // A namespaced owner lives in the namespace of its dependents.
                namespace: if owner.namespaced {
                    self.namespace()
                } else {
                    ""
                },
                ..Attributes::on(self.user, "update", group, owner.resource.plural())
            };
            let decision = self.server.may(&asked);
            if !decision.is_allowed() {
                let why = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you \
                           can't set finalizers on";
                return Err(self.forbidden(&format!("{why}: {decision}, <nil>")));
            }
        }
        Ok(())
    }
}

fn is_newly_blocking(reference: &OwnerReference, before: Option<&[OwnerReference]>) -> bool {
    let blocks = |it: &OwnerReference| it.block_owner_deletion == Some(true);
    let mut before = before.unwrap_or_default().iter();
    blocks(reference) && !before.any(|old| old.uid == reference.uid && blocks(old))
}
