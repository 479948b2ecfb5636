//! Searches on the device, and their CPU fallback.
//!
//! ```text
//! SearchRequest -> batcher -> search over T1 ----------------------> hits
//!                   '- too many candidates: T2, where that is f16 --> hits
//!                       '- still too many, or an error -----------> CPU fallback
//! ```

use std::sync::Arc;

use crate::cuda::DeviceError;
use crate::cuda::backend::CudaBackend;
use crate::cuda::batcher::{Candidate, DeviceCandidates, DeviceQuery};
use crate::cuda::chosen::ChosenRows;
use crate::cuda::manager::ActiveDevice;
use crate::cuda::numbers::{HalfQuery, Numbers};
use crate::cuda::search::{search, search_chosen};
use crate::{BoundedQuery, ComputeError, ErrorBound, FullRows, Selection, VectorRows};
use lodestone_types::{Hit, RowId, by_rank};

/// Queries over the rows of one segment that the device knows by `identity`.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchRequest<'a> {
    pub(super) rows: &'a VectorRows<'a>,
    pub(super) identity: u128,
    pub(super) queries: &'a [BoundedQuery<'a>],
    pub(super) selection: Selection<'a>,
    pub(super) k: usize,
}

/// Rows that searches have in common: those of a segment that pass one mask. Searches without a
/// filter share one too once some rows are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowsKey {
    identity: u128,
    mask: Option<u64>,
}

impl CudaBackend {
    /// Hits of every query: from the device, and from the CPU where the device has none.
    pub(super) fn search(
        &self,
        request: &SearchRequest<'_>,
    ) -> Result<Vec<Vec<Hit>>, ComputeError> {
        let SearchRequest { queries, k, .. } = *request;
        let found = match self.manager.run(|device| self.search_codes(device, request)) {
            Ok(found) => found,
            Err(error) => return self.fall_back(request, &error),
        };
        let mut answers = Vec::with_capacity(queries.len());
        let mut open = Vec::new();
        for (bounded, found) in queries.iter().zip(found) {
            let answer = found.map(|found| best_hits(&found, k, &bounded.bound));
            open.extend(answer.is_none().then_some(*bounded));
            answers.push(answer);
        }
        self.counters.answered(queries.len() - open.len());
        let mut rest = Vec::new().into_iter();
        if !open.is_empty() {
            let open = SearchRequest { queries: &open, ..*request };
            rest = match self.manager.run(|device| self.search_halves(device, &open)) {
                Ok(found) => found.into_iter(),
                Err(error) => self.fall_back(&open, &error)?.into_iter(),
            };
        }
        Ok(answers.into_iter().filter_map(|answer| answer.or_else(|| rest.next())).collect())
    }

    /// Candidates by T1, batched with the queries of other requests over the same rows.
    fn search_codes(
        &self,
        device: &Arc<ActiveDevice>,
        request: &SearchRequest<'_>,
    ) -> Result<Vec<DeviceCandidates>, DeviceError> {
        let SearchRequest { rows, identity, selection, k, .. } = *request;
        let resident = device.resident(identity, rows, Numbers::Codes)?;
        let queries: Vec<DeviceQuery> = request.queries.iter().map(DeviceQuery::new).collect();
        let kept = kept_rows(device, identity, selection)?;
        let run = |queries: &[DeviceQuery], k: usize, requests: usize| {
            self.counters.ran(requests);
            device.with_workspace(|workspace| match &kept {
                Some(chosen) => search_chosen(workspace, &resident, queries, chosen, k),
                None => search(workspace, &resident, queries, selection, k),
            })
        };
        let mask = match selection {
            Selection::All => None,
            Selection::Masked(mask) => Some(mask.identity()),
            // A list of rows is a search of its own.
            Selection::Listed(_) => return run(&queries, k, 1),
        };
        let key = RowsKey { identity, mask };
        self.scans.run(key, queries, k, |batch| run(&batch.queries, batch.k, batch.requests))
    }

    /// Hits by T2 for queries that T1 leaves open (`numbers` says why). Only over rows that are
    /// f16 already: how much others lose as f16 is not known on the host.
    fn search_halves(
        &self,
        device: &Arc<ActiveDevice>,
        request: &SearchRequest<'_>,
    ) -> Result<Vec<Vec<Hit>>, DeviceError> {
        let SearchRequest { rows, identity, selection, k, .. } = *request;
        if !matches!(rows.full(), FullRows::F16(_)) {
            return Err(DeviceError::TooManyCandidates);
        }
        let halves: Vec<HalfQuery> = request.queries.iter().map(HalfQuery::new).collect();
        let queries: Vec<DeviceQuery> = halves.iter().map(|half| half.query.clone()).collect();
        let resident = device.resident(identity, rows, Numbers::F16)?;
        self.counters.ran(1);
        let kept = kept_rows(device, identity, selection)?;
        let found = device.with_workspace(|workspace| match &kept {
            Some(chosen) => search_chosen(workspace, &resident, &queries, chosen, k),
            None => search(workspace, &resident, &queries, selection, k),
        })?;
        let found: Option<Vec<_>> = found.into_iter().collect();
        let pairs = halves.iter().zip(found.ok_or(DeviceError::TooManyCandidates)?);
        let hits: Vec<_> = pairs.map(|(half, found)| best_hits(&found, k, &half.bound)).collect();
        self.counters.answered(hits.len());
        self.counters.answered_by_originals(hits.len());
        Ok(hits)
    }

    fn fall_back(
        &self,
        request: &SearchRequest<'_>,
        error: &DeviceError,
    ) -> Result<Vec<Vec<Hit>>, ComputeError> {
        self.counters.fell_back(error);
        tracing::debug!(%error, "CPU fallback of a vector search");
        self.cpu.candidates(request.rows, request.queries, request.selection, request.k)
    }
}

/// The rows of a mask where the device keeps them.
fn kept_rows(
    device: &ActiveDevice,
    identity: u128,
    selection: Selection<'_>,
) -> Result<Option<Arc<ChosenRows>>, DeviceError> {
    match selection {
        Selection::Masked(mask) => device.resident_mask(identity, mask),
        Selection::All | Selection::Listed(_) => Ok(None),
    }
}

impl DeviceQuery {
    /// The part of a query that the device needs.
    pub fn new(bounded: &BoundedQuery<'_>) -> Self {
        let BoundedQuery { query, bound } = bounded;
        Self {
            codes: query.codes().to_vec(),
            scale: query.scale(),
            bound_constant: bound.constant(),
            bound_per_residual: bound.per_residual(),
        }
    }
}

/// The best `k` of the rows that the device named, as the CPU chooses them: those whose upper bound
/// reaches the k-th best lower bound, highest upper bound first. The device may have named a few
/// too many, for a request that wanted more.
pub(super) fn best_hits(found: &[Candidate], k: usize, bound: &ErrorBound) -> Vec<Hit> {
    let of = |found: &Candidate| (found.estimate, bound.of(found.residual));
    let mut threshold = f32::NEG_INFINITY;
    if (1..=found.len()).contains(&k) {
        let mut lowest: Vec<f32> =
            found.iter().map(of).map(|(estimate, bound)| estimate - bound).collect();
        let (_, kth, _) = lowest.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
        threshold = *kth;
    }
    let hit = |found: &Candidate| {
        let (estimate, bound) = of(found);
        Hit { row: RowId(found.row), score: estimate + bound }
    };
    let mut hits: Vec<Hit> = found.iter().map(hit).filter(|hit| hit.score >= threshold).collect();
    hits.sort_unstable_by(by_rank);
    hits
}
