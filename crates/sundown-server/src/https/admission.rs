//! Who gets in, counted by peer. A connection that has not shown a credential is on trial: each peer has
//! a few of those, and a new one costs the peer its oldest. Those that have shown one are let be. Only
//! counting and deciding; sockets are the caller's.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

/// One pod has at most this part of all places with its token.
const POD_SHARE: usize = 8;

/// Connections on trial of one pod. Clients open some at once, each for the moment of its handshake;
/// fewer would cost a busy client connections, more would only help who shows no credential.
const POD_TRIALS_MAX: usize = 64;

/// Connections on trial of this machine's own users, together: kube-rs opens one per watch, many at once.
const LOOPBACK_TRIALS_MAX: usize = 512;

/// Tells connections apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number(u64);

/// What becomes of a connection that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It comes in; another one, on trial for the longest time, goes for it.
    Admitted {
        number: Number,
        closes: Option<Number>,
    },
    /// There is no place, and nobody who has to go.
    Refused,
}

/// The connections that there are.
#[derive(Debug)]
pub(super) struct Admission {
    total_max: usize,
    last: u64,
    /// In the order in which they came.
    trials: BTreeMap<IpAddr, VecDeque<Number>>,
    /// Those that have shown a credential, and whose they are.
    trusted: BTreeMap<Number, IpAddr>,
}

impl Admission {
    pub(super) fn new(total_max: usize) -> Self {
        Self {
            total_max,
            last: 0,
            trials: BTreeMap::new(),
            trusted: BTreeMap::new(),
        }
    }

    /// A connection has arrived: it is on trial.
    pub(super) fn arrive(&mut self, peer: IpAddr) -> Verdict {
        // A user of this machine has millions of loopback addresses, and is one peer with all of them.
        let is_loopback = peer.to_canonical().is_loopback();
        let peer = if is_loopback {
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        } else {
            peer.to_canonical()
        };
        let trials_max = if is_loopback {
            LOOPBACK_TRIALS_MAX
        } else {
            POD_TRIALS_MAX
        };
        // Every pod has a token: with it alone it must not take the places of all others.
        let trusted = self.trusted.values().filter(|it| **it == peer).count();
        if !is_loopback && trusted >= (self.total_max / POD_SHARE).max(1) {
            return Verdict::Refused;
        }
        let own = self.trials.get(&peer).map_or(0, VecDeque::len);
        let trial_count: usize = self.trials.values().map(VecDeque::len).sum();
        let closes = if own >= trials_max {
            self.oldest_of(peer)
        } else if self.trusted.len() + trial_count >= self.total_max {
            let Some(closed) = self.greediest().and_then(|peer| self.oldest_of(peer)) else {
                return Verdict::Refused;
            };
            Some(closed)
        } else {
            None
        };
        self.last += 1;
        let number = Number(self.last);
        self.trials.entry(peer).or_default().push_back(number);
        Verdict::Admitted { number, closes }
    }

    /// A connection has shown a credential; it is on trial no more.
    pub(super) fn trust(&mut self, number: Number) {
        if let Some(peer) = self.end_trial(number) {
            self.trusted.insert(number, peer);
        }
    }

    /// A connection has ended. One that was closed for another is forgotten already.
    pub(super) fn leave(&mut self, number: Number, is_trusted: bool) {
        if is_trusted {
            self.trusted.remove(&number);
        } else {
            self.end_trial(number);
        }
    }

    fn end_trial(&mut self, number: Number) -> Option<IpAddr> {
        let found = self.trials.iter_mut().find_map(|(peer, numbers)| {
            let at = numbers.iter().position(|it| *it == number)?;
            numbers.remove(at);
            Some((*peer, numbers.is_empty()))
        });
        if let Some((peer, true)) = found {
            self.trials.remove(&peer);
        }
        found.map(|(peer, _)| peer)
    }

    /// The peer with the most connections on trial.
    fn greediest(&self) -> Option<IpAddr> {
        let peers = self.trials.iter();
        peers
            .max_by_key(|(_, numbers)| numbers.len())
            .map(|(peer, _)| *peer)
    }

