//! Compares small models of every family to transformers and sentence-transformers, whose results
//! `scripts/model_goldens` wrote to `goldens.json`.
//!
//! - `refusals`: invalid and incomplete directories; `named`: the shapes of published models;
//!   `on_demand`: weights loaded on first use

mod named;
mod on_demand;
mod refusals;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::files::ModelFiles;
use crate::prompts::PROMPTS;
use crate::tests::{dot, number, numbers, weights_of};
use crate::{Arithmetic, CrossEncoder, Embedder, Lane, Model, Precision, Prompts, Role};
use lodestone_rank::Reranker;
use lodestone_types::RequestContext;

/// Maximum difference from the reference, which sums in another order.
const TOLERANCE: f64 = 1e-4;

fn goldens() -> Value {
    serde_json::from_str(include_str!("goldens.json")).expect("a fixture")
}

/// Returns the bytes of a weights file from a list of (name, shape, offset, factor).
fn weights(listed: &Value) -> Vec<u8> {
    let listed = listed.as_array().expect("a list");
    let shape = |entry: &Value| {
        numbers(&entry[1]).into_iter().map(|size| size as usize).collect::<Vec<_>>()
    };
    let shapes: Vec<_> = listed
        .iter()
        .map(|entry| (entry[0].as_str().expect("a name").to_owned(), shape(entry)))
        .collect();
    weights_of(&shapes, "", |salt, i| {
        let [offset, factor] = [2, 3].map(|at| listed[salt][at].as_f64().expect("a number"));
        (offset + factor * f64::from(number(salt, i))) as f32
    })
}

fn files(goldens: &Value, model: &Value) -> ModelFiles {
    let tokenizer = model["tokenizer"].as_str().expect("a name");
    let mut parts = BTreeMap::new();
    for (path, value) in model["parts"].as_object().into_iter().flatten() {
        parts.insert(path.clone(), value.to_string().into_bytes());
    }
    if model["dense"].as_array().is_some_and(|dense| !dense.is_empty()) {
        parts.insert("2_Dense/model.safetensors".to_owned(), weights(&model["dense"]));
    }
    ModelFiles {
        name: model["name"].as_str().expect("a name").to_owned(),
        encoder: String::new(),
        config: model["config"].to_string().into_bytes(),
        tokenizer: goldens["tokenizers"][tokenizer].to_string().into_bytes(),
        weights: weights(&model["tensors"]),
        parts,
    }
}

fn named(list: &Value, name: &str) -> Value {
    let found = list.as_array().expect("a list").iter().find(|model| model["name"] == name);
    found.expect("a model of this name").clone()
}

fn sentence_files(name: &str) -> ModelFiles {
    let goldens = goldens();
    files(&goldens, &named(&goldens["models"], name))
}

fn texts(goldens: &Value) -> Vec<String> {
    let texts = goldens["texts"].as_array().expect("texts");
    texts.iter().map(|text| text.as_str().expect("a text").to_owned()).collect()
}

fn compare(name: &str, found: &[Vec<f32>], expected: &Value) {
    let expected = expected.as_array().expect("vectors");
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let expected = numbers(expected);
        assert_eq!(found.len(), expected.len(), "{name}");
        for (x, y) in found.iter().zip(expected) {
            assert!((f64::from(*x) - y).abs() < TOLERANCE, "{name}, text {at}: {x} for {y}");
        }
    }
}

/// Batches of mixed lengths, empty texts, unknown words, texts longer than the window and than the
/// reach of local layers; each text alone as with others; queries with their prompts.
#[test]
fn vectors_are_those_of_sentence_transformers() {
    let goldens = goldens();
    let texts = texts(&goldens);
    let models = goldens["models"].as_array().expect("models");
    assert_eq!(models.len(), 7);
    for model in models {
        let name = model["name"].as_str().expect("a name");
        let loaded = Model::load(&files(&goldens, model), 2).expect(name);
        let documents = loaded.embed(Lane::Bulk, texts.clone()).expect("vectors");
        assert_eq!(loaded.dimension(), documents[0].len());
        compare(name, &documents, &model["documents"]);
        let expected = if model["queries"].is_null() { "documents" } else { "queries" };
        let queries = loaded.embed(Lane::Query, texts.clone()).expect("vectors");
        compare(name, &queries, &model[expected]);
        for (text, together) in texts.iter().zip(&documents) {
            let alone = loaded.embed(Lane::Answer, vec![text.clone()]).expect("a vector");
            assert!(dot(&alone[0], together) > 0.999_999, "{name}: {text}");
        }
    }
}

