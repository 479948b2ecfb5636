//! The table of open connections, which limits their number, per address too, and chooses which one
//! to close when a new one needs a slot.
//!
//! ```text
//! full -> evict the oldest without an authenticated request, idle ones first
//!      -> else evict the one that has been idle longest
//!      -> else evict the oldest whose request is of no known owner
//! ```
//! A connection that is busy for a known owner is never evicted. One owner occupies no more of them
//! than remain free for others, and all together at most 15 of 16, so that newcomers find room.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::listen::peer::Peer;
use crate::shares::Shares;

/// Interval at which a full table is searched again, because a connection may have become idle.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The open connections.
#[derive(Debug)]
pub(super) struct Table {
    connections_max: usize,
    per_address_max: usize,
    occupied: Arc<Shares>,
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// Connections in the order in which they were accepted.
    peers: BTreeMap<u64, Arc<Peer>>,
    /// Number of connections per counted address.
    addresses: HashMap<IpAddr, usize>,
    evicted: u64,
}

impl Table {
    /// Creates an empty table; a `per_address_max` of 0 means unlimited.
    pub(super) fn new(connections_max: usize, per_address_max: usize) -> Arc<Self> {
        let (state, freed) = (Mutex::default(), Notify::new());
        let for_others = connections_max.div_ceil(16);
        let occupied = Shares::new(connections_max.saturating_sub(for_others).max(1));
        Arc::new(Self { connections_max, per_address_max, occupied, state, freed })
    }

    /// Takes a slot for a connection from `address`, waiting while all connections in a full table
    /// are busy. Returns `None` if the address has reached its limit.
    pub(super) async fn enter(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionSlot> {
        let of_peer = address.to_canonical();
        let address = counted(address).filter(|_| self.per_address_max > 0);
        loop {
            let freed = self.freed.notified();
            {
                let mut state = self.state.lock();
                if let Some(address) = address
                    && state.addresses.get(&address).is_some_and(|n| *n >= self.per_address_max)
                {
                    return None;
                }
                if state.peers.len() < self.connections_max {
                    let (id, peer) = (state.next, Peer::new(of_peer, Arc::clone(&self.occupied)));
                    let peer = Arc::new(peer);
                    state.next += 1;
                    state.peers.insert(id, Arc::clone(&peer));
                    if let Some(address) = address {
                        *state.addresses.entry(address).or_default() += 1;
                    }
                    return Some(ConnectionSlot { table: Arc::clone(self), id, address, peer });
                }
                state.evict_one();
            }
            let _ = timeout(LOOK_AGAIN, freed).await;
        }
    }

    /// Closes one connection, if any can be closed, because file descriptors have run out.
    pub(super) fn evict_one(&self) {
        self.state.lock().evict_one();
    }
}

impl State {
    fn evict_one(&mut self) {
        if self.peers.values().any(|peer| peer.is_timed_out()) {
            // A connection is already on its way out.
            return;
        }
        let of_none = || self.peers.values().filter(|peer| !peer.is_occupied());
        let unknown = of_none().filter(|peer| !peer.is_authenticated());
        // `min_by_key` returns the first minimum, which is the oldest connection.
        let unknown = unknown.min_by_key(|peer| peer.idle_since().is_none());
        let idle = || self.peers.values().filter_map(|peer| Some((peer.idle_since()?, peer)));
        let longest_idle = || idle().min_by_key(|(since, _)| *since).map(|found| found.1);
        let victim = unknown.or_else(longest_idle).or_else(|| of_none().next());
        let Some(victim) = victim.cloned() else { return };
        victim.evict();
        self.evicted += 1;
        if self.evicted.is_power_of_two() {
            let evicted = self.evicted;
            tracing::warn!(evicted, "the connection table was full: closed idle connections");
        }
    }
}

/// The slot of one connection, released when dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    table: Arc<Table>,
    id: u64,
    address: Option<IpAddr>,
    pub(super) peer: Arc<Peer>,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        // The work for a request may outlive its connection.
        self.peer.end_request();
        let mut state = self.table.state.lock();
        state.peers.remove(&self.id);
        if let Some(address) = self.address
            && let Some(count) = state.addresses.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                state.addresses.remove(&address);
            }
        }
        drop(state);
        self.table.freed.notify_one();
    }
}

