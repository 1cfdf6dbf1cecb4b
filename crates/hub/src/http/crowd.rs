//! Who is connected, and who has to go when there is no room. Connections that wait for their client (a head that does
//! not end, a body that does not come, an answer that is not taken, a rest between two requests) give way to new ones;
//! those that work stay. So slow and idle clients cannot keep others out, however many connections they open.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;

/// Connections of one address that may wait at a time: thousands of hosts behind one address translator rest between
/// polls, and whoever is closed while resting connects again.
pub const PEER_WAITING: usize = 1024;
/// More than this are not kept, whatever the system allows.
const MOST: usize = 200_000;
/// What the database, base images and outgoing connections need is kept for them.
const RESERVE: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time.
    pub all: usize,
    /// Of one address, at work and waiting: some room is always left for others.
    pub of_peer: usize,
    /// Of one address, waiting.
    pub peer_waiting: usize,
}

impl Limits {
    /// For so many file descriptors.
    pub fn of(descriptors: usize, peer_waiting: usize) -> Self {
        let all = (descriptors - (descriptors / 4).min(RESERVE)).clamp(1, MOST);
        Self {
            all,
            of_peer: (all - all / 4).max(1),
            peer_waiting: peer_waiting.max(1),
        }
    }

    /// For as many as this process may have. The lower of the two limits it was given is for programs that cannot count
    /// beyond it; we can.
    pub fn of_process(peer_waiting: usize) -> Self {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        // Where it is not allowed, what there is must do.
        let _ = setrlimit(Resource::Nofile, limit);
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self::of(usize::try_from(descriptors).unwrap_or(usize::MAX), peer_waiting)
    }
}

/// What a connection waits for. Those that come first go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    Request = 1,
    Head = 2,
    Body = 3,
    /// That it takes what it was given of an answer.
    Answer = 4,
}

const WORKING: u64 = 0;
const CLOSING: u64 = u64::MAX;
/// The kind of wait stands above the time since when.
const KIND: u32 = 60;

#[derive(Debug, Clone)]
pub struct Crowd(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limits: Limits,
    begun: Instant,
    places: Mutex<Places>,
    /// Rings when somebody who waits for room may find it.
    room: Notify,
}

#[derive(Debug, Default)]
struct Places {
    next: u64,
    count: usize,
    peers: HashMap<IpAddr, HashMap<u64, Arc<Place>>>,
}

#[derive(Debug)]
struct Place {
    state: AtomicU64,
    leave: Notify,
}

/// A connection's place among the others; it is free again when this is dropped.
#[derive(Debug)]
pub struct Seat {
    crowd: Crowd,
    peer: IpAddr,
    id: u64,
    place: Arc<Place>,
}

impl Crowd {
    pub fn new(limits: Limits) -> Self {
        Self(Arc::new(Inner {
            limits,
            begun: Instant::now(),
            places: Mutex::default(),
            room: Notify::new(),
        }))
    }

    /// Returns when one more connection has a place, be it that of one that waits. Until then nobody is accepted: the
    /// system keeps new ones in its queue.
    pub async fn room(&self) {
        let mut has_waited = false;
        loop {
            let rings = self.0.room.notified();
            if self.has_room() {
                // Other listeners may wait for the same: nobody may come to this one for a long time.
                if has_waited {
                    self.0.room.notify_one();
                }
                return;
            }
            rings.await;
            has_waited = true;
        }
    }

    fn has_room(&self) -> bool {
        let places = self.places();
        places.count < self.0.limits.all || places.all().any(|(_, _, place)| place.is_waiting())
    }

    /// A place for a new connection, which waits for its first head. `None`: its address has all that one may have, and
    /// all of them work.
    pub fn enter(&self, peer: IpAddr) -> Option<Seat> {
        let (peer, limits) = (network(peer), self.0.limits);
        let mut places = self.places();
        let own = places.peers.get(&peer).map_or(0, HashMap::len);
        if own >= limits.peer_waiting.min(limits.of_peer) {
            let waiting = places.waiting_of(peer);
            if own >= limits.of_peer && waiting.is_empty() {
                return None;
            }
            let excess = (own + 1).saturating_sub(limits.of_peer);
            let excess = excess.max((waiting.len() + 1).saturating_sub(limits.peer_waiting));
            places.close(peer, &waiting, excess);
        }
        if places.count >= limits.all {
            let most = places.peers.keys().map(|peer| (*peer, places.waiting_of(*peer)));
            // Some at once: looking for them is dearer than their coming back.
            let (peer, waiting) = most.max_by_key(|(_, waiting)| waiting.len())?;
            places.close(peer, &waiting, 1 + limits.all / 64);
        }
        let place = Arc::new(Place {
            state: AtomicU64::new(self.since_now(Wait::Head)),
            leave: Notify::new(),
        });
        let id = places.next;
        places.next += 1;
        places.count += 1;
        places.peers.entry(peer).or_default().insert(id, place.clone());
        drop(places);
        Some(Seat {
            crowd: self.clone(),
            peer,
            id,
            place,
        })
    }

