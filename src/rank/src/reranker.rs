//! The trait of rerankers, and the weight of their scores.
//!
//! Both legs compare a query with passages that were indexed without it. A reranker reads query and
//! passage together, which is more precise but costs one model pass per candidate. It therefore
//! reads only the first candidates, and its verdicts are mixed with the scores of the legs:
//!
//! ```text
//! score = WEIGHT verdict + (1 - WEIGHT) fused
//! ```
//! A candidate that was not read counts as verdict 0. Since no candidate that was read has a lower
//! fused score, it stays behind all of them, in its previous order.

use std::fmt;
use std::time::Instant;

use lodestone_types::{ErrorKind, RequestContext};

/// Weight of the reranker in the score of the passages it read: more than half, so that a confident
/// verdict outweighs any difference between the legs; less than all, so that the legs order
/// passages with equal verdicts, which a sigmoid produces often. Chosen by reasoning, not by
/// measurement.
const WEIGHT: f64 = 0.6;

/// A model that reads query and passage together. Blocking: call it from a thread that may block.
pub trait Reranker: Send + Sync + fmt::Debug {
    /// The model's name on the wire.
    fn name(&self) -> &str;

    /// Scores the relevance of each passage to the query. It may stop before the last passage,
    /// though not before the first, if there are more than it reads in one call; and anywhere once
    /// `until` has passed. A pair gets the same score alone or among others. The call ends early
    /// with the request of `context`.
    ///
    /// # Errors
    /// [`RerankError`]; no passage has a score then.
    fn score(
        &self,
        context: &RequestContext,
        until: Option<Instant>,
        query: &str,
        passages: &[&str],
    ) -> Result<Verdicts, RerankError>;

    /// Fails pending calls and refuses later ones. May be called repeatedly.
    fn close(&self) {}
}

/// The scores of passages, as far as they were read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdicts {
    /// Relevance of the first passages, 0 to 1, in input order.
    pub scores: Vec<f32>,
    /// Whether the remaining passages were not read because time ran out.
    pub is_cut_short: bool,
}

/// A reranker's failure to produce scores.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the reranker returned no scores: {problem}")]
pub struct RerankError {
    kind: ErrorKind,
    problem: String,
}

impl RerankError {
    /// Creates an error of this kind with a description of its cause.
    pub fn new(kind: ErrorKind, problem: impl fmt::Display) -> Self {
        Self { kind, problem: problem.to_string() }
    }

    /// The error kind, which says what the caller should do.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

/// Computes the score of a candidate, 0 to 1, from its fused score and the reranker's verdict,
/// `None` if it was not read. Both are clamped to 0-1; NaN counts as 0.
pub fn blend(fused: f32, verdict: Option<f32>) -> f32 {
    let verdict = bounded(verdict.unwrap_or(0.0));
    (WEIGHT * verdict + (1.0 - WEIGHT) * bounded(fused)) as f32
}

fn bounded(value: f32) -> f64 {
    if value.is_nan() { 0.0 } else { f64::from(value.clamp(0.0, 1.0)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_formula_on_paper() {
        assert!((blend(0.5, Some(0.9)) - 0.74).abs() < 1e-6);
        assert!((blend(0.5, None) - 0.2).abs() < 1e-6);
        assert_eq!((blend(0.0, None), blend(1.0, Some(1.0))), (0.0, 1.0));
        assert!(blend(0.0, Some(1.0)) > blend(1.0, Some(0.0)), "a sure verdict decides");
    }

    proptest! {
        #[test]
        fn scores_are_finite_and_in_range_whatever_comes_in(
            fused in proptest::num::f32::ANY,
            verdict in prop::option::of(proptest::num::f32::ANY),
        ) {
            prop_assert!((0.0..=1.0).contains(&blend(fused, verdict)));
        }

        #[test]
        fn more_of_either_is_never_less(
            fused in (0.0_f32..=1.0, 0.0_f32..=1.0),
            verdict in (0.0_f32..=1.0, 0.0_f32..=1.0),
        ) {
            let low = blend(fused.0.min(fused.1), Some(verdict.0.min(verdict.1)));
            let high = blend(fused.0.max(fused.1), Some(verdict.0.max(verdict.1)));
            prop_assert!(low <= high);
        }

        #[test]
        fn what_was_not_read_stays_behind_in_its_order(
            mut fused in prop::collection::vec(0.0_f32..=1.0, 1..40),
            verdicts in prop::collection::vec(0.0_f32..=1.0, 1..40),
        ) {
            fused.sort_by(|a, b| b.total_cmp(a));
            let score = |(at, fused): (usize, &f32)| blend(*fused, verdicts.get(at).copied());
            let scores: Vec<f32> = fused.iter().enumerate().map(score).collect();
            let (read, unread) = scores.split_at(verdicts.len().min(scores.len()));
            prop_assert!(unread.is_sorted_by(|a, b| a >= b));
            for behind in unread {
                prop_assert!(read.iter().all(|score| score >= behind));
            }
        }
    }
}
