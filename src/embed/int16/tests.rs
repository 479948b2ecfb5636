//! The inner loops against plain sums in f64 and i64, at the edges of strips, panels and numbers.

use super::machine::{Attention, add_bias_activate, attend};
use super::product::{Dense, PANEL, STRIP};
use super::quantize::Codes;
use crate::embed::config::Activation;
use crate::embed::elementwise;

fn number(i: usize, salt: f64) -> f32 {
    (i as f64 * 0.61 + salt).sin() as f32
}

/// False, with a word about it, where this processor has no such loops.
fn has_machine(test: &str) -> bool {
    let has = super::machine::has_instructions();
    if !has {
        eprintln!("{test} skipped: no AVX-512 VNNI");
    }
    has
}

fn multiply(layer: &Dense, states: &[f32]) -> (Codes, Vec<f32>) {
    let (mut codes, mut output) = (Codes::default(), Vec::new());
    layer.encode(states, &mut codes);
    layer.multiply(&codes, &mut output);
    (codes, output)
}

#[test]
fn products_are_within_the_rounding_of_codes_at_every_edge() {
    if !has_machine("products") {
        return;
    }
    for tokens in [1, STRIP - 1, STRIP, STRIP + 1, 5 * STRIP + 7] {
        let shapes = [(1, 1), (3, 15), (32, PANEL), (21, PANEL + 1), (384, 2 * PANEL), (7, 130)];
        for (inputs, outputs) in shapes {
            let states: Vec<f32> = (0..tokens * inputs).map(|i| number(i, 0.0)).collect();
            let weights: Vec<f32> = (0..inputs * outputs).map(|i| number(i, 1.0)).collect();
            let layer = Dense::new(&weights, inputs, outputs, Vec::new()).unwrap();
            let (codes, output) = multiply(&layer, &states);
            assert_eq!(output.len(), tokens * outputs);
            for (place, found) in output.iter().enumerate() {
                let (token, column) = (place / outputs, place % outputs);
                let terms = (0..inputs).map(|i| {
                    let state = f64::from(states[token * inputs + i]);
                    (state, f64::from(weights[i * outputs + column]))
                });
                let expected: f64 = terms.clone().map(|(state, weight)| state * weight).sum();
                // Half a step of each side times the other, and f32's rounding of the result.
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

/// The largest codes on both sides with equal signs: the sums that come nearest to the end of i32.
#[test]
fn sums_of_the_largest_codes_do_not_overflow() {
    if !has_machine("sums") {
        return;
    }
    for inputs in [1, 2, 65, 384, 1024] {
        for sign in [1.0, -1.0] {
            let layer = Dense::new(&vec![0.25 * sign; inputs], inputs, 1, Vec::new()).unwrap();
            let states = vec![3.0; inputs * (STRIP + 1)];
            let (codes, output) = multiply(&layer, &states);
            // What the kernel added up, in integers.
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
    // 1,025 equal weights leave 1,023 codes for the states, which is one too few.
    assert!(Dense::new(&[1.0; 1024], 1024, 1, Vec::new()).is_ok());
    let reason = Dense::new(&[1.0; 1025], 1025, 1, Vec::new()).unwrap_err();
    assert!(reason.contains("2098175"), "{reason}");
    for bad in [f32::NAN, f32::INFINITY] {
        assert!(Dense::new(&[1.0, bad], 1, 2, Vec::new()).is_err());
    }
    if has_machine("zeros") {
        let layer = Dense::new(&[0.0, 1.0, 0.0, f32::MIN_POSITIVE], 2, 2, Vec::new()).unwrap();
        let [zero, two] = multiply(&layer, &[2.0, 0.0]).1[..] else { panic!("two outputs") };
        assert!(zero == 0.0 && (two - 2.0).abs() < 1e-6, "{zero} {two}");
        assert_eq!(multiply(&layer, &[0.0, 0.0]).1, [0.0, 0.0]);
    }
}

#[test]
fn what_is_not_finite_spoils_its_own_row_only() {
    if !has_machine("rows") {
        return;
    }
    let layer = Dense::new(&[0.5, 1.0, 2.0, 0.25], 2, 2, Vec::new()).unwrap();
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let output = multiply(&layer, &[1.0, 1.0, 1.0, bad, 1.0, 1.0]).1;
        assert!(output[2..4].iter().all(|x| !x.is_finite()), "{output:?}");
        assert!(output[..2].iter().chain(&output[4..]).all(|x| (x.abs() - 2.5).abs() < 1.3));
    }
}

#[test]
fn a_token_gives_the_same_bits_in_any_batch() {
    if !has_machine("a token") {
        return;
    }
    let weights: Vec<f32> = (0..40 * 70).map(|i| number(i, 3.0)).collect();
    let layer = Dense::new(&weights, 40, 70, Vec::new()).unwrap();
    let states: Vec<f32> = (0..40 * 101).map(|i| number(i, 0.5)).collect();
    let together = multiply(&layer, &states).1;
    for (token, expected) in states.chunks(40).zip(together.chunks(70)) {
        assert_eq!(multiply(&layer, token).1, expected);
    }
}

#[test]
fn attention_is_that_of_the_plain_sums() {
    if !has_machine("attention") {
        return;
    }
    // One memory for all, so that nothing of an earlier passage may be left.
    let mut scratch = Attention::default();
    for (heads, head) in [(1, 16), (3, 32), (2, 48), (1, 64)] {
        let hidden = heads * head;
        for tokens in [70, 1, 5, 6, 7, 64, 65] {
            // Large scores: the softmax must not overflow.
            let fused: Vec<f32> = (0..tokens * 3 * hidden).map(|i| 6.0 * number(i, 0.2)).collect();
            let mut context = vec![f32::NAN; tokens * hidden];
            attend(&fused, heads, head, &mut context, &mut scratch);
            let at = |token: usize, part: usize, place: usize| {
                f64::from(fused[(token * 3 + part) * hidden + place])
            };
            for token in 0..tokens {
                for number in 0..heads {
                    let places = number * head..(number + 1) * head;
                    let score = |other: usize| -> f64 {
                        places.clone().map(|p| at(token, 0, p) * at(other, 1, p)).sum()
                    };
                    let scores: Vec<f64> = (0..tokens).map(score).collect();
                    let top = scores.iter().copied().fold(f64::MIN, f64::max);
                    let powers: Vec<f64> = scores.iter().map(|x| (x - top).exp()).collect();
                    let total: f64 = powers.iter().sum();
                    for place in places {
                        let mixed = powers.iter().enumerate().map(|(j, p)| p * at(j, 2, place));
                        let expected = mixed.sum::<f64>() / total;
                        let found = f64::from(context[token * hidden + place]);
                        // Scores up to 2,304 have an f32 error near 1e-3 in the exponent.
                        assert!((found - expected).abs() < 0.02, "{found} for {expected}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_activation_follows_the_other_one() {
    for width in [1, 15, 16, 37] {
        let states: Vec<f32> = (0..width).map(|i| (i as f32 - 18.0) * 0.7).collect();
        let bias: Vec<f32> = (0..width).map(|i| number(i, 0.1)).collect();
        for activation in [Activation::Gelu, Activation::GeluTanh, Activation::Relu] {
            let (mut found, mut expected) = (states.clone(), states.clone());
            add_bias_activate(&mut found, &bias, activation);
            elementwise::add_bias_activate(&mut expected, &bias, activation);
            for (x, expected) in found.iter().zip(&expected) {
                assert!((x - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{x} {expected}");
            }
        }
    }
    let mut row = [f32::NAN, f32::INFINITY, -1e30, 1e30];
    add_bias_activate(&mut row, &[0.0; 4], Activation::Gelu);
    assert!(row[0].is_nan() && row[1].is_infinite() && row[2].abs() < 1e25);
    assert!((row[3] / 1e30 - 1.0).abs() < 1e-6);
}