/// A question and sentences in one call, as answers need them.
#[test]
fn texts_of_one_call_may_have_roles_of_their_own() {
    let model = Model::load(&sentence_files("xlm-roberta"), 1).expect("a model");
    let expected = Prompts { query: "query: ".to_owned(), document: "passage: ".to_owned() };
    assert_eq!(model.prompts(), &expected);
    let text = "the captain of the ship".to_owned();
    let mixed = vec![(Role::Query, text.clone()), (Role::Document, text.clone())];
    let mixed = model.embed_as(Lane::Answer, &RequestContext::default(), mixed).expect("vectors");
    let query = model.embed(Lane::Query, vec![text.clone()]).expect("a vector");
    let document = model.embed(Lane::Bulk, vec![text]).expect("a vector");
    assert!(dot(&mixed[0], &query[0]) > 0.999_999 && dot(&mixed[1], &document[0]) > 0.999_999);
    assert!(dot(&mixed[0], &mixed[1]) < 0.999);
    // The prompt's share of the window counts.
    let (tokens, is_cut) = model.tokens_read("wind");
    assert!(tokens > model.token_offsets("wind").len() && !is_cut);
}

#[test]
fn scores_are_those_of_the_cross_encoder() {
    let goldens = goldens();
    let pairs = goldens["pairs"].as_array().expect("pairs");
    let text = |pair: &Value, at: usize| pair[at].as_str().expect("a text").to_owned();
    for model in goldens["rerankers"].as_array().expect("rerankers") {
        let name = model["name"].as_str().expect("a name");
        let loaded = CrossEncoder::load(&files(&goldens, model), 1).expect(name);
        let context = RequestContext::default();
        for (pair, expected) in pairs.iter().zip(numbers(&model["scores"])) {
            let (query, passage) = (text(pair, 0), text(pair, 1));
            let company = [passage.as_str(), "storm", &passage];
            let scores = loaded.score(&context, None, &query, &company).expect("scores").scores;
            assert!((f64::from(scores[0]) - expected).abs() < TOLERANCE, "{name}: {scores:?}");
            assert_eq!(scores[0], scores[2], "{name}");
        }
    }
}

/// A fingerprint covers everything that determines a stored vector, and nothing else.
#[test]
fn fingerprints_tell_what_decides_stored_vectors() {
    let fingerprint =
        |files: &ModelFiles| Model::load(files, 1).expect("a model").fingerprint().to_owned();
    let plain = sentence_files("bert");
    let usual = fingerprint(&plain);
    let with = |path: &str, value: Option<Value>| {
        let mut files = plain.clone();
        match value {
            Some(value) => files.parts.insert(path.to_owned(), value.to_string().into_bytes()),
            None => files.parts.remove(path),
        };
        fingerprint(&files)
    };
    assert_eq!(with("modules.json", None), usual);
    assert_eq!(with(PROMPTS, None), usual);
    assert_eq!(with(PROMPTS, Some(json!({"prompts": {"query": "query: "}}))), usual);
    let nothing = json!({"prompts": {"query": "", "document": null}, "default_prompt_name": null});
    assert_eq!(with(PROMPTS, Some(nothing)), usual);
    let passages = with(PROMPTS, Some(json!({"prompts": {"passage": "passage: "}})));
    let other = with(PROMPTS, Some(json!({"prompts": {"corpus": "Passage: "}})));
    let by_default = json!({"prompts": {"x": "passage: "}, "default_prompt_name": "x"});
    assert_eq!(with(PROMPTS, Some(by_default)), passages);
    let first = with("1_Pooling/config.json", Some(json!({"pooling_mode": "cls"})));
    let dense = sentence_files("bert-dense");
    let mut zeros = dense.clone();
    let last = zeros.parts.get_mut("2_Dense/model.safetensors").expect("a layer");
    last.iter_mut().rev().take(4).for_each(|byte| *byte = 0);
    let mut all = vec![usual, passages, other, first, fingerprint(&dense), fingerprint(&zeros)];
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 6);
}

#[test]
fn a_default_prompt_is_not_that_of_the_other_role() {
    let prompts = |value: Value| {
        let prompts = Prompts::parse(Some(value.to_string().as_bytes())).expect("prompts");
        (prompts.query, prompts.document)
    };
    let pair = |query: &str, document: &str| (query.to_owned(), document.to_owned());
    let both = json!({"query": "Q ", "corpus": "C ", "passage": "P ", "web": "W "});
    let of = |name: &str| prompts(json!({"prompts": both, "default_prompt_name": name}));
    assert_eq!(of("web"), pair("Q ", "P "));
    let one = |prompts_of: Value, name: &str| {
        prompts(json!({"prompts": prompts_of, "default_prompt_name": name}))
    };
    assert_eq!(one(json!({"query": "Q "}), "query"), pair("Q ", ""));
    assert_eq!(one(json!({"passage": "P "}), "passage"), pair("", "P "));
    assert_eq!(one(json!({"query": "Q ", "web": "W "}), "web"), pair("Q ", "W "));
    assert_eq!(one(json!({"query": "", "web": "W "}), "web"), pair("", "W "));
}

