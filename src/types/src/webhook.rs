//! Webhooks: kinds of events, and the trait of the client that delivers them.

use std::fmt;

use crate::{BlockedReason, FetchProblem, WebUrl};

/// Kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A source became searchable.
    SourceSuccess,
    /// A source could not be processed.
    SourceErrored,
    /// A source was deleted.
    SourceDeleted,
    /// The last job of a tenant that waited or ran has ended.
    JobsDrained,
}

words!(EventKind {
    SourceSuccess = "source.success",
    SourceErrored = "source.errored",
    SourceDeleted = "source.deleted",
    JobsDrained = "jobs.drained",
});

impl EventKind {
    /// Every kind.
    pub const ALL: [Self; 4] =
        [Self::SourceSuccess, Self::SourceErrored, Self::SourceDeleted, Self::JobsDrained];
}

/// State of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookState {
    /// Its events are delivered.
    Active,
    /// Its events are kept until it is active again.
    Paused,
    /// It failed for days: its events are counted and not kept until it is active again.
    Disabled,
}

words!(WebhookState { Active = "active", Paused = "paused", Disabled = "disabled" });

/// State of one event for one webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// It waits for its first attempt or for another one.
    Pending,
    /// The receiver has taken it.
    Delivered,
    /// It is not tried again.
    GivenUp,
}

words!(DeliveryState { Pending = "pending", Delivered = "delivered", GivenUp = "given_up" });

/// A message to a receiver.
#[derive(Debug, Clone, Copy)]
pub struct WebPost<'a> {
    /// The receiver.
    pub url: &'a WebUrl,
    /// Headers beside those of HTTP itself.
    pub headers: &'a [(&'static str, String)],
    /// JSON.
    pub body: &'a str,
}

/// A client that posts messages to receivers. Blocks the calling thread.
pub trait WebhookClient: fmt::Debug + Send + Sync {
    /// Checks a receiver's address without looking its name up.
    ///
    /// # Errors
    /// The rule by which nothing could be sent to it.
    fn permits(&self, url: &WebUrl) -> Result<(), BlockedReason>;

    /// Sends one message; returns the status of the answer. Follows no redirect.
    ///
    /// # Errors
    /// [`PostFailure`] where there is no answer.
    fn post(&self, post: &WebPost<'_>) -> Result<u16, PostFailure>;
}

/// Errors of sending a message. They never name an address that a name resolved to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostFailure {
    /// The rules of this server forbid it.
    #[error("not sent: {0}")]
    Blocked(BlockedReason),
    /// It failed.
    #[error("not delivered: {0}")]
    Failed(FetchProblem),
}
