//! Kernels used by builds, each compared with its CPU counterpart.

use std::sync::Arc;

use crate::cases::{Asked, Case, Chosen, Data};
use crate::{emulated, oracle, skip};
use lodestone_compute::cuda::encode::{OneBitSlots, encode_one_bit};
use lodestone_compute::cuda::numbers::{Numbers, ResidentRows};
use lodestone_compute::cuda::workspace::{Scratch, Workspace};
use lodestone_compute::cuda::{Device, assign};
use lodestone_compute::kmeans::Centroids;
use lodestone_compute::one_bit::OneBitEncoder;
use lodestone_compute::rotation::Rotation;

/// The available devices: the emulator and a GPU.
pub fn devices(test: &str) -> Vec<Arc<dyn Device>> {
    if emulated::device().is_none() {
        skip(test, "g++ or the emulator's sources are missing", "REQUIRE_EMULATOR");
    }
    let real = oracle::real_source(test).map(|source| source.open().unwrap());
    emulated::device().into_iter().chain(real).collect()
}

/// A workspace on each available device.
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
        let points = Centroids::new(&centroids, dimension);
        let listed: Vec<u32> = (0..rows.len() as u32).collect();
        for nearest in [1, 3] {
            let mut wanted = Vec::new();
            points.assign(&rows, &listed, nearest, |_, best| wanted.push(best.to_vec()));
            let resident = ResidentRows::upload(&rows, Numbers::Codes, workspace).unwrap();
            let nearest_of = |workspace: &mut Workspace, listed: &[u32]| -> Vec<_> {
                let got = assign::assign(workspace, &resident, listed, &points, nearest).unwrap();
                got.rows().map(<[_]>::to_vec).collect()
            };
            let got = nearest_of(workspace, &listed);
            assert_eq!(got, wanted, "{dimension} components, {nearest} nearest");
            // Some of the rows, out of order, and one of them twice.
            let some: Vec<u32> = (0..rows.len() as u32).rev().step_by(3).chain([0]).collect();
            let got = nearest_of(workspace, &some);
            let wanted: Vec<_> = some.iter().map(|row| wanted[*row as usize].clone()).collect();
            assert_eq!(got, wanted, "{dimension} components, {nearest} nearest, listed");
            let beyond = [rows.len() as u32];
            assert!(assign::assign(workspace, &resident, &beyond, &points, 1).is_err());
        }
    }
}
