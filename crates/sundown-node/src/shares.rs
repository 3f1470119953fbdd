//! How many connections one peer may hold, so that no pod takes the places of all others. Counting only:
//! who is asked, and what becomes of a connection without a place, is the caller's business.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The places of one service.
#[derive(Debug, Clone)]
pub(crate) struct Shares {
    total_max: usize,
    peer_max: usize,
    taken: Arc<Mutex<BTreeMap<IpAddr, usize>>>,
}

/// One place, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    shares: Shares,
    peer: IpAddr,
}

impl Shares {
    /// So many places in all, and so many of them for one address.
    pub(crate) fn new(total_max: usize, peer_max: usize) -> Self {
        Self {
            total_max,
            peer_max,
            taken: Arc::default(),
        }
    }

    /// A place for this peer; None if it has its share, or all are taken.
    pub(crate) fn take(&self, peer: IpAddr) -> Option<Place> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.get(&peer).copied().unwrap_or(0);
        if own >= self.peer_max || taken.values().sum::<usize>() >= self.total_max {
            return None;
        }
        taken.insert(peer, own + 1);
        let shares = self.clone();
        Some(Place { shares, peer })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self
            .shares
            .taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match taken.get_mut(&self.peer) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => drop(taken.remove(&self.peer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::Shares;

    fn peer(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 88, 0, last).into()
    }

    #[test]
    fn a_peer_has_its_share_and_no_more_of_all_places() {
        let shares = Shares::new(5, 2);
        let mut places: Vec<_> = [2, 2, 3, 3].map(|it| shares.take(peer(it))).into();
        assert!(places.iter().all(Option::is_some));
        assert!(shares.take(peer(2)).is_none(), "it has its share");
        places.push(shares.take(peer(4)));
        assert!(places[4].is_some());
        assert!(shares.take(peer(5)).is_none(), "all are taken");
        places.swap_remove(0);
        assert!(shares.take(peer(5)).is_some(), "a place was given back");
        drop(places);
        let nothing = shares.taken.lock().unwrap().is_empty();
        assert!(nothing, "peers that left are forgotten");
    }
}
