//! Checked views of the sections of lists.

use crate::segment::lists::{FEW_NEIGHBOURS, NO_ROW, Recall, SHARE_MAX};
use crate::segment::tier_blocks::TierBlocks;
use lodestone_compute::one_bit::{BLOCK_ROWS, OneBitRows, block_bytes};
use lodestone_compute::rotation::rotated_width;
use lodestone_compute::{PreparedQuery, code_stride, dot_codes, prefetch};
use lodestone_io::read_soon;

/// Bytes before the first array.
pub(in crate::segment) const HEAD_BYTES: usize = 64;

/// Spreads towards the query at which the best rows of a list are expected: a wide list may hold
/// better rows than a narrow one at the same distance. Over questions to a million real passages,
/// values of .2 to .4 visit a sixth fewer lists before the last neighbour than 0 does; .6 visits
/// twice as many.
const PROMISED_SPREADS: f32 = 0.3;
/// Maximum lists of which the mean spread is computed: each search does so.
const SPREADS_SAMPLED: usize = 256;
/// Exceeds the effect of rounding on a promise.
const SLACK: f32 = 1e-5;

/// Slope and intercept of a linear function of the product of a unit query and a point that is
/// never below the promise of the point's list, and exceeds it only slightly: the distance,
/// `sqrt(1 + square - 2 dot)`, is below its tangent at `dot` 0.
pub(super) fn promise_at_most(square: f32, spread: f32) -> (f32, f32) {
    let (far, spreads) = ((1.0 + square).sqrt(), PROMISED_SPREADS * spread);
    (1.0 - spreads / far, spreads * far)
}

/// The lists of a segment.
#[derive(Debug, Clone, Copy)]
pub struct Lists<'a> {
    dimension: usize,
    /// Patience that finds 99 of 100 neighbours, for 10 and for 100 neighbours.
    patience: [f32; 2],
    /// Patience that finds 97 of 100 neighbours; zeros in segments of older releases.
    quick_patience: [f32; 2],
    steepness: f32,
    /// Shares of the rows that T0 cannot rule out, for 10 and for 100 neighbours: in an exact
    /// search (`all`) and in a probing one (`near`).
    all: [f32; 2],
    near: [f32; 2],
    codes: &'a [i8],
    scales: &'a [f32],
    squares: &'a [f32],
    spreads: &'a [f32],
    first_blocks: &'a [u32],
    sizes: &'a [u32],
    points: OneBitRows<'a>,
    rows_of_slots: &'a [u32],
    one_bit: OneBitRows<'a>,
    /// `None` if everything is verified.
    blocks: Option<TierBlocks<'a>>,
}

