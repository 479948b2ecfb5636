//! The shapes of published models: their configurations are accepted and interpreted as their
//! authors intended. Sizes and weights are small; `scripts/model_goldens` wrote both, with the
//! tensors that transformers creates for a model of these sizes.

use super::*;
use crate::config::{ModelConfig, Pooling};
use crate::int16;
use crate::shorter::Shorter;
use crate::steps::Steps;

fn published() -> Value {
    serde_json::from_str(include_str!("published.json")).expect("a fixture")
}

fn merged(mut config: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().expect("an object") {
        config[name] = value.clone();
    }
    config
}

fn name_of(model: &Value) -> &str {
    model["name"].as_str().expect("a name")
}

/// Returns small files in the shape of a published model.
fn small_files(model: &Value) -> ModelFiles {
    let goldens = goldens();
    let tokenizer = &goldens["tokenizers"][model["tokenizer"].as_str().expect("a name")];
    ModelFiles {
        name: name_of(model).to_owned(),
        encoder: String::new(),
        config: merged(model["config"].clone(), &model["small"]).to_string().into_bytes(),
        tokenizer: tokenizer.to_string().into_bytes(),
        weights: weights(&model["tensors"]),
        parts: if model["pooling"].is_null() { BTreeMap::new() } else { parts(model) },
    }
}

/// Returns the files that sentence-transformers adds to those of an encoder.
fn parts(model: &Value) -> BTreeMap<String, Vec<u8>> {
    let module = |kind: &str, path: &str| {
        let kind = format!("sentence_transformers.models.{kind}");
        json!({"path": path, "type": kind})
    };
    let mut modules = vec![module("Transformer", ""), module("Pooling", "1_Pooling")];
    let is_first = model["pooling"] == "cls";
    let width = model["config"]["hidden_size"].clone();
    let pooling = json!({"word_embedding_dimension": width, "pooling_mode_cls_token": is_first,
        "pooling_mode_mean_tokens": !is_first, "pooling_mode_max_tokens": false,
        "pooling_mode_mean_sqrt_len_tokens": false, "include_prompt": true});
    let prompts = json!({"__version__": {"sentence_transformers": "3.1.1"},
        "prompts": model["prompts"], "default_prompt_name": null,
        "similarity_fn_name": "cosine"});
    let mut parts = BTreeMap::new();
    if let Some(outputs) = model["dense"].as_u64() {
        let width = model["small"]["hidden_size"].as_u64().expect("a width");
        modules.push(module("Dense", "2_Dense"));
        let config = json!({"in_features": width, "out_features": outputs, "bias": true,
            "activation_function": "torch.nn.modules.linear.Identity"});
        parts.insert("2_Dense/config.json".to_owned(), config.to_string().into_bytes());
        let listed = json!([
            ["linear.weight", [outputs, width], 0.0, 1.0],
            ["linear.bias", [outputs], 0.0, 1.0]
        ]);
        parts.insert("2_Dense/model.safetensors".to_owned(), weights(&listed));
    }
    modules.push(module("Normalize", &format!("{}_Normalize", modules.len())));
    for (path, value) in
        [("modules.json", json!(modules)), ("1_Pooling/config.json", pooling), (PROMPTS, prompts)]
    {
        parts.insert(path.to_owned(), value.to_string().into_bytes());
    }
    parts
}

