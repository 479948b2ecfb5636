//! Parses the steps of a sparse model: of sentence-transformers if the directory has a
//! `modules.json`; otherwise a plain masked language model, with an optional `idf.json` for
//! queries.

use std::collections::HashMap;

use serde::Deserialize;

use crate::EmbedError;
use crate::config::{ModelConfig, parsed};
use crate::files::{IDF, ModelFiles};
use crate::modules::{self, Module};
use crate::tokens::Tokeniser;
use crate::weights::Weights;

/// Pools the logits of a text's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Pool {
    Max,
    Sum,
}

/// Maps a logit to a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Activation {
    /// log(1 + max(0, x)).
    Relu,
    /// log(1 + log(1 + max(0, x))).
    Log1pRelu,
}

impl Activation {
    /// Returns the weight of a non-negative logit.
    pub fn of(self, logit: f32) -> f32 {
        match self {
            Self::Relu => logit.ln_1p(),
            Self::Log1pRelu => logit.ln_1p().ln_1p(),
        }
    }
}

/// The configuration of SpladePooling.
#[derive(Debug, Deserialize)]
struct RawPooling {
    #[serde(default = "max")]
    pooling_strategy: Pool,
    #[serde(default = "relu")]
    activation_function: Activation,
}

fn max() -> Pool {
    Pool::Max
}

fn relu() -> Activation {
    Activation::Relu
}

/// The field of `config.json` that identifies a masked language model.
#[derive(Debug, Deserialize)]
struct RawArchitectures {
    #[serde(default)]
    architectures: Vec<String>,
}

/// Source of the weights of query tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Table {
    /// This folder, which has its own tokenizer.
    Folder(String),
    /// `idf.json`, keyed by the text of the token.
    Idf,
}

/// The steps after the encoder, and those for queries.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub pool: Pool,
    pub activation: Activation,
    table: Option<Table>,
}

impl Parts {
    /// Parses the steps that the files describe.
    ///
    /// # Errors
    /// [`EmbedError::Unsupported`] for the steps of another kind of model.
    pub fn of(files: &ModelFiles) -> Result<Self, EmbedError> {
        let Some(list) = files.parts.get(modules::FILE) else {
            let raw: RawArchitectures = parsed(&files.config)?;
            if !raw.architectures.iter().any(|name| name.ends_with("ForMaskedLM")) {
                return Err(EmbedError::Unsupported {
                    field: "architectures",
                    found: format!("{:?}", raw.architectures),
                    expected: "a sparse model: modules.json with SpladePooling, or ForMaskedLM",
                });
            }
            let table = files.parts.contains_key(IDF).then_some(Table::Idf);
            return Ok(Self { pool: Pool::Max, activation: Activation::Relu, table });
        };
        let Some(router) = files.parts.get(modules::ROUTER) else {
            return Self::of_steps(files, &modules::parse(list)?, None);
        };
        let [query, document] = modules::parse_router(router)?;
        let table = match &query[..] {
            [Module::Static(folder)] => Some(Table::Folder(folder.clone())),
            _ if query == document => None,
            _ => return Err(unsupported(&query)),
        };
        Self::of_steps(files, &document, table)
    }

    fn of_steps(
        files: &ModelFiles,
        steps: &[Module],
        table: Option<Table>,
    ) -> Result<Self, EmbedError> {
        let [Module::Encoder | Module::EncoderIn(_), Module::Splade(file)] = steps else {
            return Err(unsupported(steps));
        };
        let bytes = files.parts.get(file).map_or(&b"{}"[..], Vec::as_slice);
        let raw: RawPooling = serde_json::from_slice(bytes).map_err(|error| {
            EmbedError::Malformed { file: file.clone(), problem: error.to_string() }
        })?;
        let RawPooling { pooling_strategy: pool, activation_function: activation } = raw;
        Ok(Self { pool, activation, table })
    }

    /// Loads the tokenizer and weights for queries, if the encoder does not process them.
    ///
    /// # Errors
    /// [`EmbedError`] for a table that does not match the vocabulary, or for missing or malformed
    /// files.
    pub fn table(
        &self,
        files: &ModelFiles,
        config: &ModelConfig,
    ) -> Result<Option<(Tokeniser, Vec<f32>)>, EmbedError> {
        let tokeniser = |json| Tokeniser::parse(json, config.vocabulary, config.window());
        match &self.table {
            None => Ok(None),
            Some(Table::Idf) => {
                let tokeniser = tokeniser(&files.tokenizer)?;
                let weights = parse_idf(&files.parts[IDF], &tokeniser, config.vocabulary)?;
                Ok(Some((tokeniser, weights)))
            }
            Some(Table::Folder(folder)) => {
                let part = |name: &str| {
                    let file = format!("{folder}/{name}");
                    let bytes = files.parts.get(&file).map(Vec::as_slice);
                    let problem = "it was not read".to_owned();
                    bytes.ok_or(EmbedError::Malformed { file, problem })
                };
                let weights = Weights::parse_in(folder, part("model.safetensors")?)?;
                let weights = weights.vector("weight", config.vocabulary)?;
                Ok(Some((tokeniser(part("tokenizer.json")?)?, weights)))
            }
        }
    }
}

fn unsupported(steps: &[Module]) -> EmbedError {
    EmbedError::Unsupported {
        field: modules::FILE,
        found: format!("{steps:?}"),
        expected: "the steps of a sparse model: Transformer and SpladePooling, or a Router with \
                   them for documents, and them or SparseStaticEmbedding for queries",
    }
}

/// Parses `idf.json` into weights indexed by token id.
fn parse_idf(
    bytes: &[u8],
    tokeniser: &Tokeniser,
    vocabulary: usize,
) -> Result<Vec<f32>, EmbedError> {
    let malformed = |problem| EmbedError::Malformed { file: IDF.to_owned(), problem };
    let listed: HashMap<String, f32> =
        serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
    let mut weights = vec![0.0; vocabulary];
    for (token, weight) in listed {
        let id = tokeniser.id(&token);
        let place = id.and_then(|id| weights.get_mut(id as usize));
        *place.ok_or_else(|| malformed(format!("{token:?} is not in the vocabulary")))? = weight;
    }
    Ok(weights)
}
