//! The backend that uses the device when it pays, and the CPU otherwise.

use std::sync::Arc;

use crate::cuda::batcher::{BatchLimits, DeviceQuery, MachineTimer, QueryBatcher, Timer};
use crate::cuda::check::check_answers;
use crate::cuda::counters::Counters;
use crate::cuda::device::DeviceSource;
use crate::cuda::held::{DeviceRows, encoded};
use crate::cuda::manager::{Check, DeviceManager, ManagerLimits};
use crate::cuda::numbers::Numbers;
use crate::cuda::search::{K_MAX, STRIDE_MAX};
use crate::cuda::search_request::{RowsKey, SearchRequest};
use crate::cuda::{DeviceError, DeviceMemory};
use crate::kmeans::{CodeRows, HeldRows};
use crate::one_bit::ListUnits;
use crate::rotation::Rotation;
use crate::{BoundedQuery, ComputeBackend, ComputeError, PreparedQuery, Selection, VectorRows};
use lodestone_types::{Clock, Hit, RowId};

/// Minimum rows that the device holds for a build, and minimum values that it encodes. A build
/// makes several dozen runs of an estimated 50 us each, and the CPU takes a few microseconds per
/// row (1.4 to find the nearest of 512 points, 5 to encode).
const HELD_ROWS_MIN: usize = 16_384;
const ENCODED_VALUES_MIN: usize = 1 << 18;

/// Limits of the device's use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CudaLimits {
    /// Minimum rows times queries for which a run on the device costs less than on the CPU.
    pub work_min: usize,
    /// Limits of memory use.
    pub manager: ManagerLimits,
    /// Limits of the query batchers.
    pub batch: BatchLimits,
}

impl Default for CudaLimits {
    /// On an H200 a run costs 28 us in addition to its scan, and a core scores 1,000 rows of 384
    /// components that passed a filter in 35 us (`benches/runs/2026-11-26-h200`). The default is
    /// about twice as many rows, so that the device clearly pays.
    fn default() -> Self {
        Self { work_min: 2048, manager: ManagerLimits::default(), batch: BatchLimits::default() }
    }
}

/// The parts that a backend consists of.
#[derive(Debug, Clone)]
pub struct CudaParts {
    /// Opens the device.
    pub source: Arc<dyn DeviceSource>,
    /// The CPU fallback.
    pub cpu: Arc<dyn ComputeBackend>,
    /// Measures the pause after a device was lost.
    pub clock: Arc<dyn Clock>,
    /// Measures the waits of the query batchers.
    pub timer: Arc<dyn Timer>,
    /// Check that a newly opened device must pass before it is used.
    pub check: Check,
}

impl CudaParts {
    /// Creates the parts with the machine's own timer and the default check.
    pub fn new(
        source: Arc<dyn DeviceSource>,
        cpu: Arc<dyn ComputeBackend>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let timer = Arc::new(MachineTimer::default());
        Self { source, cpu, clock, timer, check: check_answers }
    }
}

/// A GPU with a CPU fallback. Its answers are those of the CPU, bit for bit.
#[derive(Debug)]
pub struct CudaBackend {
    pub(super) cpu: Arc<dyn ComputeBackend>,
    pub(super) manager: Arc<DeviceManager>,
    /// Batches scans.
    pub(super) scans: QueryBatcher<RowsKey, DeviceQuery>,
    pub(super) counters: Arc<Counters>,
    pub(super) limits: CudaLimits,
    pub(super) description: String,
}

impl CudaBackend {
    /// Opens the device and checks that it computes as the CPU does.
    ///
    /// # Errors
    /// The reason why there is no device, or why it is not used.
    pub fn open(parts: CudaParts, limits: CudaLimits) -> Result<Self, DeviceError> {
        let CudaParts { source, cpu, clock, timer, check } = parts;
        let counters = Arc::new(Counters::default());
        let shared = Arc::clone(&counters);
        let manager = DeviceManager::open(source, clock, limits.manager, shared, check)?;
        let active = manager.active()?;
        let traits = active.device().traits();
        let description = format!("{} ({})", traits.name, traits.driver);
        let manager = Arc::new(manager);
        let scans = QueryBatcher::new(limits.batch, timer);
        Ok(Self { cpu, manager, scans, counters, limits, description })
    }

