//! Pseudo-random numbers: equal seeds give equal runs.

use std::ops::Range;

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number less than `bound`, or 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.number() % (bound.max(1) as u64)) as usize
    }

    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    /// A length up to `bound`, mostly small.
    pub fn length(&mut self, bound: usize) -> usize {
        let scale = self.below(bound.max(2).ilog2() as usize + 1);
        self.below((2 << scale).min(bound + 1))
    }

    /// A range within `length`, mostly small.
    pub fn part(&mut self, length: usize) -> Range<usize> {
        let start = self.below(length + 1);
        start..start + self.length(length - start)
    }
}
