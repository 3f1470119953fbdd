//! How many bodies of requests are read at once, counted by their sender: each may be megabytes, and a
//! sender that never finishes would keep them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use sundown_api::User;

/// Bodies of one user that are read at once. Clients write one object at a time; a controller a few dozen.
const BODIES_MAX: usize = 64;

/// The bodies that are being read, by the name of their sender.
#[derive(Debug, Default)]
pub(crate) struct Bodies(Arc<Mutex<BTreeMap<String, usize>>>);

/// A body that is being read; it counts as long as this lives.
#[derive(Debug)]
pub(crate) struct Place {
    bodies: Arc<Mutex<BTreeMap<String, usize>>>,
    user: String,
}

impl Bodies {
    /// None: the user has as many under way as one may have. The administrator has no bound.
    pub(crate) fn enter(&self, user: &User) -> Option<Place> {
        let is_master = user.groups.iter().any(|group| group == "system:masters");
        let mut bodies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = bodies.entry(user.name.clone()).or_default();
        if *count >= BODIES_MAX && !is_master {
            return None;
        }
        *count += 1;
        Some(Place {
            bodies: Arc::clone(&self.0),
            user: user.name.clone(),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = bodies.get_mut(&self.user) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            bodies.remove(&self.user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_so_many_bodies_under_way_and_others_are_not_hurt() {
        let bodies = Bodies::default();
        let pod = User::service_account("default", "default");
        let mut places: Vec<_> = (0..BODIES_MAX).map_while(|_| bodies.enter(&pod)).collect();
        assert_eq!(places.len(), BODIES_MAX);
        assert!(bodies.enter(&pod).is_none());
        assert!(
            bodies
                .enter(&User::service_account("default", "other"))
                .is_some()
        );
        assert!((0..=BODIES_MAX).all(|_| bodies.enter(&User::admin()).is_some()));
        places.pop();
        assert!(bodies.enter(&pod).is_some());
        drop(places);
        assert!(
            bodies.0.lock().unwrap().is_empty(),
            "nothing is left of them"
        );
    }
}
