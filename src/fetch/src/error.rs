//! Errors of one request, before it is known which request of a fetch it belongs to.

use lodestone_types::{BlockedReason, FetchProblem, WebFailure, WebStep};

/// The reason why a request gave no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestError {
    /// A rule of this server forbids the request.
    Rule(BlockedReason),
    /// The request failed.
    Problem(FetchProblem),
}

impl RequestError {
    /// Attributes the error to the `step` at which the fetch ended.
    pub(super) fn at(self, step: WebStep) -> WebFailure {
        match self {
            Self::Rule(reason) => WebFailure::Blocked { step, reason },
            Self::Problem(problem) => WebFailure::Failed { step, problem },
        }
    }
}

impl From<BlockedReason> for RequestError {
    fn from(reason: BlockedReason) -> Self {
        Self::Rule(reason)
    }
}

impl From<FetchProblem> for RequestError {
    fn from(problem: FetchProblem) -> Self {
        Self::Problem(problem)
    }
}
