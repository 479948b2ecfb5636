//! Elementwise operations and reductions between the matrix products, on plain slices.
//!
//! Every function runs through `pulp`, which selects the widest vector unit of the machine at run
//! time. The loops are written so that the compiler vectorises them: no calls, no branches, and
//! sums over [`LANES`] independent accumulators. Polynomials replace `erf` and `exp` of the maths
//! library, which are scalar calls and would take longer than the matrix products.

use pulp::{Arch, Simd, WithSimd};

use crate::config::Activation;

/// Number of accumulators of a sum: one 512-bit register of f32.
const LANES: usize = 16;

/// Adds `bias` to every row of `rows`.
pub(super) fn add_bias(rows: &mut [f32], bias: &[f32]) {
    Arch::new().dispatch(AddBias { rows, bias });
}

/// Adds `bias` to every row of `rows` and applies the activation.
pub(super) fn add_bias_activate(rows: &mut [f32], bias: &[f32], activation: Activation) {
    Arch::new().dispatch(AddBiasActivate { rows, bias, activation });
}

/// Applies the activation to every value.
pub(super) fn activate(numbers: &mut [f32], activation: Activation) {
    Arch::new().dispatch(Activate { numbers, activation });
}

/// Computes a gated linear unit (Shazeer 2020): the activated first half of every row of `width`
/// values, times its second half.
pub(super) fn gate(rows: &[f32], width: usize, activation: Activation) -> Vec<f32> {
    let mut gated = vec![0.0; rows.len() / 2];
    let halves = rows.chunks_exact(width).map(|row| row.split_at(width / 2));
    for (gated, (first, _)) in gated.chunks_exact_mut(width / 2).zip(halves.clone()) {
        gated.copy_from_slice(first);
    }
    activate(&mut gated, activation);
    for (gated, (_, gates)) in gated.chunks_exact_mut(width / 2).zip(halves) {
        multiply(gated, gates);
    }
    gated
}

/// Multiplies `numbers` by `others`, elementwise.
pub(super) fn multiply(numbers: &mut [f32], others: &[f32]) {
    for (x, other) in numbers.iter_mut().zip(others) {
        *x *= other;
    }
}

/// Parameters of a layer norm (Ba, Kiros, Hinton 2016).
#[derive(Debug, Clone)]
pub(super) struct Norm {
    pub scale: Vec<f32>,
    pub shift: Vec<f32>,
    pub epsilon: f32,
}

/// Replaces every row by the layer norm of (row + `bias` + corresponding row of `residual`).
pub(super) fn add_norm(rows: &mut [f32], bias: &[f32], residual: &[f32], norm: &Norm) {
    Arch::new().dispatch(AddNorm { rows, bias, residual, norm });
}

/// Replaces every row by its layer norm.
pub(super) fn normalise(rows: &mut [f32], norm: &Norm) {
    Arch::new().dispatch(Normalise { rows, norm });
}

/// Replaces every row of `width` values by its softmax.
pub(super) fn softmax(rows: &mut [f32], width: usize) {
    Arch::new().dispatch(Softmax { rows, width });
}

/// Adds `others` to `numbers`, elementwise.
pub(super) fn add(numbers: &mut [f32], others: &[f32]) {
    for (x, other) in numbers.iter_mut().zip(others) {
        *x += other;
    }
}

/// Adds every row of `rows` to `sum`.
pub(super) fn add_rows(sum: &mut [f32], rows: &[f32]) {
    for row in rows.chunks_exact(sum.len()) {
        add(sum, row);
    }
}

struct AddBias<'a> {
    rows: &'a mut [f32],
    bias: &'a [f32],
}

impl WithSimd for AddBias<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for row in self.rows.chunks_exact_mut(self.bias.len()) {
            for (x, bias) in row.iter_mut().zip(self.bias) {
                *x += bias;
            }
        }
    }
}

struct AddBiasActivate<'a> {
    rows: &'a mut [f32],
    bias: &'a [f32],
    activation: Activation,
}

