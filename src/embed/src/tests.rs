//! Compares the model to independently computed vectors: `golden.json`, from a forward pass in f64
//! with its own WordPiece, and a small encoder whose weights are given by a formula.

use std::path::PathBuf;

use candle_core::{Device, Tensor};
use serde_json::{Value, json};

use super::bert::Bert;
use super::config::{ModelConfig, Pooling};
use super::forward::Forward;
use super::weights::Weights;
use super::*;
use lodestone_types::{ErrorKind, limits};

pub(super) fn model_files() -> Option<ModelFiles> {
    let directory = std::env::var_os("LODESTONE_MODEL_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../models/all-MiniLM-L6-v2"),
        PathBuf::from,
    );
    match ModelFiles::read(&directory, &|path| std::fs::read(path)) {
        Ok(files) => Some(files),
        Err(error) => {
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            eprintln!("{test} skipped: {error}");
            None
        }
    }
}

pub(super) fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

pub(super) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("an array").iter().map(|x| x.as_f64().expect("a number")).collect()
}

#[test]
fn scripts_that_the_model_spells_are_unread() {
    let Some(files) = model_files() else { return };
    let model = Model::load(&files, 1).expect("the model loads");
    let read = [
        "where is the harbour of Zürich", "Où se trouve la mairie de Besançon ?", "¿Qué año?",
        "naïve Bayes", "RSI of ß-blockers", "Wo liegt Łódź?", "x y z", "42", "",
    ];
    for text in read {
        assert!(model.unread_share(text) < 0.3, "{text}: {}", model.unread_share(text));
    }
    let unread = [
        "Где находится музей?",
        "πού βρίσκεται το μουσείο",
        "أين يقع المتحف",
        "संग्रहालय कहाँ है",
        "พิพิธภัณฑ์อยู่ที่ไหน",
        "博物馆在哪里",
        "박물관은 어디에 있습니까",
        "איפה המוזיאון",
        "ምን ያህል ነው",
        "რამდენი კაცია",
    ];
    for text in unread {
        assert!(model.unread_share(text) > 0.7, "{text}: {}", model.unread_share(text));
    }
}

#[test]
fn vectors_are_those_of_the_reference() {
    let Some(files) = model_files() else { return };
    let model = Model::load(&files, 2).expect("the model loads");
    assert_eq!((model.dimension(), model.name()), (384, "all-MiniLM-L6-v2"));
    // Tenants are bound to it, so it must never change.
    let fingerprint = "2a5d6cfafccb9b3b974bf375bfa5861cc564ca01227970a3c6c6fa3e30c97fa6";
    assert_eq!(model.fingerprint(), fingerprint);
    let golden: Value = serde_json::from_str(include_str!("golden.json")).expect("a fixture");
    let cases = golden["cases"].as_array().expect("cases");
    let text = |case: &Value| case["text"].as_str().expect("a text").to_owned();
    let vectors =
        model.embed(Lane::Bulk, cases.iter().map(text).collect()).expect("vectors in order");

    for (case, vector) in cases.iter().zip(&vectors) {
        let text = text(case);
        assert_eq!(
            model.token_offsets(&text).len(),
            case["tokens"].as_u64().expect("a count") as usize
        );
        assert!((dot(vector, vector) - 1.0).abs() < 1e-5);
        for (x, expected) in vector.iter().zip(numbers(&case["head"])) {
            assert!((f64::from(*x) - expected).abs() < 2e-6, "{text}: {x} for {expected}");
        }
        let checksum: f64 =
            vector.iter().zip(1..).map(|(x, i)| f64::from(*x) * f64::from(i).sin()).sum();
        let expected = case["checksum"].as_f64().expect("a checksum");
        assert!((checksum - expected).abs() < 1e-5, "{text}: {checksum} for {expected}");
        // Alone as with others.
        let alone = model.embed(Lane::Query, vec![text.clone()]).expect("a vector");
        let largest = vector.iter().zip(&alone[0]).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
        assert!(largest < 2e-6, "{text}: alone differs by {largest}");
    }
    for (pair, expected) in vectors.windows(2).zip(numbers(&golden["dots"])) {
        assert!((dot(&pair[0], &pair[1]) - expected).abs() < 1e-5);
    }
    let stats = model.stats();
    assert_eq!(stats.passages, 2 * cases.len() as u64);
    assert!(stats.model_seconds > 0.0 && stats.tokens > 256);
    assert!(model.embed(Lane::Bulk, Vec::new()).expect("nothing asked").is_empty());
}

