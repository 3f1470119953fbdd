//! The services of a cluster: made when missing, never changed. One of another owner is left alone.

use sundown_kinds::service;
use sundown_model::ObjectKey;

use super::plan::Plan;
use super::view::{Found, View};
use crate::ray::{name_of, place};

/// Plans the missing services; Err with the key that belongs to somebody else.
///
/// Without its own head service a cluster would send its workers to whoever has the name, so nothing
/// else is made then.
pub(super) fn plan(view: &View<'_>, plan: &mut Plan) -> Result<(), ObjectKey> {
    let headless = service::headless_service(&view.cluster);
    let headless = headless.map(|body| (view.service(name_of(&body)), body));
    for found in [Some(&view.head_service), headless.as_ref().map(|it| &it.0)] {
        if let Some(Found::Foreign(key)) = found {
            let place = place(key);
            let why = "it exists and is not owned by this RayCluster";
            let message = format!("Failed creating service {place}, {why}");
            plan.warn(view, "FailedToCreateService", message);
            return Err(key.clone());
        }
    }
    if matches!(view.head_service, Found::Nothing) {
        let body = service::head_service(&view.cluster, view.settings);
        plan.create_service(view, body);
    }
    if let Some((Found::Nothing, body)) = headless {
        plan.create_service(view, body);
    }
    Ok(())
}
