//! Merge policy: decides which segments are merged next.
//!
//! ```text
//! rows of a segment   0 ..  64       tier 0
//!                    64 .. 512       tier 1, and so on by factors of eight
//!   more than half of a budget       full: rewritten only to drop dead rows
//! ```
//! Eight segments of a tier are merged, lowest tier first, as far as they fit into the budgets. Any
//! two segments that are not full fit, and if not all fit, the output is full. If no tier has eight
//! segments, those that are individually too small for lists are merged as soon as they are large
//! enough together, because a search reads all their rows. Whatever the sizes and the order in
//! which segments arrive, there are thus after merging
//!
//! - at most seven segments per tier that are not full: seven times the logarithm of the rows,
//! - at most two full ones for each budget's worth of rows, bytes or memory in the collection,
//! - fewer rows in segments without lists than one needs to have them, full ones aside;
//!
//! and a row is rewritten at most once per tier, once to get lists and once to enter a full
//! segment. In tier 0, where the output of eight segments may still be in tier 0, a merge at least
//! doubles the segment of each of its rows, so there are at most six rewrites. A segment with more
//! than a fifth of dead rows is rewritten too: at most four live rows per dead one.

use std::collections::BTreeMap;

use crate::segment::lists::LISTED_ROWS_MIN;

/// Number of segments of one tier that are merged together.
pub(super) const FAN_IN: usize = 8;
/// Rows of the lowest tier: among eight ascending numbers below 2^6 there is always one that is no
/// larger than the sum of those before it.
const TIER_ROWS: u64 = 1 << (FAN_IN - 2);
/// Most rows in a merged segment: the entity names in the graph of so many have numbers of 28 bits.
const MERGED_ROWS_MAX: u64 = 2_000_000;
/// A segment with a larger share of dead rows is rewritten.
const DEAD_SHARE_MAX: f64 = 0.20;

/// Limits on one merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeBudget {
    /// Rows of the output.
    pub rows: u64,
    /// Bytes of the output on disk; the inputs stay until their last reader is done.
    pub disk_bytes: u64,
    /// Bytes of the output on disk if a segment is rewritten only to drop dead rows. May be larger
    /// than `disk_bytes`, because such a merge frees space in the end.
    pub worn_disk_bytes: u64,
    /// Bytes of memory during the merge.
    pub memory_bytes: u64,
}

impl MergeBudget {
    /// The most that the format allows.
    pub const MOST: Self = Self {
        rows: MERGED_ROWS_MAX,
        disk_bytes: u64::MAX,
        worn_disk_bytes: u64::MAX,
        memory_bytes: u64::MAX,
    };

    /// The limits on rewriting one segment to drop dead rows.
    fn for_worn(self) -> Self {
        Self { disk_bytes: self.worn_disk_bytes, ..self }
    }

    fn of_sizes(self) -> [u64; 3] {
        [self.rows, self.disk_bytes, self.memory_bytes]
    }
}

/// A segment as the policy sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Live rows.
    pub(super) rows: u64,
    /// Dead rows.
    pub(super) dead: u64,
    /// Bytes that its rows need in the output.
    pub(super) disk_bytes: u64,
    /// Bytes of memory that its rows need in a merge.
    pub(super) memory_bytes: u64,
    /// Dimension and bytes per component: vectors of different shapes cannot share a file.
    pub(super) shape: (usize, usize),
    /// Whether another merge has taken it.
    pub(super) is_taken: bool,
}

impl Piece {
    fn sizes(&self) -> [u64; 3] {
        [self.rows, self.disk_bytes, self.memory_bytes]
    }

    fn tier(&self) -> u32 {
        (self.rows / TIER_ROWS).checked_ilog(FAN_IN as u64).map_or(0, |tier| tier + 1)
    }

    fn is_full(&self, budget: MergeBudget) -> bool {
        self.sizes().iter().zip(budget.of_sizes()).any(|(size, most)| *size > most / 2)
    }

    /// Whether it was written with lists.
    fn is_listed(&self) -> bool {
        self.rows + self.dead >= LISTED_ROWS_MIN as u64
    }

    fn is_worn(&self) -> bool {
        self.dead as f64 > DEAD_SHARE_MAX * (self.rows + self.dead) as f64
    }
}