impl<'a> Lists<'a> {
    /// Views both sections of a segment. Checks only lengths; [`Self::check`] does the rest.
    ///
    /// # Errors
    /// The broken rule.
    pub fn view(
        dimension: usize,
        lists: &'a [u8],
        one_bit: &'a [u8],
    ) -> Result<Self, &'static str> {
        let head: &[u32] = cast(lists.get(..HEAD_BYTES).ok_or("the head of the lists is cut")?)?;
        let (count, width, slots) = (head[0] as usize, head[1] as usize, head[2] as usize);
        if width != rotated_width(dimension) || count == 0 {
            return Err("the lists are of another width or number");
        }
        let pair = |at: usize| [head[at], head[at + 1]].map(f32::from_bits);
        let mut rest = &lists[HEAD_BYTES..];
        let stride = code_stride(dimension);
        let codes = cast(take(&mut rest, count * stride)?)?;
        let [scales, squares, spreads] = [
            cast(take(&mut rest, count * 4)?)?,
            cast(take(&mut rest, count * 4)?)?,
            cast(take(&mut rest, count * 4)?)?,
        ];
        let first_blocks: &[u32] = cast(take(&mut rest, count * 4)?)?;
        let sizes: &[u32] = cast(take(&mut rest, count * 4)?)?;
        let points = take(&mut rest, count.div_ceil(BLOCK_ROWS) * block_bytes(width))?;
        let points = OneBitRows::new(width, points).ok_or("the points have another length")?;
        let rows_of_slots: &[u32] = cast(take(&mut rest, slots * 4)?)?;
        let one_bit = OneBitRows::new(width, one_bit).ok_or("T0 has another length")?;
        if !rest.is_empty() || one_bit.len() * BLOCK_ROWS != slots {
            return Err("the lists and T0 do not fit each other");
        }
        Ok(Self {
            dimension,
            patience: pair(3),
            all: pair(5),
            near: pair(7),
            quick_patience: pair(9),
            // A file from another program may hold any bits: make it a number that is at least 0.
            steepness: f32::from_bits(head[11]).max(0.0),
            codes,
            scales,
            squares,
            spreads,
            first_blocks,
            sizes,
            points,
            rows_of_slots,
            one_bit,
            blocks: None,
        })
    }

    /// Makes searches verify T0 and slots of a list before they read it.
    #[must_use]
    pub(in crate::segment) fn behind(self, blocks: Option<TierBlocks<'a>>) -> Self {
        Self { blocks, ..self }
    }

    /// Verifies T0 and slots of a list unless that has been done; returns whether they are intact.
    pub(super) fn verify(&self, list: usize) -> bool {
        self.blocks.is_none_or(|blocks| {
            let count = (self.sizes[list] as usize).div_ceil(BLOCK_ROWS);
            blocks.list(self.first_blocks[list] as usize, count)
        })
    }

    /// The row of each slot of T0; [`NO_ROW`] in slots that pad a block.
    pub(in crate::segment) fn slots(&self) -> &'a [u32] {
        self.rows_of_slots
    }

    /// Checks that the blocks of the lists are consecutive, and that each of `rows` rows is in
    /// exactly one slot.
    ///
    /// # Errors
    /// The broken rule.
    pub fn check(&self, rows: usize) -> Result<(), &'static str> {
        self.check_order(rows)?;
        check_slots(rows, self.first_blocks, self.sizes, self.rows_of_slots)
    }

    /// Does the part of [`Self::check`] that does not read the slots.
    ///
    /// # Errors
    /// The broken rule.
    pub(in crate::segment) fn check_order(&self, rows: usize) -> Result<(), &'static str> {
        let (mut next, mut listed) = (0, 0);
        for (first, size) in self.first_blocks.iter().zip(self.sizes) {
            if *first as usize != next {
                return Err("the blocks of the lists are not in order");
            }
            next += (*size as usize).div_ceil(BLOCK_ROWS);
            listed += *size as usize;
        }
        let is_complete = next * BLOCK_ROWS == self.rows_of_slots.len() && listed == rows;
        is_complete.then_some(()).ok_or("the lists are cut, or a row is in no list")
    }

    /// The list of each row, indexed by row.
    pub fn list_of_rows(&self) -> Vec<u32> {
        let count = self.sizes.iter().map(|size| *size as usize).sum();
        let mut list_of = vec![0; count];
        for list in 0..self.len() {
            self.rows(list).iter().for_each(|row| list_of[*row as usize] = list as u32);
        }
        list_of
    }

    /// The decoded points, `dimension` values each.
    pub fn decoded_points(&self) -> Vec<Vec<f32>> {
        let decode = |list| {
            let codes = &self.codes(list)[..self.dimension];
            codes.iter().map(|code| f32::from(*code) * self.scale(list)).collect()
        };
        (0..self.len()).map(decode).collect()
    }

    /// Number of lists.
    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Whether there are no lists; a view always has at least one.
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Consecutive lists without a better row at which a search for `k` rows stops.
    pub fn patience(&self, k: usize, recall: Recall) -> usize {
        let usual = of_neighbours(self.patience, k) as usize;
        match (recall, of_neighbours(self.quick_patience, k) as usize) {
            (Recall::Usual, _) | (Recall::Quick, 0) => usual,
            (Recall::Quick, quick) => quick,
        }
    }

    /// Controls how much a list passed in vain counts: the logarithm of its weight grows by this
    /// for each spread that its promise is below the score to reach.
    pub fn steepness(&self) -> f32 {
        self.steepness
    }

    /// Whether T0 rules out enough to be worth reading in an exact search for `k` rows.
    pub fn are_telling(&self, k: usize) -> bool {
        of_neighbours(self.all, k) <= SHARE_MAX
    }

    /// Whether T0 rules out enough to be worth reading in a probing search for `k` rows, which
    /// reads only the lists near the query.
    pub fn are_telling_nearby(&self, k: usize) -> bool {
        self.len() > 1 && of_neighbours(self.near, k) <= SHARE_MAX
    }

    /// Bytes of T0 and of the arrays of the lists.
    pub fn bytes(&self) -> usize {
        let arrays = self.codes.len() + size_of_val(self.scales) * 5;
        let slots = size_of_val(self.rows_of_slots);
        arrays + slots + self.points.bytes() + self.one_bit.bytes()
    }

    /// Codes of a list's point.
    pub fn codes(&self, list: usize) -> &'a [i8] {
        let stride = code_stride(self.dimension);
        &self.codes[list * stride..][..stride]
    }

    /// Factor that turns a code into a component of the list's point.
    pub fn scale(&self, list: usize) -> f32 {
        self.scales[list]
    }

    /// Squared length of a list's point.
    pub fn square(&self, list: usize) -> f32 {
        self.squares[list]
    }

    /// Root mean square distance of a list's rows from its point.
    pub fn spread(&self, list: usize) -> f32 {
        self.spreads[list]
    }

    /// Mean spread of a sample of the lists.
    pub(super) fn mean_spread(&self) -> f32 {
        let sample = self.spreads.iter().step_by(self.len() / SPREADS_SAMPLED + 1);
        let count = sample.len().max(1) as f32;
        sample.sum::<f32>() / count
    }

    /// Dot product of a query and a list's point.
    pub fn dot(&self, list: usize, query: &PreparedQuery) -> f32 {
        let dot = dot_codes(query.codes(), self.codes(list)) as f32;
        dot * query.scale() * self.scale(list)
    }

    /// Distance between a list's point and a unit query whose product with it is `dot`.
    pub fn distance(&self, list: usize, dot: f32) -> f32 {
        (1.0 + self.square(list) - 2.0 * dot).max(0.0).sqrt()
    }

    /// The score that the best rows of a list are expected to reach, given the product `dot` of a
    /// unit query with its point, and the scale by which scores of its rows vary.
    pub(super) fn promise(&self, list: usize, dot: f32) -> (f32, f32) {
        let spread = self.spread(list) * self.distance(list, dot);
        (dot + PROMISED_SPREADS * spread, spread)
    }

    /// Slope and intercept of an upper bound on the promise, as a function of the product of codes
    /// times the query's scale.
    pub(super) fn promise_at_most(&self, list: usize) -> (f32, f32) {
        let (slope, base) = promise_at_most(self.square(list), self.spread(list));
        (self.scale(list) * slope, base + SLACK)
    }

    /// Rows of a list, ascending, without the padding of its last block.
    pub fn rows(&self, list: usize) -> &'a [u32] {
        let first = self.first_blocks[list] as usize * BLOCK_ROWS;
        &self.rows_of_slots[first..first + self.sizes[list] as usize]
    }

    /// T0 of a list's rows.
    pub fn one_bit(&self, list: usize) -> OneBitRows<'a> {
        let blocks = (self.sizes[list] as usize).div_ceil(BLOCK_ROWS);
        self.one_bit.run(self.first_blocks[list] as usize, blocks)
    }

    /// Up to `count` blocks of T0, starting at `block` of a list and continuing into the next
    /// lists.
    pub fn blocks_from(&self, list: usize, block: usize, count: usize) -> &'a [u8] {
        let first = self.one_bit.len().min(self.first_blocks[list] as usize + block);
        self.one_bit.run(first, count.min(self.one_bit.len() - first)).as_bytes()
    }

    /// Prefetches T0 and slots of a list; the hardware cannot predict these accesses.
    pub fn prefetch(&self, list: usize) {
        self.one_bit(list).prefetch();
        prefetch(self.rows(list));
    }

    /// Asks the operating system to read T0 and slots of a list ahead.
    pub fn read_soon(&self, list: usize) {
        read_soon(self.one_bit(list).as_bytes());
        read_soon(bytemuck::cast_slice(self.rows(list)));
    }

    /// T0 of the points, around the origin. Estimates promises; in older segments, products.
    pub fn points(&self) -> OneBitRows<'a> {
        self.points
    }
}

