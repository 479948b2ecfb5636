//! Tests candle's layers on the CPU: against our own forward pass over small models of every kind,
//! and against independently computed vectors of the real model.

use serde_json::{Value, json};

use candle_core::Device;

use super::*;
use crate::bert::Bert;
use crate::config::{ModelConfig, Pooling};
use crate::device::check;
use crate::forward::Forward;
use crate::precision::Precision;
use crate::tests::{dot, model_files, numbers, tiny_config, tiny_shapes, tiny_weights, weights_of};
use crate::tokens::Tokeniser;
use crate::weights::Weights;

const EVERY: [(&str, bool); 4] =
    [("gelu", false), ("gelu_new", true), ("relu", false), ("gelu", true)];

fn config(activation: &str, only_first: bool) -> ModelConfig {
    let mut config = tiny_config();
    config["hidden_act"] = json!(activation);
    let pooling = if only_first { Pooling::First } else { Pooling::Mean };
    ModelConfig::parse(config.to_string().as_bytes(), pooling).expect("a configuration")
}

fn padded(config: &ModelConfig, weights: &Weights) -> PaddedBert {
    PaddedBert::new(config, weights, Device::Cpu).expect("a model")
}

fn own(config: &ModelConfig, weights: &Weights) -> Bert {
    Bert::new(config.clone(), weights, Precision::F32).expect("a model")
}

/// Every activation and pooling, passages of every length, in groups of one and of all.
#[test]
fn vectors_are_those_of_our_own_forward_pass() {
    let file = tiny_weights(&tiny_shapes(), "");
    let weights = Weights::parse(&file).expect("weights");
    let lengths = [3, 1, 16, 7, 2, 16];
    let passages: Vec<Vec<u32>> =
        lengths.iter().map(|length| (0..*length).map(|at| at * 5 % 17).collect()).collect();
    let batch: Vec<&[u32]> = passages.iter().map(Vec::as_slice).collect();
    for (activation, only_first) in EVERY {
        let config = config(activation, only_first);
        let bert = padded(&config, &weights);
        let wanted = own(&config, &weights).forward(&batch, &mut || {}).expect("vectors");
        for tokens in [1, 32, 1000] {
            let mut pauses = 0;
            let got = run(&bert, &batch, tokens, &mut || pauses += 1).expect("vectors");
            assert_eq!(pauses, groups(&batch, tokens).len());
            for (x, y) in got.iter().flatten().zip(wanted.iter().flatten()) {
                assert!((x - y).abs() < 5e-6, "{activation} {only_first}: {x} for {y}");
            }
        }
    }
}

/// The vectors of `golden.json`, and the cosine with our own forward pass.
#[test]
fn the_real_model_gives_the_vectors_of_the_reference() {
    let Some(files) = model_files() else { return };
    let config = ModelConfig::parse(&files.config, Pooling::Mean).expect("a model");
    let weights = Weights::parse(&files.weights).expect("weights");
    let tokeniser = Tokeniser::parse(&files.tokenizer, config.vocabulary, config.window());
    let tokeniser = tokeniser.expect("a tokenizer");
    let golden: Value = serde_json::from_str(include_str!("../golden.json")).expect("a fixture");
    let cases = golden["cases"].as_array().expect("cases");
    let ids = |case: &Value| tokeniser.ids(case["text"].as_str().expect("a text")).expect("ids");
    let passages: Vec<Vec<u32>> = cases.iter().map(ids).collect();
    let batch: Vec<&[u32]> = passages.iter().map(Vec::as_slice).collect();
    let got = run(&padded(&config, &weights), &batch, 1024, &mut || {}).expect("vectors");
    let ours = own(&config, &weights).forward(&batch, &mut || {}).expect("vectors");
    for ((case, vector), ours) in cases.iter().zip(&got).zip(&ours) {
        let text = &case["text"];
        for (x, expected) in vector.iter().zip(numbers(&case["head"])) {
            assert!((f64::from(*x) - expected).abs() < 2e-6, "{text}: {x} for {expected}");
        }
        assert!(dot(vector, ours) > 0.999_999, "{text}: {}", dot(vector, ours));
    }
}

/// The check that a device must pass accepts candle, and rejects another model.
#[test]
fn a_check_tells_models_apart() {
    let (config, shapes) = (config("gelu", false), tiny_shapes());
    let file = tiny_weights(&shapes, "");
    let weights = Weights::parse(&file).expect("weights");
    let other = weights_of(&shapes, "", |salt, i| ((i * 3 + salt) as f32).cos() * 0.5);
    let other = Weights::parse(&other).expect("weights");
    let bert = own(&config, &weights);
    let look = |weights: &Weights| {
        let candle = padded(&config, weights);
        check(&config, &bert, 200, &|batch| run(&candle, batch, 64, &mut || {}))
    };
    assert_eq!(look(&weights), Ok(()));
    assert!(matches!(look(&other), Err(DeviceError::NoDevice { .. })));
}

#[test]
fn groups_waste_little_and_hold_every_passage_once() {
    let ids = [0; 16];
    let batch: Vec<&[u32]> = [3, 16, 1, 8, 7, 1].iter().map(|length| &ids[..*length]).collect();
    assert_eq!(groups(&batch, 24), [vec![1], vec![3, 4, 0], vec![2, 5]]);
    assert_eq!(groups(&batch, 1).len(), 6);
    assert!(groups(&[], 10).is_empty());
}

/// Not every device checks its reads.
#[test]
fn passages_that_the_model_lacks_are_refused() {
    let file = tiny_weights(&tiny_shapes(), "");
    let weights = Weights::parse(&file).expect("weights");
    let bert = padded(&config("gelu", false), &weights);
    for bad in [&[][..], &[17], &[1; 17]] {
        assert!(bert.forward(&[&[1], bad]).is_err(), "{bad:?}");
    }
}