/// The segments to merge next, ascending, if any: enough of one tier, else those without lists,
/// else one with many dead rows.
pub(super) fn plan(pieces: &[Piece], budget: MergeBudget) -> Option<Vec<usize>> {
    let mut free: Vec<usize> = (0..pieces.len()).filter(|at| !pieces[*at].is_taken).collect();
    free.sort_by_key(|at| pieces[*at].rows);
    let mut tiers: BTreeMap<(u32, (usize, usize)), Vec<usize>> = BTreeMap::new();
    let mut unlisted: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for at in free.iter().copied().filter(|at| !pieces[*at].is_full(budget)) {
        let piece = &pieces[at];
        tiers.entry((piece.tier(), piece.shape)).or_default().push(at);
        if !piece.is_listed() {
            unlisted.entry(piece.shape).or_default().push(at);
        }
    }
    let fitting = |group: &[usize]| fitting(group.iter().map(|at| &pieces[*at]), budget);
    let of_tier = tiers.into_iter().find(|(_, group)| group.len() >= FAN_IN);
    let of_tier = of_tier.map(|((tier, _), mut group)| {
        if tier == 0 {
            group.truncate(doubling(&group.iter().map(|at| pieces[*at].rows).collect::<Vec<_>>()));
        }
        group.truncate(fitting(&group));
        group
    });
    let get_lists = |mut group: Vec<usize>| {
        group.truncate(fitting(&group));
        let rows = group.iter().map(|at| pieces[*at].rows).sum::<u64>();
        (rows >= LISTED_ROWS_MIN as u64).then_some(group)
    };
    let fits_alone = |piece: &Piece| self::fitting([piece].into_iter(), budget.for_worn()) == 1;
    let worn = || free.iter().find(|at| pieces[**at].is_worn() && fits_alone(&pieces[**at]));
    let mut chosen = of_tier
        .or_else(|| unlisted.into_values().find_map(get_lists))
        .or_else(|| worn().map(|at| vec![*at]))?;
    chosen.sort_unstable();
    Some(chosen)
}

/// Length of the longest prefix of ascending sizes whose last is no larger than the sum of those
/// before it; at least two.
fn doubling(sizes: &[u64]) -> usize {
    let mut sum = 0;
    let mut longest = sizes.len().min(2);
    for (at, size) in sizes.iter().enumerate() {
        if at > 0 && *size <= sum {
            longest = at + 1;
        }
        sum += size;
    }
    longest
}

