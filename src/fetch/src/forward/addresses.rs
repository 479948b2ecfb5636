//! A server that may be at one of several addresses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Forwarder;
use crate::Authorities;

/// Clients for the possible addresses of one server. It is taken to be at the first one until it is
/// found at another.
#[derive(Debug)]
pub struct Addresses {
    ways: Vec<Arc<Forwarder>>,
    /// Index of the client for its current address.
    current: AtomicUsize,
}

impl Addresses {
    /// Creates clients for the server at one of `bases`, each as for [`Forwarder::new`].
    ///
    /// # Errors
    /// If there are none, or the rule that one of them breaks.
    pub fn new<'a>(
        bases: impl IntoIterator<Item = &'a str>,
        authorities: &Authorities,
    ) -> Result<Self, String> {
        let ways = bases.into_iter().map(|base| Forwarder::new(base, authorities).map(Arc::new));
        let ways = ways.collect::<Result<Vec<_>, _>>()?;
        match ways.is_empty() {
            true => Err("must name an address".to_owned()),
            false => Ok(Self { ways, current: AtomicUsize::new(0) }),
        }
    }

    /// The client for the address where the server was last found.
    pub fn current(&self) -> &Arc<Forwarder> {
        &self.ways[self.current.load(Ordering::Relaxed)]
    }

    /// Looks for the server, first at its last address. `look` checks one address; its error says
    /// why the server is not there, and is recorded for an address that the server has left.
    ///
    /// # Errors
    /// The reason why the server is not at its last address, if it is at no other either.
    pub fn find(&self, look: impl Fn(&Forwarder) -> Result<(), String>) -> Result<(), String> {
        let last = self.current();
        let Err(problem) = look(last) else { return Ok(()) };
        let others = self.ways.iter().enumerate().filter(|(_, way)| !Arc::ptr_eq(way, last));
        let mut found = others.filter(|(_, way)| look(way).is_ok());
        let Some((at, way)) = found.next() else { return Err(problem) };
        tracing::info!(%problem, now = way.base(), "the server is at another address");
        way.note(None);
        self.current.store(at, Ordering::Relaxed);
        last.note(Some(problem));
        Ok(())
    }
}

impl From<Arc<Forwarder>> for Addresses {
    fn from(way: Arc<Forwarder>) -> Self {
        Self { ways: vec![way], current: AtomicUsize::new(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_looked_for_at_its_last_address_first() {
        let none = Authorities::default();
        assert!(Addresses::new([], &none).is_err());
        let addresses = Addresses::new(["http://a", "http://b", "http://c"], &none).unwrap();
        let at = |base: &'static str| {
            move |way: &Forwarder| match way.base() == base {
                true => Ok(()),
                false => Err(format!("{} has it not", way.base())),
            }
        };
        let first = Arc::clone(addresses.current());
        assert_eq!(addresses.find(at("http://a")), Ok(()));
        assert_eq!(addresses.find(at("http://c")), Ok(()));
        assert_eq!(addresses.current().base(), "http://c");
        assert!(first.unusable_for().is_some(), "what waits for it there is not answered");
        let problem = Err("http://c has it not".to_owned());
        assert_eq!(addresses.find(at("http://d")), problem);
        assert_eq!(addresses.current().base(), "http://c");
        assert_eq!(addresses.find(at("http://a")), Ok(()));
        assert!(first.unusable_for().is_none(), "it is back");
    }
}