impl WithSimd for AddBiasActivate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        match self.activation {
            Activation::Gelu => map_biased(self.rows, self.bias, gelu),
            Activation::GeluTanh => map_biased(self.rows, self.bias, gelu_tanh),
            Activation::Relu => map_biased(self.rows, self.bias, |x| x.max(0.0)),
            Activation::Silu => map_biased(self.rows, self.bias, silu),
        }
    }
}

#[inline(always)]
fn map_biased(rows: &mut [f32], bias: &[f32], f: impl Fn(f32) -> f32) {
    for row in rows.chunks_exact_mut(bias.len()) {
        for (x, bias) in row.iter_mut().zip(bias) {
            *x = f(*x + bias);
        }
    }
}

struct Activate<'a> {
    numbers: &'a mut [f32],
    activation: Activation,
}

impl WithSimd for Activate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        match self.activation {
            Activation::Gelu => map(self.numbers, gelu),
            Activation::GeluTanh => map(self.numbers, gelu_tanh),
            Activation::Relu => map(self.numbers, |x| x.max(0.0)),
            Activation::Silu => map(self.numbers, silu),
        }
    }
}

#[inline(always)]
fn map(numbers: &mut [f32], f: impl Fn(f32) -> f32) {
    for x in numbers {
        *x = f(*x);
    }
}

struct AddNorm<'a> {
    rows: &'a mut [f32],
    bias: &'a [f32],
    residual: &'a [f32],
    norm: &'a Norm,
}

impl WithSimd for AddNorm<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let width = self.bias.len();
        let residuals = self.residual.chunks_exact(width);
        for (row, residual) in self.rows.chunks_exact_mut(width).zip(residuals) {
            for ((x, bias), residual) in row.iter_mut().zip(self.bias).zip(residual) {
                *x += bias + residual;
            }
            normalise_row(row, self.norm);
        }
    }
}

struct Normalise<'a> {
    rows: &'a mut [f32],
    norm: &'a Norm,
}

impl WithSimd for Normalise<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for row in self.rows.chunks_exact_mut(self.norm.scale.len()) {
            normalise_row(row, self.norm);
        }
    }
}

#[inline(always)]
fn normalise_row(row: &mut [f32], norm: &Norm) {
    let mean = sum(row, |x| x) / row.len() as f32;
    let variance = sum(row, |x| (x - mean) * (x - mean)) / row.len() as f32;
    let inverse = 1.0 / (variance + norm.epsilon).sqrt();
    for ((x, scale), shift) in row.iter_mut().zip(&norm.scale).zip(&norm.shift) {
        *x = (*x - mean) * inverse * scale + shift;
    }
}

struct Softmax<'a> {
    rows: &'a mut [f32],
    width: usize,
}

impl WithSimd for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for row in self.rows.chunks_exact_mut(self.width) {
            let top = maximum(row);
            for x in row.iter_mut() {
                *x = exp(*x - top);
            }
            let inverse = 1.0 / sum(row, |x| x);
            for x in row.iter_mut() {
                *x *= inverse;
            }
        }
    }
}

#[inline(always)]
fn sum(row: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += f(*x);
        }
    }
    let mut total = 0.0;
    for lane in lanes {
        total += lane;
    }
    for x in rest {
        total += f(*x);
    }
    total
}

#[inline(always)]
fn maximum(row: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = if *x > *lane { *x } else { *lane };
        }
    }
    let mut top = f32::NEG_INFINITY;
    for x in lanes.iter().chain(rest) {
        top = if *x > top { *x } else { top };
    }
    top
}

/// x * Phi(x), with Phi expressed by the error function.
#[inline(always)]
fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// The tanh approximation: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
#[inline(always)]
fn gelu_tanh(x: f32) -> f32 {
    let inner = 0.797_884_6 * (x + 0.044_715 * x * x * x);
    // 0.5 (1 + tanh(t)) = 1 / (1 + exp(-2t)).
    x / (1.0 + exp((-2.0 * inner).min(80.0)))
}

/// x / (1 + e^-x).
#[inline(always)]
fn silu(x: f32) -> f32 {
    x / (1.0 + exp((-x).min(80.0)))
}