    pub fn count(&self) -> usize {
        self.places().count
    }

    fn since_now(&self, wait: Wait) -> u64 {
        let since = u64::try_from(self.0.begun.elapsed().as_micros()).unwrap_or(u64::MAX) & ((1 << KIND) - 1);
        ((wait as u64) << KIND) | since
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    fn all(&self) -> impl Iterator<Item = (IpAddr, u64, &Arc<Place>)> {
        let peers = self.peers.iter();
        peers.flat_map(|(peer, own)| own.iter().map(|(id, place)| (*peer, *id, place)))
    }

    /// In the order in which they have to go.
    fn waiting_of(&self, peer: IpAddr) -> Vec<(u64, u64)> {
        let own = self.peers.get(&peer).into_iter().flatten();
        let mut waiting: Vec<(u64, u64)> = own
            .map(|(id, place)| (place.state.load(Ordering::Relaxed), *id))
            .filter(|(state, _)| ![WORKING, CLOSING].contains(state))
            .collect();
        waiting.sort_unstable();
        waiting
    }

    /// Tells so many of them to go; their places are free at once. One that began to work in this moment stays.
    fn close(&mut self, peer: IpAddr, waiting: &[(u64, u64)], most: usize) {
        for (state, id) in waiting.iter().take(most) {
            let place = self.peers.get(&peer).and_then(|own| own.get(id)).cloned();
            let told = place.filter(|place| {
                let closing =
                    place
                        .state
                        .compare_exchange(*state, CLOSING, Ordering::Relaxed, Ordering::Relaxed);
                closing.is_ok()
            });
            if let Some(place) = told {
                place.leave.notify_one();
                self.remove(peer, *id);
            }
        }
    }

    fn remove(&mut self, peer: IpAddr, id: u64) -> bool {
        let Some(own) = self.peers.get_mut(&peer) else {
            return false;
        };
        let was_there = own.remove(&id).is_some();
        if own.is_empty() {
            self.peers.remove(&peer);
        }
        self.count -= usize::from(was_there);
        was_there
    }
}

impl Place {
    fn is_waiting(&self) -> bool {
        ![WORKING, CLOSING].contains(&self.state.load(Ordering::Relaxed))
    }
}

impl Seat {
    /// Its request is there and is being answered. `false`: it was asked to close already.
    pub fn works(&self) -> bool {
        self.set_state(WORKING)
    }

    pub fn waits(&self, wait: Wait) -> bool {
        let stays = self.set_state(self.crowd.since_now(wait));
        self.crowd.0.room.notify_one();
        stays
    }

    fn set_state(&self, state: u64) -> bool {
        let stays = |now| (now != CLOSING).then_some(state);
        let changed = self
            .place
            .state
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, stays);
        changed.is_ok()
    }

    /// Returns when the place is needed for somebody else.
    pub async fn asked_to_close(&self) {
        self.place.leave.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.crowd.places().remove(self.peer, self.id);
        self.crowd.0.room.notify_one();
    }
}

