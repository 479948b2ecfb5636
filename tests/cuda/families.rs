//! Kernels of builds and rescoring, each beside its oracle on the CPU.

use std::sync::Arc;

use lodestone_compute::cuda::encode::{OneBitSlots, encode_one_bit, encode_rows, rotate};
use lodestone_compute::cuda::gather::gather_rows;
use lodestone_compute::cuda::live::ResidentRows;
use lodestone_compute::cuda::rescore::{ResidentFull, cosines};
use lodestone_compute::cuda::workspace::{Scratch, Workspace};
use lodestone_compute::cuda::{Device, assign, search};
use lodestone_compute::kmeans::{self, Centroids};
use lodestone_compute::one_bit::OneBitEncoder;
use lodestone_compute::rotation::Rotation;
use lodestone_compute::{
    ComputeBackend, ErrorBound, FullKind, PreparedQuery, ScalarBackend, VectorColumns, encode_row,
};
use lodestone_types::RowId;

use crate::cases::{Asked, Case, Chosen, Data};
use crate::{emulated, oracle, skip};

/// The emulator and a GPU, as far as they are there.
pub fn devices(test: &str) -> Vec<Arc<dyn Device>> {
    if emulated::device().is_none() {
        skip(test, "g++ or the emulator's sources are missing", "REQUIRE_EMULATOR");
    }
    let real = oracle::real_source(test).map(|source| source.open().unwrap());
    emulated::device().into_iter().chain(real).collect()
}

/// One on each of them.
pub fn workspaces(test: &str) -> Vec<Workspace> {
    let devices = devices(test).into_iter();
    devices.map(|device| Workspace::new(device, Scratch::Exact).unwrap()).collect()
}

pub fn asked(dimension: usize, rows: usize, queries: usize, data: Data) -> Asked {
    let chosen = Chosen::All;
    let case = Case { dimension, rows, queries, k: 1, data, chosen, is_certain: true };
    Asked::new(&case, (dimension * 7 + rows) as u64)
}

