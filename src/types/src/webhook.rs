//! Webhooks: event kinds, and the trait of the client that delivers them.

use std::fmt;

use crate::{BlockedReason, FetchProblem, WebUrl};

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A source became searchable.
    SourceSuccess,
    /// A source could not be processed.
    SourceErrored,
    /// A source was deleted.
    SourceDeleted,
    /// The last waiting or running job of a tenant has ended.
    JobsDrained,
}

words!(EventKind {
    SourceSuccess = "source.success",
    SourceErrored = "source.errored",
    SourceDeleted = "source.deleted",
    JobsDrained = "jobs.drained",
});

impl EventKind {
    /// All event kinds.
    pub const ALL: [Self; 4] =
        [Self::SourceSuccess, Self::SourceErrored, Self::SourceDeleted, Self::JobsDrained];
}

/// The state of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookState {
    /// Events are delivered.
    Active,
    /// Events are kept for delivery once the webhook is active again.
    Paused,
    /// Disabled after days of failures: events are counted but not kept until it is active again.
    Disabled,
}

words!(WebhookState { Active = "active", Paused = "paused", Disabled = "disabled" });

/// The state of one event for one webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// Waiting for its first attempt or for a retry.
    Pending,
    /// Accepted by the receiver.
    Delivered,
    /// Given up; not retried.
    GivenUp,
}

words!(DeliveryState { Pending = "pending", Delivered = "delivered", GivenUp = "given_up" });

/// A message to a webhook receiver.
#[derive(Debug, Clone, Copy)]
pub struct WebPost<'a> {
    /// The receiver's URL.
    pub url: &'a WebUrl,
    /// Headers in addition to those of HTTP itself.
    pub headers: &'a [(&'static str, String)],
    /// The JSON body.
    pub body: &'a str,
}

/// Posts messages to webhook receivers. Blocks the calling thread.
pub trait WebhookClient: fmt::Debug + Send + Sync {
    /// Checks a receiver's URL without resolving its host name.
    ///
    /// # Errors
    /// The rule that would forbid sending to it.
    fn permits(&self, url: &WebUrl) -> Result<(), BlockedReason>;

    /// Sends one message and returns the status of the response. Does not follow redirects.
    ///
    /// # Errors
    /// [`PostFailure`] if there was no response.
    fn post(&self, post: &WebPost<'_>) -> Result<u16, PostFailure>;
}

/// Reasons why a message was not delivered. They never reveal an IP address that a name resolved
/// to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostFailure {
    /// This server's rules forbid the request.
    #[error("not sent: {0}")]
    Blocked(BlockedReason),
    /// The attempt failed.
    #[error("not delivered: {0}")]
    Failed(FetchProblem),
}
