//! A connection's place among the others, from its arrival to its end: on trial until a request of it
//! showed a credential. Who has to go is for `admission` to decide.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::admission::{Admission, Number, Verdict};

/// All connections of one front.
#[derive(Debug, Clone)]
pub(super) struct House(Arc<Mutex<Inside>>);

#[derive(Debug)]
struct Inside {
    admission: Admission,
    /// How those on trial are told to go.
    doors: BTreeMap<Number, Arc<Notify>>,
}

/// One connection's place, given back when the last of its holders is dropped.
#[derive(Debug)]
pub(crate) struct Trial {
    house: House,
    number: Number,
    door: Arc<Notify>,
    is_trusted: AtomicBool,
}

impl House {
    pub(super) fn new(total_max: usize) -> Self {
        let admission = Admission::new(total_max);
        let doors = BTreeMap::new();
        Self(Arc::new(Mutex::new(Inside { admission, doors })))
    }

    /// A place for a connection of this peer; None: there is none.
    pub(super) fn arrive(&self, peer: IpAddr) -> Option<Arc<Trial>> {
        self.with(|inside| {
            let Verdict::Admitted { number, closes } = inside.admission.arrive(peer) else {
                return None;
            };
            if let Some(door) = closes.and_then(|it| inside.doors.remove(&it)) {
                door.notify_one();
            }
            let door = Arc::new(Notify::new());
            inside.doors.insert(number, Arc::clone(&door));
            Some(Arc::new(Trial {
                house: self.clone(),
                number,
                door,
                is_trusted: AtomicBool::new(false),
            }))
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inside) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Trial {
    /// A credential was shown: nobody closes this connection any more.
    pub(crate) fn pass(&self) {
        if self.is_trusted() {
            return;
        }
        self.house.with(|inside| {
            // One that was told to go meanwhile goes.
            if inside.doors.remove(&self.number).is_some() {
                inside.admission.trust(self.number);
                self.is_trusted.store(true, Ordering::Relaxed);
            }
        });
    }

    pub(crate) fn is_trusted(&self) -> bool {
        self.is_trusted.load(Ordering::Relaxed)
    }

    /// Waits until the connection has to go for another one.
    pub(super) async fn is_over(&self) {
        self.door.notified().await;
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let is_trusted = self.is_trusted();
        self.house.with(|inside| {
            inside.doors.remove(&self.number);
            inside.admission.leave(self.number, is_trusted);
        });
    }
}
