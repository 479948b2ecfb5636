//! Convex combination of the two legs, scaled by theoretical minimum and observed maximum ("tmm").
//!
//! Bruch, Gai, Ingber: An Analysis of Fusion Functions for Hybrid Retrieval, ACM TOIS 42 (2023),
//! section 5. Each leg is scaled by its lowest possible score (BM25 0, cosine -1) and the best
//! score in this pool:
//!
//! ```text
//! score = alpha (cos + 1) / (max_cos + 1)  +  (1 - alpha) bm25 / max_bm25
//! ```
//!
//! A third leg, that of a sparse model, takes a share of the whole, and the other two share the
//! rest as before: score = (1 - share) (the score above) + share sparse / max_sparse.
//!
//! Compared to minima observed in the pool (plain min-max), this preserves the distance of the
//! worst candidate; compared to reciprocal ranks, it preserves distances at all.

/// A candidate with the true scores of all legs, whichever leg proposed it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Cosine similarity to the query, -1 to 1.
    pub cosine: f32,
    /// Keyword score, at least 0; 0 means that no word of the query occurs.
    pub keyword: f32,
    /// Score of the sparse model, at least 0; 0 if there is none.
    pub sparse: f32,
}

/// A fused candidate, identified by its index in the input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fused {
    /// Index in the input.
    pub candidate: usize,
    /// Combined score, 0 to 1.
    pub score: f32,
    /// Contribution of the semantic leg.
    pub semantic: f32,
    /// Contribution of the keyword leg.
    pub keyword: f32,
    /// Contribution of the sparse leg.
    pub sparse: f32,
}

/// Combines the scores of every candidate, preserving the input order.
///
/// `alpha` is the share of the semantic leg, clamped to 0-1. At 0, only candidates with a keyword
/// hit remain. At 1, keyword scores have no influence; callers should then not run the keyword leg
/// at all, so that it does not contribute to the pool either. `sparse_share` is the share of the
/// sparse leg, 0 if there is none. NaN counts as the lowest score of its leg.
pub fn fuse(candidates: &[Candidate], alpha: f32, sparse_share: f32) -> Vec<Fused> {
    let alpha = bounded(alpha, 0.0, 1.0);
    let sparse_share = bounded(sparse_share, 0.0, 1.0);
    let rest = 1.0 - sparse_share;
    let best_sparse = candidates.iter().map(sparse).fold(0.0, f64::max);
    let best_semantic = candidates.iter().map(semantic).fold(0.0, f64::max);
    let best_keyword = candidates.iter().map(keyword).fold(0.0, f64::max);

    let mut fused = Vec::with_capacity(candidates.len());
    for (position, candidate) in candidates.iter().enumerate() {
        let keyword = keyword(candidate);
        if alpha == 0.0 && keyword == 0.0 {
            continue;
        }
        let semantic = rest * (alpha * share(semantic(candidate), best_semantic));
        let keyword = rest * ((1.0 - alpha) * share(keyword, best_keyword));
        let sparse = sparse_share * share(sparse(candidate), best_sparse);
        fused.push(Fused {
            candidate: position,
            score: (semantic + keyword + sparse).min(1.0) as f32,
            semantic: semantic as f32,
            keyword: keyword as f32,
            sparse: sparse as f32,
        });
    }
    fused
}

/// Distance of the cosine from its lowest possible value.
fn semantic(candidate: &Candidate) -> f64 {
    bounded(candidate.cosine, -1.0, 1.0) + 1.0
}

/// Distance of the keyword score from its lowest possible value.
fn keyword(candidate: &Candidate) -> f64 {
    bounded(candidate.keyword, 0.0, f64::from(f32::MAX))
}

/// Distance of the sparse score from its lowest possible value.
fn sparse(candidate: &Candidate) -> f64 {
    bounded(candidate.sparse, 0.0, f64::from(f32::MAX))
}

/// Clamps `value` to a range; NaN becomes the minimum.
fn bounded(value: f32, least: f64, most: f64) -> f64 {
    if value.is_nan() { least } else { f64::from(value).clamp(least, most) }
}

