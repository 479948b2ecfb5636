//! The backend that asks the device where that pays, and the CPU everywhere else.

use std::sync::Arc;

use crate::backend::begin;
use crate::cuda::answers::{Question, SameProbe, SameRows, judged};
use crate::cuda::check::check_answers;
use crate::cuda::counters::Counters;
use crate::cuda::device::DeviceSource;
use crate::cuda::held::{DeviceRows, encoded};
use crate::cuda::live::{Check, Live, ResidentRows, Supply, SupplyLimits};
use crate::cuda::one_bit::ProbingQuery;
use crate::cuda::search::{K_MAX, STRIDE_MAX, Visited};
use crate::cuda::together::{DeviceQuery, Found, MachineTimer, Timer, Together, TogetherLimits};
use crate::cuda::{DeviceError, DeviceMemory};
use crate::kmeans::{CodeRows, HeldRows};
use crate::one_bit::ListUnits;
use crate::rotation::Rotation;
use crate::{
    BoundedQuery, ComputeBackend, ComputeError, ListedRows, PreparedQuery, Probe, Selection,
    VectorRows,
};
use lodestone_types::{Clock, Hit, RowId};

/// Rows from which the device holds them for a build, and values from which it encodes: it is asked
/// some dozens of times, for 50 us each, and the CPU takes a few microseconds a row. Estimates.
const HELD_ROWS_MIN: usize = 16_384;
const ENCODED_VALUES_MIN: usize = 1 << 18;

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
    pub(super) cpu: Arc<dyn ComputeBackend>,
    pub(super) supply: Arc<Supply>,
    /// Scans.
    pub(super) scans: Together<SameRows, DeviceQuery>,
    /// Searches through lists.
    pub(super) probes: Together<SameProbe, ProbingQuery>,
    pub(super) counters: Arc<Counters>,
    pub(super) limits: CudaLimits,
    pub(super) description: String,
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
        let scans = Together::new(limits.together, Arc::clone(&timer));
        let probes = Together::new(limits.together, timer);
        Ok(Self { cpu, supply, scans, probes, counters, limits, description })
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

    fn hold_rows(&self, rows: &dyn CodeRows, count: usize) -> Option<Box<dyn HeldRows>> {
        let is_worth_it = count >= HELD_ROWS_MIN && rows.codes(0).len() <= STRIDE_MAX;
        let held = is_worth_it
            .then(|| DeviceRows::new(&self.supply, &self.counters, rows, count))?
            .inspect_err(|error| self.counters.fell_back(error));
        held.ok().map(|held| Box::new(held) as Box<dyn HeldRows>)
    }

    fn encode_one_bit(&self, rotation: &Rotation, lists: &[ListUnits<'_>]) -> Vec<u8> {
        let values: usize = lists.iter().map(|list| list.units.len()).sum();
        if values < ENCODED_VALUES_MIN {
            return self.cpu.encode_one_bit(rotation, lists);
        }
        let run =
            |live: &Live| live.with_workspace(|workspace| encoded(workspace, rotation, lists));
        let blocks = self
            .supply
            .live()
            .and_then(|live| run(&live).inspect_err(|error| self.note(&live, error)));
        match blocks {
            Ok(blocks) => {
                self.counters.encoded(values / rotation.dimension());
                blocks
            }
            Err(error) => {
                self.counters.fell_back(&error);
                tracing::debug!(%error, "the CPU encodes rows for the device");
                self.cpu.encode_one_bit(rotation, lists)
            }
        }
    }

    fn device(&self) -> String {
        self.description.clone()
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        self.counters.read()
    }
}
