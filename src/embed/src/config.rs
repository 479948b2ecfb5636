//! The model's `config.json`, checked against the models that this server can compute.

use serde::Deserialize;

use crate::EmbedError;
use lodestone_types::limits;

/// The nonlinearity between the two dense layers of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Activation {
    /// Gaussian error linear unit by the error function (Hendrycks and Gimpel 2016).
    #[serde(rename = "gelu")]
    Gelu,
    /// The same by its tanh approximation.
    #[serde(rename = "gelu_new", alias = "gelu_pytorch_tanh")]
    GeluTanh,
    /// max(x, 0).
    #[serde(rename = "relu")]
    Relu,
}

/// Pooling of token states to one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pooling {
    /// The mean over all tokens, framing included.
    Mean,
    /// The state of the first token.
    First,
}

/// The sizes and choices of a BERT encoder, validated.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelConfig {
    pub hidden: usize,
    pub layers: usize,
    pub heads: usize,
    pub intermediate: usize,
    pub vocabulary: usize,
    pub positions: usize,
    pub token_types: usize,
    pub norm_epsilon: f32,
    pub activation: Activation,
    pub pooling: Pooling,
}

/// The fields of `config.json` that matter here.
#[derive(Debug, Deserialize)]
struct RawConfig {
    model_type: Option<String>,
    #[serde(default)]
    architectures: Vec<String>,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    vocab_size: usize,
    max_position_embeddings: usize,
    type_vocab_size: usize,
    layer_norm_eps: f64,
    hidden_act: serde_json::Value,
    position_embedding_type: Option<String>,
}

/// The fields of sentence-transformers' `1_Pooling/config.json` that matter here.
#[derive(Debug, Deserialize)]
struct RawPooling {
    #[serde(default)]
    pooling_mode_cls_token: bool,
    #[serde(default)]
    pooling_mode_mean_tokens: bool,
}

impl ModelConfig {
    /// Reads `config.json` and, where the directory has one, `1_Pooling/config.json`.
    pub fn parse(config: &[u8], pooling: Option<&[u8]>) -> Result<Self, EmbedError> {
        let raw: RawConfig = serde_json::from_slice(config).map_err(|error| {
            EmbedError::Malformed { file: "config.json", problem: error.to_string() }
        })?;
        check_family(&raw)?;
        let activation =
            Activation::deserialize(&raw.hidden_act).map_err(|_| EmbedError::Unsupported {
                field: "hidden_act",
                found: raw.hidden_act.to_string(),
                expected: "gelu, gelu_new or relu",
            })?;
        let parsed = Self {
            hidden: raw.hidden_size,
            layers: raw.num_hidden_layers,
            heads: raw.num_attention_heads,
            intermediate: raw.intermediate_size,
            vocabulary: raw.vocab_size,
            positions: raw.max_position_embeddings,
            token_types: raw.type_vocab_size,
            norm_epsilon: raw.layer_norm_eps as f32,
            activation,
            pooling: pooling.map_or(Ok(Pooling::Mean), parse_pooling)?,
        };
        parsed.check_sizes()?;
        Ok(parsed)
    }

    /// Numbers in one attention head.
    pub fn head(&self) -> usize {
        self.hidden / self.heads
    }

    /// Tokens of one passage at most, framing included.
    pub fn window(&self) -> usize {
        self.positions.min(limits::MODEL_TOKENS_MAX)
    }

    /// Upper bounds keep a damaged file from asking for absurd memory; real BERT models stay far
    /// below them.
    fn check_sizes(&self) -> Result<(), EmbedError> {
        let within = |field, value: usize, max: usize, expected| {
            if value == 0 || value > max {
                return Err(EmbedError::Unsupported { field, found: value.to_string(), expected });
            }
            Ok(())
        };
        let width = limits::VECTOR_DIMENSION_MAX;
        within("hidden_size", self.hidden, width, "1 to 3024")?;
        within("num_hidden_layers", self.layers, 64, "1 to 64")?;
        within("num_attention_heads", self.heads, self.hidden, "1 to hidden_size")?;
        within("intermediate_size", self.intermediate, 1 << 16, "1 to 65536")?;
        within("vocab_size", self.vocabulary, 1 << 20, "1 to 1048576")?;
        within("type_vocab_size", self.token_types, 16, "1 to 16")?;
        within("max_position_embeddings", self.positions, 1 << 16, "8 to 65536")?;
        if self.positions < 8 {
            let found = self.positions.to_string();
            let field = "max_position_embeddings";
            return Err(EmbedError::Unsupported { field, found, expected: "8 to 65536" });
        }
        if !self.hidden.is_multiple_of(self.heads) {
            let found = format!("{} with {} heads", self.hidden, self.heads);
            let expected = "a multiple of num_attention_heads";
            return Err(EmbedError::Unsupported { field: "hidden_size", found, expected });
        }
        if !(self.norm_epsilon >= 0.0 && self.norm_epsilon < 1.0) {
            let found = self.norm_epsilon.to_string();
            let expected = "0 to 1";
            return Err(EmbedError::Unsupported { field: "layer_norm_eps", found, expected });
        }
        Ok(())
    }
}

fn check_family(raw: &RawConfig) -> Result<(), EmbedError> {
    let is_bert = match &raw.model_type {
        Some(family) => family == "bert",
        None => raw.architectures.iter().any(|name| name.starts_with("Bert")),
    };
    if !is_bert {
        let found = raw.model_type.clone().unwrap_or_else(|| format!("{:?}", raw.architectures));
        return Err(EmbedError::Unsupported { field: "model_type", found, expected: "bert" });
    }
    let positions = raw.position_embedding_type.as_deref().unwrap_or("absolute");
    if positions != "absolute" {
        let field = "position_embedding_type";
        let found = positions.to_owned();
        return Err(EmbedError::Unsupported { field, found, expected: "absolute" });
    }
    Ok(())
}

fn parse_pooling(bytes: &[u8]) -> Result<Pooling, EmbedError> {
    let raw: RawPooling = serde_json::from_slice(bytes).map_err(|error| EmbedError::Malformed {
        file: "1_Pooling/config.json",
        problem: error.to_string(),
    })?;
    match (raw.pooling_mode_mean_tokens, raw.pooling_mode_cls_token) {
        (true, false) => Ok(Pooling::Mean),
        (false, true) => Ok(Pooling::First),
        (mean, first) => Err(EmbedError::Unsupported {
            field: "pooling_mode",
            found: format!("mean tokens {mean}, first token {first}"),
            expected: "exactly one of mean tokens and first token",
        }),
    }
}