    /// Returns the device's manager, for other users of the device.
    pub fn manager(&self) -> Arc<DeviceManager> {
        Arc::clone(&self.manager)
    }

    /// Returns the current memory of the device.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn memory(&self) -> Result<DeviceMemory, DeviceError> {
        self.manager.active()?.device().memory()
    }

    /// Returns the counters of the device's work and of fallbacks.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether a search on the device costs less than on the CPU.
    fn pays(&self, rows: &VectorRows<'_>, queries: usize, selected: usize, k: usize) -> bool {
        let is_supported = (1..=K_MAX).contains(&k) && rows.stride() <= STRIDE_MAX;
        is_supported && selected > k && selected * queries >= self.limits.work_min
    }
}

impl ComputeBackend for CudaBackend {
    fn name(&self) -> &'static str {
        "cuda"
    }

    /// On the CPU, because the device would have to send back one estimate per row.
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
        let selected = selection.count(rows.len());
        let identity = rows.identity().filter(|_| self.pays(rows, queries.len(), selected, k));
        let Some(identity) = identity else {
            return self.cpu.candidates(rows, queries, selection, k);
        };
        check(rows, queries, selection)?;
        self.search(&SearchRequest { rows, identity, queries, selection, k })
    }

    /// On the CPU: a search scores a few dozen rows from T2, which takes less time than a launch.
    fn exact(
        &self,
        rows: &VectorRows<'_>,
        query: &PreparedQuery,
        listed: &[RowId],
        scores: &mut Vec<f32>,
    ) -> Result<(), ComputeError> {
        self.cpu.exact(rows, query, listed, scores)
    }

    fn prefers_scan(
        &self,
        rows: &VectorRows<'_>,
        passing: usize,
        queries: usize,
        k: usize,
    ) -> bool {
        let pays = self.pays(rows, queries, passing, k);
        let identity = rows.identity().filter(|_| pays);
        let held = |identity| {
            self.manager.run(|device| device.resident(identity, rows, Numbers::Codes)).is_ok()
        };
        identity.is_some_and(held)
    }

    fn hold_rows(&self, rows: &dyn CodeRows, count: usize) -> Option<Box<dyn HeldRows>> {
        let is_worth_it = count >= HELD_ROWS_MIN && rows.codes(0).len() <= STRIDE_MAX;
        let held = is_worth_it
            .then(|| DeviceRows::new(&self.manager, &self.counters, rows, count))?
            .inspect_err(|error| self.counters.fell_back(error));
        held.ok().map(|held| Box::new(held) as Box<dyn HeldRows>)
    }

    fn encode_one_bit(&self, rotation: &Rotation, lists: &[ListUnits<'_>]) -> Vec<u8> {
        let values: usize = lists.iter().map(|list| list.units.len()).sum();
        if values < ENCODED_VALUES_MIN {
            return self.cpu.encode_one_bit(rotation, lists);
        }
        let blocks = self
            .manager
            .run(|device| device.with_workspace(|workspace| encoded(workspace, rotation, lists)));
        match blocks {
            Ok(blocks) => {
                self.counters.encoded(values / rotation.dimension());
                blocks
            }
            Err(error) => {
                self.counters.fell_back(&error);
                tracing::debug!(%error, "CPU fallback of encoding");
                self.cpu.encode_one_bit(rotation, lists)
            }
        }
    }

    fn device(&self) -> String {
        self.description.clone()
    }

    fn device_memory(&self) -> Option<(u64, u64)> {
        self.memory().ok().map(|memory| (memory.free_bytes, memory.total_bytes))
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        self.counters.read()
    }
}

/// Refuses queries of another dimension and rows that do not exist.
fn check(
    rows: &VectorRows<'_>,
    queries: &[BoundedQuery<'_>],
    selection: Selection<'_>,
) -> Result<(), ComputeError> {
    queries.iter().try_for_each(|bounded| bounded.query.check_rows(rows))?;
    selection.check(rows.len())
}
