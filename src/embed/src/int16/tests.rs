//! Compares the inner loops to plain sums in f64 and i64, at the boundaries of strips, panels and
//! value ranges.

use super::Attention;
use super::machine::{activate, attend};
use super::panel::{PANEL, STRIP, TAIL};
use super::product::Dense;
use super::quantize::Codes;
use crate::config::Activation;
use crate::elementwise;

fn number(i: usize, salt: f64) -> f32 {
    (i as f64 * 0.61 + salt).sin() as f32
}

/// Returns false, and prints that the test is skipped, if this processor lacks the instructions.
fn has_machine(test: &str) -> bool {
    let has = super::machine::has_instructions();
    if !has {
        eprintln!("{test} skipped: no AVX-512 VNNI");
    }
    has
}

/// Returns a layer without bias whose weights are `weight(input, output)`.
fn dense(inputs: usize, outputs: usize, weight: impl Fn(usize, usize) -> f32) -> Dense {
    let place = |place| weight(place / outputs, place % outputs);
    let weights: Vec<f32> = (0..inputs * outputs).map(place).collect();
    Dense::new(&weights, inputs, vec![0.0; outputs]).unwrap()
}

fn multiply(layer: &Dense, states: &[f32]) -> (Codes, Vec<f32>) {
    let (mut codes, mut output) = (Codes::default(), Vec::new());
    layer.encode(states, &mut codes);
    layer.multiply(&codes, 0..layer.outputs(), &mut output);
    (codes, output)
}

#[test]
fn products_are_within_the_rounding_of_codes_at_every_edge() {
    if !has_machine("products") {
        return;
    }
    for tokens in [1, TAIL, TAIL + 1, STRIP - 1, STRIP, STRIP + 1, 5 * STRIP + TAIL + 2] {
        let shapes = [(2, PANEL), (4, 3 * PANEL), (32, PANEL), (22, 2 * PANEL), (384, PANEL)];
        for (inputs, outputs) in shapes {
            let states: Vec<f32> = (0..tokens * inputs).map(|i| number(i, 0.0)).collect();
            let weights: Vec<f32> = (0..inputs * outputs).map(|i| number(i, 1.0)).collect();
            let layer = dense(inputs, outputs, |i, j| weights[i * outputs + j]);
            let (codes, output) = multiply(&layer, &states);
            assert_eq!(output.len(), tokens * outputs);
            for (place, found) in output.iter().enumerate() {
                let (token, column) = (place / outputs, place % outputs);
                let terms = (0..inputs).map(|i| {
                    let state = f64::from(states[token * inputs + i]);
                    (state, f64::from(weights[i * outputs + column]))
                });
                let expected: f64 = terms.clone().map(|(state, weight)| state * weight).sum();
                // Half a step of each side times the other side, and f32's rounding of the result.
                let largest = terms.clone().map(|(_, weight)| weight.abs()).fold(0.0, f64::max);
                let weight_slack = largest / 2047.0 / 2.0 * 1.01;
                let state_slack = f64::from(codes.steps()[token]) / 2.0 * 1.01;
                let slack: f64 = terms
                    .map(|(state, weight)| {
                        state.abs() * weight_slack
                            + weight.abs() * state_slack
                            + weight_slack * state_slack
                    })
                    .sum();
                let error = (f64::from(*found) - expected).abs();
                assert!(
                    error <= slack + expected.abs() * 1e-6 + 1e-12,
                    "{tokens} tokens, {inputs} x {outputs}: {found} for {expected}"
                );
            }
        }
    }
}

/// The largest codes on both sides with equal signs: the sums that come closest to overflowing i32.
#[test]
fn sums_of_the_largest_codes_do_not_overflow() {
    if !has_machine("sums") {
        return;
    }
    for inputs in [2, 66, 384, 1024] {
        for sign in [1.0, -1.0] {
            let layer = dense(inputs, PANEL, |_, _| 0.25 * sign);
            let states = vec![3.0; inputs * (STRIP + 1)];
            let (codes, output) = multiply(&layer, &states);
            // The kernel's sum in integers.
            let largest = i64::from(codes.codes()[0]);
            let sum = largest * 2047 * inputs as i64;
            assert!(sum <= i64::from(i32::MAX), "{sum}");
            let is_near_the_end = sum + 2047 * inputs as i64 > i64::from(i32::MAX);
            assert!(is_near_the_end || largest == i64::from(i16::MAX));
            let expected = 0.75 * sign * inputs as f32;
            assert!(output.iter().all(|x| (x / expected - 1.0).abs() < 1e-5), "{output:?}");
        }
    }
}