/// Returns the address that a connection is counted under; for IPv6, the /64 network. Loopback and
/// private addresses are not counted, because proxies connect from there.
fn counted(address: IpAddr) -> Option<IpAddr> {
    match address.to_canonical() {
        IpAddr::V4(v4) if v4.is_loopback() || v4.is_private() || v4.is_link_local() => None,
        IpAddr::V4(v4) => Some(IpAddr::V4(v4)),
        IpAddr::V6(v6) if v6.is_loopback() || v6.is_unique_local() => None,
        IpAddr::V6(v6) if v6.is_unicast_link_local() => None,
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            Some(IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Condition;
    use futures_util::FutureExt;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn public_addresses_are_bounded_and_places_of_proxies_are_not() {
        let table = Table::new(100, 2);
        let enter = async |address: &str| table.enter(ip(address)).await;
        let held = [enter("192.0.2.1").await.unwrap(), enter("::ffff:192.0.2.1").await.unwrap()];
        assert!(enter("192.0.2.1").await.is_none());
        let other = enter("192.0.2.2").await.unwrap();
        let network = [enter("2001:db8::1").await.unwrap(), enter("2001:db8::2").await.unwrap()];
        assert!(enter("2001:db8::3").await.is_none());
        assert!(enter("2001:db8:0:1::3").await.is_some());
        for near in ["127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.9", "::1", "fd00::1"] {
            let held = [enter(near).await, enter(near).await, enter(near).await];
            assert!(held.iter().all(Option::is_some), "{near}");
        }
        drop(held);
        assert!(enter("192.0.2.1").await.is_some());
        drop((other, network));
        assert!(table.state.lock().addresses.is_empty(), "nothing is kept for those who left");
        let unlimited = Table::new(100, 0);
        assert!(unlimited.enter(ip("192.0.2.1")).await.is_some());
    }

    /// Goal: connections without a key are evicted first, idle before busy ones, then those that
    /// have been idle longest, then those busy with a request of no owner; no other is evicted.
    #[tokio::test]
    async fn a_full_table_makes_room_in_its_order() {
        let table = Table::new(4, 0);
        let near = ip("127.0.0.1");
        let [known_busy, known_idle, unknown_busy, unknown_idle] = [
            table.enter(near).await.unwrap(),
            table.enter(near).await.unwrap(),
            table.enter(near).await.unwrap(),
            table.enter(near).await.unwrap(),
        ];
        for place in [&known_busy, &known_idle, &unknown_busy] {
            place.peer.begin_request();
        }
        known_busy.peer.authenticate(&"busy".into()).unwrap();
        known_idle.peer.authenticate(&"idle".into()).unwrap();
        known_idle.peer.end_request();
        let mut newcomers = Vec::new();
        for (owner, victim) in [unknown_idle, unknown_busy, known_idle].into_iter().enumerate() {
            let mut entering = Box::pin(table.enter(near));
            assert!((&mut entering).now_or_never().is_none());
            assert!(victim.peer.evicted().now_or_never().is_some());
            drop(victim);
            let newcomer = entering.await.unwrap();
            newcomer.peer.begin_request();
            let counted = newcomer.peer.authenticate(&owner.to_string().into());
            assert_eq!(counted.is_ok(), owner < 2, "one connection is left to others");
            newcomers.push(newcomer);
        }
        let mut entering = Box::pin(table.enter(near));
        assert!((&mut entering).now_or_never().is_none());
        let uncounted = newcomers.pop().unwrap();
        assert!(uncounted.peer.evicted().now_or_never().is_some());
        for busy in newcomers.iter().chain([&known_busy]) {
            assert!(busy.peer.evicted().now_or_never().is_none());
        }
        drop(uncounted);
        assert!(entering.await.is_some());
    }

    /// Goal: however many connections the owners of keys and links keep busy, newcomers enter, and
    /// no busy connection of another is closed for them.
    #[tokio::test]
    async fn owners_leave_room_for_newcomers() {
        let table = Table::new(64, 0);
        let enter = async || {
            let entered = table.enter(ip("127.0.0.1")).await.unwrap();
            entered.peer.begin_request();
            entered
        };
        let mut busy: Vec<ConnectionSlot> = Vec::new();
        for (owner, count) in [("a", 30), ("b", 15)] {
            let owner = owner.into();
            for _ in 0..count {
                busy.push(enter().await);
                busy.last().unwrap().peer.authenticate(&owner).unwrap();
                // A request within the request counts no second time.
                busy.last().unwrap().peer.authenticate(&owner).unwrap();
            }
            let beyond = enter().await;
            let refused = beyond.peer.authenticate(&owner).unwrap_err();
            assert_eq!(
                (refused.condition(), refused.reason()),
                (Condition::Unavailable, "overloaded")
            );
        }
        let by_link = enter().await;
        by_link.peer.occupy(&"link c".into()).unwrap();
        let mut strangers = Vec::new();
        while table.state.lock().peers.len() < 64 {
            strangers.push(enter().await);
        }
        let mut entering = Box::pin(enter());
        assert!((&mut entering).now_or_never().is_none());
        let stranger = strangers.remove(0);
        assert!(stranger.peer.evicted().now_or_never().is_some(), "the oldest without an owner");
        drop(stranger);
        strangers.push(entering.await);
        by_link.peer.end_request();
        let mut entering = Box::pin(enter());
        assert!((&mut entering).now_or_never().is_none());
        assert!(by_link.peer.evicted().now_or_never().is_some(), "a link is not a key");
        drop(by_link);
        drop(entering.await);
        assert_eq!(table.occupied.used(), 45);
        drop(busy);
        assert_eq!(table.occupied.used(), 0);
    }
}
