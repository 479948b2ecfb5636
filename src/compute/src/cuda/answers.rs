//! How the device answers, and who does where it does not.
//!
//! ```text
//! T1 -- names what may win ------------------------------------> judged
//!   '-- leaves too much open --> T2 as f16, where T2 is that --> judged
//!                                '-- leaves too much open -----> CPU
//! ```

use std::sync::Arc;

use crate::candidates::Candidates;
use crate::cuda::DeviceError;
use crate::cuda::backend::CudaBackend;
use crate::cuda::live::Live;
use crate::cuda::numbers::HalfQuery;
use crate::cuda::one_bit::{ProbingQuery, probe};
use crate::cuda::search::{Visited, search};
use crate::cuda::together::{DeviceQuery, Found};
use crate::{BoundedQuery, ComputeError, FullRows, ListedRows, Probe, Selection, VectorRows};
use lodestone_types::{Hit, RowId};

/// Slots of lists that a query may look at on the device: its block of `one_bit_select` goes over
/// their bounds several times, 40 MB in all, which one multiprocessor takes about half a
/// millisecond for. An estimate.
const PROBED_SLOTS_MAX: usize = 1 << 20;

/// What is asked, in the words of both sides.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) rows: &'a VectorRows<'a>,
    pub(super) identity: u128,
    pub(super) queries: &'a [BoundedQuery<'a>],
    pub(super) selection: Selection<'a>,
    pub(super) visited: Visited<'a>,
    pub(super) k: usize,
}

/// Rows that searches have in common: of a segment, those that pass one filter, word by word the
/// same. So it is with all who ask without a filter, once some of the rows were deleted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SameRows {
    identity: u128,
    mask: Option<Arc<[u64]>>,
}

impl SameRows {
    /// `None` for a list of rows, which is a search of its own.
    fn new(identity: u128, visited: Visited<'_>) -> Option<Self> {
        match visited {
            Visited::All => Some(Self { identity, mask: None }),
            Visited::Masked(words) => Some(Self { identity, mask: Some(words.into()) }),
            Visited::Listed(_) => None,
        }
    }
}

/// Searches through lists that share a run. What they may ask for differently would let one see
/// rows that it does not see alone: a floor under fewer rows, or more lists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SameProbe {
    rows: SameRows,
    k: usize,
    probes: usize,
    deviations_bits: u32,
}

impl CudaBackend {
    pub(super) fn on_device(&self, asked: &Question<'_>) -> Result<Vec<Found>, DeviceError> {
        let live = self.supply.live()?;
        self.on_live(&live, asked).inspect_err(|error| self.note(&live, error))
    }

    /// Gives a lost device up.
    pub(super) fn note(&self, live: &Arc<Live>, error: &DeviceError) {
        if matches!(error, DeviceError::Lost { .. }) {
            self.supply.lost(live, error);
        }
    }

    fn on_live(&self, live: &Live, asked: &Question<'_>) -> Result<Vec<Found>, DeviceError> {
        let Question { rows, identity, visited, k, .. } = *asked;
        let resident = live.resident(identity, rows)?;
        let queries: Vec<DeviceQuery> = asked.queries.iter().map(DeviceQuery::new).collect();
        let run = |queries: &[DeviceQuery], k: usize, askers: usize| {
            self.counters.ran(askers);
            live.with_workspace(|workspace| search(workspace, &resident, queries, visited, k))
        };
        match SameRows::new(identity, visited) {
            Some(same) => {
                self.scans.ask(same, queries, k, |batch| run(&batch.queries, batch.k, batch.askers))
            }
            None => run(&queries, k, 1),
        }
    }