/// The error function as x P(x^2) / Q(x^2) on [-4, 4], outside of which f32 cannot distinguish it
/// from 1: the rational approximation of Eigen's `generic_fast_erf_float`. The absolute error is
/// below 5e-7, which the tests check.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let x = if x > 4.0 { 4.0 } else { x };
    let x = if x < -4.0 { -4.0 } else { x };
    let s = x * x;
    let mut p = -2.726_142_3e-10;
    for coefficient in [
        2.770_681_3e-8, -2.101_024e-6, -5.692_506_5e-5, -7.349_906_4e-4, -2.954_6e-3,
        -1.609_603_3e-2,
    ] {
        p = p * s + coefficient;
    }
    let mut q = -1.456_607_2e-5;
    for coefficient in [-2.133_740_6e-4, -1.682_827e-3, -7.373_329_3e-3, -1.426_474e-2] {
        q = q * s + coefficient;
    }
    x * p / q
}

/// e^x for x up to 88: x = n ln 2 + r with |r| at most ln 2 / 2, e^r by the polynomial of Cephes
/// `expf`, 2^n by setting the exponent bits. The relative error is below 3e-7; below -87 the result
/// is clamped to e^-87 instead of becoming denormal.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let x = if x < -87.0 { -87.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    // ln 2 is split in two, so that n times the first part is exact.
    let r = x - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let mut p = 1.987_569_1e-4;
    for coefficient in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5, 1.0, 1.0] {
        p = p * r + coefficient;
    }
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    p * power
}

#[cfg(test)]
mod tests {
    use super::*;

    /// erf by its Taylor series in f64; 60 terms are accurate for |x| up to 4.
    fn erf_series(x: f64) -> f64 {
        let (mut term, mut total) = (x, x);
        for n in 1..120 {
            term *= -x * x / f64::from(n);
            total += term / f64::from(2 * n + 1);
        }
        total * std::f64::consts::FRAC_2_SQRT_PI
    }

    #[test]
    fn polynomials_follow_the_functions() {
        for step in -4_000..=4_000 {
            let x = step as f32 / 1_000.0;
            let error = (f64::from(erf(x)) - erf_series(f64::from(x))).abs();
            assert!(error < 5e-7, "erf({x}) is off by {error}");
        }
        for step in -8_700..=8_700 {
            let x = step as f32 / 100.0;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) / exact - 1.0).abs();
            assert!(error < 3e-7, "exp({x}) is off by {error}");
        }
        assert_eq!(erf(50.0), 1.0);
        assert!(exp(-1e30) < 1e-37 && exp(-1e30) >= 0.0);
        let tanh_form =
            |x: f64| 0.5 * x * (1.0 + (0.797_884_560_8 * (x + 0.044_715 * x.powi(3))).tanh());
        for step in -60..60 {
            let x = step as f32 / 5.0;
            assert!((f64::from(gelu_tanh(x)) - tanh_form(f64::from(x))).abs() < 2e-6);
            let logistic = 1.0 / (1.0 + (-f64::from(x)).exp());
            assert!((f64::from(silu(x)) - f64::from(x) * logistic).abs() < 2e-6);
        }
    }

    #[test]
    fn rows_are_normalised_with_odd_widths() {
        let width = 37;
        let original: Vec<f32> = (0..2 * width).map(|i| ((i * 7919) % 101) as f32 / 9.0).collect();
        let mut rows = original.clone();
        softmax(&mut rows, width);
        for (row, before) in rows.chunks(width).zip(original.chunks(width)) {
            let total: f64 = before.iter().map(|x| f64::from(*x).exp()).sum();
            for (x, before) in row.iter().zip(before) {
                assert!((f64::from(*x) - f64::from(*before).exp() / total).abs() < 1e-6);
            }
        }
        let norm = Norm { scale: vec![2.0; width], shift: vec![0.5; width], epsilon: 1e-12 };
        let mut rows = original.clone();
        add_norm(&mut rows, &vec![0.25; width], &original, &norm);
        for row in rows.chunks(width) {
            let mean: f32 = row.iter().map(|x| (x - 0.5) / 2.0).sum::<f32>() / width as f32;
            let square = row.iter().map(|x| ((x - 0.5) / 2.0).powi(2)).sum::<f32>() / width as f32;
            assert!(mean.abs() < 1e-5 && (square - 1.0).abs() < 1e-4, "{mean} {square}");
        }
    }
}
