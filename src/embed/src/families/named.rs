//! The shapes of published models: their configurations are accepted and mean what their authors
//! meant. Weights are small: the sizes of the configuration are made so after it was read.
//!
//! Facts are from the models' public pages and files. Marked `unverified` is what those showed in
//! part: the rest of it follows the base model or the paper.

use super::*;
use crate::config::{Family, ModelConfig, Pooling};
use crate::int16;
use crate::modules::Steps;
use crate::shorter::Shorter;

const SEARCHING: &str = "Represent this sentence for searching relevant passages: ";

/// A published model.
struct Published {
    name: &'static str,
    tokenizer: &'static str,
    /// Its `config.json`.
    config: Value,
    pooling: Pooling,
    /// Width behind the dense layer, in models that have one.
    dense: Option<usize>,
    query: &'static str,
    dimension: usize,
}

fn bert(hidden: usize, layers: usize, more: &Value) -> Value {
    merged(
        json!({"architectures": ["BertModel"], "model_type": "bert", "hidden_size": hidden,
            "num_hidden_layers": layers, "num_attention_heads": 12,
            "intermediate_size": 4 * hidden, "vocab_size": 30522, "type_vocab_size": 2,
            "max_position_embeddings": 512, "layer_norm_eps": 1e-12, "hidden_act": "gelu",
            "hidden_dropout_prob": 0.1, "pad_token_id": 0, "position_embedding_type": "absolute",
            "torch_dtype": "float32", "use_cache": true}),
        more,
    )
}

fn xlm_roberta(hidden: usize, layers: usize, positions: usize) -> Value {
    let more = json!({"architectures": ["XLMRobertaModel"], "model_type": "xlm-roberta",
        "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1, "layer_norm_eps": 1e-5,
        "max_position_embeddings": positions, "type_vocab_size": 1, "vocab_size": 250_002,
        "num_attention_heads": hidden / 64, "output_past": true});
    bert(hidden, layers, &more)
}

fn modern(hidden: usize, layers: usize, more: &Value) -> Value {
    merged(
        json!({"architectures": ["ModernBertModel"], "model_type": "modernbert",
            "attention_bias": false, "classifier_activation": "gelu", "classifier_bias": false,
            "classifier_pooling": "mean", "decoder_bias": true, "global_attn_every_n_layers": 3,
            "global_rope_theta": 160_000.0, "hidden_activation": "gelu", "hidden_size": hidden,
            "intermediate_size": 3 * hidden / 2, "layer_norm_eps": 1e-5, "local_attention": 128,
            "local_rope_theta": 10_000.0, "max_position_embeddings": 8192, "mlp_bias": false,
            "norm_bias": false, "norm_eps": 1e-5, "num_attention_heads": 12,
            "num_hidden_layers": layers, "pad_token_id": 50283,
            "position_embedding_type": "absolute", "vocab_size": 50368}),
        more,
    )
}

fn merged(mut config: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().expect("an object") {
        config[name] = value.clone();
    }
    config
}

