//! Small BERT models with weights computed by a formula, as the files of a model directory.

use lodestone_embed::ModelFiles;
use serde_json::{Map, Value, json};

/// Size of the vocabulary, including special tokens.
const WORDS: usize = 40;
/// Maximum number of tokens in a passage.
const WINDOW: usize = 200;
/// Default number of layers.
const LAYERS: usize = 2;

/// The properties of a model.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    pub heads: usize,
    pub head: usize,
    pub wide: usize,
    pub activation: &'static str,
    pub only_first: bool,
}

/// A text of `words` words, whose order depends on `salt`.
pub fn text(words: usize, salt: usize) -> String {
    let word = |at: usize| format!("w{}", (at * 7 + at * at + salt * 3) % (WORDS - 3) + 3);
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}

/// The files of a model. The last tensor is a matrix.
pub fn files(kind: &Kind) -> ModelFiles {
    files_of_layers(kind, LAYERS)
}

/// The files of a model with the given number of layers.
pub fn files_of_layers(kind: &Kind, layers: usize) -> ModelFiles {
    let hidden = kind.heads * kind.head;
    let config = json!({
        "model_type": "bert", "hidden_size": hidden, "num_hidden_layers": layers,
        "num_attention_heads": kind.heads, "intermediate_size": kind.wide, "vocab_size": WORDS,
        "max_position_embeddings": WINDOW, "type_vocab_size": 2, "layer_norm_eps": 1e-12,
        "hidden_act": kind.activation,
    });
    let pooling = json!({
        "pooling_mode_cls_token": kind.only_first,
        "pooling_mode_mean_tokens": !kind.only_first,
    });
    ModelFiles {
        name: "small".to_owned(),
        encoder: String::new(),
        config: config.to_string().into_bytes(),
        parts: [("1_Pooling/config.json".to_owned(), pooling.to_string().into_bytes())].into(),
        tokenizer: tokenizer().to_string().into_bytes(),
        weights: safetensors(&shapes(hidden, kind.wide, layers)),
    }
}

/// A tokenizer that makes each word a token.
fn tokenizer() -> Value {
    let name = |at: usize| match at {
        0 => "[UNK]".to_owned(),
        1 => "[CLS]".to_owned(),
        2 => "[SEP]".to_owned(),
        _ => format!("w{at}"),
    };
    let vocabulary: Map<String, Value> = (0..WORDS).map(|at| (name(at), json!(at))).collect();
    let special = |token: &str, id: usize| json!({"id": token, "ids": [id], "tokens": [token]});
    let place = |token: &str| json!({"SpecialToken": {"id": token, "type_id": 0}});
    let sequence = |id: &str| json!({"Sequence": {"id": id, "type_id": 0}});
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": null, "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [place("[CLS]"), sequence("A"), place("[SEP]")],
            "pair": [sequence("A"), sequence("B")],
            "special_tokens": {"[CLS]": special("[CLS]", 1), "[SEP]": special("[SEP]", 2)},
        },
        "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    })
}

fn shapes(hidden: usize, wide: usize, layers: usize) -> Vec<(String, Vec<usize>)> {
    let mut shapes = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![WORDS, hidden]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![WINDOW, hidden]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, hidden]),
        ("embeddings.LayerNorm.weight".to_owned(), vec![hidden]),
        ("embeddings.LayerNorm.bias".to_owned(), vec![hidden]),
    ];
    for layer in 0..layers {
        for name in ["attention.output.LayerNorm", "output.LayerNorm"] {
            for part in ["weight", "bias"] {
                shapes.push((format!("encoder.layer.{layer}.{name}.{part}"), vec![hidden]));
            }
        }
        for (name, outputs, inputs) in [
            ("attention.self.query", hidden, hidden),
            ("attention.self.key", hidden, hidden),
            ("attention.self.value", hidden, hidden),
            ("attention.output.dense", hidden, hidden),
            ("intermediate.dense", wide, hidden),
            ("output.dense", hidden, wide),
        ] {
            let name = format!("encoder.layer.{layer}.{name}");
            shapes.push((format!("{name}.bias"), vec![outputs]));
            shapes.push((format!("{name}.weight"), vec![outputs, inputs]));
        }
    }
    shapes
}

/// A weight of realistic size, so that attention is neither uniform nor limited to a single key.
fn number(at: usize, salt: usize, name: &str, inputs: usize) -> f32 {
    let wave = ((at as f64 * 0.7391 + salt as f64 * 1.37).sin() * 43_758.545_3).fract();
    let (middle, size) = match name {
        _ if name.contains("LayerNorm.weight") => (1.0, 0.3),
        _ if name.ends_with("bias") => (0.0, 0.2),
        _ if name.contains("embeddings") => (0.0, 1.0),
        _ if name.contains("self.query") => (0.0, 3.0 / (inputs as f64).sqrt()),
        _ => (0.0, 1.7 / (inputs as f64).sqrt()),
    };
    (middle + size * wave) as f32
}

/// Encodes a header of names and offsets, followed by all numbers.
fn safetensors(shapes: &[(String, Vec<usize>)]) -> Vec<u8> {
    let (mut header, mut data) = (Map::new(), Vec::new());
    for (salt, (name, shape)) in shapes.iter().enumerate() {
        let (begin, count) = (data.len(), shape.iter().product::<usize>());
        let inputs = shape.last().copied().unwrap_or(1);
        data.extend((0..count).flat_map(|at| number(at, salt, name, inputs).to_le_bytes()));
        let place = json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, data.len()]});
        header.insert(name.clone(), place);
    }
    let header = Value::Object(header).to_string();
    let length = (header.len() as u64).to_le_bytes();
    [&length[..], header.as_bytes(), &data].concat()
}
