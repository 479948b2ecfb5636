//! Encodes lists into the sections of a segment.

use crate::segment::lists::measure::{Measured, measure};
use crate::segment::lists::source::{BuiltLists, FINITE, ListSource, Trials, members_of};
use crate::segment::lists::view::{HEAD_BYTES, promise_at_most};
use crate::segment::lists::{Lists, NO_ROW, STEEPNESS};
use lodestone_compute::encode_row;
use lodestone_compute::kmeans::means;
use lodestone_compute::one_bit::{BLOCK_ROWS, ListUnits, OneBitEncoder};
use lodestone_compute::rotation::Rotation;

/// Rows that are encoded together: whole blocks, and 12 MiB of vectors at d = 384.
const PIECE_ROWS: usize = 128 * BLOCK_ROWS;

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

/// Encodes both sections for rows whose list is known; empty lists are dropped.
pub(in crate::segment) fn encode(
    source: &dyn ListSource,
    list_of: &[u32],
    trials: Trials,
) -> BuiltLists {
    let dimension = source.dimension();
    let rotation = Rotation::new(dimension);
    let count = list_of.iter().max().map_or(0, |list| *list as usize + 1);
    let members: Vec<Vec<u32>> =
        members_of(list_of, count).into_iter().filter(|rows| !rows.is_empty()).collect();
    let mut arrays = Arrays::default();
    let mut point_encoder = OneBitEncoder::new(&rotation);
    let nowhere = vec![0.0; rotation.width()];
    let mut rotated = nowhere.clone();
    let mut pieces = Pieces::new(source, &rotation);
    for rows in &members {
        let point = arrays.push_point(source, rows);
        point_encoder.push(&point, &nowhere);
        rotation.apply(&point, &mut rotated);
        let squares: f64 =
            rows.chunks(PIECE_ROWS).map(|piece| pieces.push(piece, &point, &rotated)).sum();
        let spread = (squares / rows.len() as f64).sqrt() as f32;
        arrays.spreads.push(spread);
        let square = arrays.squares.last().expect("a point was added");
        let (slope, base) = promise_at_most(*square, spread);
        point_encoder.tilt_last(slope, base);
    }
    let one_bit = pieces.finish();
    let points = point_encoder.finish();
    let mut lists = arrays.encode(&rotation, Measured::default(), &points);
    let view = Lists::view(dimension, &lists, &one_bit).expect("just built");
    let measured = measure(source, &rotation, &view, trials);
    lists = arrays.encode(&rotation, measured, &points);
    BuiltLists { lists, one_bit }
}

/// Encodes the rows of lists into T0, one piece at a time.
struct Pieces<'a> {
    source: &'a dyn ListSource,
    rotation: &'a Rotation,
    units: Vec<f32>,
    references: Vec<f32>,
    /// Number of rows of each pending piece.
    sizes: Vec<usize>,
    blocks: Vec<u8>,
}

impl<'a> Pieces<'a> {
    fn new(source: &'a dyn ListSource, rotation: &'a Rotation) -> Self {
        let (units, references) = (Vec::new(), Vec::new());
        Self { source, rotation, units, references, sizes: Vec::new(), blocks: Vec::new() }
    }

    /// Adds rows of one list; only its last piece may end in a partial block. Returns the sum of
    /// the squared distances of the rows from the list's point.
    fn push(&mut self, rows: &[u32], point: &[f32], reference: &[f32]) -> f64 {
        let dimension = self.rotation.dimension();
        let mut squares = 0.0;
        for row in rows {
            let first = self.units.len();
            self.units.resize(first + dimension, 0.0);
            let unit = &mut self.units[first..];
            self.source.unit(*row, unit);
            let distance = |(a, b): (&f32, &f32)| f64::from(a - b).powi(2);
            squares += unit.iter().zip(point).map(distance).sum::<f64>();
        }
        self.references.extend_from_slice(reference);
        self.sizes.push(rows.len());
        if self.units.len() >= PIECE_ROWS * dimension {
            self.encode();
        }
        squares
    }

    fn encode(&mut self) {
        let mut units = self.units.as_slice();
        let mut lists = Vec::with_capacity(self.sizes.len());
        let references = self.references.chunks_exact(self.rotation.width());
        for (reference, rows) in references.zip(&self.sizes) {
            let (own, rest) = units.split_at(rows * self.rotation.dimension());
            lists.push(ListUnits { reference, units: own });
            units = rest;
        }
        self.blocks.extend(self.source.encode_one_bit(self.rotation, &lists));
        self.units.clear();
        self.references.clear();
        self.sizes.clear();
    }

    fn finish(mut self) -> Vec<u8> {
        self.encode();
        self.blocks
    }
}

impl Arrays {
    /// Adds a list and returns its point: the mean of its rows, as decoded from its codes.
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
        let Measured { patience, all, near, quick_patience } = measured;
        let numbers = [patience, all, near, quick_patience].concat();
        let numbers = numbers.iter().chain(&[STEEPNESS]);
        bytes.extend(numbers.flat_map(|number| number.to_le_bytes()));
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