#[test]
fn prompts_and_widths_are_written_as_they_are_read() {
    let mut files = sentence_files("xlm-roberta");
    files.set(Some("ask: "), None, Some(16)).expect("a file");
    let prompts = Prompts::parse(files.parts.get(PROMPTS).map(Vec::as_slice)).expect("prompts");
    let expected = Prompts { query: "ask: ".to_owned(), document: "passage: ".to_owned() };
    assert_eq!(prompts, expected);
    let error = Model::load(&files, 1).expect_err("a width that is not allowed").to_string();
    assert!(error.contains("truncate_dim is 16 of 32"), "{error}");
    files.parts.insert(PROMPTS.to_owned(), b"[]".to_vec());
    assert!(files.set(None, None, None).is_err());
}

/// A model truncates its vectors throughout, if its configuration allows it.
#[test]
fn a_model_may_be_cut_to_a_width_that_it_was_trained_for() {
    let mut files = sentence_files("bert-dense");
    let mut config: Value = serde_json::from_slice(&files.config).expect("a configuration");
    config["matryoshka_dimensions"] = json!([8, 16, 48]);
    files.config = config.to_string().into_bytes();
    let whole = Model::load(&files, 1).expect("a model");
    files.set(None, None, Some(48)).expect("a file");
    assert_eq!(Model::load(&files, 1).expect("a model").fingerprint(), whole.fingerprint());
    files.set(None, None, Some(16)).expect("a file");
    let cut = Model::load(&files, 1).expect("a model");
    assert_ne!(cut.fingerprint(), whole.fingerprint());
    assert_eq!((whole.dimension(), cut.dimension()), (48, 16));
    assert!(cut.may_shorten_to(16) && cut.may_shorten_to(8) && !cut.may_shorten_to(48));
    let texts = vec!["the lamp burns".to_owned(), String::new()];
    let vectors = [whole, cut].map(|model| model.embed(Lane::Bulk, texts.clone()));
    let [whole, cut] = vectors.map(|vectors| vectors.expect("vectors"));
    for (whole, cut) in whole.iter().zip(&cut) {
        let length = dot(&whole[..16], &whole[..16]).sqrt();
        assert_eq!(cut.len(), 16);
        for (x, y) in cut.iter().zip(whole) {
            assert!((f64::from(*x) - f64::from(*y) / length).abs() < 1e-6);
        }
    }
}

/// Byte-level tokens may start inside a character; their ranges must still be valid ranges of text.
#[test]
fn offsets_of_every_tokenizer_are_ranges_of_the_text() {
    for name in ["bert", "xlm-roberta", "modernbert"] {
        let model = Model::load(&sentence_files(name), 1).expect("a model");
        let sentence = "The harbour's lamp \u{706f} burns, \u{10000}x  gr\u{f6}\u{df}e \u{1f1ea}";
        let long = format!("{sentence} ").repeat(900);
        for text in [sentence, long.as_str()] {
            let offsets = model.token_offsets(text);
            assert!(offsets.windows(2).all(|pair| pair[0].start <= pair[1].start), "{name}");
            for range in &offsets {
                assert!(text.is_char_boundary(range.start), "{name}: {range:?}");
                assert!(text.is_char_boundary(range.end), "{name}: {range:?}");
            }
            assert!((0.0..=1.0).contains(&model.unread_share(text)));
        }
        let (one, all) = (model.token_offsets(sentence).len(), model.token_offsets(&long).len());
        // A piece may end with the white space that would have started the next token.
        assert!(all.abs_diff(900 * one) <= 900 + 3, "{name}: {all} for {one}");
        let unknown = model.unknown("lamp \u{10000} lamp");
        assert_eq!(unknown.is_empty(), name == "modernbert", "{name}: {unknown:?}");
    }
}

/// Heads of 8 components have no int16 mode in any family.
#[test]
fn a_fast_mode_that_is_not_there_is_f32() {
    for name in ["modernbert", "xlm-roberta"] {
        let files = sentence_files(name);
        let fast = Model::load_on(&files, 1, Precision::Auto, None).expect("a model");
        let exact = Model::load(&files, 1).expect("a model");
        assert_eq!(fast.arithmetic(), Arithmetic::F32);
        let vectors = [fast, exact].map(|model| model.embed(Lane::Bulk, vec!["lamp".to_owned()]));
        assert_eq!(vectors[0], vectors[1]);
    }
}
