//! Invalid and incomplete directories are refused with a message that names the part.

use std::io;
use std::path::Path;

use super::*;
use crate::EmbedError;
use lodestone_types::ErrorKind;

fn refusal(files: &ModelFiles) -> EmbedError {
    Model::load(files, 1).expect_err("a wrong directory")
}

/// Returns the refusal of a model with one part replaced.
fn with(model: &str, path: &str, value: &Value) -> EmbedError {
    let mut files = sentence_files(model);
    files.parts.insert(path.to_owned(), value.to_string().into_bytes());
    refusal(&files)
}

fn told(error: &EmbedError, parts: &[&str]) {
    let message = error.to_string();
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
}

fn module(kind: &str, path: &str) -> Value {
    json!({"idx": 0, "name": "0", "path": path, "type": format!("sentence_transformers.{kind}")})
}

#[test]
fn steps_that_are_not_computed_here_are_named() {
    let (encoder, pooling) = (module("models.Transformer", ""), module("x.Pooling", "1_Pooling"));
    let modules = |list: &[&Value]| with("bert", "modules.json", &json!(list));
    let lstm = module("models.LSTM", "2_LSTM");
    told(&modules(&[&encoder, &pooling, &lstm]), &["modules.json", "models.LSTM", "Dense"]);
    told(&modules(&[&encoder]), &["no Pooling"]);
    told(&modules(&[&pooling, &encoder]), &["Encoder", "step 2"]);
    told(&modules(&[&encoder, &pooling, &pooling]), &["Pooling", "step 3"]);
    let below = module("models.Transformer", "0_Transformer");
    told(&modules(&[&below, &pooling]), &["0_Transformer"]);
    for path in ["", "../1_Pooling", "/etc", "a/b", &"x".repeat(65)] {
        let error = modules(&[&encoder, &module("models.Pooling", path)]);
        told(&error, &["modules.json", "not the name of a folder"]);
    }
    told(&modules(&[&encoder; 9]), &["9 modules"]);
    told(&with("bert", "modules.json", &json!({"no": "list"})), &["modules.json", "malformed"]);
}

#[test]
fn poolings_that_are_not_computed_here_are_named() {
    let pooling = |value: Value| with("bert", "1_Pooling/config.json", &value);
    told(&pooling(json!({"pooling_mode_max_tokens": true})), &["pooling_mode is max", "cls"]);
    told(&pooling(json!({"pooling_mode_lasttoken": true})), &["lasttoken"]);
    let both = json!({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true});
    told(&pooling(both), &["cls and mean"]);
    told(&pooling(json!({"pooling_mode": ["mean", "max"]})), &["mean and max"]);
    told(&pooling(json!({"pooling_mode": "weightedmean"})), &["weightedmean"]);
    told(&pooling(json!({"pooling_mode": "mean", "include_prompt": false})), &["include_prompt"]);
    told(&pooling(json!([])), &["1_Pooling/config.json", "malformed"]);
}

#[test]
fn dense_layers_are_checked_against_their_weights() {
    let config = |member: &str, value: Value| {
        let files = sentence_files("bert-dense");
        let mut config: Value =
            serde_json::from_slice(&files.parts["2_Dense/config.json"]).expect("a configuration");
        config[member] = value;
        with("bert-dense", "2_Dense/config.json", &config)
    };
    told(&config("in_features", json!(31)), &["in_features", "31 behind 32"]);
    told(&config("out_features", json!(47)), &["2_Dense/linear.weight", "[48, 32]", "[47, 32]"]);
    told(&config("out_features", json!(4000)), &["out_features", "4000", "1 to 3024"]);
    let gelu = json!("torch.nn.modules.activation.GELU");
    told(&config("activation_function", gelu), &["activation_function", "GELU", "Tanh"]);
    told(&config("module_input_name", json!("token_embeddings")), &["module_input_name"]);
    let mut files = sentence_files("bert-tanh");
    let config = json!({"in_features": 32, "out_features": 24, "bias": true});
    files.parts.insert("2_Dense/config.json".to_owned(), config.to_string().into_bytes());
    let error = refusal(&files);
    told(&error, &["2_Dense/linear.bias"]);
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    files.parts.insert("2_Dense/model.safetensors".to_owned(), b"nothing".to_vec());
    told(&refusal(&files), &["2_Dense/model.safetensors is malformed"]);
}

#[test]
fn prompts_are_checked() {
    let prompts = |value: Value| with("bert", PROMPTS, &value);
    told(&prompts(json!({"prompts": {}, "default_prompt_name": "web"})), &[PROMPTS, "web"]);
    told(&prompts(json!({"prompts": {"query": 7}})), &[PROMPTS, "malformed"]);
    let long = "wind ".repeat(13);
    told(&prompts(json!({"prompts": {"query": long}})), &["13 tokens", "at most 12", "wind"]);
}

