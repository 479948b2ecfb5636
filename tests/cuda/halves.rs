//! Searches of T2 stored as f16: the candidates include the best rows, estimates are within their
//! bound, and a backend uses T2 if T1 leaves more candidates than fit.

use std::collections::BTreeSet;
use std::sync::Arc;

use lodestone_compute::cuda::batcher::{Candidate, DeviceQuery};
use lodestone_compute::cuda::counters::Counters;
use lodestone_compute::cuda::manager::ManagerLimits;
use lodestone_compute::cuda::numbers::{HalfQuery, Numbers, ResidentRows};
use lodestone_compute::cuda::search::search;
use lodestone_compute::cuda::workspace::{Scratch, Workspace};
use lodestone_compute::cuda::{CudaBackend, CudaLimits, CudaParts, Device, DeviceSource};
use lodestone_compute::{
    BoundedQuery, ComputeBackend, ErrorBound, FullKind, FullRows, PreparedQuery, ScalarBackend,
    Selection, SimdBackend, TopK, VectorColumns, VectorRows,
};
use lodestone_types::{Hit, IdSource, ManualClock, RowId, SeededIds};

use crate::cases::{Asked, Case, Chosen, Data};
use crate::emulated::Only;
use crate::families::{devices, workspaces};
use crate::recording::Recording;

/// The rows of a case with T2 in f16.
fn columns_in_f16(asked: &Asked) -> VectorColumns {
    let rows = asked.columns.view();
    let mut columns = VectorColumns::new(rows.dimension(), FullKind::F16).unwrap();
    let FullRows::F32 { values, .. } = rows.full() else { unreachable!("cases are in f32") };
    values.chunks_exact(rows.dimension()).for_each(|vector| columns.push(vector).unwrap());
    columns
}

/// The best `k` of the selected rows according to the CPU, and the score of every row.
fn best(
    rows: &VectorRows<'_>,
    query: &PreparedQuery,
    selection: Selection<'_>,
    k: usize,
) -> (Vec<Hit>, Vec<f32>) {
    let all: Vec<RowId> = (0..rows.len() as u32).map(RowId).collect();
    let (mut scores, mut best) = (Vec::new(), TopK::new(k));
    ScalarBackend.exact(rows, query, &all, &mut scores).unwrap();
    selection.for_each(rows.len(), |row| best.push(RowId(row as u32), scores[row]));
    (best.into_hits(), scores)
}

#[test]
fn halves_name_the_best_rows() {
    for mut workspace in workspaces("halves_name_the_best_rows") {
        let chosen = [Chosen::All, Chosen::Masked(2), Chosen::Listed(3), Chosen::MaskedRun];
        let data = [Data::Random, Data::Clustered, Data::Duplicates, Data::Extremes];
        let shapes = [(1, 40, 3, 1), (32, 700, 9, 10), (33, 300, 40, 3), (384, 600, 130, 10)];
        for at in 0..16 {
            let (dimension, rows, queries, k) = shapes[at % 4];
            let (chosen, data) = (chosen[(at + at / 4) % 4], data[at / 2 % 4]);
            let is_certain = at % 3 != 0;
            let case = Case { dimension, rows, queries, k, data, chosen, is_certain };
            check_search(&mut workspace, &case);
        }
    }
}

fn check_search(workspace: &mut Workspace, case: &Case) {
    let asked = Asked::new(case, 7);
    let columns = columns_in_f16(&asked);
    let rows = columns.view();
    let resident = ResidentRows::upload(&rows, Numbers::F16, workspace).unwrap();
    let queries: Vec<HalfQuery> = asked.bounded(&rows).iter().map(HalfQuery::new).collect();
    let sent: Vec<DeviceQuery> = queries.iter().map(|half| half.query.clone()).collect();
    let found = search(workspace, &resident, &sent, asked.selection(), case.k).unwrap();
    for ((found, half), query) in found.into_iter().zip(&queries).zip(&asked.queries) {
        let found = found.unwrap();
        let named: BTreeSet<u32> = found.iter().map(|found| found.row).collect();
        let (best, scores) = best(&rows, query, asked.selection(), case.k);
        assert!(named.len() == found.len(), "each row once: {case:?}");
        let is_named = |hit: &Hit| named.contains(&hit.row.0);
        assert!(best.iter().all(is_named), "{case:?}");
        for Candidate { row, estimate, .. } in found {
            let apart = (estimate - scores[row as usize]).abs();
            assert!(apart <= half.bound.of(0.0), "{apart}: {case:?}");
        }
    }
}