/// Checks that no row has two slots, in lists whose order was checked.
fn check_slots(
    rows: usize,
    first_blocks: &[u32],
    sizes: &[u32],
    rows_of_slots: &[u32],
) -> Result<(), &'static str> {
    let mut seen = vec![false; rows];
    for (first, size) in first_blocks.iter().zip(sizes) {
        let (first, blocks) = (*first as usize, (*size as usize).div_ceil(BLOCK_ROWS));
        let slots = rows_of_slots.get(first * BLOCK_ROWS..(first + blocks) * BLOCK_ROWS);
        let slots = slots.ok_or("a list is cut")?;
        let (listed, filling) = slots.split_at(*size as usize);
        for row in listed {
            let seen = seen.get_mut(*row as usize).ok_or("a list names a row that is not there")?;
            if std::mem::replace(seen, true) {
                return Err("a row is in two lists");
            }
        }
        if filling.iter().any(|row| *row != NO_ROW) {
            return Err("a slot behind a list names a row");
        }
    }
    Ok(())
}

/// Selects the measurement for about `k` neighbours.
fn of_neighbours([of_10, of_100]: [f32; 2], k: usize) -> f32 {
    if k <= FEW_NEIGHBOURS { of_10 } else { of_100 }
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Result<&'a [u8], &'static str> {
    let (taken, left) = rest.split_at_checked(bytes).ok_or("the lists are cut")?;
    *rest = left;
    Ok(taken)
}

fn cast<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> Result<&[T], &'static str> {
    bytemuck::try_cast_slice(bytes).map_err(|_| "the lists are not aligned")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::lists::{BuiltLists, ListPolicy, build};
    use lodestone_compute::{FullKind, VectorColumns};

    const DIMENSION: usize = 8;
    const ROWS: usize = 300;
    const LIST_ROWS: usize = 100;

    /// Builds lists of rows in three directions; the first has one row more than the last.
    fn built(list_rows: usize) -> BuiltLists {
        let mut columns = VectorColumns::new(DIMENSION, FullKind::F16).unwrap();
        for row in 0..ROWS {
            let near = |at| if at == row % 3 { 1.0 } else { (row * (at + 5) % 11) as f32 / 99.0 };
            columns.push(&(0..DIMENSION).map(near).collect::<Vec<f32>>()).unwrap();
        }
        build(&columns.view(), ListPolicy { listed_rows_min: LIST_ROWS, list_rows })
    }

    fn problem(lists: &[u8], one_bit: &[u8]) -> Option<&'static str> {
        Lists::view(DIMENSION, lists, one_bit).and_then(|lists| lists.check(ROWS)).err()
    }

    #[test]
    fn arrays_that_do_not_fit_each_other_are_refused() {
        let BuiltLists { lists, one_bit } = built(LIST_ROWS);
        assert_eq!(problem(&lists, &one_bit), None);
        let view = Lists::view(DIMENSION, &lists, &one_bit).unwrap();
        let (count, slots) = (view.len(), view.slots().len());
        assert!(count > 1 && slots > ROWS);
        let sizes_at = HEAD_BYTES + count * (code_stride(DIMENSION) + 4 * 4);
        let slots_at = lists.len() - slots * 4;
        let filler = view.slots().iter().position(|row| *row == NO_ROW).unwrap();
        let (number, fit) =
            ("the lists are of another width or number", "the lists and T0 do not fit each other");
        let incomplete = "the lists are cut, or a row is in no list";
        let (count, first_row) = (count as u32, view.slots()[0]);
        for (at, value, rule) in [
            (0, 0, number),
            (0, count + 1, "the lists are cut"),
            (0, count - 1, fit),
            (0, u32::MAX, "the lists are cut"),
            (4, 9, number),
            (8, slots as u32 - 64, fit),
            (8, u32::MAX, "the lists are cut"),
            (sizes_at - 4, u32::MAX, "the blocks of the lists are not in order"),
            (sizes_at, view.sizes[0] - 1, incomplete),
            (sizes_at + (view.len() - 1) * 4, u32::MAX, incomplete),
            (slots_at, ROWS as u32, "a list names a row that is not there"),
            (slots_at, NO_ROW, "a list names a row that is not there"),
            (slots_at + 4, first_row, "a row is in two lists"),
            (slots_at + filler * 4, first_row, "a slot behind a list names a row"),
        ] {
            let mut bad = lists.clone();
            bad[at..at + 4].copy_from_slice(&value.to_le_bytes());
            assert_eq!(problem(&bad, &one_bit), Some(rule), "{value} at {at}");
        }
        let block = block_bytes(rotated_width(DIMENSION));
        assert_eq!(problem(&lists, &one_bit[block..]), Some(fit));
        assert_eq!(problem(&lists, &one_bit[1..]), Some("T0 has another length"));
        let shifted = [&[0], &lists[..]].concat();
        assert_eq!(problem(&shifted[1..], &one_bit), Some("the lists are not aligned"));
        for length in (0..lists.len()).step_by(4) {
            assert!(problem(&lists[..length], &one_bit).is_some_and(|rule| rule.contains("cut")));
        }
    }

    /// Goal: the measurements for 10 neighbours apply to few neighbours, those for 100 to many.
    #[test]
    fn what_was_measured_speaks_for_as_many_neighbours() {
        for (list_rows, has_lists) in [(LIST_ROWS, true), (ROWS, false)] {
            let BuiltLists { mut lists, one_bit } = built(list_rows);
            let measured = [5.0_f32, 9.0, 0.1, 0.9, 0.9, 0.1];
            for (at, number) in measured.into_iter().enumerate() {
                lists[12 + at * 4..][..4].copy_from_slice(&number.to_le_bytes());
            }
            let lists = Lists::view(DIMENSION, &lists, &one_bit).unwrap();
            let of = |k| {
                let telling = (lists.are_telling(k), lists.are_telling_nearby(k));
                (lists.patience(k, Recall::Usual), telling)
            };
            assert_eq!(of(FEW_NEIGHBOURS), (5, (true, false)));
            // A single list is near every query, so none is skipped.
            assert_eq!(of(FEW_NEIGHBOURS + 1), (9, (false, has_lists)));
        }
    }
}
