//! Errors of one request, before it is known which request of a fetch it was.

use lodestone_types::{BlockedReason, FetchProblem, WebFailure, WebStep};

/// The reason why a request gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestError {
    /// A rule of this server forbids it.
    Rule(BlockedReason),
    /// It failed.
    Problem(FetchProblem),
}

impl RequestError {
    /// The error of a fetch that ended at `step`.
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