/// `value` as a fraction of the best; 0 for a leg that found nothing.
fn share(value: f64, best: f64) -> f64 {
    if best > 0.0 { value / best } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
        let keyword = prop_oneof![2 => Just(0.0_f32), 3 => 0.0_f32..40.0];
        let one = (-1.0_f32..=1.0, keyword);
        let one = one.prop_map(|(cosine, keyword)| Candidate { cosine, keyword, sparse: 0.0 });
        prop::collection::vec(one, 0..40)
    }

    fn scores(fused: &[Fused]) -> Vec<f32> {
        fused.iter().map(|fused| fused.score).collect()
    }

    #[test]
    fn the_formula_on_paper() {
        let both = Candidate { cosine: 0.5, keyword: 4.0, sparse: 0.0 };
        let semantic = Candidate { cosine: 0.8, keyword: 0.0, sparse: 0.0 };
        let fused = fuse(&[both, semantic], 0.8, 0.0);
        assert!((fused[0].score - (0.8 * 1.5 / 1.8 + 0.2)).abs() < 1e-6);
        assert!((fused[1].score - 0.8).abs() < 1e-6);
        let three = [Candidate { sparse: 1.0, ..both }, Candidate { sparse: 4.0, ..semantic }];
        let fused = fuse(&three, 0.8, 0.2);
        assert!((fused[0].score - (0.8 * (0.8 * 1.5 / 1.8 + 0.2) + 0.05)).abs() < 1e-6);
        assert!((fused[1].score - (0.8 * 0.8 + 0.2)).abs() < 1e-6);
        assert!((fused[1].sparse - 0.2).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn scores_are_finite_and_in_range_whatever_comes_in(
            raw in prop::collection::vec(
                (proptest::num::f32::ANY, proptest::num::f32::ANY), 0..20),
            alpha in proptest::num::f32::ANY,
        ) {
            let one = |(cosine, keyword)| Candidate { cosine, keyword, sparse: 0.0 };
            let raw: Vec<Candidate> = raw.into_iter().map(one).collect();
            for fused in fuse(&raw, alpha, 0.0) {
                prop_assert!((0.0..=1.0).contains(&fused.score), "{fused:?}");
            }
        }

        #[test]
        fn at_alpha_0_exactly_the_keyword_hits_remain(pool in candidates()) {
            let fused = fuse(&pool, 0.0, 0.0);
            let kept: Vec<usize> = fused.iter().map(|fused| fused.candidate).collect();
            let hits: Vec<usize> = (0..pool.len()).filter(|&i| pool[i].keyword > 0.0).collect();
            prop_assert_eq!(kept, hits);
            let other: Vec<Candidate> =
                pool.iter().map(|&candidate| Candidate { cosine: 0.3, ..candidate }).collect();
            prop_assert_eq!(scores(&fuse(&other, 0.0, 0.0)), scores(&fused));
        }

        #[test]
        fn at_alpha_1_keyword_scores_do_not_matter(pool in candidates()) {
            let fused = fuse(&pool, 1.0, 0.0);
            prop_assert_eq!(fused.len(), pool.len());
            let other: Vec<Candidate> =
                pool.iter().map(|&candidate| Candidate { keyword: 7.0, ..candidate }).collect();
            prop_assert_eq!(scores(&fuse(&other, 1.0, 0.0)), scores(&fused));
        }

        #[test]
        fn a_candidate_that_is_no_worse_in_both_legs_is_no_worse(
            pool in candidates(),
            alpha in 0.01_f32..=1.0,
        ) {
            let fused = fuse(&pool, alpha, 0.0);
            prop_assert_eq!(fused.len(), pool.len());
            for (a, fused_a) in pool.iter().zip(&fused) {
                for (b, fused_b) in pool.iter().zip(&fused) {
                    if a.cosine >= b.cosine && a.keyword >= b.keyword {
                        prop_assert!(fused_a.score >= fused_b.score);
                    }
                }
            }
        }
    }
}
