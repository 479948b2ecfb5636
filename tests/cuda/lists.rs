//! G4 and G5: searches through lists, by the launcher and by the backend.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lodestone_compute::cuda::batcher::{MachineTimer, Timer};
use lodestone_compute::cuda::lists::ResidentLists;
use lodestone_compute::cuda::manager::ResidentRows;
use lodestone_compute::cuda::one_bit::{ProbingQuery, probe};
use lodestone_compute::cuda::workspace::Workspace;
use lodestone_compute::cuda::{CudaBackend, CudaLimits, Device};
use lodestone_compute::kmeans::Centroids;
use lodestone_compute::one_bit::OneBitEncoder;
use lodestone_compute::rotation::Rotation;
use lodestone_compute::{
    ComputeBackend, ListColumns, ListedRows, Probe, RowMask, Selection, SimdBackend, encode_row,
};

use crate::cases::{Asked, Data};
use crate::families::{asked, devices, vectors, workspaces};
use crate::recording::{Faults, backend_timed};

/// Rows to lists by their nearest point, and everything that a segment keeps of them.
pub struct Listed {
    width: usize,
    codes: Vec<i8>,
    scales: Vec<f32>,
    squares: Vec<f32>,
    spreads: Vec<f32>,
    first_blocks: Vec<u32>,
    sizes: Vec<u32>,
    rows_of_slots: Vec<u32>,
    one_bit: Vec<u8>,
}

impl Listed {
    pub fn new(asked: &Asked, dimension: usize, rotation: &Rotation) -> Self {
        let vectors = vectors(asked);
        let rows = asked.columns.view();
        let points: Vec<Vec<f32>> =
            (0..7).map(|at| vectors[at * dimension..][..dimension].to_vec()).collect();
        let listed: Vec<u32> = (0..rows.len() as u32).collect();
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); points.len()];
        Centroids::new(&points, dimension).assign(&rows, &listed, 1, |row, best| {
            members[best[0].1 as usize].push(row as u32);
        });
        let width = rotation.width();
        let (mut codes, mut encoder) = (Vec::new(), OneBitEncoder::new(rotation));
        let mut listed = Self {
            width,
            codes: Vec::new(),
            scales: Vec::new(),
            squares: Vec::new(),
            spreads: vec![0.5; points.len()],
            first_blocks: Vec::new(),
            sizes: members.iter().map(|rows| rows.len() as u32).collect(),
            rows_of_slots: Vec::new(),
            one_bit: Vec::new(),
        };
        let (mut unit, mut reference) = (vec![0.0; dimension], vec![0.0; width]);
        for (point, rows_here) in points.iter().zip(&members) {
            let first = codes.len();
            let scale = encode_row(point, &mut codes).unwrap().scale;
            let decoded: Vec<f32> =
                codes[first..][..dimension].iter().map(|code| f32::from(*code) * scale).collect();
            rotation.apply(&decoded, &mut reference);
            listed.scales.push(scale);
            listed.squares.push(decoded.iter().map(|value| value * value).sum());
            listed.first_blocks.push((listed.rows_of_slots.len() / 64) as u32);
            for row in rows_here {
                rows.unit(*row as usize, &mut unit);
                encoder.push(&unit, &reference);
            }
            encoder.end_list();
            listed.rows_of_slots.extend(rows_here);
            let slots = listed.rows_of_slots.len().next_multiple_of(64);
            listed.rows_of_slots.resize(slots, u32::MAX);
        }
        Self { codes, one_bit: encoder.finish(), ..listed }
    }

    pub fn columns(&self) -> ListColumns<'_> {
        ListColumns {
            width: self.width,
            codes: &self.codes,
            scales: &self.scales,
            squares: &self.squares,
            spreads: &self.spreads,
            first_blocks: &self.first_blocks,
            sizes: &self.sizes,
            rows_of_slots: &self.rows_of_slots,
            one_bit: &self.one_bit,
        }
    }
}

#[test]
fn lists_lead_to_the_rows_of_a_scan() {
    for mut workspace in workspaces("lists_lead_to_the_rows_of_a_scan") {
        check_lists(&mut workspace);
    }
}