/// The vectors of a case as a client would send them.
pub fn vectors(asked: &Asked) -> Vec<f32> {
    match asked.columns.view().full() {
        lodestone_compute::FullRows::F32 { values, .. } => values.to_vec(),
        lodestone_compute::FullRows::F16(_) => unreachable!("cases are in f32"),
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn t1_is_encoded_as_on_the_cpu() {
    for mut workspace in workspaces("t1_is_encoded_as_on_the_cpu") {
        check_t1_is_encoded_as_on_the_cpu(&mut workspace);
    }
}

fn check_t1_is_encoded_as_on_the_cpu(workspace: &mut Workspace) {
    for (dimension, rows, data) in [
        (1, 3, Data::Extremes),
        (65, 40, Data::Extremes),
        (384, 130, Data::Random),
        (7, 0, Data::Random),
    ] {
        let vectors = vectors(&asked(dimension, rows, 0, data));
        let encoded = encode_rows(workspace, dimension, &vectors).unwrap();
        let mut codes = Vec::new();
        for (row, vector) in vectors.chunks_exact(dimension).enumerate() {
            let factors = encode_row(vector, &mut codes).unwrap();
            let wanted = [factors.scale, factors.residual, factors.norm];
            let got = [encoded.scales[row], encoded.residuals[row], encoded.norms[row]];
            assert_eq!(bits(&got), bits(&wanted), "row {row} of {dimension} components");
        }
        assert!(encoded.codes == codes, "{dimension} components");
    }
    assert!(encode_rows(workspace, 3, &[0.0; 4]).is_err());
}

#[test]
fn t0_is_encoded_as_on_the_cpu() {
    for mut workspace in workspaces("t0_is_encoded_as_on_the_cpu") {
        check_t0_is_encoded_as_on_the_cpu(&mut workspace);
    }
}

fn check_t0_is_encoded_as_on_the_cpu(workspace: &mut Workspace) {
    for dimension in [1, 64, 100, 384] {
        let vectors = vectors(&asked(dimension, 70, 0, Data::Clustered));
        let rotation = Rotation::new(dimension);
        let width = rotation.width();
        let mut rotated = vec![0.0; 70 * width];
        for (vector, rotated) in
            vectors.chunks_exact(dimension).zip(rotated.chunks_exact_mut(width))
        {
            rotation.apply(vector, rotated);
        }
        let got = rotate(workspace, &rotation, &vectors).unwrap();
        assert_eq!(bits(&got), bits(&rotated), "{dimension} components");
        // Two lists: rows 0 to 65 in two blocks, the rest in one.
        let references = &rotated[..2 * width];
        let lists: [Vec<u32>; 2] = [(0..66).collect(), (66..70).collect()];
        let mut encoder = OneBitEncoder::new(&rotation);
        let mut slots = Vec::new();
        for (list, reference) in lists.iter().zip(references.chunks_exact(width)) {
            for row in list {
                let first = *row as usize * dimension;
                encoder.push(&vectors[first..first + dimension], reference);
            }
            encoder.end_list();
            slots.extend(list);
            slots.resize(slots.len().next_multiple_of(64), u32::MAX);
        }
        let slots = OneBitSlots { rows_of_slots: &slots, lists_of_blocks: &[0, 0, 1] };
        let got = encode_one_bit(workspace, &rotation, &vectors, references, slots).unwrap();
        assert!(got == encoder.finish(), "{dimension} components");
        let wrong = OneBitSlots { lists_of_blocks: &[0, 0, 2], ..slots };
        assert!(encode_one_bit(workspace, &rotation, &vectors, references, wrong).is_err());
    }
}

#[test]
fn cosines_are_those_of_the_oracle_within_rounding() {
    for mut workspace in workspaces("cosines_are_those_of_the_oracle_within_rounding") {
        check_cosines_are_those_of_the_oracle_within_rounding(&mut workspace);
    }
}

fn check_cosines_are_those_of_the_oracle_within_rounding(workspace: &mut Workspace) {
    for (dimension, kind) in
        [(1, FullKind::F32), (63, FullKind::F16), (384, FullKind::F16), (100, FullKind::F32)]
    {
        let asked = asked(dimension, 40, 4, Data::Extremes);
        let mut columns = VectorColumns::new(dimension, kind).unwrap();
        for vector in vectors(&asked).chunks_exact(dimension) {
            columns.push(vector).unwrap();
        }
        let rows = columns.view();
        let full = ResidentFull::upload(&rows, workspace).unwrap();
        let lists: [&[u32]; 4] = [&[0, 39, 0, 7, 2], &[], &[5], &[1, 2, 3, 4, 8, 9, 10, 11, 12]];
        let pairs: Vec<(&PreparedQuery, &[u32])> = asked.queries.iter().zip(lists).collect();
        let got = cosines(workspace, &full, &pairs).unwrap();
        for ((query, listed), got) in pairs.iter().zip(&got) {
            let (listed, mut wanted): (Vec<RowId>, _) =
                (listed.iter().copied().map(RowId).collect(), Vec::new());
            ScalarBackend.exact(&rows, query, &listed, &mut wanted).unwrap();
            assert_eq!(got.len(), wanted.len());
            for (got, wanted) in got.iter().zip(wanted) {
                let apart = (got - wanted).abs();
                assert!(apart <= ErrorBound::rounding(dimension), "{got} {wanted}: {dimension}");
                assert!((-1.0..=1.0).contains(got) && got.to_bits() != (-0.0_f32).to_bits());
            }
        }
        assert!(cosines(workspace, &full, &[(&asked.queries[0], &[40])]).is_err());
    }
}

#[test]
fn points_are_assigned_as_on_the_cpu() {
    for mut workspace in workspaces("points_are_assigned_as_on_the_cpu") {
        check_points_are_assigned_as_on_the_cpu(&mut workspace);
    }
}

fn check_points_are_assigned_as_on_the_cpu(workspace: &mut Workspace) {
    for (dimension, rows, points, data) in [
        (5, 70, 3, Data::Duplicates),
        (64, 300, 129, Data::Clustered),
        (100, 33, 200, Data::Random),
        (384, 9, 1, Data::Random),
    ] {
        let columns = asked(dimension, rows, 0, data).columns;
        let rows = columns.view();
        let source = vectors(&asked(dimension, points, 0, data));
        let centroids: Vec<Vec<f32>> =
            source.chunks_exact(dimension).map(<[f32]>::to_vec).collect();
        let (mut codes, mut scales) = (Vec::new(), Vec::new());
        for centroid in &centroids {
            scales.push(encode_row(centroid, &mut codes).unwrap().scale);
        }
        let listed: Vec<u32> = (0..rows.len() as u32).collect();
        for nearest in [1, 3] {
            let mut wanted = Vec::new();
            let oracle = Centroids::new(&centroids, dimension);
            oracle.assign(&rows, &listed, nearest, |_, best| wanted.push(best.to_vec()));
            let resident = ResidentRows::upload(&rows, workspace).unwrap();
            let points = assign::Points { codes: &codes, scales: &scales };
            let got = assign::assign(workspace, &resident, None, points, nearest).unwrap();
            assert_eq!(got, wanted, "{dimension} components, {nearest} nearest");
            // Some of the rows, in any order, one of them twice.
            let some: Vec<u32> = (0..rows.len() as u32).rev().step_by(3).chain([0]).collect();
            let got = assign::assign(workspace, &resident, Some(&some), points, nearest).unwrap();
            let wanted: Vec<_> = some.iter().map(|row| wanted[*row as usize].clone()).collect();
            assert_eq!(got, wanted, "{dimension} components, {nearest} nearest, listed");
            let beyond = [rows.len() as u32];
            assert!(assign::assign(workspace, &resident, Some(&beyond), points, 1).is_err());
        }
    }
}

#[test]
fn means_are_those_of_the_cpu() {
    for mut workspace in workspaces("means_are_those_of_the_cpu") {
        check_means_are_those_of_the_cpu(&mut workspace);
    }
}

fn check_means_are_those_of_the_cpu(workspace: &mut Workspace) {
    let columns = asked(70, 90, 0, Data::Clustered).columns;
    let rows = columns.view();
    let resident = ResidentRows::upload(&rows, workspace).unwrap();
    let lists: Vec<Vec<u32>> = vec![(0..40).collect(), vec![], (40..90).collect()];
    let got = assign::means(workspace, &resident, &lists, 70).unwrap();
    let list_of: Vec<u32> = (0..90).map(|row| if row < 40 { 0 } else { 2 }).collect();
    let listed: Vec<u32> = (0..90).collect();
    let wanted = kmeans::means(&rows, &listed, &list_of, 3, 70);
    for (got, wanted) in got.iter().zip(wanted) {
        let wanted = wanted.unwrap_or_else(|| vec![0.0; 70]);
        let length = wanted.iter().map(|value| value.abs()).fold(f32::MIN_POSITIVE, f32::max);
        for (got, wanted) in got.iter().zip(&wanted) {
            assert!((got - wanted).abs() <= 1e-5 * length, "{got} {wanted}");
        }
    }
    assert!(assign::means(workspace, &resident, &[vec![90]], 70).is_err());
}

/// Rows that were brought together answer as the list did.
#[test]
fn gathered_rows_are_the_rows_of_the_list() {
    for mut workspace in workspaces("gathered_rows_are_the_rows_of_the_list") {
        check_gathered_rows_are_the_rows_of_the_list(&mut workspace);
    }
}

fn check_gathered_rows_are_the_rows_of_the_list(workspace: &mut Workspace) {
    let asked = asked(100, 400, 2, Data::Random);
    let rows = asked.columns.view();
    let resident = ResidentRows::upload(&rows, workspace).unwrap();
    let ids: Vec<u32> = (0..400).rev().step_by(3).collect();
    let gathered = gather_rows(workspace, &resident, &ids).unwrap();
    let bounded = asked.bounded(&rows);
    let queries: Vec<_> =
        bounded.iter().map(lodestone_compute::cuda::together::DeviceQuery::new).collect();
    let visited = search::Visited::Listed(&ids);
    let of_list = search::search(workspace, &resident, &queries, visited, 4).unwrap();
    let visited = search::Visited::All;
    let of_gathered = search::search(workspace, &gathered, &queries, visited, 4).unwrap();
    for (of_list, of_gathered) in of_list.into_iter().zip(of_gathered) {
        let named = of_gathered.unwrap().into_iter();
        let mut named: Vec<_> = named.map(|(at, estimate)| (ids[at as usize], estimate)).collect();
        let mut listed = of_list.unwrap();
        named.sort_by_key(|(row, _)| *row);
        listed.sort_by_key(|(row, _)| *row);
        assert_eq!(named, listed);
    }
    assert!(gather_rows(workspace, &resident, &[400]).is_err());
}
