//! A query for scans of T0: tables of sums over groups of its components.
//!
//! ```text
//! component v   -> units u = round(2 |v| / step): what its sign adds to the minimum sum if it
//!                  equals the sign of v
//! 2 components  -> pair of 4 sums of units, one for each pattern of signs
//! 2 pairs       -> table of 16, for four bits of a code
//! 3 pairs       -> table of 64, for six bits: the first six of a byte, or the last two of each
//!                  of three bytes
//! ```
//! A sum of units does not depend on how its terms are grouped, so all kernels agree. The step is
//! chosen so that the sums for three bytes of a code fit 8 bits.

use crate::one_bit::TILE;
use crate::one_bit::tables::{GROUP, TABLE, WIDE_TABLE, WideTable, takes_wide_tables};
use crate::prefetch;
use crate::rotation::Rotation;

/// Components that are rounded together; the width is a multiple of it.
const LANES: usize = 16;

/// Components per tile.
const TILE_COMPONENTS: usize = 8 * TILE;
/// Maximum sum of a tile's units before rounding, which adds up to half a unit for each.
const TILE_UNITS: f32 = (u8::MAX as usize - TILE_COMPONENTS / 2) as f32;
/// Sine of the angle between a random vector and its signs, `sqrt(1 - 2 / pi)`. The standard
/// deviation of a product with signs is this times the distance of query and reference. Rounding
/// adds a deviation of half the root of the sum of all squared errors; the two add up in squares.
const SIGN_SINE: f32 = 0.603;

/// The sums of a pair of components, indexed by their signs.
type Pair = [u8; 4];

/// A rotated query.
#[derive(Debug, Clone, PartialEq)]
pub struct OneBitQuery {
    rotated: Vec<f32>,
    tables: Vec<u8>,
    wide_tables: Vec<[WideTable; TILE + 1]>,
    step: f32,
    bias: f32,
    /// Square of the distance that rounding is equivalent to.
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
        // Dispatched to the widest registers of the machine.
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
        // On average, half of the components have the query's sign.
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

    /// Returns the rotated query.
    pub fn rotated(&self) -> &[f32] {
        &self.rotated
    }

    /// Returns the `width / 4` tables of 16 sums.
    pub fn tables(&self) -> &[u8] {
        &self.tables
    }

    /// Returns the tables of 64 sums of each whole tile, if the processor uses them: one for the
    /// first six bits of each byte, and one for the last two bits of all three.
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

    /// Returns the step. A sum of entries times the step, plus [`Self::bias`], approximates the
    /// product `signs . rotated query`.
    pub fn step(&self) -> f32 {
        self.step
    }

    /// Returns the bias; see [`Self::step`].
    pub fn bias(&self) -> f32 {
        self.bias
    }

    /// Returns the distance of the query and a reference, enlarged to account for the rounding of
    /// tables: the rounding errors of components are independent of each other and of the errors of
    /// T0.
    pub fn allow_for_rounding(&self, distance: f32) -> f32 {
        (distance * distance + self.rounding).sqrt()
    }
}

/// Builds a table whose entry p is the sum for sign pattern p, two bits per pair.
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

/// Builds the tables of a tile, each byte of which covers four pairs.
#[inline(always)]
fn wide_tables_of(pairs: &[Pair; TILE_COMPONENTS / 2]) -> [WideTable; TILE + 1] {
    let [a, b, c] = [0, 1, 2].map(|byte| &pairs[4 * byte..4 * byte + 4]);
    let of_byte = |pairs: &[Pair]| wide_table_of([pairs[0], pairs[1], pairs[2]]);
    [of_byte(a), of_byte(b), of_byte(c), wide_table_of([a[3], b[3], c[3]])]
}