fn published() -> Vec<Published> {
    let model = |name, tokenizer, config, pooling, dimension| Published {
        name,
        tokenizer,
        config,
        pooling,
        dense: None,
        query: "",
        dimension,
    };
    let arctic = |name, hidden, layers| Published {
        query: SEARCHING,
        ..model(name, "word_piece", bert(hidden, layers, &json!({})), Pooling::First, hidden)
    };
    let e5 = json!({"vocab_size": 250_037, "tokenizer_class": "XLMRobertaTokenizer"});
    // Heads and the period of global layers are unverified, as is the pooling of both Granites
    // beyond their papers.
    let granite = json!({"hidden_activation": "silu", "vocab_size": 180_000,
        "max_position_embeddings": 32_768, "intermediate_size": 1536});
    let granite_small = json!({"intermediate_size": 1536});
    let (word_piece, unigram, bytes) = ("word_piece", "unigram", "byte_level");
    let (first, mean) = (Pooling::First, Pooling::Mean);
    vec![
        // Pooling and layer are unverified.
        Published {
            dense: Some(768),
            query: SEARCHING,
            ..model("mdbr-leaf-ir", word_piece, bert(384, 6, &json!({})), mean, 768)
        },
        arctic("snowflake-arctic-embed-xs", 384, 6),
        arctic("snowflake-arctic-embed-s", 384, 12),
        arctic("snowflake-arctic-embed-m", 768, 12),
        model("bge-small-en-v1.5", word_piece, bert(384, 12, &json!({})), first, 384),
        model("bge-base-en-v1.5", word_piece, bert(768, 12, &json!({})), first, 768),
        model("bge-m3", unigram, xlm_roberta(1024, 24, 8194), first, 1024),
        model("multilingual-e5-small", unigram, bert(384, 12, &e5), mean, 384),
        model("multilingual-e5-base", unigram, xlm_roberta(768, 12, 514), mean, 768),
        model("granite-97m-multilingual-r2", bytes, modern(384, 12, &granite), first, 384),
        model("granite-small-english-r2", bytes, modern(384, 12, &granite_small), first, 384),
        model("gte-modernbert-base", bytes, modern(768, 22, &json!({})), first, 768),
    ]
}

/// The same configuration with small sizes.
fn small(config: &Value, vocabulary: usize) -> Value {
    let positions = if config["model_type"] == "xlm-roberta" { 66 } else { 64 };
    let small = json!({"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4,
        "intermediate_size": 40, "vocab_size": vocabulary, "max_position_embeddings": positions});
    merged(config.clone(), &small)
}

type Shapes = Vec<(String, Vec<usize>)>;

/// Names and shapes of the tensors of an encoder.
fn shapes(config: &ModelConfig) -> Shapes {
    let ModelConfig { hidden, layers, intermediate: wide, vocabulary, .. } = *config;
    let mut shapes = Shapes::new();
    let mut add = |name: String, shape: &[usize]| shapes.push((name, shape.to_vec()));
    if let Family::Modern(_) = config.family {
        add("embeddings.tok_embeddings.weight".to_owned(), &[vocabulary, hidden]);
        add("embeddings.norm.weight".to_owned(), &[hidden]);
        add("final_norm.weight".to_owned(), &[hidden]);
        for at in 0..layers {
            if at > 0 {
                add(format!("layers.{at}.attn_norm.weight"), &[hidden]);
            }
            add(format!("layers.{at}.attn.Wqkv.weight"), &[3 * hidden, hidden]);
            add(format!("layers.{at}.attn.Wo.weight"), &[hidden, hidden]);
            add(format!("layers.{at}.mlp_norm.weight"), &[hidden]);
            add(format!("layers.{at}.mlp.Wi.weight"), &[2 * wide, hidden]);
            add(format!("layers.{at}.mlp.Wo.weight"), &[hidden, wide]);
        }
        return shapes;
    }
    for (name, rows) in
        [("word", vocabulary), ("position", config.positions), ("token_type", config.token_types)]
    {
        add(format!("embeddings.{name}_embeddings.weight"), &[rows, hidden]);
    }
    let mut norms = vec!["embeddings.LayerNorm".to_owned()];
    for at in 0..layers {
        let part = |part: &str| format!("encoder.layer.{at}.{part}");
        for name in ["self.query", "self.key", "self.value", "output.dense"] {
            let name = part(&format!("attention.{name}"));
            add(format!("{name}.weight"), &[hidden, hidden]);
            add(format!("{name}.bias"), &[hidden]);
        }
        for (name, outputs, inputs) in
            [("intermediate.dense", wide, hidden), ("output.dense", hidden, wide)]
        {
            add(format!("{}.weight", part(name)), &[outputs, inputs]);
            add(format!("{}.bias", part(name)), &[outputs]);
        }
        norms.extend([part("attention.output.LayerNorm"), part("output.LayerNorm")]);
    }
    for name in norms {
        add(format!("{name}.weight"), &[hidden]);
        add(format!("{name}.bias"), &[hidden]);
    }
    shapes
}

