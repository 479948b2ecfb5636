//! Encodes rows as blocks of T0.

use crate::one_bit::{BLOCK_ROWS, block_bytes};
use crate::rotation::Rotation;

/// Factors of a row that accompany its signs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct OneBitFactors {
    /// Growth of the estimate per unit of `signs . rotated query`.
    pub scale: f32,
    /// Part of the estimate that is independent of the query.
    pub offset: f32,
    /// Standard deviation of the estimate, per unit of distance between query and reference.
    pub error: f32,
}

/// The rows of one list, or of whole blocks of it.
#[derive(Debug, Clone, Copy)]
pub struct ListUnits<'a> {
    /// The rotated point that the codes of the rows refer to.
    pub reference: &'a [f32],
    /// Unit vectors, concatenated.
    pub units: &'a [f32],
}

/// Encodes lists as blocks of T0; each list starts a new block.
pub fn encode_lists(rotation: &Rotation, lists: &[ListUnits<'_>]) -> Vec<u8> {
    let mut encoder = OneBitEncoder::new(rotation);
    for list in lists {
        let units = list.units.chunks_exact(rotation.dimension());
        units.for_each(|unit| encoder.push(unit, list.reference));
        encoder.end_list();
    }
    encoder.finish()
}

/// Encodes rows one at a time into blocks.
#[derive(Debug)]
pub struct OneBitEncoder<'a> {
    rotation: &'a Rotation,
    blocks: Vec<u8>,
    rows: usize,
    rotated: Vec<f32>,
    residual: Vec<f32>,
}

impl<'a> OneBitEncoder<'a> {
    /// Creates an encoder without rows.
    pub fn new(rotation: &'a Rotation) -> Self {
        let width = rotation.width();
        let (rotated, residual) = (vec![0.0; width], vec![0.0; width]);
        Self { rotation, blocks: Vec::new(), rows: 0, rotated, residual }
    }

    /// Appends a row. `reference` is the rotated point that the codes of its list refer to.
    pub fn push(&mut self, vector: &[f32], reference: &[f32]) {
        self.rotation.apply(vector, &mut self.rotated);
        let width = self.rotated.len();
        if self.rows.is_multiple_of(BLOCK_ROWS) {
            self.blocks.resize(self.blocks.len() + block_bytes(width), 0);
        }
        let at = self.rows % BLOCK_ROWS;
        let begin = self.blocks.len() - block_bytes(width);
        let (codes, factors) = self.blocks[begin..].split_at_mut(width / 8 * BLOCK_ROWS);
        let factors_of = factors_of(&self.rotated, reference, &mut self.residual);
        for (position, group) in self.residual.chunks_exact(8).enumerate() {
            let mut byte = 0;
            for (bit, value) in group.iter().enumerate() {
                byte |= u8::from(*value > 0.0) << bit;
            }
            codes[position * BLOCK_ROWS + at] = byte;
        }
        let columns = [factors_of.scale, factors_of.offset, factors_of.error];
        for (column, value) in columns.into_iter().enumerate() {
            let place = (column * BLOCK_ROWS + at) * 4;
            factors[place..place + 4].copy_from_slice(&value.to_le_bytes());
        }
        self.rows += 1;
    }

    /// Changes the row that was added last so that its estimates are multiplied by `slope` and
    /// increased by `base`. Its error stays the same.
    pub fn tilt_last(&mut self, slope: f32, base: f32) {
        let at = (self.rows - 1) % BLOCK_ROWS;
        let begin = self.blocks.len() - 3 * BLOCK_ROWS * size_of::<f32>();
        let factors = self.blocks[begin..].as_chunks_mut::<4>().0;
        for (place, more) in [(at, 0.0), (BLOCK_ROWS + at, base)] {
            let value = f32::from_le_bytes(factors[place]);
            factors[place] = (value * slope + more).to_le_bytes();
        }
    }

    /// Pads the last block, so that the next row starts a new one.
    pub fn end_list(&mut self) {
        self.rows = self.rows.next_multiple_of(BLOCK_ROWS);
    }

    /// Returns the blocks.
    pub fn finish(self) -> Vec<u8> {
        self.blocks
    }
}

/// Computes the factors of a rotated row, and leaves its residual in `residual`.
fn factors_of(rotated: &[f32], reference: &[f32], residual: &mut [f32]) -> OneBitFactors {
    let (mut squares, mut absolute, mut across, mut signed) = (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
    for ((value, centre), residual) in rotated.iter().zip(reference).zip(residual.iter_mut()) {
        *residual = value - centre;
        let (rest, centre) = (f64::from(*residual), f64::from(*centre));
        squares += rest * rest;
        absolute += rest.abs();
        across += rest * centre;
        signed += if rest > 0.0 { centre } else { -centre };
    }
    if squares == 0.0 {
        return OneBitFactors::default();
    }
    // a = |r| / (sqrt(D) o), where o = absolute / (sqrt(D) |r|).
    let scale = squares / absolute;
    let width = rotated.len() as f64;
    let along = absolute / (width * squares).sqrt();
    let deviation = ((1.0 - along * along).max(0.0) / (width - 1.0)).sqrt() / along;
    OneBitFactors {
        scale: scale as f32,
        offset: (across - scale * signed) as f32,
        error: (squares.sqrt() * deviation) as f32,
    }
}
