//! Encodes a vector for its tiers: i8 codes with one scale (T1), and f16 (T2 of model embeddings).
//!
//! T1 stores the *normalised* vector x as `code * scale`, `scale = max |x_i| / 127`, with codes
//! rounded to nearest. It also stores the length of the rounding error: the residual `|x - x^|`,
//! where x^ is the decoded vector. From it every scan computes the error bound of its estimate
//! (`bound`).

use half::f16;
use pulp::Arch;

use crate::ComputeError;
use crate::rows::{check_dimension, code_stride};

/// The largest code. -128 is unused, so that codes negate without overflow.
const CODE_MAX: f64 = 127.0;

/// Independent sums; a single sum would wait for each of its additions.
const LANES: usize = 8;

/// Factors of a T1 row that accompany its codes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowFactors {
    /// Code times scale is a component of the normalised vector; 0 for a zero vector.
    pub scale: f32,
    /// Upper bound of the length of (normalised vector minus decoded vector).
    pub residual: f32,
    /// Length of the given vector: the `norms` column of T2 in f32.
    pub norm: f32,
}

/// Appends the T1 codes of `vector` to `codes`, zero-padded to `code_stride`. A zero vector gets
/// zero codes, scale and residual.
///
/// # Errors
/// [`ComputeError::DimensionOutOfRange`] or [`ComputeError::NotFinite`]; `codes` is then unchanged.
pub fn encode_row(vector: &[f32], codes: &mut Vec<i8>) -> Result<RowFactors, ComputeError> {
    let norm = checked_norm(vector)?;
    let begin = codes.len();
    codes.resize(begin + code_stride(vector.len()), 0);
    if norm == 0.0 {
        return Ok(RowFactors { scale: 0.0, residual: 0.0, norm: 0.0 });
    }
    let largest = vector.iter().fold(0.0_f32, |largest, v| largest.max(v.abs()));
    let scale = (f64::from(largest) / norm / CODE_MAX) as f32;
    let codes = &mut codes[begin..begin + vector.len()];
    let lost = Arch::new().dispatch(|| write_codes(vector, norm, f64::from(scale), codes));
    Ok(RowFactors { scale, residual: rounded_up(lost.sqrt()), norm: norm as f32 })
}

/// Writes the codes; returns the squared length of their rounding error.
#[inline(always)]
fn write_codes(vector: &[f32], norm: f64, scale: f64, codes: &mut [i8]) -> f64 {
    let code_of = |value: f32| {
        let unit = f64::from(value) / norm;
        let code = unit / scale;
        // Processors have no instruction for `round`, which would be a call for each value.
        let code = (code + 0.5_f64.copysign(code)).trunc().clamp(-CODE_MAX, CODE_MAX);
        (code as i32 as i8, (unit - code * scale).powi(2))
    };
    let mut lost = [0.0; LANES];
    let (wide, rest) = vector.as_chunks::<LANES>();
    let (wide_codes, rest_codes) = codes.as_chunks_mut::<LANES>();
    for (values, codes) in wide.iter().zip(wide_codes) {
        for ((value, code), lost) in values.iter().zip(codes).zip(&mut lost) {
            let (nearest, square) = code_of(*value);
            *code = nearest;
            *lost += square;
        }
    }
    for ((value, code), lost) in rest.iter().zip(rest_codes).zip(&mut lost) {
        let (nearest, square) = code_of(*value);
        *code = nearest;
        *lost += square;
    }
    lost.iter().sum()
}

/// Maximum deviation of the length of an f16 row from 1: components are rounded by up to 2^-11 of
/// their value.
const ROW_LENGTH_ERROR: f64 = 1.0 / 2048.0;