#[test]
fn weights_without_codes_are_refused_and_zeros_are_not() {
    // 1,026 equal weights leave 1,022 codes for the states, which is too few.
    let equal = |inputs| Dense::new(&vec![1.0; inputs * PANEL], inputs, vec![0.0; PANEL]);
    assert!(equal(1024).is_ok());
    let reason = equal(1026).unwrap_err();
    assert!(reason.contains("2100222"), "{reason}");
    for bad in [f32::NAN, f32::INFINITY] {
        let mut weights = [1.0; 2 * PANEL];
        weights[PANEL + 3] = bad;
        assert!(Dense::new(&weights, 2, vec![0.0; PANEL]).is_err());
    }
    if has_machine("zeros") {
        let weights = [[0.0, 1.0], [0.0, f32::MIN_POSITIVE]];
        let layer = dense(2, PANEL, |i, j| weights[i][j % 2]);
        let output = multiply(&layer, &[2.0, 0.0]).1;
        let pairs = output.as_chunks().0;
        assert!(pairs.iter().all(|[zero, two]| *zero == 0.0 && (two - 2.0).abs() < 1e-6));
        assert_eq!(multiply(&layer, &[0.0, 0.0]).1, [0.0; PANEL]);
    }
}

/// A range of columns equals that part of the full product, and sums are added to present values.
#[test]
fn columns_and_sums_are_those_of_the_whole_product() {
    if !has_machine("columns") {
        return;
    }
    let (inputs, outputs, tokens) = (6, 3 * PANEL, STRIP + TAIL + 1);
    let weights: Vec<f32> = (0..inputs * outputs).map(|i| number(i, 2.0)).collect();
    let bias: Vec<f32> = (0..outputs).map(|i| number(i, 4.0)).collect();
    let layer = Dense::new(&weights, inputs, bias.clone()).unwrap();
    let plain = dense(inputs, outputs, |i, j| weights[i * outputs + j]);
    let states: Vec<f32> = (0..tokens * inputs).map(|i| number(i, 0.4)).collect();
    let (codes, whole) = multiply(&layer, &states);
    let mut sum: Vec<f32> = (0..tokens * outputs).map(|i| number(i, 5.0)).collect();
    layer.add_product(&codes, &mut sum);
    for (place, (x, without)) in whole.iter().zip(multiply(&plain, &states).1).enumerate() {
        assert!((x - without - bias[place % outputs]).abs() < 1e-6);
        assert!((sum[place] - x - number(place, 5.0)).abs() < 2e-6);
    }
    let mut share = Vec::new();
    layer.multiply(&codes, PANEL..3 * PANEL, &mut share);
    for (share, whole) in share.chunks(2 * PANEL).zip(whole.chunks(outputs)) {
        assert_eq!(share, &whole[PANEL..]);
    }
}

#[test]
fn what_is_not_finite_spoils_its_own_row_only() {
    if !has_machine("rows") {
        return;
    }
    let layer = dense(2, PANEL, |i, j| [[0.5, 1.0], [2.0, 0.25]][i][j % 2]);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let output = multiply(&layer, &[1.0, 1.0, 1.0, bad, 1.0, 1.0]).1;
        let [first, spoilt, last] = output.as_chunks::<PANEL>().0 else { panic!("three rows") };
        assert!(spoilt.iter().all(|x| !x.is_finite()), "{spoilt:?}");
        assert!(first.iter().chain(last).all(|x| (x.abs() - 2.5).abs() < 1.3));
    }
}

#[test]
fn a_token_gives_the_same_bits_in_any_batch() {
    if !has_machine("a token") {
        return;
    }
    let layer = dense(40, 64, |i, j| number(i * 64 + j, 3.0));
    let states: Vec<f32> = (0..40 * 101).map(|i| number(i, 0.5)).collect();
    let together = multiply(&layer, &states).1;
    for (token, expected) in states.chunks(40).zip(together.chunks(64)) {
        assert_eq!(multiply(&layer, token).1, expected);
    }
}

