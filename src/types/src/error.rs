//! Error kinds: what the caller should do, independent of where the failure happened.

/// What a caller should do about an error. Only the server turns a kind into an HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request is wrong and will stay wrong: correct it.
    Invalid,
    /// The thing named does not exist, or the caller has no access to it.
    NotFound,
    /// The request contradicts the present state (exists already, wrong mode).
    Conflict,
    /// A byte limit was exceeded.
    TooLarge,
    /// A bounded resource is full: try again later.
    Overloaded,
    /// The disk is full: new content waits, reads and deletes go on.
    StorageFull,
    /// A part of the server is not usable now (starting, stopping, poisoned, quarantined).
    Unavailable,
    /// Stored bytes do not say what they must say.
    Corrupt,
    /// A fault of ours.
    Internal,
}
