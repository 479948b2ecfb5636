//! What stops a request, before it is known which request of a journey it was.

use lodestone_types::{BlockedReason, FetchProblem, WebFailure, WebStep};

/// A rule of ours or a problem of theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// A rule of this server.
    Rule(BlockedReason),
    /// It did not work out.
    Problem(FetchProblem),
}

impl Obstacle {
    /// The failure of a journey that was stopped at `step`.
    pub(super) fn at(self, step: WebStep) -> WebFailure {
        match self {
            Self::Rule(reason) => WebFailure::Blocked { step, reason },
            Self::Problem(problem) => WebFailure::Failed { step, problem },
        }
    }
}

impl From<BlockedReason> for Obstacle {
    fn from(reason: BlockedReason) -> Self {
        Self::Rule(reason)
    }
}

impl From<FetchProblem> for Obstacle {
    fn from(problem: FetchProblem) -> Self {
        Self::Problem(problem)
    }
}
