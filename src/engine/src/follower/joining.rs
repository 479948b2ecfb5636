//! Joining the other query nodes: a node opens the tenants that it will answer for before requests
//! for them are sent to it.
//!
//! ```text
//! every listed node was probed, and this node found itself in the list
//!   -> no node answers for tenants yet: join at once, since nobody has anything cached, and open
//!      tenants as they are requested
//!   -> others do: they keep answering for all tenants while this node fetches its own from the
//!      bucket and opens them -> join
//! ```

use std::time::{Duration, Instant};

use super::Follower;
use super::peers::Peers;
use lodestone_types::ErrorKind;

/// Time after which no further tenant is opened, so that a large number of them cannot delay
/// joining indefinitely.
const OPENING: Duration = Duration::from_secs(60);
/// Time after which a node that has not found itself in the list counts as unlisted and gets no
/// tenants of its own.
const OWN_PLACE: Duration = Duration::from_secs(30);
/// Interval between checks whether the preconditions for joining hold.
const LOOK: Duration = Duration::from_millis(50);

impl Follower {
    /// Opens the tenants that this node will answer for, then joins.
    pub(super) fn join(&self) {
        let Some(peers) = &self.peers else { return };
        let begun = Instant::now();
        let is_placed = || peers.has_own_place() || begun.elapsed() >= OWN_PLACE;
        while !peers.are_seen() || !is_placed() || self.catalog.require_current().is_err() {
            if self.pause(LOOK) {
                return;
            }
        }
        if peers.someone_answers() {
            self.open_own(peers);
        }
        peers.join();
    }

    /// Opens tenants until time runs out, the registry is full, or the cache would evict other
    /// copies.
    fn open_own(&self, peers: &Peers) {
        let tenants = match self.catalog.tenants() {
            Ok(tenants) => tenants,
            Err(error) => return tracing::warn!(%error, "tenants are opened on demand"),
        };
        let (begun, evictions) = (Instant::now(), self.evictions());
        let mut opened = 0;
        for tenant in tenants.iter().filter(|tenant| peers.will_answer(&tenant.id)) {
            let has_room = opened < self.registry.open_max() && self.evictions() == evictions;
            if !has_room || begun.elapsed() >= OPENING || self.pause(Duration::ZERO) {
                break;
            }
            match self.open(tenant.collection) {
                Ok(_) => opened += 1,
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    tracing::error!(collection = %tenant.collection, %error, "tenant not opened");
                }
                Err(error) => {
                    tracing::debug!(collection = %tenant.collection, %error, "tenant not opened");
                }
            }
        }
        let millis = begun.elapsed().as_millis() as u64;
        tracing::info!(tenants = opened, millis, "opened the tenants of this node");
    }

    /// Number of blobs that the cache has evicted so far.
    fn evictions(&self) -> u64 {
        self.bucket.as_ref().map_or(0, |bucket| bucket.copies().evictions)
    }
}
