//! Names to addresses, never for longer than a journey may take.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use lodestone_types::FetchProblem;

/// Look-ups under way at most, abandoned ones included: the system's resolver cannot be told to
/// stop, and whoever runs a name server can make it wait.
const LOOKUPS_MAX: usize = 32;
/// Addresses of one name. More are a mistake or an attack, and no answer of DNS is longer by much.
pub(super) const ADDRESSES_MAX: usize = 512;

/// Where addresses come from. Aliases are its affair; it may block.
pub trait Resolver: Send + Sync + 'static {
    /// Every address of `name`.
    ///
    /// # Errors
    /// Whether the name has none, or nobody could say.
    fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, NameError>;
}

/// Why a name gives no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It has none.
    #[error("the name is not known")]
    Unknown,
    /// Nobody could say.
    #[error("the name could not be looked up")]
    Unavailable,
}

/// The resolver of the machine: its hosts file and its name servers.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    #[allow(clippy::disallowed_methods)] // The one place that asks the machine for addresses.
    fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, NameError> {
        match (name, 0).to_socket_addrs() {
            Ok(found) => {
                Ok(found.take(ADDRESSES_MAX + 1).map(|found: SocketAddr| found.ip()).collect())
            }
            Err(error) => Err(reason(&error)),
        }
    }
}

/// The standard library gives the resolver's code as words only: EAI_AGAIN and EAI_SYSTEM in those
/// of the common C libraries, everything else being an answer.
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

/// A resolver with a bound on how long it is waited for and how often.
#[derive(Clone)]
pub(super) struct Names {
    resolver: Arc<dyn Resolver>,
    under_way: Arc<AtomicUsize>,
}

impl Names {
    /// Names by `resolver`.
    pub(super) fn new(resolver: impl Resolver) -> Self {
        Self { resolver: Arc::new(resolver), under_way: Arc::default() }
    }

    /// The addresses of `name`, at least one.
    pub(super) fn addresses(
        &self,
        name: &str,
        deadline: Instant,
    ) -> Result<Vec<IpAddr>, FetchProblem> {
        let place = Place::take(&self.under_way).ok_or(FetchProblem::Busy)?;
        let (sender, receiver) = mpsc::sync_channel(1);
        let resolver = Arc::clone(&self.resolver);
        let asked = name.to_owned();
        let look_up = move || {
            let found = resolver.addresses(&asked);
            drop(place);
            // Nobody listens any more where the journey is over.
            let _ = sender.send(found);
        };
        let thread = std::thread::Builder::new().name("lookup".to_owned());
        thread.spawn(look_up).map_err(|_| FetchProblem::Busy)?;
        let left = deadline.saturating_duration_since(Instant::now());
        // Past the deadline the caller finds that time is up; a resolver that panicked is the other
        // way to get here.
        match receiver.recv_timeout(left).unwrap_or(Err(NameError::Unavailable)) {
            Ok(found) if found.is_empty() => Err(FetchProblem::UnknownHost),
            Ok(found) if found.len() > ADDRESSES_MAX => Err(FetchProblem::NameLookup),
            Ok(found) => Ok(found),
            Err(NameError::Unknown) => Err(FetchProblem::UnknownHost),
            Err(NameError::Unavailable) => Err(FetchProblem::NameLookup),
        }
    }
}

/// One of the look-ups that may be under way, given back when dropped.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(under_way: &Arc<AtomicUsize>) -> Option<Self> {
        let place = Self(Arc::clone(under_way));
        let before = under_way.fetch_add(1, Ordering::SeqCst);
        (before < LOOKUPS_MAX).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
