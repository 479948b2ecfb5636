//! Compares kernels to plain code, and the bound to actual errors.

use super::scan::{kernels, scan_plain};
use super::task::{Kernel, Task};
use super::*;
use crate::rotation::Rotation;
use lodestone_types::{IdSource, SeededIds};

/// Returns a unit vector with normally distributed components, determined by the seed.
fn unit(ids: &SeededIds, dimension: usize) -> Vec<f32> {
    let mut bytes = vec![0; dimension * 12];
    ids.fill(&mut bytes);
    let normal = |bytes: &[u8]| bytes.iter().map(|byte| f32::from(*byte) - 127.5).sum::<f32>();
    let vector: Vec<f32> = bytes.chunks_exact(12).map(normal).collect();
    let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    vector.iter().map(|value| value / norm).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

struct Fixture {
    rotation: Rotation,
    rows: Vec<Vec<f32>>,
    centre: Vec<f32>,
    blocks: Vec<u8>,
}

impl Fixture {
    /// Creates rows around a centre, like those of a list.
    fn new(ids: &SeededIds, dimension: usize, count: usize) -> Self {
        let rotation = Rotation::new(dimension);
        let centre: Vec<f32> = unit(ids, dimension).iter().map(|value| value * 0.6).collect();
        let rows: Vec<Vec<f32>> = (0..count)
            .map(|_| {
                let noise = unit(ids, dimension);
                let sum: Vec<f32> = centre.iter().zip(noise).map(|(c, n)| c + 0.8 * n).collect();
                let norm = dot(&sum, &sum).sqrt();
                sum.iter().map(|value| value / norm).collect()
            })
            .collect();
        let mut rotated = vec![0.0; rotation.width()];
        rotation.apply(&centre, &mut rotated);
        let mut encoder = OneBitEncoder::new(&rotation);
        rows.iter().for_each(|row| encoder.push(row, &rotated));
        let blocks = encoder.finish();
        Self { rotation, rows, centre, blocks }
    }

    fn view(&self) -> OneBitRows<'_> {
        OneBitRows::new(self.rotation.width(), &self.blocks).unwrap()
    }

    fn along_residual(&self, row: usize) -> Vec<f32> {
        let sides = self.rows[row].iter().zip(&self.centre);
        let residual: Vec<f32> = sides.map(|(value, centre)| value - centre).collect();
        let norm = dot(&residual, &residual).sqrt();
        residual.iter().map(|value| value / norm).collect()
    }

    fn reference(&self, query: &[f32], deviations: f32) -> Reference {
        let dot_centre = dot(query, &self.centre);
        let distance = (1.0 + dot(&self.centre, &self.centre) - 2.0 * dot_centre).sqrt();
        Reference { dot: dot_centre, allowance: deviations * distance }
    }
}

/// The query lies along the residual of the first row, whose sums are then as large as possible:
/// with 3024 components they exceed 16 bits. The last threshold is one that a row reaches exactly.
#[test]
fn every_kernel_finds_what_plain_code_finds() {
    let ids = SeededIds::new(5);
    for (dimension, count) in [(1, 3), (64, 64), (100, 65), (384, 200), (1100, 130), (3024, 70)] {
        let fixture = Fixture::new(&ids, dimension, count);
        let query = fixture.along_residual(0);
        let one_bit = OneBitQuery::new(&fixture.rotation, &query);
        let reference = fixture.reference(&query, 2.0);
        let find = |kernel: Kernel, threshold| {
            let mut found = Vec::new();
            let ahead = crate::Prefetcher::new(&fixture.blocks);
            let task = Task { rows: fixture.view(), query: &one_bit, reference, threshold, ahead };
            kernel(&task, &mut found);
            found
        };
        let all = find(scan_plain, f32::NEG_INFINITY);
        assert_eq!(all.len(), count.next_multiple_of(BLOCK_ROWS));
        for threshold in [f32::NEG_INFINITY, 0.1, 0.3, all[count / 2].upper] {
            let expected = find(scan_plain, threshold);
            for (name, kernel) in kernels() {
                let found = find(kernel, threshold);
                assert_eq!(
                    found, expected,
                    "{name}, {dimension} components, threshold {threshold}"
                );
            }
            let mut found = Vec::new();
            fixture.view().scan(&one_bit, reference, threshold, &[], &mut found);
            assert_eq!(
                found, expected,
                "dispatched, {dimension} components, threshold {threshold}"
            );
        }
    }
}