    /// Queries that T1 leaves open, by T2 (`numbers` says why). Only over rows that are f16
    /// already: of others the host does not know what their halves lose.
    fn by_originals(&self, asked: &Question<'_>) -> Result<Vec<Vec<Hit>>, DeviceError> {
        let Question { rows, identity, visited, k, .. } = *asked;
        if !matches!(rows.full(), FullRows::F16(_)) {
            return Err(DeviceError::TooManyCandidates);
        }
        let live = self.supply.live()?;
        let halves = |bounded| HalfQuery::new(bounded);
        let halves: Vec<HalfQuery> = asked.queries.iter().map(halves).collect();
        let queries: Vec<DeviceQuery> = halves.iter().map(|half| half.query.clone()).collect();
        let found = live.resident_halves(identity, rows).and_then(|resident| {
            self.counters.ran(1);
            live.with_workspace(|workspace| search(workspace, &resident, &queries, visited, k))
        });
        let found = found.inspect_err(|error| self.note(&live, error))?;
        let found: Option<Vec<_>> = found.into_iter().collect();
        let pairs = halves.iter().zip(found.ok_or(DeviceError::TooManyCandidates)?);
        Ok(pairs.map(|(half, found)| judged(&found, k, |_| half.bound.of(0.0))).collect())
    }

    /// What T1 left open, by T2 or else by the CPU.
    pub(super) fn settled(&self, open: &Question<'_>) -> Result<Vec<Vec<Hit>>, ComputeError> {
        match self.by_originals(open) {
            Ok(found) => {
                self.counters.answered(found.len());
                self.counters.answered_by_originals(found.len());
                Ok(found)
            }
            Err(error) => self.by_cpu(open, &error),
        }
    }

    pub(super) fn by_cpu(
        &self,
        asked: &Question<'_>,
        error: &DeviceError,
    ) -> Result<Vec<Vec<Hit>>, ComputeError> {
        self.counters.fell_back(error);
        tracing::debug!(%error, "the CPU answers for the device");
        self.cpu.candidates(asked.rows, asked.queries, asked.selection, asked.k)
    }

    /// Through the lists of a segment that is too large to read whole (`fast_rows_max`), together
    /// with whoever wants the same of them at the moment: a list is read once for all who chose it.
    pub(super) fn probed(
        &self,
        listed: &ListedRows<'_>,
        identity: u128,
        queries: &[BoundedQuery<'_>],
        visited: Visited<'_>,
        probing: Probe,
    ) -> Result<Vec<Found>, DeviceError> {
        let live = self.supply.live()?;
        let run = || {
            let rows = live.resident(identity, listed.rows)?;
            let lists = live.resident_lists(identity, &listed.lists, &rows)?;
            if lists.slots_of(probing.probes) > PROBED_SLOTS_MAX {
                return Err(DeviceError::TooManyCandidates);
            }
            let asked = |bounded| ProbingQuery::new(bounded, listed.rotation);
            let asked: Vec<ProbingQuery> = queries.iter().map(asked).collect();
            let probed = |queries: &[ProbingQuery], askers: usize| {
                self.counters.ran(askers);
                live.with_workspace(|workspace| {
                    probe(workspace, &rows, &lists, queries, visited, probing)
                })
            };
            let Probe { k, probes, deviations } = probing;
            match SameRows::new(identity, visited) {
                Some(rows) => {
                    let deviations_bits = deviations.to_bits();
                    let same = SameProbe { rows, k, probes, deviations_bits };
                    self.probes.ask(same, asked, k, |batch| probed(&batch.queries, batch.askers))
                }
                None => probed(&asked, 1),
            }
        };
        run().inspect_err(|error| self.note(&live, error))
    }
}

impl DeviceQuery {
    /// What the device needs of a query.
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

/// The rows that the device named, judged as the CPU judges: it may have named a few too many.
/// `bound` is that of a row.
pub(super) fn judged(found: &[(u32, f32)], k: usize, bound: impl Fn(u32) -> f32) -> Vec<Hit> {
    let mut candidates = Candidates::new(k);
    for &(row, estimate) in found {
        candidates.push(RowId(row), estimate, bound(row));
    }
    candidates.finish()
}
