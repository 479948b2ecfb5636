//! Rounds values to 16-bit codes, row by row.

use pulp::{Arch, Simd, WithSimd};

use crate::int16::LANES;
use crate::int16::panel::TAIL;

/// Rows of states as codes, each with its step: `state = code * step`, up to rounding.
#[derive(Debug, Default)]
pub(super) struct Codes {
    /// (rows, stride), padded with zeros after the last row.
    codes: Vec<i16>,
    steps: Vec<f32>,
    stride: usize,
}

impl Codes {
    /// Allocates `count` rows of `width` values, to be filled with [`Self::set`].
    pub fn begin(&mut self, count: usize, width: usize) {
        self.stride = width;
        self.codes.resize(count.next_multiple_of(TAIL) * self.stride, 0);
        self.codes[count * self.stride..].fill(0);
        self.steps.clear();
        self.steps.resize(count, 0.0);
    }

    /// Rounds rows to codes of at most `limit` and stores them from row `first` on.
    pub fn set(&mut self, first: usize, rows: &[f32], limit: i16) {
        Arch::new().dispatch(Quantize { rows, limit, first, into: self });
    }

    /// Returns the codes of all rows, padded to a multiple of TAIL rows.
    pub fn codes(&self) -> &[i16] {
        &self.codes
    }

    /// Returns the step of each row.
    pub fn steps(&self) -> &[f32] {
        &self.steps
    }

    /// Returns the number of codes per row.
    pub fn stride(&self) -> usize {
        self.stride
    }
}

struct Quantize<'a> {
    rows: &'a [f32],
    limit: i16,
    first: usize,
    into: &'a mut Codes,
}

impl WithSimd for Quantize<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { rows, limit, first, into: Codes { codes, steps, stride } } = self;
        let rows = rows.chunks_exact(*stride);
        let codes = codes[first * *stride..].chunks_exact_mut(*stride);
        for ((row, codes), step) in rows.zip(codes).zip(&mut steps[first..]) {
            let largest = largest(row);
            *step = largest / f32::from(limit);
            // A row of zeros, or of values so small that the reciprocal would overflow, becomes 0.
            let inverse =
                if largest < f32::MIN_POSITIVE { 0.0 } else { f32::from(limit) / largest };
            for (code, x) in codes.iter_mut().zip(row) {
                *code = rounded(*x * inverse);
            }
        }
    }
}

/// Returns the largest absolute value; NaN if there is one, since its bits are above infinity's.
#[inline(always)]
fn largest(row: &[f32]) -> f32 {
    let magnitude = |x: &f32| x.to_bits() & 0x7fff_ffff;
    let mut lanes = [0_u32; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = (*lane).max(magnitude(x));
        }
    }
    let rest = rest.iter().map(magnitude);
    f32::from_bits(lanes.into_iter().chain(rest).fold(0, u32::max))
}

/// Rounds to the nearest integer, ties to even; `x` must fit i16. Adding 1.5 * 2^23 leaves the
/// integer in the low bits.
#[inline(always)]
fn rounded(x: f32) -> i16 {
    const ROUND: f32 = 12_582_912.0;
    (x + ROUND).to_bits() as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_within_the_limit_and_half_a_step_of_the_state() {
        for limit in [1, 100, 5_000, i16::MAX] {
            for width in [1, 2, 15, 16, 33, 384] {
                let states: Vec<f32> = (0..5 * width)
                    .map(|i| (i as f32 * 0.7).sin() * 10f32.powi(i as i32 % 9))
                    .collect();
                let mut codes = Codes::default();
                codes.begin(5, width);
                codes.set(0, &states[..2 * width], limit);
                codes.set(2, &states[2 * width..], limit);
                for (at, row) in states.chunks(width).enumerate() {
                    let step = f64::from(codes.steps()[at]);
                    let start = at * codes.stride();
                    for (code, x) in codes.codes()[start..start + codes.stride()].iter().zip(row) {
                        assert!(code.unsigned_abs() <= limit.unsigned_abs());
                        // Half a step, and the rounding of f32 along the way.
                        let slack = (0.5 + f64::from(limit) * 2e-7) * step + 1e-30;
                        assert!((f64::from(*code) * step - f64::from(*x)).abs() <= slack);
                    }
                }
                assert_eq!(codes.codes().len() % (TAIL * codes.stride()), 0);
                assert!(codes.codes()[5 * codes.stride()..].iter().all(|code| *code == 0));
            }
        }
    }

    #[test]
    fn zeros_stay_zeros_and_what_is_not_finite_stays_so() {
        let mut codes = Codes::default();
        // Used before: no value of it may remain.
        codes.begin(20, 3);
        codes.set(0, &[7.0; 60], 100);
        let tiny = f32::from_bits(1);
        let rows = [0.0, 0.0, 0.0, tiny, -tiny, 0.0, 1.0, f32::NAN, 2.0, 1.0, f32::INFINITY, 0.0];
        codes.begin(4, 3);
        codes.set(0, &rows, 1000);
        assert_eq!(codes.codes()[..6], [0; 6]);
        assert!(codes.steps()[..2].iter().all(|step| *step < 1e-40));
        assert!(codes.steps()[2].is_nan() && codes.steps()[3].is_infinite());
    }
}