/// Appends the normalised `vector`, rounded to nearest f16, to `bits`. Model embeddings must be
/// stored in this form only, because exact scores take the length of such a row as 1. A vector that
/// already has this form is kept unchanged.
///
/// # Errors
/// [`ComputeError::DimensionOutOfRange`] or [`ComputeError::NotFinite`]; `bits` is then unchanged.
pub fn encode_f16(vector: &[f32], bits: &mut Vec<u16>) -> Result<(), ComputeError> {
    let norm = checked_norm(vector)?;
    let is_exact = |v: &f32| f16::from_f32(*v).to_f32() == *v;
    let is_row = (norm - 1.0).abs() <= ROW_LENGTH_ERROR && vector.iter().all(is_exact);
    // A zero vector is divided by 1 and stays zero.
    let divisor = if is_row || norm == 0.0 { 1.0 } else { norm };
    bits.extend(vector.iter().map(|&v| f16::from_f64(f64::from(v) / divisor).to_bits()));
    Ok(())
}

/// Returns the length of a finite vector. In f64 the squares of f32 neither overflow nor underflow.
pub(super) fn checked_norm(vector: &[f32]) -> Result<f64, ComputeError> {
    check_dimension(vector.len())?;
    let squares = Arch::new().dispatch(|| sum_of_squares(vector));
    if !squares.is_finite() {
        let position = vector.iter().position(|value| !value.is_finite());
        let position = position.expect("squares of finite f32 have a finite sum in f64");
        return Err(ComputeError::NotFinite { position });
    }
    Ok(squares.sqrt())
}

#[inline(always)]
fn sum_of_squares(vector: &[f32]) -> f64 {
    let mut sums = [0.0; LANES];
    let (wide, rest) = vector.as_chunks::<LANES>();
    for values in wide.iter().map(<[f32; LANES]>::as_slice).chain([rest]) {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += f64::from(*value).powi(2);
        }
    }
    sums.iter().sum()
}

/// Rounds up to f32, so that a bound remains a bound.
pub(super) fn rounded_up(value: f64) -> f32 {
    (value as f32).next_up()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_decode_to_the_normalised_vector_within_the_residual() {
        let vector: Vec<f32> = (0..100).map(|i| (i as f32 * 0.7).sin() * 40.0).collect();
        let mut codes = vec![9];
        let factors = encode_row(&vector, &mut codes).unwrap();
        assert_eq!((codes.len(), codes[0]), (129, 9));
        assert!(codes[101..].iter().all(|&code| code == 0));
        assert_eq!(codes[1..].iter().map(|code| code.unsigned_abs()).max(), Some(127));

        let norm = vector.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
        assert_eq!(factors.norm, norm as f32);
        let decoded = codes[1..].iter().map(|&code| f64::from(code) * f64::from(factors.scale));
        let units = vector.iter().map(|&v| f64::from(v) / norm);
        let lost = units.zip(decoded).map(|(x, d)| (x - d).powi(2)).sum::<f64>().sqrt();
        assert!(lost <= f64::from(factors.residual), "{lost} > {}", factors.residual);
        assert!(lost > 0.99 * f64::from(factors.residual), "a loose residual costs rescoring");
    }

    #[test]
    fn extremes_keep_their_direction() {
        for size in [f32::MAX, 1e30, 1e-30, f32::from_bits(1)] {
            let mut codes = Vec::new();
            let factors = encode_row(&[size, -size, 0.0], &mut codes).unwrap();
            assert_eq!(codes[..3], [127, -127, 0]);
            assert!(factors.residual < 1e-6);
            let mut bits = Vec::new();
            encode_f16(&[size, -size, 0.0], &mut bits).unwrap();
            let half = f16::from_f64(0.5_f64.sqrt());
            assert_eq!(bits, [half.to_bits(), (-half).to_bits(), 0]);
        }
    }

    #[test]
    fn a_zero_vector_is_zeros_and_nothing_unfinite_is_stored() {
        let mut codes = Vec::new();
        let zero = RowFactors { scale: 0.0, residual: 0.0, norm: 0.0 };
        assert_eq!(encode_row(&[0.0, -0.0], &mut codes), Ok(zero));
        assert_eq!(codes, [0; 64]);
        let (mut codes, mut bits) = (Vec::new(), Vec::new());
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let refused = ComputeError::NotFinite { position: 1 };
            assert_eq!(encode_row(&[1.0, bad], &mut codes), Err(refused.clone()));
            assert_eq!(encode_f16(&[1.0, bad], &mut bits), Err(refused));
        }
        assert!(codes.is_empty() && bits.is_empty());
    }
}