/// With all lists and a bound that rules nothing out, a probe finds just what a scan does; with few
/// lists and the likely bound it finds rows of those lists alone, with the same estimates.
fn check_lists(workspace: &mut Workspace) {
    for (dimension, data) in [(64, Data::Clustered), (100, Data::Random), (384, Data::Duplicates)] {
        let asked = asked(dimension, 500, 11, data);
        let (rows, rotation) = (asked.columns.view(), Rotation::new(dimension));
        let listed = Listed::new(&asked, dimension, &rotation);
        let resident = ResidentRows::upload(&rows, workspace).unwrap();
        let lists = ResidentLists::upload(&listed.columns(), &resident, workspace).unwrap();
        let bounded = asked.bounded(&rows);
        let probing = |bounded| ProbingQuery::new(bounded, &rotation);
        let queries: Vec<ProbingQuery> = bounded.iter().map(probing).collect();
        let bitmap = (0..500).filter(|row| row % 3 != 0).collect();
        let mask = RowMask::from_bitmap(500, &bitmap);
        for filter in [None, Some(&mask)] {
            let selection = filter.map_or(Selection::All, Selection::Masked);
            let all = Probe { k: 6, probes: 7, deviations: 1e6 };
            let found = probe(workspace, &resident, &lists, &queries, filter, all).unwrap();
            let wanted = SimdBackend.candidates(&rows, &bounded, selection, 6).unwrap();
            for ((found, wanted), bounded) in found.into_iter().zip(wanted).zip(&bounded) {
                let mut got: Vec<u32> = found.unwrap().iter().map(|(row, _)| *row).collect();
                let mut wanted: Vec<u32> = wanted.iter().map(|hit| hit.row.0).collect();
                got.sort_unstable();
                wanted.sort_unstable();
                assert_eq!(got, wanted, "{dimension} components, {}", bounded.query.scale());
            }
            let few = Probe { k: 6, probes: 2, deviations: 5.0 };
            let found = probe(workspace, &resident, &lists, &queries, filter, few).unwrap();
            for (found, bounded) in found.into_iter().zip(&bounded) {
                for (row, estimate) in found.unwrap() {
                    assert_eq!(estimate, rows.estimate(row as usize, bounded.query));
                    assert!(matches!(selection, Selection::All) || mask.contains(row as usize));
                }
            }
        }
        let cut = ListColumns { sizes: &listed.sizes[1..], ..listed.columns() };
        assert!(ResidentLists::upload(&cut, &resident, workspace).is_err());
    }
}

/// A backend that reads no segment whole, and its planned errors.
fn backend(inner: Arc<dyn Device>) -> (CudaBackend, Arc<Faults>) {
    backend_with(inner, Arc::new(MachineTimer::default()))
}

/// The same, whose query batchers wait by `timer`.
pub fn backend_with(inner: Arc<dyn Device>, timer: Arc<dyn Timer>) -> (CudaBackend, Arc<Faults>) {
    backend_timed(inner, CudaLimits { fast_bytes_max: 0, ..CudaLimits::default() }, timer)
}

/// Over all lists, with a bound that rules nothing out, the backend names what a scan does; where
/// the lists chosen hold too few rows that pass, or anything fails, the caller does it.
#[test]
fn the_backend_goes_through_lists_or_leaves_it_to_the_caller() {
    for device in devices("the_backend_goes_through_lists_or_leaves_it_to_the_caller") {
        check_backend(device);
    }
}

fn check_backend(device: Arc<dyn Device>) {
    let (backend, faults) = backend(device);
    let asked = asked(64, 500, 3, Data::Clustered);
    let rotation = Rotation::new(64);
    let made = Listed::new(&asked, 64, &rotation);
    let plain = asked.columns.view();
    let rows = plain.with_identity(9);
    let listed = ListedRows { rows: &rows, lists: made.columns(), rotation: &rotation };
    let queries = asked.bounded(&rows);
    let all = Probe { k: 6, probes: 7, deviations: 1e6 };
    let count = |name| backend.counters().get(name);
    let bitmap = (0..500).filter(|row| row % 3 != 0).collect();
    let mask = RowMask::from_bitmap(500, &bitmap);
    for selection in [Selection::All, Selection::Masked(&mask)] {
        let found = backend.through_lists(&listed, &queries, selection, all).unwrap();
        let wanted = SimdBackend.candidates(&rows, &queries, selection, 6).unwrap();
        let wanted: Vec<_> = wanted.into_iter().map(Some).collect();
        assert_eq!(found, wanted);
    }
    assert_eq!((count("gpu_queries_through_lists"), count("gpu_uploads")), (6, 2));
    // A row that passes is not in the one list chosen, whichever that is.
    let rare = RowMask::from_bitmap(500, &[0, 250, 499].into_iter().collect());
    let one = Probe { probes: 1, k: 3, ..all };
    let found = backend.through_lists(&listed, &queries, Selection::Masked(&rare), one).unwrap();
    let spread: Vec<bool> = found.iter().map(Option::is_none).collect();
    assert!(spread.contains(&true), "{spread:?}");
    // One call after the other is refused.
    let mut refused = 0;
    for call in 0..200 {
        faults.calls_left.store(call, Ordering::SeqCst);
        let found = backend.through_lists(&listed, &queries, Selection::All, all).unwrap();
        let left = faults.calls_left.swap(usize::MAX, Ordering::SeqCst);
        if left != usize::MAX {
            assert!(found.iter().all(Option::is_some));
            break;
        }
        assert_eq!(found, vec![None; 3], "call {call}");
        refused += 1;
        assert_eq!(count("gpu_fallbacks_refused"), refused);
    }
    assert!((10..200).contains(&refused), "{refused} calls make up an answer");
    // Rows that nothing names, or a list of rows, are not the device's affair.
    let unnamed = ListedRows { rows: &plain, ..listed };
    let found = backend.through_lists(&unnamed, &queries, Selection::All, all).unwrap();
    assert_eq!(found, vec![None; 3]);
    let found = backend.through_lists(&listed, &queries, Selection::Listed(&[]), all).unwrap();
    assert_eq!(found, vec![None; 3]);
    let found = SimdBackend.through_lists(&listed, &queries, Selection::All, all).unwrap();
    assert_eq!(found, vec![None; 3]);
}
