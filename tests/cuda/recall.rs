//! Lists as a segment builds them: a search on the device finds as much as one on the processor.

use std::sync::Arc;

use lodestone_compute::cuda::manager::ManagerLimits;
use lodestone_compute::cuda::workspace::Scratch;
use lodestone_compute::cuda::{CudaBackend, CudaLimits, CudaParts, DeviceSource};
use lodestone_compute::rotation::Rotation;
use lodestone_compute::{
    BoundedQuery, ComputeBackend, ErrorBound, FullKind, ListedRows, PreparedQuery, Probe,
    Selection, SimdBackend, VectorColumns, VectorRows, select_k,
};
use lodestone_storage::segment::lists::{Effort, ListPolicy, Lists, NearRows, build, probe};
use lodestone_types::{Hit, IdSource, ManualClock, RowId, SeededIds};

use crate::emulated::{self, Only};
use crate::skip;

const ROWS: usize = 6000;
const DIMENSION: usize = 128;
const K: usize = 10;

fn uniform(ids: &SeededIds) -> f32 {
    let mut bytes = [0; 8];
    ids.fill(&mut bytes);
    (u64::from_le_bytes(bytes) >> 40) as f32 / (1 << 23) as f32 - 1.0
}

/// Rows round many centres, as texts are.
fn grouped(ids: &SeededIds) -> VectorColumns {
    let mut columns = VectorColumns::new(DIMENSION, FullKind::F16).unwrap();
    let vector = || -> Vec<f32> { (0..DIMENSION).map(|_| uniform(ids)).collect() };
    let centres: Vec<Vec<f32>> = (0..ROWS / 40).map(|_| vector()).collect();
    for row in 0..ROWS {
        let centre = &centres[row * 7 % centres.len()];
        let own: Vec<f32> = centre.iter().map(|value| value + 0.7 * uniform(ids)).collect();
        columns.push(&own).unwrap();
    }
    columns
}

/// All rows, as one query sees them.
struct AllRows<'a>(&'a VectorRows<'a>, BoundedQuery<'a>);

impl NearRows for AllRows<'_> {
    fn passes(&self, _: RowId) -> bool {
        true
    }

    fn has_any(&self, _: &[u32]) -> bool {
        true
    }

    fn fetch(&self, _: RowId) {}

    fn estimate(&self, row: RowId) -> (f32, f32) {
        let row = row.0 as usize;
        (self.0.estimate(row, self.1.query), self.1.bound.of(self.0.residual(row)))
    }
}

/// Number of the true best rows among the named ones.
fn found_of(truth: &[Hit], named: &[Hit]) -> usize {
    truth.iter().filter(|hit| named.iter().any(|named| named.row == hit.row)).count()
}

#[test]
fn lists_of_a_segment_lead_to_as_many_neighbours_as_on_the_cpu() {
    let test = "lists_of_a_segment_lead_to_as_many_neighbours_as_on_the_cpu";
    let Some(device) = emulated::device() else {
        return skip(test, "g++ or the emulator's sources are missing", "REQUIRE_EMULATOR");
    };
    let ids = SeededIds::new(31);
    let (columns, rotation) = (grouped(&ids), Rotation::new(DIMENSION));
    let rows = columns.view().with_identity(4);
    let built = build(&rows, ListPolicy { listed_rows_min: 1000, list_rows: 50 });
    let lists = Lists::view(DIMENSION, &built.lists, &built.one_bit).unwrap();
    let source = Arc::new(Only(device)) as Arc<dyn DeviceSource>;
    let (cpu, clock) = (Arc::new(SimdBackend), Arc::new(ManualClock::default()));
    let parts = CudaParts { check: |_| Ok(()), ..CudaParts::new(source, cpu, clock) };
    let manager = ManagerLimits { budget_bytes: Some(1 << 28), scratch: Scratch::Exact };
    let limits = CudaLimits { fast_bytes_max: 0, manager, ..CudaLimits::default() };
    let backend = CudaBackend::open(parts, limits).unwrap();
    let near = |at: usize| {
        let mut unit = vec![0.0; DIMENSION];
        rows.unit(at * 149 % ROWS, &mut unit);
        unit.iter_mut().for_each(|value| *value += 0.06 * uniform(&ids));
        PreparedQuery::new(&unit).unwrap()
    };
    let queries: Vec<PreparedQuery> = (0..24).map(near).collect();
    let bounded = |query| BoundedQuery { query, bound: ErrorBound::likely(query, &rows) };
    let bounded: Vec<BoundedQuery<'_>> = queries.iter().map(bounded).collect();
    // Few lists for this many: a search of all of them would find everything.
    let patience = lists.len() / 16;
    let effort = Effort::probing(Some(patience));
    let probing = Probe { k: K, probes: 2 * patience, deviations: effort.deviations };
    let listed = ListedRows { rows: &rows, lists: lists.columns(), rotation: &rotation };
    let by_device = backend.through_lists(&listed, &bounded, Selection::All, probing).unwrap();
    let all: Vec<RowId> = (0..ROWS as u32).map(RowId).collect();
    let (mut device_found, mut cpu_found, mut scores) = (0, 0, Vec::new());
    for (bounded, by_device) in bounded.iter().zip(by_device) {
        SimdBackend.exact(&rows, bounded.query, &all, &mut scores).unwrap();
        let truth = select_k(&scores, K);
        let rows = AllRows(&rows, *bounded);
        let by_cpu = probe(&lists, &rotation, bounded.query, K, effort, rows).candidates;
        cpu_found += found_of(&truth, &by_cpu);
        device_found += found_of(&truth, &by_device.expect("lists hold enough rows"));
    }
    let wanted = K * queries.len();
    assert!(device_found * 100 >= wanted * 95, "{device_found} of {wanted}");
    assert!(device_found * 100 >= cpu_found * 99, "{device_found}, {cpu_found} on the CPU");
}