/// Attention of one head in f64, from the same rows (tokens, 3, head).
fn plain_attention(rows: &[f32], head: usize, reach: Option<usize>) -> Vec<f64> {
    let row = |token: usize, part: usize| {
        let start = (token * 3 + part) * head;
        rows[start..start + head].iter().map(|x| f64::from(*x))
    };
    let tokens = rows.len() / (3 * head);
    let mut context = Vec::new();
    for token in 0..tokens {
        let score = |other: usize| {
            let is_seen = reach.is_none_or(|reach| token.abs_diff(other) <= reach);
            let score: f64 = row(token, 0).zip(row(other, 1)).map(|(q, k)| q * k).sum();
            if is_seen { score } else { f64::NEG_INFINITY }
        };
        let scores: Vec<f64> = (0..tokens).map(score).collect();
        let top = scores.iter().copied().fold(f64::MIN, f64::max);
        let powers: Vec<f64> = scores.iter().map(|x| (x - top).exp()).collect();
        let total: f64 = powers.iter().sum();
        let mut mixed = vec![0.0; head];
        for (other, power) in powers.iter().enumerate() {
            for (mixed, value) in mixed.iter_mut().zip(row(other, 2)) {
                *mixed += power / total * value;
            }
        }
        context.extend(mixed);
    }
    context
}

#[test]
fn attention_is_that_of_the_plain_sums() {
    if !has_machine("attention") {
        return;
    }
    // One scratch memory for all, so that leftovers of an earlier passage would show.
    let mut scratch = Attention::default();
    let reaches = [None, Some(0), Some(5), Some(32), Some(64)];
    for (head, reach) in [32, 64, 96].into_iter().flat_map(|head| reaches.map(|at| (head, at))) {
        for tokens in [70, 1, 5, 6, 7, 12, 13, 31, 32, 33, 64, 65, 256] {
            // Nearly uniform weights, typical ones, and ones concentrated on few keys. At extreme
            // sizes, keys whose scores differ by less than a code may swap, but nothing may
            // overflow.
            for (size, tolerance) in [(0.1, 3e-4), (1.0, 6e-3), (3.0, 0.05), (1e4, 2.001)] {
                let part = |i: usize| if i / head % 3 == 2 { 1.0 } else { size };
                let rows: Vec<f32> =
                    (0..tokens * 3 * head).map(|i| part(i) * number(i * i, 0.2)).collect();
                let hidden = 3 * head;
                let mut context = vec![f32::NAN; tokens * hidden];
                attend(&rows, (head, reach), &mut context, (head, hidden), &mut scratch);
                let expected = plain_attention(&rows, head, reach);
                for (row, expected) in context.chunks(hidden).zip(expected.chunks(head)) {
                    assert!(row[..head].iter().chain(&row[2 * head..]).all(|x| x.is_nan()));
                    for (found, expected) in row[head..].iter().zip(expected) {
                        let error = (f64::from(*found) - expected).abs();
                        assert!(
                            error < tolerance,
                            "{tokens}, {reach:?}, {size}: {found} for {expected}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn attention_of_what_is_not_finite_is_not_finite() {
    if !has_machine("attention") {
        return;
    }
    for bad in [f32::NAN, f32::INFINITY] {
        for part in 0..3 {
            let mut rows: Vec<f32> = (0..9 * 96).map(|i| number(i, 0.3)).collect();
            rows[4 * 96 + part * 32 + 5] = bad;
            let mut context = vec![0.0; 9 * 32];
            attend(&rows, (32, None), &mut context, (0, 32), &mut Attention::default());
            let spoilt = context.chunks(32).filter(|row| row.iter().any(|x| !x.is_finite()));
            assert_eq!(spoilt.count(), 9);
        }
    }
}

#[test]
fn the_activation_follows_the_other_one() {
    let states: Vec<f32> = (0..2 * PANEL).map(|i| (i as f32 - 31.0) * 0.4).collect();
    for activation in [Activation::Gelu, Activation::GeluTanh, Activation::Relu] {
        let (mut found, mut expected) = (states.clone(), states.clone());
        activate(&mut found, activation);
        elementwise::add_bias_activate(&mut expected, &[0.0; PANEL], activation);
        for (x, expected) in found.iter().zip(&expected) {
            assert!((x - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{x} {expected}");
        }
    }
    let mut row = [0.0; PANEL];
    row[..4].copy_from_slice(&[f32::NAN, f32::INFINITY, -1e30, 1e30]);
    activate(&mut row, Activation::Gelu);
    assert!(row[0].is_nan() && row[1].is_infinite() && row[2].abs() < 1e25);
    assert!((row[3] / 1e30 - 1.0).abs() < 1e-6);
}
