//! Error kinds, classified by what the caller can do about them rather than by their source.

/// Classifies an error by what the caller can do about it. Only the server maps kinds to HTTP
/// statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request is invalid and will stay so: correct it.
    Invalid,
    /// The named thing does not exist, or the caller has no access to it.
    NotFound,
    /// The request conflicts with the current state (already exists, wrong mode).
    Conflict,
    /// A byte limit was exceeded.
    TooLarge,
    /// A limited resource is exhausted: retry later.
    Overloaded,
    /// The disk is full: new content has to wait; reads and deletes still work.
    StorageFull,
    /// A part of the server is currently unusable (starting, stopping, poisoned, quarantined).
    Unavailable,
    /// Stored bytes violate their format.
    Corrupt,
    /// An internal error of the server.
    Internal,
}