#[test]
fn published_sentence_models_are_read_as_their_authors_meant() {
    let published = published();
    for model in published["models"].as_array().expect("a list") {
        let name = name_of(model);
        let small = small_files(model);
        let steps = Steps::of(&small).expect(name);
        assert_eq!(steps.pooling == Pooling::First, model["pooling"] == "cls", "{name}");
        assert_eq!(steps.dense.len(), usize::from(!model["dense"].is_null()), "{name}");
        let whole = ModelConfig::parse(model["config"].to_string().as_bytes(), steps.pooling);
        let whole = whole.expect(name);
        assert_eq!(json!(whole.hidden), model["config"]["hidden_size"], "{name}");
        assert_eq!(whole.window(), 256, "{name}");

        let loaded = Model::load(&small, 1).expect(name);
        let width = model["dense"].as_u64().or(model["small"]["hidden_size"].as_u64());
        assert_eq!(Some(loaded.dimension() as u64), width, "{name}");
        let query = model["prompts"]["query"].as_str().unwrap_or_default();
        assert_eq!(loaded.prompts().query, query, "{name}");
        assert_eq!(loaded.prompts().document, "", "{name}");
        let text = vec!["the captain of the ship".to_owned()];
        let asked = loaded.embed(Lane::Query, text.clone()).expect("a vector").remove(0);
        let document = loaded.embed(Lane::Bulk, text).expect("a vector").remove(0);
        assert_eq!(asked == document, query.is_empty(), "{name}");
    }
}

#[test]
fn published_cross_encoders_are_read_as_their_authors_meant() {
    let published = published();
    for model in published["rerankers"].as_array().expect("a list") {
        let name = name_of(model);
        let loaded = CrossEncoder::load(&small_files(model), 1).expect(name);
        let passages = ["the lamp burns", "storm"];
        let context = RequestContext::default();
        let scores = loaded.score(&context, None, "lamp", &passages).expect("scores").scores;
        assert!(scores[0] != scores[1] && scores.iter().all(|x| (0.0..=1.0).contains(x)), "{name}");
        // In 16-bit integers, if the machine supports them: nearly equal, alone as with others.
        let fast = CrossEncoder::load_in(&small_files(model), 1, Precision::Auto).expect(name);
        let found = fast.score(&context, None, "lamp", &passages).expect("scores").scores;
        assert!(found.iter().zip(&scores).all(|(x, y)| (x - y).abs() < 2e-3), "{name}: {found:?}");
        let alone = fast.score(&context, None, "lamp", &passages[1..]).expect("scores").scores;
        assert_eq!(alone, found[1..], "{name}");
    }
}

/// The int16 layers support every family if the machine has the instructions: heads and
/// feed-forward layers of whole registers, local layers whose reach is less than a passage, with
/// and without biases, both activations, and a feed-forward layer of more than one share.
#[test]
fn every_family_has_a_fast_mode_of_the_same_vectors() {
    for model in published()["models"].as_array().expect("a list") {
        let (name, files) = (name_of(model), small_files(model));
        let parsed = ModelConfig::parse(&files.config, Pooling::Mean).expect("a configuration");
        let fast = Model::load_on(&files, 1, Precision::Auto, None).expect("a model");
        let exact = Model::load(&files, 1).expect("a model");
        assert_eq!(fast.fingerprint(), exact.fingerprint());
        let has_fast = int16::missing(&parsed).is_none();
        assert_eq!(fast.arithmetic() == Arithmetic::Int16, has_fast);
        let texts = ["the captain", "", &"wind of every storm ".repeat(30), &"lamp ".repeat(300)];
        let texts = texts.map(str::to_owned).to_vec();
        let [together, wanted] =
            [&fast, &exact].map(|model| model.embed(Lane::Bulk, texts.clone()).expect("vectors"));
        for ((text, together), wanted) in texts.iter().zip(&together).zip(&wanted) {
            let cosine = dot(together, wanted);
            assert!(cosine > 0.9999, "{name}: {cosine} for {text:.20}");
            let alone = fast.embed(Lane::Bulk, vec![text.clone()]).expect("a vector");
            assert!(!has_fast || alone[0] == *together, "{name}: alone");
        }
    }
}

/// Only a model that declares it is truncated to fewer components, whatever its family.
#[test]
fn matryoshka_is_read_from_the_configuration() {
    let models = published()["models"].clone();
    let config = named(&models, "gte-modernbert-base")["config"].clone();
    let granite = merged(config, &json!({"matryoshka_dimensions": [256]}));
    let shorter = Shorter::parse(granite.to_string().as_bytes());
    assert!(shorter.allows(256, 768) && !shorter.allows(128, 768));
}
