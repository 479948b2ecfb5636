//! Kinds of errors by the caller's remedy, independent of their source.

/// Kind of an error by the caller's remedy. Only the server turns a kind into an HTTP status.
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
    /// The disk is full: new content waits, reads and deletes continue.
    StorageFull,
    /// A part of the server is not usable now (starting, stopping, poisoned, quarantined).
    Unavailable,
    /// Stored bytes violate their format.
    Corrupt,
    /// An error of the server.
    Internal,
}