#[test]
fn choices_of_encoders_that_are_not_computed_are_named() {
    let with = |model: &str, member: &str, value: Value| {
        let mut files = sentence_files(model);
        let mut config: Value = serde_json::from_slice(&files.config).expect("a configuration");
        config[member] = value;
        files.config = config.to_string().into_bytes();
        refusal(&files)
    };
    let modern = |member: &str, value: Value| with("modernbert", member, value);
    told(&modern("rope_scaling", json!({"type": "yarn"})), &["rope_type", "yarn"]);
    told(&modern("hidden_activation", json!("mish")), &["hidden_activation", "mish", "silu"]);
    told(&modern("global_attn_every_n_layers", json!(0)), &["global_attn_every_n_layers"]);
    told(&modern("global_rope_theta", json!(0.0)), &["rope_theta"]);
    told(&modern("num_attention_heads", json!(32)), &["heads of 1 numbers"]);
    told(&modern("num_attention_heads", json!(0)), &["num_attention_heads is 0"]);
    told(&modern("num_hidden_layers", json!(65)), &["num_hidden_layers", "65"]);
    told(&modern("num_hidden_layers", json!(6)), &["layers.5.attn_norm.weight"]);
    told(&modern("norm_bias", json!(true)), &["embeddings.norm.bias"]);
    told(&modern("mlp_bias", json!(true)), &["layers.0.mlp.Wi.bias"]);
    told(&modern("intermediate_size", json!(41)), &["layers.0.mlp.Wi.weight", "[82, 32]"]);
    let layers = |member: &str, value: Value| with("modernbert-layers", member, value);
    told(&layers("layer_types", json!(["full_attention"])), &["layer_types", "each layer"]);
    told(&layers("layer_types", Value::from(vec!["chunked"; 5])), &["chunked"]);
    let scaled = json!({"full_attention": {"rope_type": "yarn", "rope_theta": 1e4}});
    told(&layers("rope_parameters", scaled), &["rope_type is yarn"]);
    let xlm = |member: &str, value: Value| with("xlm-roberta", member, value);
    told(&xlm("pad_token_id", json!(60)), &["max_position_embeddings is 66"]);
    for id in [json!(u64::MAX), json!(-1), json!("1")] {
        told(&xlm("pad_token_id", id), &["pad_token_id"]);
    }
    told(&xlm("vocab_size", json!(100)), &["tokenizer.json", "117 tokens for a model of 100"]);
    told(&xlm("model_type", json!("t5")), &["model_type is t5", "xlm-roberta"]);
}

/// Files that `modules.json` names but that are missing or unreadable.
#[test]
fn a_directory_that_is_not_whole_is_refused_by_the_path_of_the_file() {
    let files = sentence_files("bert-dense");
    let read = |missing: &str, kind: io::ErrorKind| {
        let reading = |path: &Path| {
            let name = path.strip_prefix("models/dense").expect("a path below").to_str();
            match name.expect("a name") {
                name if name == missing => Err(kind.into()),
                "config.json" => Ok(files.config.clone()),
                "tokenizer.json" => Ok(files.tokenizer.clone()),
                "model.safetensors" => Ok(files.weights.clone()),
                name => files.parts.get(name).cloned().ok_or(io::ErrorKind::NotFound.into()),
            }
        };
        ModelFiles::read("models/dense".as_ref(), &reading)
    };
    let whole = read("nothing", io::ErrorKind::NotFound).expect("a model");
    assert_eq!((whole.name.as_str(), &whole.parts), ("dense", &files.parts));
    for name in [
        "config.json", "tokenizer.json", "model.safetensors", "1_Pooling/config.json",
        "2_Dense/config.json", "2_Dense/model.safetensors",
    ] {
        let error = read(name, io::ErrorKind::NotFound).expect_err(name);
        told(&error, &["models/dense", name]);
    }
    // Optional files must be readable if they exist.
    assert!(read(PROMPTS, io::ErrorKind::NotFound).is_ok());
    for name in [PROMPTS, "modules.json"] {
        told(&read(name, io::ErrorKind::PermissionDenied).expect_err(name), &[name]);
    }
}

#[test]
fn heads_of_cross_encoders_are_checked() {
    let goldens = goldens();
    let refused = |name: &str, without: &str| {
        let mut model = named(&goldens["rerankers"], name);
        model["tensors"].as_array_mut().expect("a list").retain(|entry| entry[0] != without);
        CrossEncoder::load(&files(&goldens, &model), 1).expect_err(without)
    };
    for (name, tensor) in [
        ("xlm-roberta-pairs", "classifier.dense.weight"),
        ("xlm-roberta-pairs", "classifier.out_proj.bias"),
        ("modernbert-pairs", "head.dense.weight"),
        ("modernbert-pairs", "head.norm.weight"),
        ("modernbert-pairs", "classifier.weight"),
        ("modernbert-first", "head.dense.bias"),
    ] {
        told(&refused(name, tensor), &[tensor]);
    }
    let mut model = named(&goldens["rerankers"], "modernbert-pairs");
    model["config"]["classifier_pooling"] = json!("max");
    let error = CrossEncoder::load(&files(&goldens, &model), 1).expect_err("a pooling");
    told(&error, &["classifier_pooling is max"]);
}

/// The tokenizer library panics on it.
#[test]
fn a_tokenizer_with_a_broken_decoder_is_refused() {
    let mut files = sentence_files("roberta");
    let text = String::from_utf8(files.tokenizer).expect("JSON");
    files.tokenizer = text.replacen("\"decoder\":{", "\"decoder\":{\"a\" 1,", 1).into_bytes();
    told(&refusal(&files), &["tokenizer.json", "malformed", "expected `:`"]);
}
