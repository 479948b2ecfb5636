//! The backend that asks the device where that pays, and the CPU everywhere else.

use std::sync::Arc;

use crate::compute::backend::begin;
use crate::compute::candidates::Candidates;
use crate::compute::cuda::check::check_answers;
use crate::compute::cuda::counters::Counters;
use crate::compute::cuda::device::DeviceSource;
use crate::compute::cuda::live::{Check, Live, ResidentRows, Supply, SupplyLimits};
use crate::compute::cuda::search::{K_MAX, STRIDE_MAX, Visited, search};
use crate::compute::cuda::together::{
    DeviceQuery, Found, MachineTimer, Timer, Together, TogetherLimits,
};
use crate::compute::cuda::{DeviceError, DeviceMemory};
use crate::compute::{
    BoundedQuery, ComputeBackend, ComputeError, PreparedQuery, Selection, VectorRows,
};
use crate::types::{Clock, Hit, RowId};

/// When the device is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CudaLimits {
    /// Rows times queries from which a run on the device costs less than the CPU's.
    pub work_min: usize,
    /// Bytes of codes up to which reading all of them on the device costs less than going through
    /// lists on the CPU.
    pub fast_bytes_max: usize,
    /// Bounds of memory.
    pub supply: SupplyLimits,
    /// How queries of concurrent requests are collected.
    pub together: TogetherLimits,
}

impl Default for CudaLimits {
    /// Estimates until `benches/runs` has some from a GPU. A run costs about 40 us in calls and
    /// copies, in which the CPU reads some 4,000 rows of T1 from memory. A card of 4 TB/s reads
    /// 1 GiB in about .3 ms, which a probe of as many rows takes on the CPU.
    fn default() -> Self {
        Self {
            work_min: 8192,
            fast_bytes_max: 1 << 30,
            supply: SupplyLimits::default(),
            together: TogetherLimits::default(),
        }
    }
}

/// Live parts of the backend.
#[derive(Debug, Clone)]
pub struct CudaParts {
    /// Where the device comes from.
    pub source: Arc<dyn DeviceSource>,
    /// What answers instead of it.
    pub cpu: Arc<dyn ComputeBackend>,
    /// When a lost device may be asked again.
    pub clock: Arc<dyn Clock>,
    /// How long queries wait for company.
    pub timer: Arc<dyn Timer>,
    /// What a device must pass before it is used.
    pub check: Check,
}

impl CudaParts {
    /// With the machine's own timer.
    pub fn new(
        source: Arc<dyn DeviceSource>,
        cpu: Arc<dyn ComputeBackend>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let timer = Arc::new(MachineTimer::default());
        Self { source, cpu, clock, timer, check: check_answers }
    }
}

/// A GPU beside a CPU. Its answers are those of the CPU, bit for bit.
#[derive(Debug)]
pub struct CudaBackend {
    cpu: Arc<dyn ComputeBackend>,
    supply: Arc<Supply>,
    together: Together,
    counters: Arc<Counters>,
    limits: CudaLimits,
    description: String,
}

impl CudaBackend {
    /// Takes the device and checks that it computes as the CPU does.
    ///
    /// # Errors
    /// Why there is no device, or why it is not to be trusted.
    pub fn open(parts: CudaParts, limits: CudaLimits) -> Result<Self, DeviceError> {
        let CudaParts { source, cpu, clock, timer, check } = parts;
        let counters = Arc::new(Counters::default());
        let shared = Arc::clone(&counters);
        let supply = Arc::new(Supply::open(source, clock, limits.supply, shared, check)?);
        let live = supply.live()?;
        let traits = live.device().traits();
        let description = format!("{} ({})", traits.name, traits.driver);
        let together = Together::new(limits.together, timer);
        Ok(Self { cpu, supply, together, counters, limits, description })
    }

    /// Where the device comes from, for others who have work for it.
    pub fn supply(&self) -> Arc<Supply> {
        Arc::clone(&self.supply)
    }

    /// Memory of the device, now.
    ///
    /// # Errors
    /// What the device says.
    pub fn memory(&self) -> Result<DeviceMemory, DeviceError> {
        self.supply.live()?.device().memory()
    }

    /// What the device did and did not.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether the device should be asked.
    fn pays(&self, rows: &VectorRows<'_>, queries: usize, visited: usize, k: usize) -> bool {
        let is_supported = (1..=K_MAX).contains(&k) && rows.stride() <= STRIDE_MAX;
        is_supported && visited > k && visited * queries >= self.limits.work_min
    }