    fn oldest_of(&mut self, peer: IpAddr) -> Option<Number> {
        let oldest = *self.trials.get(&peer)?.front()?;
        self.end_trial(oldest);
        Some(oldest)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::{Admission, LOOPBACK_TRIALS_MAX, Number, POD_TRIALS_MAX, Verdict};

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn pod(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 88, 0, last).into()
    }

    fn admitted(number: u64, closes: Option<u64>) -> Verdict {
        Verdict::Admitted {
            number: Number(number),
            closes: closes.map(Number),
        }
    }

    #[test]
    fn a_peer_on_trial_gets_its_share_and_then_loses_its_oldest() {
        for (peer, share) in [(pod(2), POD_TRIALS_MAX), (LOOPBACK, LOOPBACK_TRIALS_MAX)] {
            let share = u64::try_from(share).unwrap();
            let mut admission = Admission::new(4096);
            for number in 1..=share {
                assert_eq!(admission.arrive(peer), admitted(number, None));
            }
            assert_eq!(admission.arrive(peer), admitted(share + 1, Some(1)));
            assert_eq!(admission.arrive(peer), admitted(share + 2, Some(2)));
            assert_eq!(admission.arrive(pod(9)), admitted(share + 3, None));
        }
    }

    #[test]
    fn who_has_shown_a_credential_is_let_be() {
        let mut admission = Admission::new(4096);
        for number in 1..=100 {
            assert_eq!(admission.arrive(pod(2)), admitted(number, None));
            admission.trust(Number(number));
        }
        for _ in 0..1000 {
            let Verdict::Admitted { closes, .. } = admission.arrive(pod(2)) else {
                panic!("there is a place");
            };
            assert!(closes.is_none_or(|it| it > Number(100)), "{closes:?}");
        }
        assert_eq!(admission.trusted.len(), 100);
    }

    #[test]
    fn a_full_house_closes_one_on_trial_of_the_greediest_peer_or_lets_nobody_in() {
        let mut admission = Admission::new(4);
        for (number, peer) in [(1, 2), (2, 3), (3, 3), (4, 3)] {
            assert_eq!(admission.arrive(pod(peer)), admitted(number, None));
        }
        assert_eq!(admission.arrive(pod(4)), admitted(5, Some(2)));
        for number in [1, 3, 4, 5] {
            admission.trust(Number(number));
        }
        assert_eq!(admission.arrive(pod(5)), Verdict::Refused);
        admission.leave(Number(3), true);
        assert_eq!(admission.arrive(pod(5)), admitted(6, None));
    }

    #[test]
    fn a_pod_with_its_token_does_not_take_all_places() {
        let mut admission = Admission::new(16);
        for number in [1, 2] {
            assert_eq!(admission.arrive(pod(2)), admitted(number, None));
            admission.trust(Number(number));
        }
        assert_eq!(admission.arrive(pod(2)), Verdict::Refused);
        assert_eq!(admission.arrive(pod(3)), admitted(3, None));
        admission.leave(Number(1), true);
        assert_eq!(admission.arrive(pod(2)), admitted(4, None));
    }

    #[test]
    fn all_loopback_addresses_are_one_peer() {
        let mut admission = Admission::new(4096);
        let share = u64::try_from(LOOPBACK_TRIALS_MAX).unwrap();
        for number in 1..=share {
            let third = u8::try_from(number / 250).unwrap();
            let fourth = u8::try_from(number % 250).unwrap();
            let peer = IpAddr::V4(Ipv4Addr::new(127, 0, third, fourth));
            assert_eq!(admission.arrive(peer), admitted(number, None));
        }
        assert_eq!(admission.arrive(LOOPBACK), admitted(share + 1, Some(1)));
    }

    #[test]
    fn connections_that_ended_leave_nothing_behind() {
        let mut admission = Admission::new(8);
        for number in 1..=8 {
            assert_eq!(admission.arrive(pod(2)), admitted(number, None));
        }
        assert_eq!(admission.arrive(LOOPBACK), admitted(9, Some(1)));
        admission.leave(Number(1), false);
        admission.trust(Number(1));
        assert_eq!(admission.trusted.len(), 0, "it was closed before");
        admission.trust(Number(2));
        admission.leave(Number(2), true);
        for number in 3..=9 {
            admission.leave(Number(number), false);
        }
        assert!(admission.trials.is_empty() && admission.trusted.is_empty());
    }
}