/// Mixing both precisions in one collection relies on this minimum cosine.
#[test]
fn fast_vectors_are_those_of_the_reference_but_for_a_cosine() {
    let Some(files) = model_files() else { return };
    let exact = Model::load(&files, 1).expect("the model loads");
    let fast = Model::load_on(&files, 1, Precision::Auto, None).expect("the model loads");
    assert_eq!(exact.fingerprint(), fast.fingerprint());
    assert_eq!(exact.arithmetic(), Arithmetic::F32);
    let has_fast = int16::missing(&golden_config(&files)).is_none();
    assert_eq!(fast.arithmetic() == Arithmetic::Int16, has_fast);

    let golden: Value = serde_json::from_str(include_str!("golden.json")).expect("a fixture");
    let cases = golden["cases"].as_array().expect("cases");
    let texts: Vec<String> =
        cases.iter().map(|case| case["text"].as_str().expect("a text").to_owned()).collect();
    let wanted = exact.embed(Lane::Bulk, texts.clone()).expect("vectors");
    let vectors = fast.embed(Lane::Bulk, texts.clone()).expect("vectors");
    for (((case, text), vector), wanted) in cases.iter().zip(&texts).zip(&vectors).zip(&wanted) {
        let cosine = dot(vector, wanted);
        assert!(cosine >= 0.99998, "{text}: {cosine}");
        // The committed values themselves, within the tolerance that the cosine implies.
        for (x, expected) in vector.iter().zip(numbers(&case["head"])) {
            assert!((f64::from(*x) - expected).abs() < 2e-3, "{text}: {x} for {expected}");
        }
        assert!((dot(vector, vector) - 1.0).abs() < 1e-5);
        // Sums are exact, so the result alone equals that with others, to the bit.
        let alone = fast.embed(Lane::Query, vec![text.clone()]).expect("a vector");
        if has_fast {
            assert_eq!(&alone[0], vector, "{text}");
        }
    }
}

fn golden_config(files: &ModelFiles) -> ModelConfig {
    ModelConfig::parse(&files.config, Pooling::Mean).expect("a configuration")
}

/// Heads of 4 components have no int16 mode anywhere: f32 is computed, to the bit, and reported.
#[test]
fn a_model_without_a_fast_mode_is_computed_in_f32() {
    let (config, weights) = (tiny_config().to_string(), tiny_weights(&tiny_shapes(), ""));
    let config = ModelConfig::parse(config.as_bytes(), Pooling::Mean).expect("a configuration");
    assert!(int16::missing(&config).is_some());
    let weights = Weights::parse(&weights).expect("weights");
    let [exact, asked] = [Precision::F32, Precision::Auto]
        .map(|precision| Bert::new(config.clone(), &weights, precision).expect("a model"));
    assert_eq!(asked.arithmetic(), Arithmetic::F32);
    let batch: [&[u32]; 2] = [&[3, 1, 4], &[1, 5]];
    let vectors = [exact, asked].map(|bert| bert.forward(&batch, &mut || {}).expect("vectors"));
    assert_eq!(vectors[0], vectors[1]);
}

#[test]
fn precisions_have_names() {
    for precision in [Precision::F32, Precision::Auto] {
        assert_eq!(precision.to_string().parse(), Ok(precision));
    }
    assert!("int8".parse::<Precision>().is_err());
}

