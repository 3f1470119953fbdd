//! What has to be observed before it can be said that nothing else is there.

use sundown_model::{Cache, Facts, Resource, ResourceType, Step};

use crate::kinds::CRD;

/// The kinds of which an object might have been made before a step without having been seen. A kind that is not
/// known yet may hold one, too: then the definitions are among them.
pub(crate) fn unseen(
    cache: &Cache,
    facts: &Facts,
    since: Step,
    is_meant: impl Fn(&ResourceType) -> bool,
) -> Vec<Resource> {
    let kinds = cache.catalog().iter();
    let kinds = kinds.filter(|ty| {
        let hides_kinds = ty.resource.is(&CRD) && !facts.is_catalog_fresh(since);
        hides_kinds || is_meant(ty) && !facts.is_fresh(&ty.resource, since)
    });
    kinds.map(|ty| ty.resource.clone()).collect()
}