/// Small files of a published model; its tensors with `prefix`.
fn small_files(config: &Value, tokenizer: &str, prefix: &str, head: &Shapes) -> ModelFiles {
    let goldens = goldens();
    let tokenizer = &goldens["tokenizers"][tokenizer];
    let entries = &tokenizer["model"]["vocab"];
    let vocabulary = entries
        .as_object()
        .map_or_else(|| entries.as_array().expect("a vocabulary").len(), serde_json::Map::len);
    let config = small(config, vocabulary).to_string().into_bytes();
    let parsed = ModelConfig::parse(&config, Pooling::Mean).expect("a configuration");
    let mut shapes = shapes(&parsed);
    shapes.iter_mut().for_each(|(name, _)| name.insert_str(0, prefix));
    shapes.extend(head.iter().cloned());
    ModelFiles {
        name: "small".to_owned(),
        config,
        tokenizer: tokenizer.to_string().into_bytes(),
        weights: weights_of(&shapes, "", |salt, i| 0.375 * number(salt, i)),
        parts: BTreeMap::new(),
    }
}

fn parts(model: &Published, width: usize) -> BTreeMap<String, Vec<u8>> {
    let module = |kind: &str, path: &str| {
        let kind = format!("sentence_transformers.models.{kind}");
        json!({"path": path, "type": kind})
    };
    let mut modules = vec![module("Transformer", ""), module("Pooling", "1_Pooling")];
    let is_first = model.pooling == Pooling::First;
    let pooling = json!({"word_embedding_dimension": 384, "pooling_mode_cls_token": is_first,
        "pooling_mode_mean_tokens": !is_first, "pooling_mode_max_tokens": false,
        "pooling_mode_mean_sqrt_len_tokens": false, "include_prompt": true});
    let mut prompts = json!({"__version__": {"sentence_transformers": "3.1.1"}, "prompts": {},
        "default_prompt_name": null, "similarity_fn_name": "cosine"});
    if !model.query.is_empty() {
        prompts["prompts"]["query"] = json!(model.query);
    }
    let mut parts = BTreeMap::new();
    if let Some(outputs) = model.dense {
        modules.push(module("Dense", "2_Dense"));
        let config = json!({"in_features": width, "out_features": outputs, "bias": true,
            "activation_function": "torch.nn.modules.linear.Identity"});
        parts.insert("2_Dense/config.json".to_owned(), config.to_string().into_bytes());
        let shapes = vec![
            ("linear.weight".to_owned(), vec![outputs, width]),
            ("linear.bias".to_owned(), vec![outputs]),
        ];
        let weights = weights_of(&shapes, "", number);
        parts.insert("2_Dense/model.safetensors".to_owned(), weights);
    }
    modules.push(module("Normalize", "2_Normalize"));
    for (path, value) in
        [("modules.json", json!(modules)), ("1_Pooling/config.json", pooling), (PROMPTS, prompts)]
    {
        parts.insert(path.to_owned(), value.to_string().into_bytes());
    }
    parts
}

#[test]
fn published_sentence_models_are_read_as_their_authors_meant() {
    for model in published() {
        let name = model.name;
        let mut small = small_files(&model.config, model.tokenizer, "", &Shapes::new());
        small.parts = parts(&model, 32);
        let steps = Steps::of(&small).expect(name);
        assert_eq!(steps.pooling, model.pooling, "{name}");
        assert_eq!(steps.dense.len(), usize::from(model.dense.is_some()), "{name}");
        let whole = ModelConfig::parse(model.config.to_string().as_bytes(), steps.pooling);
        let whole = whole.expect(name);
        assert_eq!(model.dense.unwrap_or(whole.hidden), model.dimension, "{name}");
        assert_eq!(whole.window(), 256, "{name}");

        let loaded = Model::load(&small, 1).expect(name);
        assert_eq!(loaded.dimension(), model.dense.unwrap_or(32), "{name}");
        assert_eq!(loaded.prompts().query, model.query, "{name}");
        assert_eq!(loaded.prompts().document, "", "{name}");
        let text = vec!["the captain of the ship".to_owned()];
        let query = loaded.embed(Lane::Query, text.clone()).expect("a vector").remove(0);
        let document = loaded.embed(Lane::Bulk, text).expect("a vector").remove(0);
        assert_eq!(query == document, model.query.is_empty(), "{name}");
    }
}