/// Whoever has one IPv6 address has all of its network.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    const LIMITS: Limits = Limits {
        all: 8,
        of_peer: 6,
        peer_waiting: 4,
    };

    fn peer(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    fn gone(seats: &[Seat]) -> Vec<usize> {
        let told = |seat: &Seat| seat.asked_to_close().now_or_never().is_some();
        (0..seats.len()).filter(|at| told(&seats[*at])).collect()
    }

    fn seats(crowd: &Crowd, number: u8, count: usize) -> Vec<Seat> {
        (0..count).map(|_| crowd.enter(peer(number)).unwrap()).collect()
    }

    #[test]
    fn the_oldest_that_waits_makes_room_for_the_next_of_its_address() {
        let crowd = Crowd::new(LIMITS);
        let mut held = seats(&crowd, 1, 4);
        assert_eq!(gone(&held), [0; 0]);
        held.push(crowd.enter(peer(1)).unwrap());
        assert_eq!(gone(&held), [0]);
        assert!(!held[0].works(), "it is too late for it");
    }

    #[test]
    fn who_rests_goes_first_then_who_sends_a_head_or_a_body_and_who_takes_an_answer_last() {
        let crowd = Crowd::new(LIMITS);
        let mut held = seats(&crowd, 1, 4);
        held[0].waits(Wait::Answer);
        held[1].waits(Wait::Body);
        held[2].waits(Wait::Request);
        let mut order = Vec::new();
        while order.len() < 4 {
            let newcomer = crowd.enter(peer(1)).unwrap();
            order.extend(gone(&held));
            newcomer.works();
            held.push(newcomer);
        }
        assert_eq!(order, [2, 3, 1, 0]);
    }

    #[test]
    fn those_at_work_stay_and_leave_room_for_other_addresses() {
        let crowd = Crowd::new(LIMITS);
        let held = seats(&crowd, 1, 4);
        held.iter().for_each(|seat| assert!(seat.works()));
        let more = seats(&crowd, 1, 2);
        more.iter().for_each(|seat| assert!(seat.works()));
        assert!(crowd.enter(peer(1)).is_none(), "one address has its share");
        assert!(crowd.enter(peer(2)).is_some());
        assert_eq!((gone(&held), gone(&more)), (vec![], vec![]));
    }

    #[test]
    fn when_all_places_are_taken_the_address_that_waits_most_gives_one() {
        let crowd = Crowd::new(LIMITS);
        let (slow, good) = (seats(&crowd, 1, 4), seats(&crowd, 2, 2));
        let other = seats(&crowd, 3, 2);
        assert_eq!(crowd.count(), 8);
        let newcomer = crowd.enter(peer(4)).unwrap();
        assert!(newcomer.works());
        assert_eq!(
            (gone(&slow), gone(&good), gone(&other)),
            (vec![0], vec![], vec![])
        );
        assert_eq!(crowd.count(), 8);
    }

    #[test]
    fn nobody_is_accepted_while_all_work_until_one_ends_or_waits() {
        let crowd = Crowd::new(LIMITS);
        let mut held = seats(&crowd, 1, 4);
        held.extend(seats(&crowd, 2, 4));
        held.iter().for_each(|seat| assert!(seat.works()));
        assert!(crowd.room().now_or_never().is_none());
        held[3].waits(Wait::Request);
        assert!(crowd.room().now_or_never().is_some());
        assert!(held[3].works());
        assert!(crowd.room().now_or_never().is_none());
        held.pop();
        assert!(crowd.room().now_or_never().is_some());
    }

    #[test]
    fn room_is_told_to_all_listeners_that_wait_for_it() {
        let crowd = Crowd::new(LIMITS);
        let mut held = seats(&crowd, 1, 4);
        held.extend(seats(&crowd, 2, 4));
        held.iter().for_each(|seat| assert!(seat.works()));
        let (mut one, mut other) = (Box::pin(crowd.room()), Box::pin(crowd.room()));
        assert!((&mut one).now_or_never().is_none() && (&mut other).now_or_never().is_none());
        held.pop();
        assert!(
            one.now_or_never().is_some(),
            "it is woken, and nobody comes to it"
        );
        assert!(other.now_or_never().is_some());
    }

    #[test]
    fn an_ipv6_network_is_one_peer() {
        let same = |a: &str, b: &str| network(a.parse().unwrap()) == network(b.parse().unwrap());
        assert!(same("fd00::1", "fd00::ffff:1"));
        assert!(!same("fd00::1", "fd00:0:0:1::1"));
        assert!(same("::ffff:10.0.0.1", "10.0.0.1"));
    }

    #[test]
    fn descriptors_are_kept_back_for_the_database_and_images() {
        assert_eq!(Limits::of(600, 10).all, 450);
        assert_eq!(Limits::of(600, 10).of_peer, 338);
        assert_eq!(Limits::of(1_048_576, 10).all, MOST);
        assert_eq!(Limits::of(65_536, 10).all, 65_536 - RESERVE);
        assert_eq!(
            Limits::of(0, 0),
            Limits {
                all: 1,
                of_peer: 1,
                peer_waiting: 1
            }
        );
    }
}
