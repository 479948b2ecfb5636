use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{SparseModel, SparseVector};
use crate::files::ModelFiles;
use crate::tests::{number, numbers, weights_of};
use crate::{EmbedError, Lane, Model, Precision};
use lodestone_types::{RequestContext, limits};

/// Maximum difference from the reference, which sums in another order.
const TOLERANCE: f64 = 1e-4;

fn goldens() -> (Value, Value) {
    let read = |text: &str| serde_json::from_str(text).expect("a fixture");
    (read(include_str!("../families/goldens.json")), read(include_str!("goldens.json")))
}

/// Returns the bytes of a weights file from a list of (name, shape, offset, factor).
fn weights(listed: &Value) -> Vec<u8> {
    let listed = listed.as_array().expect("a list");
    let shape = |entry: &Value| numbers(&entry[1]).into_iter().map(|size| size as usize).collect();
    let name = |entry: &Value| entry[0].as_str().expect("a name").to_owned();
    let shapes: Vec<(String, Vec<usize>)> =
        listed.iter().map(|entry| (name(entry), shape(entry))).collect();
    weights_of(&shapes, "", |salt, i| {
        let [offset, factor] = [2, 3].map(|at| listed[salt][at].as_f64().expect("a number"));
        (offset + factor * f64::from(number(salt, i))) as f32
    })
}

fn files(name: &str) -> ModelFiles {
    let (goldens, sparse) = goldens();
    let listed = sparse["sparse"].as_array().expect("models");
    let model = listed.iter().find(|model| model["name"] == name).expect("a model of this name");
    let tokenizer = goldens["tokenizers"][model["tokenizer"].as_str().expect("a name")].to_string();
    let mut parts = BTreeMap::new();
    for (path, value) in model["parts"].as_object().into_iter().flatten() {
        parts.insert(path.clone(), value.to_string().into_bytes());
    }
    if parts.contains_key("router_config.json") {
        let folder = "query_0_SparseStaticEmbedding";
        parts.insert(format!("{folder}/tokenizer.json"), tokenizer.clone().into_bytes());
        parts.insert(format!("{folder}/model.safetensors"), weights(&model["table"]));
    }
    ModelFiles {
        name: name.to_owned(),
        encoder: String::new(),
        config: model["config"].to_string().into_bytes(),
        tokenizer: tokenizer.into_bytes(),
        weights: weights(&model["tensors"]),
        parts,
    }
}

fn load(files: &ModelFiles) -> Result<SparseModel, EmbedError> {
    SparseModel::load(files, 2, Precision::F32)
}

/// Compares a vector to expected pairs of token and weight; tokens missing on one side count as 0.
fn compare(name: &str, found: &SparseVector, expected: &Value) {
    let mut differences: BTreeMap<u32, f64> = BTreeMap::new();
    for (token, weight) in found {
        *differences.entry(*token).or_default() += f64::from(*weight);
    }
    for pair in expected.as_array().expect("pairs") {
        let [token, weight] = [0, 1].map(|at| pair[at].as_f64().expect("a number"));
        *differences.entry(token as u32).or_default() -= weight;
    }
    for (token, difference) in differences {
        assert!(difference.abs() < TOLERANCE, "{name}, token {token}: {difference}");
    }
}

/// Directories with and without the steps of sentence-transformers, both pooling modes, both
/// activations, and queries encoded by the encoder and by a table.
#[test]
fn vectors_are_those_of_sentence_transformers() {
    let (goldens, sparse) = goldens();
    let context = RequestContext::default();
    let texts = goldens["texts"].as_array().expect("texts");
    let texts: Vec<String> =
        texts.iter().map(|text| text.as_str().expect("a text").to_owned()).collect();
    let models = sparse["sparse"].as_array().expect("models");
    assert_eq!(models.len(), 4);
    for model in models {
        let name = model["name"].as_str().expect("a name");
        let loaded = load(&files(name)).expect(name);
        let documents = loaded.documents(Lane::Bulk, &context, texts.clone()).expect("vectors");
        for (at, found) in documents.iter().enumerate() {
            assert!(!found.is_empty() && found.is_sorted(), "{name}, text {at}");
            compare(name, found, &model["documents"][at]);
        }
        assert_eq!(loaded.reads_queries(), model["queries"].is_null());
        let expected = if model["queries"].is_null() { "documents" } else { "queries" };
        for (at, text) in texts.iter().enumerate() {
            let mut query = loaded.query(&context, text).expect("a vector");
            let expected = &model[expected][at];
            let count = expected.as_array().expect("pairs").len();
            assert!(query.len() == count.min(limits::SPARSE_QUERY_TERMS_MAX), "{name}, {at}");
            if count > query.len() {
                // The other tokens are at most as heavy as the lightest returned.
                let least = query.iter().map(|(_, weight)| *weight).fold(f32::MAX, f32::min);
                for pair in expected.as_array().expect("pairs") {
                    let token = pair[0].as_u64().expect("a token") as u32;
                    let weight = pair[1].as_f64().expect("a weight") as f32;
                    if query.binary_search_by_key(&token, |(own, _)| *own).is_err() {
                        assert!(weight <= least + 1e-4, "{name}: {weight} above {least}");
                        query.push((token, weight));
                        query.sort_unstable_by_key(|(token, _)| *token);
                    }
                }
            }
            compare(name, &query, expected);
        }
    }
}