    fn on_device(
        &self,
        rows: &VectorRows<'_>,
        identity: u128,
        queries: &[BoundedQuery<'_>],
        selection: Selection<'_>,
        k: usize,
    ) -> Result<Vec<Vec<(u32, f32)>>, DeviceError> {
        let live = self.supply.live()?;
        let found = self.on_live(&live, rows, identity, queries, selection, k);
        let all = |found: Vec<Found>| found.into_iter().collect::<Option<Vec<_>>>();
        let found = found.and_then(|found| all(found).ok_or(DeviceError::TooManyCandidates));
        found.inspect_err(|error| self.note(&live, error))
    }

    /// Gives a lost device up.
    fn note(&self, live: &Arc<Live>, error: &DeviceError) {
        if matches!(error, DeviceError::Lost { .. }) {
            self.supply.lost(live, error);
        }
    }

    fn on_live(
        &self,
        live: &Live,
        rows: &VectorRows<'_>,
        identity: u128,
        queries: &[BoundedQuery<'_>],
        selection: Selection<'_>,
        k: usize,
    ) -> Result<Vec<Found>, DeviceError> {
        let resident = live.resident(identity, rows)?;
        let queries: Vec<DeviceQuery> = queries.iter().map(DeviceQuery::new).collect();
        let run = |queries: &[DeviceQuery], visited: Visited<'_>, k: usize, askers: usize| {
            self.counters.ran(askers);
            live.with_workspace(|workspace| search(workspace, &resident, queries, visited, k))
        };
        match selection {
            // Only those who visit the same rows can go together.
            Selection::All => self.together.ask(identity, queries, k, |asked| {
                run(&asked.queries, Visited::All, asked.k, asked.askers)
            }),
            Selection::Masked(mask) => run(&queries, Visited::Masked(mask.words()), k, 1),
            Selection::Listed(listed) => {
                let listed: Vec<u32> = listed.iter().map(|row| row.0).collect();
                run(&queries, Visited::Listed(&listed), k, 1)
            }
        }
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
pub(super) fn judged(
    rows: &VectorRows<'_>,
    bounded: &BoundedQuery<'_>,
    found: &[(u32, f32)],
    k: usize,
) -> Vec<Hit> {
    let mut candidates = Candidates::new(k);
    for &(row, estimate) in found {
        let bound = bounded.bound.of(rows.residual(row as usize));
        candidates.push(RowId(row), estimate, bound);
    }
    candidates.finish()
}

impl ComputeBackend for CudaBackend {
    fn name(&self) -> &'static str {
        "cuda"
    }

    /// By the CPU: one estimate a row would have to come back from the device.
    fn scan(
        &self,
        rows: &VectorRows<'_>,
        query: &PreparedQuery,
        selection: Selection<'_>,
        estimates: &mut Vec<f32>,
    ) -> Result<(), ComputeError> {
        self.cpu.scan(rows, query, selection, estimates)
    }

    fn candidates(
        &self,
        rows: &VectorRows<'_>,
        queries: &[BoundedQuery<'_>],
        selection: Selection<'_>,
        k: usize,
    ) -> Result<Vec<Vec<Hit>>, ComputeError> {
        let visited = selection.count(rows.len());
        let identity = rows.identity().filter(|_| self.pays(rows, queries.len(), visited, k));
        let Some(identity) = identity else {
            return self.cpu.candidates(rows, queries, selection, k);
        };
        for bounded in queries {
            begin(rows, bounded.query, Selection::All, &mut Vec::new())?;
        }
        selection.check(rows.len())?;
        match self.on_device(rows, identity, queries, selection, k) {
            Ok(found) => {
                self.counters.answered(queries.len());
                let pairs = queries.iter().zip(&found);
                Ok(pairs.map(|(query, found)| judged(rows, query, found, k)).collect())
            }
            Err(error) => {
                self.counters.fell_back(&error);
                tracing::debug!(%error, "the CPU answers for the device");
                self.cpu.candidates(rows, queries, selection, k)
            }
        }
    }

    /// By the CPU: a search scores a few dozen rows from T2, in less time than a launch takes.
    fn exact(
        &self,
        rows: &VectorRows<'_>,
        query: &PreparedQuery,
        listed: &[RowId],
        scores: &mut Vec<f32>,
    ) -> Result<(), ComputeError> {
        self.cpu.exact(rows, query, listed, scores)
    }

    fn fast_rows_max(&self, rows: &VectorRows<'_>) -> usize {
        let is_fast = ResidentRows::bytes_of(rows) <= self.limits.fast_bytes_max as u64
            && rows.stride() <= STRIDE_MAX;
        let Some(identity) = rows.identity().filter(|_| is_fast) else { return 0 };
        let resident = self.supply.live().and_then(|live| {
            let resident = live.resident(identity, rows);
            resident.inspect_err(|error| self.note(&live, error))
        });
        if resident.is_ok() { rows.len() } else { 0 }
    }

    fn device(&self) -> String {
        self.description.clone()
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        self.counters.read()
    }
}
