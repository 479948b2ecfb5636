//! Lists to their sections, and how far a probe of them has to reach.

use std::cell::Cell;

use crate::compute::kmeans::means;
use crate::compute::one_bit::{BLOCK_ROWS, OneBitEncoder};
use crate::compute::rotation::Rotation;
use crate::compute::{PreparedQuery, dot_codes, encode_row, prefetch};
use crate::segment::lists::build::{BuiltLists, FINITE, ListSource, members_of};
use crate::segment::lists::probe::{Effort, NearRows, probe};
use crate::segment::lists::{Lists, NO_ROW};
use crate::types::RowId;

/// Rows that are searched for to learn how far a probe has to reach, and their neighbours.
const CALIBRATION_ROWS: usize = 96;
const CALIBRATION_K: [usize; 2] = [10, 100];
/// Shares of the neighbours that the three reaches find.
const RECALL_TARGETS: [f32; 3] = [0.90, 0.95, 0.99];

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
    let measured = calibrate(source, &rotation, &members, &lists, &one_bit);
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
        let Measured { reach, shares: [of_10, of_100] } = measured;
        let head = [lists, rotation.width() as u32, slots, of_100.to_bits()];
        let mut bytes = Vec::new();
        bytes.extend(head.iter().flat_map(|number| number.to_le_bytes()));
        bytes.extend(reach.iter().chain(&[of_10]).flat_map(|number| number.to_le_bytes()));
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

/// What searches for some of the rows themselves showed.
#[derive(Debug, Clone, Copy, Default)]
struct Measured {
    /// How far towards a query its 10 neighbours lie, in spreads of their list.
    reach: [f32; 3],
    /// Share of all rows that T0 could not rule out, for 10 and for 100 neighbours.
    shares: [f32; 2],
}

/// Searches for some rows exactly and looks where their neighbours are.
fn calibrate(
    source: &dyn ListSource,
    rotation: &Rotation,
    members: &[Vec<u32>],
    lists: &[u8],
    one_bit: &[u8],
) -> Measured {
    let (rows, dimension) = (source.row_count(), source.dimension());
    let view = Lists::view(dimension, lists, one_bit).expect("just built");
    let mut list_of = vec![0; rows];
    for (list, rows) in members.iter().enumerate() {
        rows.iter().for_each(|row| list_of[*row as usize] = list);
    }
    let (mut needed, mut read) = (Vec::new(), [0_usize; 2]);
    let mut unit = vec![0.0; dimension];
    for at in 0..CALIBRATION_ROWS {
        let asked = (at * rows / CALIBRATION_ROWS) as u32;
        source.unit(asked, &mut unit);
        let query = PreparedQuery::new(&unit).expect(FINITE);
        for (k, read) in CALIBRATION_K.into_iter().zip(&mut read) {
            let others = Others { source, query: &query, asked, read: Cell::new(0) };
            let found = probe(&view, rotation, &query, k, Effort::EXACT, &others);
            *read += others.read.get();
            let Some(floor) = found.floor.filter(|_| k == CALIBRATION_K[0]) else { continue };
            for hit in &found.candidates {
                needed.push(reach_of(&view, &query, list_of[hit.row.0 as usize], floor));
            }
        }
    }
    needed.sort_unstable_by(f32::total_cmp);
    let reach = RECALL_TARGETS.map(|target| {
        let at = (needed.len() as f32 * target).ceil() as usize;
        needed.get(at.min(needed.len().saturating_sub(1))).map_or(1.0, |reach| reach.max(0.0))
    });
    Measured { reach, shares: read.map(|read| read as f32 / (CALIBRATION_ROWS * rows) as f32) }
}

/// How many spreads towards the query a row of this list lies that scores `floor`.
fn reach_of(lists: &Lists<'_>, query: &PreparedQuery, list: usize, floor: f32) -> f32 {
    let dot = lists.dot(list, query);
    (floor - dot) / (lists.spread(list) * lists.distance(list, dot)).max(f32::MIN_POSITIVE)
}

/// All rows but the one that is searched for; counts how many are looked at.
struct Others<'a> {
    source: &'a dyn ListSource,
    query: &'a PreparedQuery,
    asked: u32,
    read: Cell<usize>,
}

impl NearRows for &Others<'_> {
    fn passes(&self, row: RowId) -> bool {
        row.0 != self.asked
    }

    fn fetch(&self, row: RowId) {
        prefetch(self.source.codes(row.0));
    }

    fn estimate(&self, row: RowId) -> (f32, f32) {
        self.read.set(self.read.get() + 1);
        let dot = dot_codes(self.query.codes(), self.source.codes(row.0)) as f32;
        (dot * self.query.scale() * self.source.scale(row.0), 0.0)
    }
}
