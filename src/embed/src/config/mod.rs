//! Parses a model's `config.json` and checks that this server supports the model.
//!
//! - `modern`: the configuration of ModernBERT, in both of its formats

mod modern;

pub(crate) use modern::{HeadConfig, ModernConfig};

use serde::Deserialize;

use crate::EmbedError;
use lodestone_types::limits;

/// Activation function between the two dense layers of a feed-forward block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Activation {
    /// Gaussian error linear unit, exact form with the error function (Hendrycks and Gimpel 2016).
    #[serde(rename = "gelu")]
    Gelu,
    /// Gaussian error linear unit, tanh approximation.
    #[serde(rename = "gelu_new", alias = "gelu_pytorch_tanh")]
    GeluTanh,
    /// max(x, 0).
    #[serde(rename = "relu")]
    Relu,
    /// x times its logistic sigmoid (Hendrycks and Gimpel 2016, section 4).
    #[serde(rename = "silu", alias = "swish")]
    Silu,
}

/// Supported encoder families.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Family {
    /// BERT (Devlin et al. 2018).
    Bert,
    /// RoBERTa (Liu et al. 2019) and XLM-RoBERTa (Conneau et al. 2019): BERT whose positions start
    /// just after the padding id.
    Roberta { padding: usize },
    /// ModernBERT (Warner et al. 2024).
    Modern(ModernConfig),
}

/// Pooling of token states into one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pooling {
    /// The mean over all tokens, including framing tokens.
    Mean,
    /// The state of the first token.
    First,
}

/// The validated dimensions and options of an encoder.
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
    pub family: Family,
}

/// The fields of `config.json` that identify the family.
#[derive(Debug, Deserialize)]
struct RawFamily {
    model_type: Option<String>,
    #[serde(default)]
    architectures: Vec<String>,
}

/// The fields of `config.json` that BERT and RoBERTa use.
#[derive(Debug, Deserialize)]
struct RawConfig {
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
    /// Used for RoBERTa only.
    pad_token_id: Option<serde_json::Value>,
}

impl ModelConfig {
    /// Parses `config.json`; `pooling` comes from the directory's module list.
    pub fn parse(config: &[u8], pooling: Pooling) -> Result<Self, EmbedError> {
        let family: RawFamily = parsed(config)?;
        let parsed = match family_of(&family)? {
            "modernbert" => ModernConfig::parse(config, pooling)?,
            family => Self::parse_bert(config, family, pooling)?,
        };
        parsed.check_sizes()?;
        Ok(parsed)
    }

    fn parse_bert(config: &[u8], family: &str, pooling: Pooling) -> Result<Self, EmbedError> {
        let raw: RawConfig = parsed(config)?;
        let positions = raw.position_embedding_type.as_deref().unwrap_or("absolute");
        if positions != "absolute" {
            let field = "position_embedding_type";
            let found = positions.to_owned();
            return Err(EmbedError::Unsupported { field, found, expected: "absolute" });
        }
        Ok(Self {
            hidden: raw.hidden_size,
            layers: raw.num_hidden_layers,
            heads: raw.num_attention_heads,
            intermediate: raw.intermediate_size,
            vocabulary: raw.vocab_size,
            positions: raw.max_position_embeddings,
            token_types: raw.type_vocab_size,
            norm_epsilon: raw.layer_norm_eps as f32,
            activation: activation("hidden_act", &raw.hidden_act)?,
            pooling,
            family: match family {
                "bert" => Family::Bert,
                // RoBERTa's own default is 1.
                _ => Family::Roberta { padding: raw.pad_token_id.map_or(Ok(1), padding)? },
            },
        })
    }

    /// Returns the configuration as text for fingerprints. The text of a BERT model must never
    /// change, because tenants are bound to its fingerprint.
    pub fn identity(&self) -> String {
        let Self { hidden, layers, heads, intermediate, vocabulary, .. } = self;
        let Self { positions, token_types, norm_epsilon, activation, pooling, family, .. } = self;
        let sizes = format!(
            "ModelConfig {{ hidden: {hidden}, layers: {layers}, heads: {heads}, \
             intermediate: {intermediate}, vocabulary: {vocabulary}, positions: {positions}, \
             token_types: {token_types}, norm_epsilon: {norm_epsilon:?}, \
             activation: {activation:?}, pooling: {pooling:?} }}"
        );
        match family {
            Family::Bert => sizes,
            Family::Roberta { .. } | Family::Modern(_) => format!("{sizes}\n{family:?}"),
        }
    }

    /// Returns the row of the position table for the first token.
    pub fn first_position(&self) -> usize {
        match self.family {
            Family::Roberta { padding } => padding + 1,
            Family::Bert | Family::Modern(_) => 0,
        }
    }

    /// Returns the number of components of an attention head.
    pub fn head(&self) -> usize {
        self.hidden / self.heads
    }

    /// Returns the maximum number of tokens of a passage, including framing tokens.
    pub fn window(&self) -> usize {
        (self.positions - self.first_position()).min(limits::MODEL_TOKENS_MAX)
    }

    /// Checks the sizes. The upper bounds keep a damaged file from requesting absurd amounts of
    /// memory; real models stay far below them.
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
        if self.positions < 8 + self.first_position() {
            let found = self.positions.to_string();
            let field = "max_position_embeddings";
            let expected = "8 to 65536, beyond pad_token_id in RoBERTa";
            return Err(EmbedError::Unsupported { field, found, expected });
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

/// Validates the padding id, which must be small because positions start after it.
fn padding(found: serde_json::Value) -> Result<usize, EmbedError> {
    let id = found.as_u64().filter(|id| *id < 1 << 16);
    id.map(|id| id as usize).ok_or_else(|| EmbedError::Unsupported {
        field: "pad_token_id",
        found: found.to_string(),
        expected: "0 to 65535",
    })
}

/// Parses the activation function named in `field`.
pub(super) fn activation(
    field: &'static str,
    found: &serde_json::Value,
) -> Result<Activation, EmbedError> {
    Activation::deserialize(found).map_err(|_| EmbedError::Unsupported {
        field,
        found: found.to_string(),
        expected: "gelu, gelu_new, relu or silu",
    })
}

/// Deserialises the fields of interest from `config.json`.
pub(super) fn parsed<'a, T: Deserialize<'a>>(config: &'a [u8]) -> Result<T, EmbedError> {
    serde_json::from_slice(config).map_err(|error| EmbedError::Malformed {
        file: "config.json".to_owned(),
        problem: error.to_string(),
    })
}

fn family_of(raw: &RawFamily) -> Result<&str, EmbedError> {
    match raw.model_type.as_deref() {
        Some(family @ ("bert" | "modernbert")) => Ok(family),
        // These share RoBERTa's architecture.
        Some("roberta" | "xlm-roberta" | "camembert") => Ok("roberta"),
        None if raw.architectures.iter().any(|name| name.starts_with("Bert")) => Ok("bert"),
        found => Err(EmbedError::Unsupported {
            field: "model_type",
            found: found.map_or_else(|| format!("{:?}", raw.architectures), str::to_owned),
            expected: "bert, roberta, xlm-roberta, camembert or modernbert",
        }),
    }
}
