//! A bounded resource that owners share: none of them may hold more of it than remains free, so
//! that one owner alone never takes what others need.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The shares of a resource that are in use.
#[derive(Debug)]
pub(crate) struct Shares {
    max: usize,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    total: usize,
    owners: HashMap<Arc<str>, usize>,
}

/// One share in use, released when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Arc<Shares>,
    owner: Arc<str>,
}

impl Shares {
    /// Creates a resource of `max` shares, all of them free.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, used: Mutex::default() })
    }

    /// Takes a share for `owner`; `None` if no more remain free than it already holds.
    pub fn take(self: &Arc<Self>, owner: &Arc<str>) -> Option<Share> {
        let mut used = self.used.lock();
        if used.owners.get(owner).copied().unwrap_or(0) >= self.max - used.total {
            return None;
        }
        used.total += 1;
        *used.owners.entry(Arc::clone(owner)).or_default() += 1;
        Some(Share { shares: Arc::clone(self), owner: Arc::clone(owner) })
    }

    /// Returns the number of shares in use.
    #[cfg(test)]
    pub fn used(&self) -> usize {
        self.used.lock().total
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut used = self.shares.used.lock();
        used.total -= 1;
        if let Some(own) = used.owners.get_mut(&self.owner) {
            *own -= 1;
            if *own == 0 {
                used.owners.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_owner_has_more_than_is_left() {
        let shares = Shares::new(512);
        let take_all = |owner: &str| {
            let owner = owner.into();
            std::iter::from_fn(|| shares.take(&owner)).collect::<Vec<_>>()
        };
        let (many, others) = (take_all("a"), take_all("b"));
        assert_eq!((many.len(), others.len()), (256, 128));
        drop(shares.take(&"c".into()).expect("a share for another"));
        drop((many, others));
        assert_eq!(shares.used(), 0);
        assert!(shares.used.lock().owners.is_empty(), "nothing is kept for those who left");
    }
}
