//! A query for scans of T0: tables of sums over groups of its components.
//!
//! ```text
//! component v   -> units u = round(2 |v| / step): what its sign adds to the least sum, where it is
//!                  the one of v
//! 2 components  -> pair of 4 sums of units, one for each pattern of signs
//! 2 pairs       -> table of 16, for four bits of a code
//! 3 pairs       -> table of 64, for six bits: those of a byte that come first, and what is left of
//!                  three bytes together
//! ```
//! A sum of units does not depend on the groups in which it is added up, so all kernels agree. The
//! step is such that the sums of three bytes of a code fit into 8 bits.

use crate::one_bit::TILE;
use crate::one_bit::tables::{GROUP, TABLE, WIDE_TABLE, WideTable, takes_wide_tables};
use crate::prefetch;
use crate::rotation::Rotation;

/// Components that are rounded side by side; the width is a multiple of them.
const LANES: usize = 16;

/// Components of a tile.
const TILE_COMPONENTS: usize = 8 * TILE;
/// Sum of the units of a tile before they are rounded, at most: rounding adds half a unit each.
const TILE_UNITS: f32 = (u8::MAX as usize - TILE_COMPONENTS / 2) as f32;
/// Sine of the angle between a random vector and its signs, `sqrt(1 - 2 / pi)`: the deviation of a
/// product with signs is this times the distance of query and reference, and that of rounding, half
/// the root of the sum of all squared errors, is added to it in the square.
const SIGN_SINE: f32 = 0.603;

/// The sums of a pair of components, by their signs.
type Pair = [u8; 4];

/// A rotated query.
#[derive(Debug, Clone, PartialEq)]
pub struct OneBitQuery {
    rotated: Vec<f32>,
    tables: Vec<u8>,
    wide_tables: Vec<[WideTable; TILE + 1]>,
    step: f32,
    bias: f32,
    /// Square of what rounding adds to a distance.
    rounding: f32,
}

impl OneBitQuery {
    /// Rotates `unit`, the normalised query, and builds its tables.
    pub fn new(rotation: &Rotation, unit: &[f32]) -> Self {
        let mut rotated = vec![0.0; rotation.width()];
        rotation.apply(unit, &mut rotated);
        let mut made = Self {
            tables: vec![0; rotated.len() / GROUP * TABLE],
            wide_tables: Vec::new(),
            rotated,
            step: 1.0,
            bias: 0.0,
            rounding: 0.0,
        };
        // Compiled for the widest registers of the machine.
        pulp::Arch::new().dispatch(|| made.fill());
        made
    }

    #[inline(always)]
    fn fill(&mut self) {
        let reach = |tile: &[f32]| 2.0 * tile.iter().map(|value| value.abs()).sum::<f32>();
        let range = self.rotated.chunks(TILE_COMPONENTS).map(reach).fold(0.0, f32::max);
        if range > 0.0 {
            self.step = range / TILE_UNITS;
        }
        let inverse = 1.0 / self.step;
        let width = self.rotated.len();
        let (mut positive, mut negative) = (vec![0; width], vec![0; width]);
        let (mut sums, mut losses, mut squares) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        let lanes = self.rotated.as_chunks::<LANES>().0.iter();
        let units = positive.as_chunks_mut().0.iter_mut().zip(negative.as_chunks_mut().0);
        for (values, (positive, negative)) in lanes.zip(units) {
            let (positive, negative): (&mut [u8; LANES], &mut [u8; LANES]) = (positive, negative);
            for at in 0..LANES {
                let size = 2.0 * values[at].abs();
                let units = (size * inverse + 0.5) as i32 as u8;
                let error = size - f32::from(units) * self.step;
                sums[at] += values[at].abs();
                losses[at] += error;
                squares[at] += error * error;
                let mask = if values[at] > 0.0 { u8::MAX } else { 0 };
                (positive[at], negative[at]) = (units & mask, units & !mask);
            }
        }
        let total = |lanes: [f32; LANES]| lanes.iter().sum::<f32>();
        let pair = |(set, clear): (&[u8; 2], &[u8; 2])| -> Pair {
            let (low, high) = ([clear[0], set[0]], [clear[1], set[1]]);
            [low[0] + high[0], low[1] + high[0], low[0] + high[1], low[1] + high[1]]
        };
        let pairs = positive.as_chunks().0.iter().zip(negative.as_chunks().0);
        let pairs: Vec<Pair> = pairs.map(pair).collect();
        // Half of the components are the query's sign, in the mean.
        self.bias = 0.5 * total(losses) - total(sums);
        self.rounding = 0.25 * total(squares) / (SIGN_SINE * SIGN_SINE);
        for (pairs, table) in pairs.as_chunks().0.iter().zip(self.tables.as_chunks_mut().0) {
            *table = table_of(pairs);
        }
        if takes_wide_tables() {
            let tiles = pairs.as_chunks::<{ TILE_COMPONENTS / 2 }>().0;
            self.wide_tables = tiles.iter().map(wide_tables_of).collect();
        }
    }

    /// The rotated query.
    pub fn rotated(&self) -> &[f32] {
        &self.rotated
    }

    /// `width / 4` tables of 16 sums.
    pub fn tables(&self) -> &[u8] {
        &self.tables
    }

    /// The tables of 64 sums of each whole tile, where the processor has use for them: one for the
    /// first six bits of each byte, and one for the last two of all.
    pub(super) fn wide_tables(&self) -> &[[WideTable; TILE + 1]] {
        &self.wide_tables
    }

    /// Prefetches the tables that a scan reads.
    pub fn prefetch(&self) {
        if self.wide_tables.is_empty() {
            prefetch(&self.tables);
        } else {
            prefetch(&self.wide_tables);
        }
    }

    /// A sum of entries times this, plus [`Self::bias`], is about `signs . rotated query`.
    pub fn step(&self) -> f32 {
        self.step
    }

    /// See [`Self::step`].
    pub fn bias(&self) -> f32 {
        self.bias
    }

    /// The distance of the query and a reference, greater by what rounding adds to the deviation of
    /// an estimate: rounding errors of components are independent, those of T0 too.
    pub fn allow_for_rounding(&self, distance: f32) -> f32 {
        (distance * distance + self.rounding).sqrt()
    }
}

/// Entry p has the sums of the signs of p, two bits for each pair.
#[inline(always)]
fn table_of(pairs: &[Pair; 2]) -> [u8; TABLE] {
    let mut table = [0; TABLE];
    for (entries, high) in table.as_chunks_mut::<4>().0.iter_mut().zip(pairs[1]) {
        *entries = pairs[0].map(|low| low + high);
    }
    table
}

#[inline(always)]
fn wide_table_of([first, second, third]: [Pair; 3]) -> WideTable {
    let mut wide = [0; WIDE_TABLE];
    let low = table_of(&[first, second]);
    for (entries, high) in wide.as_chunks_mut::<TABLE>().0.iter_mut().zip(third) {
        *entries = low.map(|low| low + high);
    }
    WideTable(wide)
}

/// The tables of a tile, of each byte of which four pairs are.
#[inline(always)]
fn wide_tables_of(pairs: &[Pair; TILE_COMPONENTS / 2]) -> [WideTable; TILE + 1] {
    let [a, b, c] = [0, 1, 2].map(|byte| &pairs[4 * byte..4 * byte + 4]);
    let of_byte = |pairs: &[Pair]| wide_table_of([pairs[0], pairs[1], pairs[2]]);
    [of_byte(a), of_byte(b), of_byte(c), wide_table_of([a[3], b[3], c[3]])]
}
