//! The head of a sequence classifier: maps the states of a pair to a score.
//!
//! ```text
//! BERT        first state -> tanh(pooler), if the weights have one    -> classifier
//! RoBERTa     first state -> tanh(classifier.dense)                   -> classifier.out_proj
//! ModernBERT  first state, or the mean -> norm(activation(head))      -> classifier
//!             1 logit, or 2 -> sigmoid(logit), or sigmoid(logit 1 - logit 0): their softmax
//! ```
//! Only one state per pair comes here, so plain sums in f64 cost little next to the encoder.

use serde::Deserialize;
use serde_json::Value;

use crate::EmbedError;
use crate::config::{Activation, Family, HeadConfig, ModelConfig, Pooling, parsed};
use crate::elementwise::{self, Norm};
use crate::modern;
use crate::weights::Weights;

/// Architectures of cross-encoders in `config.json`.
const ARCHITECTURES: [&str; 4] = [
    "BertForSequenceClassification", "RobertaForSequenceClassification",
    "XLMRobertaForSequenceClassification", "ModernBertForSequenceClassification",
];
/// Number of labels if the configuration lists none.
const LABELS_DEFAULT: usize = 2;

/// The fields of interest of `config.json`.
#[derive(Debug, Deserialize)]
struct RawHead {
    #[serde(default)]
    architectures: Vec<String>,
    id2label: Option<serde_json::Map<String, Value>>,
    num_labels: Option<usize>,
}

/// Returns the number of labels of the classifier that a `config.json` describes: one, relevance,
/// or two, the second of which is relevance.
///
/// # Errors
/// [`EmbedError::Unsupported`] for a model that is not a cross-encoder.
pub(super) fn labels(config: &[u8]) -> Result<usize, EmbedError> {
    let raw: RawHead = parsed(config)?;
    if !raw.architectures.iter().any(|name| ARCHITECTURES.contains(&name.as_str())) {
        return Err(EmbedError::Unsupported {
            field: "architectures",
            found: format!("{:?}", raw.architectures),
            expected: "BertForSequenceClassification, or that of RoBERTa, XLM-RoBERTa or \
                       ModernBERT, which reads query and passage together",
        });
    }
    let listed = raw.id2label.map(|labels| labels.len()).or(raw.num_labels);
    match listed.unwrap_or(LABELS_DEFAULT) {
        labels @ (1 | 2) => Ok(labels),
        labels => Err(EmbedError::Unsupported {
            field: "id2label",
            found: format!("{labels} labels"),
            expected: "one label, or two of which the second is relevance",
        }),
    }
}

/// Pooling of a pair's states, an optional pooler, and the classifier.
#[derive(Debug)]
pub(super) struct Head {
    pooling: Pooling,
    pooler: Option<Pooler>,
    classifier: Plain,
}

#[derive(Debug)]
enum Pooler {
    Tanh(Plain),
    Normed { dense: Plain, activation: Activation, norm: Norm },
}

impl Head {
    /// Loads the tensors of the head from `weights`; `raw` is the contents of `config.json`.
    pub fn new(
        config: &ModelConfig,
        raw: &[u8],
        weights: &Weights,
        labels: usize,
    ) -> Result<Self, EmbedError> {
        let hidden = config.hidden;
        let dense = |name, has_bias| Plain::new(weights, name, (hidden, hidden), has_bias);
        let (pooling, pooler, classifier) = match &config.family {
            Family::Bert => {
                let has_pooler = weights.contains("pooler.dense.weight");
                let pooler = has_pooler.then(|| dense("pooler.dense", true)).transpose()?;
                (Pooling::First, pooler.map(Pooler::Tanh), "classifier")
            }
            Family::Roberta { .. } => {
                let pooler = Pooler::Tanh(dense("classifier.dense", true)?);
                (Pooling::First, Some(pooler), "classifier.out_proj")
            }
            Family::Modern(modern) => {
                let raw: HeadConfig = parsed(raw)?;
                let pooler = Pooler::Normed {
                    dense: dense("head.dense", raw.classifier_bias)?,
                    activation: raw.activation()?,
                    norm: modern::norm(config, modern, weights, "head.norm")?,
                };
                (modern_pooling(raw.classifier_pooling)?, Some(pooler), "classifier")
            }
        };
        let classifier = Plain::new(weights, classifier, (hidden, labels), true)?;
        Ok(Self { pooling, pooler, classifier })
    }

    /// Returns the relevance of a pair, 0 to 1, from the states of its tokens.
    pub fn score(&self, states: &[f32], hidden: usize) -> Result<f32, EmbedError> {
        let state = self.pooling.state(states, hidden);
        let state: Vec<f64> = state.iter().map(|x| f64::from(*x)).collect();
        let state = match &self.pooler {
            Some(Pooler::Tanh(dense)) => dense.forward(&state).map(f64::tanh).collect(),
            Some(Pooler::Normed { dense, activation, norm }) => {
                let mut row: Vec<f32> = dense.forward(&state).map(|x| x as f32).collect();
                elementwise::activate(&mut row, *activation);
                elementwise::normalise(&mut row, norm);
                row.iter().map(|x| f64::from(*x)).collect()
            }
            None => state,
        };
        // The last logit is for relevance, the one before it, if any, against it.
        let logit = self.classifier.forward(&state).fold(0.0, |before, logit| logit - before);
        let score = 1.0 / (1.0 + (-logit).exp());
        if score.is_nan() {
            return Err(EmbedError::Compute { problem: format!("a pair has the logit {logit}") });
        }
        Ok(score as f32)
    }
}

fn modern_pooling(named: Option<String>) -> Result<Pooling, EmbedError> {
    match named.as_deref() {
        None | Some("cls") => Ok(Pooling::First),
        Some("mean") => Ok(Pooling::Mean),
        Some(found) => {
            let (field, found) = ("classifier_pooling", found.to_owned());
            Err(EmbedError::Unsupported { field, found, expected: "cls or mean" })
        }
    }
}

/// A small dense layer computed in f64.
#[derive(Debug)]
struct Plain {
    /// (outputs, inputs), as in the file.
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Plain {
    fn new(
        weights: &Weights,
        name: &str,
        (inputs, outputs): (usize, usize),
        has_bias: bool,
    ) -> Result<Self, EmbedError> {
        let weight = weights.table(&format!("{name}.weight"), outputs, inputs)?;
        let bias = match has_bias {
            true => weights.vector(&format!("{name}.bias"), outputs)?,
            false => vec![0.0; outputs],
        };
        Ok(Self { weight, bias })
    }

    fn forward(&self, input: &[f64]) -> impl Iterator<Item = f64> {
        let rows = self.weight.chunks_exact(input.len()).zip(&self.bias);
        rows.map(move |(row, bias)| {
            let products = row.iter().zip(input).map(|(weight, x)| f64::from(*weight) * x);
            f64::from(*bias) + products.sum::<f64>()
        })
    }
}