/// Errors of the estimate, in units of the row's own standard deviation, are approximately standard
/// normal, so the bound is neither wrong nor wasteful.
#[test]
fn errors_are_as_large_as_the_factors_say() {
    let ids = SeededIds::new(6);
    for dimension in [64, 200, 384, 768] {
        let fixture = Fixture::new(&ids, dimension, 2000);
        let (mut squares, mut worst, mut count) = (0.0_f64, 0.0_f64, 0.0);
        for _ in 0..10 {
            let query = unit(&ids, dimension);
            let one_bit = OneBitQuery::new(&fixture.rotation, &query);
            let at = |deviations| {
                let (mut found, all) = (Vec::new(), f32::NEG_INFINITY);
                let reference = fixture.reference(&query, deviations);
                fixture.view().scan(&one_bit, reference, all, &[], &mut found);
                found
            };
            let (estimates, one_more) = (at(0.0), at(1.0));
            for (row, vector) in fixture.rows.iter().enumerate() {
                let deviation = one_more[row].upper - estimates[row].upper;
                let error = dot(&query, vector) - estimates[row].upper;
                let counted = f64::from(error / deviation);
                squares += counted * counted;
                worst = worst.max(counted);
                count += 1.0;
            }
        }
        let deviation = (squares / count).sqrt();
        assert!((0.8..1.3).contains(&deviation), "{dimension}: {deviation}");
        assert!(worst < 5.5, "{dimension}: {worst}");
    }
}

#[test]
fn rows_at_the_reference_are_estimated_exactly() {
    let rotation = Rotation::new(70);
    let row = unit(&SeededIds::new(7), 70);
    let mut rotated = vec![0.0; rotation.width()];
    rotation.apply(&row, &mut rotated);
    let mut encoder = OneBitEncoder::new(&rotation);
    encoder.push(&row, &rotated);
    encoder.end_list();
    encoder.push(&row, &vec![0.0; rotation.width()]);
    let blocks = encoder.finish();
    let view = OneBitRows::new(rotation.width(), &blocks).unwrap();
    assert_eq!(view.len(), 2);
    let query = OneBitQuery::new(&rotation, &row);
    let (mut found, all) = (Vec::new(), f32::NEG_INFINITY);
    view.run(0, 1).scan(&query, Reference { dot: 1.0, allowance: 9.0 }, all, &[], &mut found);
    assert!((found[0].upper - 1.0).abs() < 1e-6, "no residual, no error: {}", found[0].upper);
    assert!(OneBitRows::new(rotation.width(), &blocks[1..]).is_none());
}

/// Estimates of a tilted row are a linear function of the previous ones; those of other rows are
/// unchanged.
#[test]
fn a_tilted_row_has_estimates_on_a_line() {
    const ROWS: usize = 70;
    let ids = SeededIds::new(11);
    let fixture = Fixture::new(&ids, 100, ROWS);
    let origin = vec![0.0; fixture.rotation.width()];
    let blocks_of = |tilted: Option<usize>| {
        let mut encoder = OneBitEncoder::new(&fixture.rotation);
        for (at, row) in fixture.rows.iter().enumerate() {
            encoder.push(row, &origin);
            if tilted == Some(at) {
                encoder.tilt_last(0.75, 0.2);
            }
        }
        encoder.finish()
    };
    let query = OneBitQuery::new(&fixture.rotation, &fixture.along_residual(0));
    let nowhere = Reference { dot: 0.0, allowance: 0.0 };
    let estimates = |tilted| {
        let (blocks, mut found) = (blocks_of(tilted), Vec::new());
        let rows = OneBitRows::new(fixture.rotation.width(), &blocks).unwrap();
        rows.scan(&query, nowhere, f32::NEG_INFINITY, &[], &mut found);
        found.iter().map(|found| found.upper).take(ROWS).collect::<Vec<f32>>()
    };
    let before = estimates(None);
    for tilted in [0, 63, 64, 69] {
        for (at, (after, before)) in estimates(Some(tilted)).iter().zip(&before).enumerate() {
            let expected = if at == tilted { before * 0.75 + 0.2 } else { *before };
            assert!((after - expected).abs() < 1e-6, "{at}, {tilted}: {after} for {expected}");
        }
    }
}