#[test]
fn offsets_are_byte_ranges_of_the_whole_text() {
    let Some(files) = model_files() else { return };
    let model = Model::load(&files, 1).expect("the model loads");
    let text = "Größe: 12 embeddings, 東京 𐀀x";
    let parts: Vec<&str> = model.token_offsets(text).into_iter().map(|r| &text[r]).collect();
    let expected = ["Gr", "ö", "ße", ":", "12", "em", "bed", "ding", "s", ",", "東", "京", "𐀀x"];
    assert_eq!(parts, expected);

    // Far beyond the window and beyond one piece; ranges stay in order and within the text.
    let sentence = "The harbour's lamp — 灯 — burns. ";
    let long = sentence.repeat(3_000);
    let offsets = model.token_offsets(&long);
    let one = model.token_offsets(sentence);
    assert_eq!(offsets.len(), 3_000 * one.len());
    let last = 2_999 * sentence.len();
    for (found, expected) in offsets[offsets.len() - one.len()..].iter().zip(&one) {
        assert_eq!(*found, last + expected.start..last + expected.end);
    }
    assert!(offsets.windows(2).all(|pair| pair[0].start <= pair[1].start));
    // The vector of a long text depends only on the part that fits the window.
    let head = sentence.repeat(200);
    let vectors = model.embed(Lane::Bulk, vec![long, head]).expect("vectors");
    assert!(dot(&vectors[0], &vectors[1]) > 0.999_999);
}

#[test]
fn a_directory_without_a_model_is_refused_by_name() {
    let nowhere = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
    let error = ModelFiles::read("models/none".as_ref(), &nowhere).expect_err("no files");
    assert!(error.to_string().contains("models/none/config.json"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

pub(super) fn tiny_config() -> Value {
    json!({"model_type": "bert", "hidden_size": 12, "num_hidden_layers": 2,
        "num_attention_heads": 3, "intermediate_size": 20, "vocab_size": 17,
        "max_position_embeddings": 16, "type_vocab_size": 2, "layer_norm_eps": 1e-5,
        "hidden_act": "gelu"})
}

/// Names and shapes of the small encoder's tensors; the index in the list seeds the values.
pub(super) fn tiny_shapes() -> Vec<(String, Vec<usize>)> {
    let (hidden, wide) = (12, 20);
    let mut shapes = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![17, hidden]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![16, hidden]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, hidden]),
        ("embeddings.LayerNorm.weight".to_owned(), vec![hidden]),
        ("embeddings.LayerNorm.bias".to_owned(), vec![hidden]),
    ];
    for layer in 0..2 {
        for (name, outputs, inputs) in [
            ("attention.self.query", hidden, hidden),
            ("attention.self.key", hidden, hidden),
            ("attention.self.value", hidden, hidden),
            ("attention.output.dense", hidden, hidden),
            ("intermediate.dense", wide, hidden),
            ("output.dense", hidden, wide),
        ] {
            let name = format!("encoder.layer.{layer}.{name}");
            shapes.push((format!("{name}.weight"), vec![outputs, inputs]));
            shapes.push((format!("{name}.bias"), vec![outputs]));
        }
        for name in ["attention.output.LayerNorm", "output.LayerNorm"] {
            let name = format!("encoder.layer.{layer}.{name}");
            shapes.push((format!("{name}.weight"), vec![hidden]));
            shapes.push((format!("{name}.bias"), vec![hidden]));
        }
    }
    shapes
}

pub(super) fn tiny_weights(shapes: &[(String, Vec<usize>)], prefix: &str) -> Vec<u8> {
    weights_of(shapes, prefix, |salt, i| ((i as f64 * 0.37 + salt as f64).sin() * 0.5) as f32)
}

/// Returns value `i` of tensor `salt`, -1 to 1, pseudo-random: matrices of full rank make every
/// word matter.
pub(super) fn number(salt: usize, i: usize) -> f32 {
    let mixed = ((salt << 32 | i) as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 40) as f32 / (1 << 23) as f32 - 1.0
}