#[test]
fn published_cross_encoders_are_read_as_their_authors_meant() {
    let one = json!({"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}});
    let class = |config: Value, architecture: &str| {
        merged(merged(config, &one), &json!({"architectures": [architecture]}))
    };
    let dense = |name: &str, outputs: usize| {
        [(format!("{name}.weight"), vec![outputs, 32]), (format!("{name}.bias"), vec![outputs])]
    };
    let mini_lm = class(bert(384, 6, &json!({})), "BertForSequenceClassification");
    let bge = class(xlm_roberta(1024, 24, 8194), "XLMRobertaForSequenceClassification");
    for (name, config, tokenizer, prefix, head) in [
        (
            "ms-marco-MiniLM-L6-v2",
            mini_lm,
            "word_piece",
            "bert.",
            ["bert.pooler.dense", "classifier"],
        ),
        (
            "bge-reranker-v2-m3",
            bge,
            "unigram",
            "roberta.",
            ["classifier.dense", "classifier.out_proj"],
        ),
    ] {
        let head = [dense(head[0], 32), dense(head[1], 1)].concat();
        let loaded = CrossEncoder::load(&small_files(&config, tokenizer, prefix, &head), 1);
        let loaded = loaded.expect(name);
        let passages = ["the lamp burns", "storm"];
        let scores = loaded.score(&RequestContext::default(), "lamp", &passages).expect("scores");
        assert!(scores[0] != scores[1] && scores.iter().all(|x| (0.0..=1.0).contains(x)));
    }
}

/// The 16-bit layers of BERT serve XLM-RoBERTa as well, where heads and wide layers are whole
/// registers and the machine has the instructions.
#[test]
fn xlm_roberta_has_the_fast_mode_of_bert() {
    let mut files = small_files(&xlm_roberta(64, 2, 514), "unigram", "", &Shapes::new());
    let mut config: Value = serde_json::from_slice(&files.config).expect("a configuration");
    for (member, value) in
        [("hidden_size", 64), ("num_attention_heads", 2), ("intermediate_size", 64)]
    {
        config[member] = json!(value);
    }
    files.config = config.to_string().into_bytes();
    let parsed = ModelConfig::parse(&files.config, Pooling::Mean).expect("a configuration");
    files.weights = weights_of(&shapes(&parsed), "", |salt, i| 0.25 * number(salt, i));
    let fast = Model::load_on(&files, 1, Precision::Auto, None).expect("a model");
    let exact = Model::load(&files, 1).expect("a model");
    assert_eq!(fast.arithmetic() == Arithmetic::Int16, int16::missing(&parsed).is_none());
    let texts = ["the captain", "", &"wind ".repeat(90)].map(str::to_owned).to_vec();
    let vectors = [fast, exact].map(|model| model.embed(Lane::Bulk, texts.clone()));
    let [fast, exact] = vectors.map(|vectors| vectors.expect("vectors"));
    for (fast, exact) in fast.iter().zip(&exact) {
        assert!(dot(fast, exact) > 0.9999, "{}", dot(fast, exact));
    }
}

/// Only a model that says so is cut to fewer numbers, whatever its family.
#[test]
fn matryoshka_is_read_from_the_configuration() {
    let granite = merged(modern(768, 22, &json!({})), &json!({"matryoshka_dimensions": [256]}));
    let shorter = Shorter::parse(granite.to_string().as_bytes());
    assert!(shorter.allows(256, 768) && !shorter.allows(128, 768));
}
