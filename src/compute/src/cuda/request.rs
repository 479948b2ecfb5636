//! Searches on the device, and their CPU fallback.
//!
//! ```text
//! SearchRequest -> batcher -> search over T1 ----------------------> hits
//!                   '- too many candidates: T2, if that is f16 -----> hits
//!                       '- still too many, or an error -----------> CPU fallback
//! ```

use std::sync::Arc;

use crate::cuda::DeviceError;
use crate::cuda::backend::CudaBackend;
use crate::cuda::batcher::{DeviceCandidates, DeviceQuery};
use crate::cuda::chosen::ChosenRows;
use crate::cuda::manager::ActiveDevice;
use crate::cuda::numbers::{HalfQuery, Numbers};
use crate::cuda::search::{search, search_chosen};
use crate::cuda::search_request::{RowsKey, SearchRequest, best_hits};
use crate::{BoundedQuery, ComputeError, FullRows, Selection};
use lodestone_types::Hit;

impl CudaBackend {
    /// Returns the hits of every query, from the device, or from the CPU if the device has none.
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

    /// Finds candidates by T1, batched with queries of other requests over the same rows.
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
            // A list of rows is not shared with other searches.
            Selection::Listed(_) => return run(&queries, k, 1),
        };
        let key = RowsKey { identity, mask };
        self.scans.run(key, queries, k, |batch| run(&batch.queries, batch.k, batch.requests))
    }

    /// Finds hits by T2 for queries that T1 cannot decide (see `numbers`). Only for rows that are
    /// already f16: for others, the host does not know the error of rounding them to f16.
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

/// Returns the rows of a mask if the device keeps them.
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
    /// Extracts the parts of a query that the device needs.
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