/// Many rows around one point, closer together than T1 can resolve and further apart than f16 can.
fn crowded(count: usize, dimension: usize) -> (VectorColumns, Vec<PreparedQuery>) {
    let ids = SeededIds::new(12);
    let uniform = || {
        let mut bytes = [0; 8];
        ids.fill(&mut bytes);
        (u64::from_le_bytes(bytes) >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let point: Vec<f32> = (0..dimension).map(|_| uniform()).collect();
    let mut columns = VectorColumns::new(dimension, FullKind::F16).unwrap();
    for _ in 0..count {
        let row: Vec<f32> = point.iter().map(|value| value + 0.006 * uniform()).collect();
        columns.push(&row).unwrap();
    }
    let query = || {
        let own: Vec<f32> = point.iter().map(|value| value + uniform()).collect();
        PreparedQuery::new(&own).unwrap()
    };
    let queries = (0..2).map(|_| query()).collect();
    (columns, queries)
}

fn backend(device: Arc<dyn Device>, budget_bytes: u64) -> CudaBackend {
    let source = Arc::new(Only(device)) as Arc<dyn DeviceSource>;
    let (cpu, clock) = (Arc::new(SimdBackend), Arc::new(ManualClock::default()));
    let parts = CudaParts { check: |_| Ok(()), ..CudaParts::new(source, cpu, clock) };
    let budget_bytes = Some(budget_bytes);
    let manager = ManagerLimits { budget_bytes, scratch: Scratch::Exact };
    let limits = CudaLimits { work_min: 0, manager, ..CudaLimits::default() };
    CudaBackend::open(parts, limits).unwrap()
}

/// Goal: queries that T1 cannot decide use T2 on the device, or the CPU if T2 does not fit there.
#[test]
fn rows_that_t1_cannot_separate_are_told_apart_by_t2() {
    for device in devices("rows_that_t1_cannot_separate_are_told_apart_by_t2") {
        check_crowded(&device);
    }
}

fn check_crowded(device: &Arc<dyn Device>) {
    const ROWS: usize = 17_000;
    const K: usize = 5;
    let (columns, queries) = crowded(ROWS, 16);
    let rows = columns.view().with_identity(3);
    let bounded = |query| BoundedQuery { query, bound: ErrorBound::likely(query, &rows) };
    let bounded: Vec<BoundedQuery<'_>> = queries.iter().map(bounded).collect();
    for (budget, by_originals) in [(1 << 30, 2), (ROWS as u64 * 72, 0)] {
        let backend = backend(Arc::clone(device), budget);
        let found = backend.candidates(&rows, &bounded, Selection::All, K).unwrap();
        for (found, query) in found.iter().zip(&queries) {
            let (wanted, scores) = best(&rows, query, Selection::All, K);
            let mut named = TopK::new(K);
            for hit in found {
                named.push(hit.row, scores[hit.row.0 as usize]);
                assert!(hit.score >= scores[hit.row.0 as usize], "an upper bound");
            }
            assert_eq!(named.into_hits(), wanted);
            assert!(found.is_sorted_by(|a, b| a.score >= b.score));
            assert_eq!(found.len() < 500, by_originals > 0, "{} rows", found.len());
        }
        let count = |name| Counters::get(backend.counters(), name);
        assert_eq!(count("gpu_queries_by_originals"), by_originals);
        assert_eq!(count("gpu_queries"), by_originals);
        assert_eq!(count("gpu_fallbacks_out_of_memory"), u64::from(by_originals == 0));
    }
}

/// Goal: few queries are scanned and many are multiplied, with the kernels for their number format,
/// on every card.
#[test]
fn launches_over_halves_stay_inside_their_buffers() {
    for (multiprocessors, shared) in [(108, 163 << 10), (132, 227 << 10), (1, 99 << 10)] {
        let device = Arc::new(Recording::new(multiprocessors, shared));
        let memory = Arc::clone(&device.memory);
        let mut workspace = Workspace::new(device, Scratch::Exact).unwrap();
        for (dimension, queries) in [(40, 1), (384, 9), (384, 300), (1536, 40), (3024, 20)] {
            let (data, chosen) = (Data::Random, Chosen::All);
            let (rows, is_certain) = (600, false);
            let case = Case { dimension, rows, queries, k: 4, data, chosen, is_certain };
            let asked = Asked::new(&case, 5);
            assert!(
                ResidentRows::upload(&asked.columns.view(), Numbers::F16, &mut workspace).is_err()
            );
            let columns = columns_in_f16(&asked);
            let rows = columns.view();
            let resident = ResidentRows::upload(&rows, Numbers::F16, &mut workspace).unwrap();
            let halves = |bounded| HalfQuery::new(bounded).query;
            let sent: Vec<_> = asked.bounded(&rows).iter().map(halves).collect();
            search(&mut workspace, &resident, &sent, Selection::All, 4).unwrap();
            let launches = std::mem::take(&mut *memory.launches.lock().unwrap());
            // If not even 32 queries and four stages fit, one scan per sixteen queries.
            let fits = 32 * (Numbers::F16.stride(dimension) + 8) + 4 * 8192 + 16 + 192 * 12
                <= shared as usize;
            let family = if queries > 16 && fits { "batch" } else { "scan" };
            for launch in launches.iter().filter(|launch| !launch.kernel.contains("select")) {
                let is_own = launch.kernel.starts_with(family) && launch.kernel.contains("_f16_");
                assert!(is_own, "{}: {dimension}, {queries}", launch.kernel);
            }
            let selects = launches.iter().map(|launch| launch.kernel);
            assert!(selects.clone().any(|kernel| kernel == "select_candidates_halves"));
            assert!(selects.clone().all(|kernel| kernel != "select_candidates"));
            // Queries in codes do not have the width of rows in f16.
            let codes: Vec<_> = asked.bounded(&rows).iter().map(DeviceQuery::new).collect();
            assert!(search(&mut workspace, &resident, &codes, Selection::All, 4).is_err());
        }
    }
}
