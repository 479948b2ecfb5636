//! Name resolution within the deadline of a fetch.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use lodestone_types::FetchProblem;

/// Maximum number of concurrent lookups, including abandoned ones: the system resolver cannot be
/// cancelled, and anyone who runs a name server can make it wait.
const LOOKUPS_MAX: usize = 32;
/// Maximum number of addresses of a name. More are a mistake or an attack; DNS responses hardly
/// hold more.
pub(super) const ADDRESSES_MAX: usize = 512;

/// Resolves names, following aliases. May block.
pub trait Resolver: Send + Sync + 'static {
    /// Returns all addresses of `name`.
    ///
    /// # Errors
    /// If the name has none, or cannot be resolved.
    fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, NameError>;
}

/// Reason why a name has no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is no such name.
    #[error("the name does not exist")]
    Unknown,
    /// The lookup failed.
    #[error("the name could not be resolved")]
    Unavailable,
}

/// The system resolver: the hosts file and the configured name servers.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    #[allow(clippy::disallowed_methods)] // The only code that asks the system for addresses.
    fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, NameError> {
        match (name, 0).to_socket_addrs() {
            Ok(found) => {
                Ok(found.take(ADDRESSES_MAX + 1).map(|found: SocketAddr| found.ip()).collect())
            }
            Err(error) => Err(reason(&error)),
        }
    }
}

/// The standard library reports the resolver's error code only as text. Recognises the texts of
/// EAI_AGAIN, EAI_SYSTEM and EAI_MEMORY in the common C libraries; all others mean that the name
/// does not exist.
fn reason(error: &io::Error) -> NameError {
    let words = error.to_string();
    let is_unsure = ["Temporary failure", "Try again", "System error", "Memory allocation"]
        .iter()
        .any(|sign| words.contains(sign));
    if is_unsure || error.raw_os_error().is_some() {
        return NameError::Unavailable;
    }
    NameError::Unknown
}

/// A resolver with timeouts and a limit of concurrent lookups.
#[derive(Clone)]
pub(super) struct Names {
    resolver: Arc<dyn Resolver>,
    pending: Arc<AtomicUsize>,
}

impl Names {
    /// Wraps `resolver`.
    pub(super) fn new(resolver: impl Resolver) -> Self {
        Self { resolver: Arc::new(resolver), pending: Arc::default() }
    }

    /// Returns the addresses of `name`, at least one.
    pub(super) fn addresses(
        &self,
        name: &str,
        deadline: Instant,
    ) -> Result<Vec<IpAddr>, FetchProblem> {
        let permit = LookupPermit::take(&self.pending).ok_or(FetchProblem::Busy)?;
        let (sender, receiver) = mpsc::sync_channel(1);
        let resolver = Arc::clone(&self.resolver);
        let asked = name.to_owned();
        let look_up = move || {
            let found = resolver.addresses(&asked);
            drop(permit);
            // The receiver is gone if the fetch has ended.
            let _ = sender.send(found);
        };
        let thread = std::thread::Builder::new().name("lookup".to_owned());
        thread.spawn(look_up).map_err(|_| FetchProblem::Busy)?;
        let left = deadline.saturating_duration_since(Instant::now());
        // No result means that the deadline has passed, which the caller notices, or that the
        // resolver panicked.
        match receiver.recv_timeout(left).unwrap_or(Err(NameError::Unavailable)) {
            Ok(found) if found.is_empty() => Err(FetchProblem::UnknownHost),
            Ok(found) if found.len() > ADDRESSES_MAX => Err(FetchProblem::NameLookup),
            Ok(found) => Ok(found),
            Err(NameError::Unknown) => Err(FetchProblem::UnknownHost),
            Err(NameError::Unavailable) => Err(FetchProblem::NameLookup),
        }
    }
}

/// Permit for one lookup; released on drop.
struct LookupPermit(Arc<AtomicUsize>);

impl LookupPermit {
    fn take(pending: &Arc<AtomicUsize>) -> Option<Self> {
        let permit = Self(Arc::clone(pending));
        let before = pending.fetch_add(1, Ordering::SeqCst);
        (before < LOOKUPS_MAX).then_some(permit)
    }
}

impl Drop for LookupPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_gives_the_addresses_of_a_name() {
        let found = SystemResolver.addresses("192.0.2.7");
        assert_eq!(found, Ok(vec![IpAddr::from([192, 0, 2, 7])]));
    }

    #[test]
    fn no_answer_is_told_from_the_answer_that_there_is_no_such_name() {
        let words = "failed to lookup address information: ";
        let other = |end: &str| reason(&io::Error::other(format!("{words}{end}")));
        assert_eq!(other("Name or service not known"), NameError::Unknown);
        assert_eq!(other("Temporary failure in name resolution"), NameError::Unavailable);
        assert_eq!(reason(&io::Error::from_raw_os_error(24)), NameError::Unavailable);
    }
}