/// Returns the bytes of a weights file; `number(tensor, i)` gives value i of a tensor of `shapes`.
pub(super) fn weights_of(
    shapes: &[(String, Vec<usize>)],
    prefix: &str,
    number: impl Fn(usize, usize) -> f32,
) -> Vec<u8> {
    let mut tensors = std::collections::HashMap::new();
    for (salt, (name, shape)) in shapes.iter().enumerate() {
        let count: usize = shape.iter().product();
        let numbers: Vec<f32> = (0..count).map(|i| number(salt, i)).collect();
        let tensor = Tensor::from_vec(numbers, shape.as_slice(), &Device::Cpu).expect("a tensor");
        tensors.insert(format!("{prefix}{name}"), tensor);
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("model.safetensors");
    candle_core::safetensors::save(&tensors, &path).expect("a file");
    std::fs::read(path).expect("its bytes")
}

fn tiny(config: &Value, pooling: Pooling, weights: &[u8]) -> Result<Bert, EmbedError> {
    let config = ModelConfig::parse(config.to_string().as_bytes(), pooling)?;
    Bert::new(config, &Weights::parse(weights)?, Precision::F32)
}

#[test]
fn every_activation_and_pooling_follows_the_reference() {
    let cases = [
        ("gelu", Pooling::Mean, [-0.524126, -0.403822, 0.08775, -0.045853, -0.255489, -0.140898]),
        (
            "gelu_new",
            Pooling::First,
            [-0.523606, -0.401991, 0.089039, -0.046887, -0.256941, -0.141242],
        ),
        ("relu", Pooling::Mean, [-0.55134, -0.466037, 0.068849, -0.001347, -0.198247, -0.131529]),
    ];
    let weights = tiny_weights(&tiny_shapes(), "");
    let prefixed = tiny_weights(&tiny_shapes(), "bert.");
    let passage: &[u32] = &[3, 1, 4, 1, 5, 9, 2];
    for (activation, pooling, expected) in cases {
        let mut config = tiny_config();
        config["hidden_act"] = json!(activation);
        for weights in [&weights, &prefixed] {
            let bert = tiny(&config, pooling, weights).expect("a model");
            let vectors = bert.forward(&[&[7, 7], passage, &[1]], &mut || {}).expect("vectors");
            for (x, expected) in vectors[1].iter().zip(expected) {
                assert!((x - expected).abs() < 5e-6, "{activation}: {x} for {expected}");
            }
        }
    }
}

#[test]
fn the_forward_pass_pauses_after_every_layer_and_checks_its_input() {
    let bert =
        tiny(&tiny_config(), Pooling::Mean, &tiny_weights(&tiny_shapes(), "")).expect("a model");
    let mut pauses = 0;
    bert.forward(&[&[1, 2]], &mut || pauses += 1).expect("a vector");
    assert_eq!(pauses, 2);
    for bad in [&[][..], &[17], &[1; 17]] {
        assert!(bert.forward(&[&[1], bad], &mut || {}).is_err(), "{bad:?}");
    }
}

#[test]
fn models_of_another_kind_are_refused() {
    let weights = tiny_weights(&tiny_shapes(), "");
    for (field, value, kind) in [
        ("model_type", json!("t5"), ErrorKind::Invalid),
        ("hidden_act", json!("mish"), ErrorKind::Invalid),
        ("num_attention_heads", json!(5), ErrorKind::Invalid),
        ("position_embedding_type", json!("relative_key"), ErrorKind::Invalid),
        ("hidden_size", json!(limits::VECTOR_DIMENSION_MAX + 1), ErrorKind::Invalid),
        ("hidden_size", json!("12"), ErrorKind::Corrupt),
        ("vocab_size", json!(18), ErrorKind::Corrupt),
        ("num_hidden_layers", json!(3), ErrorKind::Corrupt),
    ] {
        let mut config = tiny_config();
        config[field] = value;
        let error = tiny(&config, Pooling::Mean, &weights).expect_err(field);
        assert_eq!(error.kind(), kind, "{error}");
    }
    let torn = &weights[..weights.len() - 1];
    assert_eq!(
        tiny(&tiny_config(), Pooling::Mean, torn).expect_err("torn").kind(),
        ErrorKind::Corrupt
    );
}
