//! Lists to their sections.

use crate::compute::encode_row;
use crate::compute::kmeans::means;
use crate::compute::one_bit::{BLOCK_ROWS, OneBitEncoder};
use crate::compute::rotation::Rotation;
use crate::segment::lists::build::{BuiltLists, FINITE, ListSource, members_of};
use crate::segment::lists::measure::{Measured, measure};
use crate::segment::lists::view::HEAD_BYTES;
use crate::segment::lists::{Lists, NO_ROW};

/// The arrays of section `Lists`.
#[derive(Default)]
struct Arrays {
    codes: Vec<i8>,
    scales: Vec<f32>,
    squares: Vec<f32>,
    spreads: Vec<f32>,
    first_blocks: Vec<u32>,
    sizes: Vec<u32>,
    rows_of_slots: Vec<u32>,
}

/// Writes both sections for rows whose list is known; empty lists are left out.
pub(super) fn encode(source: &dyn ListSource, list_of: &[u32]) -> BuiltLists {
    let dimension = source.dimension();
    let rotation = Rotation::new(dimension);
    let count = list_of.iter().max().map_or(0, |list| *list as usize + 1);
    let members: Vec<Vec<u32>> =
        members_of(list_of, count).into_iter().filter(|rows| !rows.is_empty()).collect();
    let mut arrays = Arrays::default();
    let (mut rows_encoder, mut point_encoder) =
        (OneBitEncoder::new(&rotation), OneBitEncoder::new(&rotation));
    let nowhere = vec![0.0; rotation.width()];
    let mut rotated = nowhere.clone();
    let mut unit = vec![0.0; dimension];
    for rows in &members {
        let point = arrays.push_point(source, rows);
        point_encoder.push(&point, &nowhere);
        rotation.apply(&point, &mut rotated);
        let mut squares = 0.0_f64;
        for row in rows {
            source.unit(*row, &mut unit);
            rows_encoder.push(&unit, &rotated);
            let distance = |(a, b): (&f32, &f32)| f64::from(a - b).powi(2);
            squares += unit.iter().zip(&point).map(distance).sum::<f64>();
        }
        rows_encoder.end_list();
        arrays.spreads.push((squares / rows.len() as f64).sqrt() as f32);
    }
    let one_bit = rows_encoder.finish();
    let points = point_encoder.finish();
    let mut lists = arrays.encode(&rotation, Measured::default(), &points);
    let view = Lists::view(dimension, &lists, &one_bit).expect("just built");
    let measured = measure(source, &rotation, &view);
    lists = arrays.encode(&rotation, measured, &points);
    BuiltLists { lists, one_bit }
}

impl Arrays {
    /// Adds a list; returns its point, which is the mean of its rows as the codes keep it.
    fn push_point(&mut self, source: &dyn ListSource, rows: &[u32]) -> Vec<f32> {
        let dimension = source.dimension();
        let mean = means(source, rows, &vec![0; rows.len()], 1, dimension);
        let mean = mean[0].as_ref().expect("the list has rows");
        let before = self.codes.len();
        let factors = encode_row(mean, &mut self.codes).expect(FINITE);
        let scale = factors.scale * factors.norm;
        let codes = &self.codes[before..before + dimension];
        let point: Vec<f32> = codes.iter().map(|code| f32::from(*code) * scale).collect();
        self.scales.push(scale);
        self.squares.push(point.iter().map(|value| value * value).sum());
        self.first_blocks.push((self.rows_of_slots.len() / BLOCK_ROWS) as u32);
        self.sizes.push(rows.len() as u32);
        self.rows_of_slots.extend(rows);
        let slots = self.rows_of_slots.len().next_multiple_of(BLOCK_ROWS);
        self.rows_of_slots.resize(slots, NO_ROW);
        point
    }

    fn encode(&self, rotation: &Rotation, measured: Measured, points: &[u8]) -> Vec<u8> {
        let (lists, slots) = (self.sizes.len() as u32, self.rows_of_slots.len() as u32);
        let mut bytes = Vec::new();
        let head = [lists, rotation.width() as u32, slots];
        bytes.extend(head.iter().flat_map(|number| number.to_le_bytes()));
        let Measured { patience, all, near } = measured;
        let numbers = [patience, all, near].concat();
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        bytes.resize(HEAD_BYTES, 0);
        bytes.extend(bytemuck::cast_slice::<i8, u8>(&self.codes));
        for array in [&self.scales, &self.squares, &self.spreads] {
            bytes.extend(array.iter().flat_map(|number| number.to_le_bytes()));
        }
        for array in [&self.first_blocks, &self.sizes] {
            bytes.extend(array.iter().flat_map(|number| number.to_le_bytes()));
        }
        bytes.extend(points);
        bytes.extend(self.rows_of_slots.iter().flat_map(|number| number.to_le_bytes()));
        bytes
    }
}