/// Number of leading pieces that fit into the budget together.
fn fitting<'a>(pieces: impl Iterator<Item = &'a Piece>, budget: MergeBudget) -> usize {
    let mut sums = [0_u64; 3];
    let fits = |piece: &&Piece| {
        for (sum, size) in sums.iter_mut().zip(piece.sizes()) {
            *sum = sum.saturating_add(size);
        }
        sums.iter().zip(budget.of_sizes()).all(|(sum, most)| *sum <= most)
    };
    pieces.take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A segment in the simulation.
    #[derive(Debug, Clone)]
    struct Simulated {
        piece: Piece,
        /// Number of rewrites of its most rewritten row.
        rewritten: u32,
    }

    const BUDGET: MergeBudget = MergeBudget {
        rows: 100_000,
        disk_bytes: 100_000_000,
        worn_disk_bytes: 100_000_000,
        memory_bytes: 40_000_000,
    };

    fn piece(rows: u64, disk: u64, memory: u64) -> Piece {
        let (disk_bytes, memory_bytes) = (rows * disk, rows * memory);
        Piece { rows, dead: 0, disk_bytes, memory_bytes, shape: (384, 2), is_taken: false }
    }

    fn of(segments: &[Simulated]) -> Vec<Piece> {
        segments.iter().map(|segment| segment.piece).collect()
    }

    /// Merges until there is nothing left to merge; checks that every merge is within the budgets.
    fn settle(segments: &mut Vec<Simulated>, budget: MergeBudget) {
        while let Some(chosen) = plan(&of(segments), budget) {
            assert!(chosen.is_sorted_by(|a, b| a < b) && !chosen.is_empty());
            let inputs: Vec<Simulated> = chosen.iter().map(|at| segments[*at].clone()).collect();
            let sum = |size: fn(&Piece) -> u64| inputs.iter().map(|input| size(&input.piece)).sum();
            let output = Piece {
                rows: sum(|piece| piece.rows),
                disk_bytes: sum(|piece| piece.disk_bytes),
                memory_bytes: sum(|piece| piece.memory_bytes),
                ..inputs[0].piece
            };
            let output = Piece { dead: 0, ..output };
            assert!(output.rows <= budget.rows && output.disk_bytes <= budget.disk_bytes);
            assert!(output.memory_bytes <= budget.memory_bytes);
            assert!(inputs.len() > 1 || inputs[0].piece.is_worn());
            let with_rows = inputs.iter().filter(|input| input.piece.rows > 0);
            let rewritten = with_rows.map(|input| input.rewritten + 1).max().unwrap_or(0);
            let mut at = 0..;
            segments.retain(|_| !chosen.contains(&at.next().unwrap()));
            segments.push(Simulated { piece: output, rewritten });
        }
    }

    /// Number of tiers of segments that are not full.
    fn tiers(budget: MergeBudget) -> usize {
        piece(budget.rows / 2, 0, 0).tier() as usize + 1
    }

    /// The bound stated in the module docs.
    fn segments_max(segments: &[Simulated], budget: MergeBudget) -> u64 {
        let total = |at: usize| segments.iter().map(|s| s.piece.sizes()[at]).sum::<u64>();
        let full: u64 = (0..3).map(|at| 2 * total(at) / budget.of_sizes()[at].max(1)).sum::<u64>();
        ((FAN_IN - 1) * tiers(budget)) as u64 + full
    }

    /// Rows that a search would scan although they could have lists.
    fn unlisted_rows(segments: &[Simulated], budget: MergeBudget) -> u64 {
        let pieces = segments.iter().map(|segment| segment.piece);
        let mut small: Vec<_> =
            pieces.filter(|piece| !piece.is_listed() && !piece.is_full(budget)).collect();
        small.sort_by_key(|piece| piece.rows);
        small[..fitting(small.iter(), budget)].iter().map(|piece| piece.rows).sum()
    }

    /// Sizes of arriving segments, in any order, as agents, uploads and bulk loads produce them.
    fn any_arrivals() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
        let rows = prop_oneof![
            4 => 0_u64..4,
            3 => 1_u64..200,
            2 => 100_u64..5000,
            1 => 5000_u64..120_000,
        ];
        let run = (rows, 1_usize..60, 500_u64..4000, 100_u64..2000);
        proptest::collection::vec(run, 1..30).prop_map(|runs| {
            let each = |(rows, times, disk, memory)| vec![(rows, disk, memory); times];
            runs.into_iter().flat_map(each).collect()
        })
    }

    proptest! {
        /// Goal: neither the number of segments nor the rewriting grows with the data, whatever the
        /// sizes and the order.
        #[test]
        fn segments_stay_few_and_rows_are_rewritten_rarely(arrivals in any_arrivals()) {
            let rewritten_max = 7 + tiers(BUDGET) as u32;
            let mut segments = Vec::new();
            for (rows, disk, memory) in arrivals {
                segments.push(Simulated { piece: piece(rows, disk, memory), rewritten: 0 });
                settle(&mut segments, BUDGET);
                let most = segments_max(&segments, BUDGET);
                prop_assert!(segments.len() as u64 <= most, "{} of {most}", segments.len());
                prop_assert!(unlisted_rows(&segments, BUDGET) < LISTED_ROWS_MIN as u64);
                let worst = segments.iter().map(|s| s.rewritten).max();
                prop_assert!(worst <= Some(rewritten_max), "{worst:?} of {rewritten_max}");
            }
        }

        /// Goal: the bounds hold while rows die. A rewrite that removes dead rows costs four live
        /// rows each.
        #[test]
        fn deletions_cost_four_rows_for_one(
            arrivals in any_arrivals(),
            deaths in proptest::collection::vec((any::<usize>(), 0_u64..=100), 200),
        ) {
            let mut segments: Vec<Simulated> = Vec::new();
            let mut deaths = deaths.into_iter();
            for (rows, disk, memory) in arrivals {
                segments.push(Simulated { piece: piece(rows, disk, memory), rewritten: 0 });
                if let Some((at, share)) = deaths.next() {
                    let at = at % segments.len();
                    let piece = &mut segments[at].piece;
                    let dying = piece.rows * share / 100;
                    let per_row = |bytes: u64, rows: u64| bytes / rows.max(1);
                    piece.disk_bytes -= per_row(piece.disk_bytes, piece.rows) * dying;
                    piece.memory_bytes -= per_row(piece.memory_bytes, piece.rows) * dying;
                    (piece.rows, piece.dead) = (piece.rows - dying, piece.dead + dying);
                }
                settle(&mut segments, BUDGET);
                prop_assert!(segments.len() as u64 <= segments_max(&segments, BUDGET));
                let is_worn = |segment: &Simulated| {
                    segment.piece.is_worn()
                        && fitting([&segment.piece].into_iter(), BUDGET) == 1
                };
                prop_assert!(!segments.iter().any(is_worn));
            }
        }
    }

    /// Goal: rows that are enough for lists get them, because a search over four segments of 8,000
    /// rows cost more than one over a hundred thousand rows in one segment.
    #[test]
    fn rows_that_are_enough_for_lists_get_them() {
        let pieces = [piece(8000, 1, 1), piece(300, 1, 1), piece(8100, 1, 1), piece(20_000, 1, 1)];
        assert_eq!(plan(&pieces, MergeBudget::MOST), Some(vec![0, 1, 2]));
        assert_eq!(plan(&pieces[1..], MergeBudget::MOST), None);
        let with = |rows| plan(&pieces, MergeBudget { rows, ..MergeBudget::MOST });
        assert_eq!((with(16_400), with(16_399)), (Some(vec![0, 1, 2]), None));
        // Its rows died, but the lists remain.
        let worn = Piece { dead: 8300, ..piece(8100, 1, 1) };
        assert_eq!(plan(&[pieces[0], pieces[1], worn], MergeBudget::MOST), Some(vec![2]));
    }

    /// Goal: segments of more than 250,000 rows are merged too; eight of them once never were.
    #[test]
    fn large_segments_merge_too() {
        let mut segments = Vec::new();
        for _ in 0..40 {
            segments.push(Simulated { piece: piece(260_000, 3000, 900), rewritten: 0 });
            settle(&mut segments, MergeBudget::MOST);
        }
        assert!(segments.len() <= 12, "{} segments of {} rows", segments.len(), 40 * 260_000);
        assert!(segments.iter().all(|segment| segment.rewritten <= 1));
    }

    #[test]
    fn less_memory_cuts_a_merge_smaller_and_very_little_makes_it_wait() {
        let pieces = vec![piece(1000, 3000, 1000); FAN_IN];
        let with = |memory_bytes| plan(&pieces, MergeBudget { memory_bytes, ..MergeBudget::MOST });
        assert_eq!(with(8_000_000), Some((0..8).collect()));
        assert_eq!(with(7_999_999), Some((0..7).collect()));
        assert_eq!(with(2_000_000), Some(vec![0, 1]));
        assert_eq!(with(1_999_999), None);
        let with = |disk_bytes| plan(&pieces, MergeBudget { disk_bytes, ..MergeBudget::MOST });
        assert_eq!(with(24_000_000), Some((0..8).collect()));
        assert_eq!(with(23_999_999), Some((0..7).collect()));
        assert_eq!(with(5_999_999), None);
    }

    /// Goal: on a disk with little space, merges that free some go on.
    #[test]
    fn a_worn_segment_has_more_space_than_others() {
        let worn = Piece { dead: 500, ..piece(1000, 3000, 1000) };
        let mut pieces = vec![piece(1000, 3000, 1000); FAN_IN - 1];
        pieces.push(worn);
        let with = |worn_disk_bytes| {
            let budget =
                MergeBudget { disk_bytes: 5_999_999, worn_disk_bytes, ..MergeBudget::MOST };
            plan(&pieces, budget)
        };
        assert_eq!((with(3_000_000), with(2_999_999)), (Some(vec![FAN_IN - 1]), None));
    }

    #[test]
    fn what_another_merge_has_is_left_alone() {
        let mut pieces = vec![piece(1000, 3000, 1000); 2 * FAN_IN];
        pieces.iter_mut().step_by(2).for_each(|piece| piece.is_taken = true);
        assert_eq!(plan(&pieces, MergeBudget::MOST), Some((1..16).step_by(2).collect()));
        pieces[1].is_taken = true;
        assert_eq!(plan(&pieces, MergeBudget::MOST), None);
    }
}