/// The table of a directory without steps; a Router whose encoder is in a folder.
#[test]
fn other_layouts_give_the_same_vectors() {
    let context = RequestContext::default();
    let text = || "the captain of the ship".to_owned();
    let mut plain = files("bert-masked");
    let usual = load(&plain).expect("a model");
    let idf = json!({"captain": 2.5, "the": 0.0, "ship": 1.5, "storm": 9.0});
    plain.parts.insert("idf.json".to_owned(), idf.to_string().into_bytes());
    let with_table = load(&plain).expect("a model");
    assert!(!with_table.reads_queries());
    let weights: Vec<f32> =
        with_table.query(&context, &text()).expect("a query").iter().map(|it| it.1).collect();
    assert_eq!(weights, [1.5, 2.5]);
    assert_eq!(with_table.fingerprint(), usual.fingerprint(), "no stored vector is made with it");
    let of = |model: &SparseModel| model.documents(Lane::Bulk, &context, vec![text()]);
    assert_eq!(of(&with_table), of(&usual));

    let router = files("bert-router");
    let dir = tempfile::tempdir().expect("a directory");
    let place = dir.path().join("named");
    let write = |name: &str, bytes: &[u8]| {
        let path = place.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    };
    let folder = "document_0_MLMTransformer";
    for (name, bytes) in &router.parts {
        let text = String::from_utf8(bytes.clone());
        match text.ok().filter(|_| name == "router_config.json") {
            Some(text) => write(name, text.replace("\"\"", &format!("\"{folder}\"")).as_bytes()),
            None => write(name, bytes),
        }
    }
    write(&format!("{folder}/config.json"), &router.config);
    write(&format!("{folder}/tokenizer.json"), &router.tokenizer);
    let read = || ModelFiles::read(&place, &|path| std::fs::read(path));
    let missing = read().expect_err("weights are missing").to_string();
    assert!(missing.contains("document_0_MLMTransformer/model.safetensors"), "{missing}");
    write(&format!("{folder}/model.safetensors"), &router.weights);
    let read = read().expect("files");
    assert_eq!(
        (read.name.as_str(), read.encoder.as_str()),
        ("named", "document_0_MLMTransformer/")
    );
    let in_folder = load(&read).expect("a model");
    assert_eq!(of(&in_folder), of(&load(&router).expect("a model")));
}

#[test]
fn what_is_no_sparse_model_is_refused() {
    let refused = |files: &ModelFiles, word: &str| {
        let error = load(files).expect_err("a refusal").to_string();
        assert!(error.contains(word), "{error}");
    };
    let mut other = files("bert-masked");
    let mut config: Value = serde_json::from_slice(&other.config).expect("a configuration");
    config["architectures"] = json!(["BertModel"]);
    other.config = config.to_string().into_bytes();
    refused(&other, "a sparse model: modules.json with SpladePooling, or ForMaskedLM");

    let mut dense = files("bert-masked");
    let steps =
        json!([{"path": "", "type": "a.Transformer"}, {"path": "1_Pooling", "type": "a.Pooling"}]);
    dense.parts.insert("modules.json".to_owned(), steps.to_string().into_bytes());
    refused(&dense, "the steps of a sparse model");

    let mut headless = files("bert-masked");
    headless.weights = crate::tests::weights_of(&[("x".to_owned(), vec![1])], "", |_, _| 0.0);
    refused(&headless, "cls.predictions");

    let mut table = files("bert-router");
    let short = crate::tests::weights_of(&[("weight".to_owned(), vec![7])], "", |_, _| 0.0);
    table.parts.insert("query_0_SparseStaticEmbedding/model.safetensors".to_owned(), short);
    refused(&table, "query_0_SparseStaticEmbedding/weight has shape [7]");

    let mut unknown = files("bert-masked");
    unknown.parts.insert("idf.json".to_owned(), br#"{"nowhere": 1.0}"#.to_vec());
    refused(&unknown, "\"nowhere\" is not in the vocabulary");

    let mut strategy = files("bert-router");
    let pooling = br#"{"pooling_strategy": "mean"}"#.to_vec();
    strategy.parts.insert("1_SpladePooling/config.json".to_owned(), pooling);
    refused(&strategy, "1_SpladePooling/config.json is malformed");

    // Sparse models are not embedding models.
    let error = Model::load(&files("xlm-roberta-masked"), 1).expect_err("no pooling").to_string();
    assert!(error.contains("Splade"), "{error}");
}
