//! The backend that asks the device where that pays, and the CPU everywhere else.

use std::sync::Arc;

use crate::compute::backend::begin;
use crate::compute::candidates::Candidates;
use crate::compute::cuda::check::check_answers;
use crate::compute::cuda::counters::Counters;
use crate::compute::cuda::device::DeviceSource;
use crate::compute::cuda::live::{Check, Live, ResidentRows, Supply, SupplyLimits};
use crate::compute::cuda::numbers::{HalfQuery, Numbers};
use crate::compute::cuda::one_bit::{ProbingQuery, probe};
use crate::compute::cuda::search::{K_MAX, STRIDE_MAX, Visited, search};
use crate::compute::cuda::together::{
    DeviceQuery, Found, MachineTimer, Timer, Together, TogetherLimits,
};
use crate::compute::cuda::{DeviceError, DeviceMemory};
use crate::compute::{
    BoundedQuery, ComputeBackend, ComputeError, FullRows, ListedRows, PreparedQuery, Probe,
    Selection, VectorRows,
};
use crate::types::{Clock, Hit, RowId};

/// Slots of lists that a query may look at on the device: its block of `one_bit_select` goes over
/// their bounds several times, 40 MB in all, which one multiprocessor takes about half a
/// millisecond for. An estimate.
const PROBED_SLOTS_MAX: usize = 1 << 20;

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

    fn on_device(&self, asked: &Question<'_>) -> Result<Vec<Found>, DeviceError> {
        let live = self.supply.live()?;
        self.on_live(&live, asked).inspect_err(|error| self.note(&live, error))
    }

    /// Gives a lost device up.
    fn note(&self, live: &Arc<Live>, error: &DeviceError) {
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
        match visited {
            // Only those who visit the same rows can go together.
            Visited::All => self
                .together
                .ask(identity, queries, k, |batch| run(&batch.queries, batch.k, batch.askers)),
            Visited::Masked(_) | Visited::Listed(_) => run(&queries, k, 1),
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
        let halves = |bounded| HalfQuery::new(bounded, Numbers::F16);
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
    fn settled(&self, open: &Question<'_>) -> Result<Vec<Vec<Hit>>, ComputeError> {
        match self.by_originals(open) {
            Ok(found) => {
                self.counters.answered(found.len());
                self.counters.answered_by_originals(found.len());
                Ok(found)
            }
            Err(error) => self.by_cpu(open, &error),
        }
    }

    fn by_cpu(
        &self,
        asked: &Question<'_>,
        error: &DeviceError,
    ) -> Result<Vec<Vec<Hit>>, ComputeError> {
        self.counters.fell_back(error);
        tracing::debug!(%error, "the CPU answers for the device");
        self.cpu.candidates(asked.rows, asked.queries, asked.selection, asked.k)
    }
}

impl CudaBackend {
    /// Through the lists of a segment that is too large to read whole (`fast_rows_max`).
    fn probed(
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
            self.counters.ran(1);
            live.with_workspace(|workspace| {
                probe(workspace, &rows, &lists, &asked, visited, probing)
            })
        };
        run().inspect_err(|error| self.note(&live, error))
    }
}

/// What is asked, in the words of both sides.
#[derive(Debug, Clone, Copy)]
struct Question<'a> {
    rows: &'a VectorRows<'a>,
    identity: u128,
    queries: &'a [BoundedQuery<'a>],
    selection: Selection<'a>,
    visited: Visited<'a>,
    k: usize,
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
        let listed: Vec<u32>;
        let visited = match selection {
            Selection::All => Visited::All,
            Selection::Masked(mask) => Visited::Masked(mask.words()),
            Selection::Listed(rows) => {
                listed = rows.iter().map(|row| row.0).collect();
                Visited::Listed(&listed)
            }
        };
        let asked = Question { rows, identity, queries, selection, visited, k };
        let found = match self.on_device(&asked) {
            Ok(found) => found,
            Err(error) => return self.by_cpu(&asked, &error),
        };
        let mut answers = Vec::with_capacity(queries.len());
        let mut open = Vec::new();
        for (bounded, found) in queries.iter().zip(found) {
            let bound = |row: u32| bounded.bound.of(rows.residual(row as usize));
            let answer = found.map(|found| judged(&found, k, bound));
            open.extend(answer.is_none().then_some(*bounded));
            answers.push(answer);
        }
        self.counters.answered(queries.len() - open.len());
        let mut rest = Vec::new().into_iter();
        if !open.is_empty() {
            rest = self.settled(&Question { queries: &open, ..asked })?.into_iter();
        }
        Ok(answers.into_iter().filter_map(|answer| answer.or_else(|| rest.next())).collect())
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

    /// Only where reading all rows would take longer: a smaller segment is scanned.
    fn through_lists(
        &self,
        listed: &ListedRows<'_>,
        queries: &[BoundedQuery<'_>],
        selection: Selection<'_>,
        probing: Probe,
    ) -> Result<Vec<Option<Vec<Hit>>>, ComputeError> {
        let (rows, k) = (listed.rows, probing.k);
        let none = Ok(vec![None; queries.len()]);
        let visited = match selection {
            Selection::All => Visited::All,
            Selection::Masked(mask) => Visited::Masked(mask.words()),
            Selection::Listed(_) => return none,
        };
        let is_supported = (1..=K_MAX).contains(&k) && rows.stride() <= STRIDE_MAX;
        let is_slow = ResidentRows::bytes_of(rows) > self.limits.fast_bytes_max as u64;
        let identity = rows.identity().filter(|_| is_supported && is_slow && probing.probes > 0);
        let Some(identity) = identity else { return none };
        for bounded in queries {
            begin(rows, bounded.query, Selection::All, &mut Vec::new())?;
        }
        selection.check(rows.len())?;
        let found = match self.probed(listed, identity, queries, visited, probing) {
            Ok(found) => found,
            Err(error) => {
                self.counters.fell_back(&error);
                tracing::debug!(%error, "the CPU goes through the lists for the device");
                return none;
            }
        };
        let wanted = k.min(selection.count(rows.len()));
        let answer = |(bounded, found): (&BoundedQuery<'_>, Found)| {
            let bound = |row: u32| bounded.bound.of(rows.residual(row as usize));
            // The lists chosen may hold fewer rows that pass than are wanted.
            found.map(|found| judged(&found, k, bound)).filter(|hits| hits.len() >= wanted)
        };
        let answers: Vec<Option<Vec<Hit>>> = queries.iter().zip(found).map(answer).collect();
        self.counters.answered_through_lists(answers.iter().flatten().count());
        Ok(answers)
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
