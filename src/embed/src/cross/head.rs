//! The head of a sequence classifier: from the state of the first token to a score.
//!
//! ```text
//! state (hidden) -> tanh(pooler), where the weights have one -> classifier: 1 logit, or 2
//!                -> sigmoid(logit), or sigmoid(logit 1 - logit 0), which is their softmax
//! ```
//! One token of a pair comes here: plain sums in f64 are nothing beside the encoder.

use serde::Deserialize;

use crate::EmbedError;
use crate::weights::Weights;

/// The architecture that `config.json` of a cross-encoder names.
const ARCHITECTURE: &str = "BertForSequenceClassification";
/// Labels of a classifier whose configuration lists none.
const LABELS_DEFAULT: usize = 2;

/// The fields of `config.json` that matter here.
#[derive(Debug, Deserialize)]
struct RawHead {
    #[serde(default)]
    architectures: Vec<String>,
    id2label: Option<serde_json::Map<String, serde_json::Value>>,
    num_labels: Option<usize>,
}

/// Labels of the classifier that a `config.json` describes: one, relevance, or two, of which the
/// second is relevance.
///
/// # Errors
/// [`EmbedError::Unsupported`] for a model that is no cross-encoder.
pub(super) fn labels(config: &[u8]) -> Result<usize, EmbedError> {
    let raw: RawHead = serde_json::from_slice(config).map_err(|error| EmbedError::Malformed {
        file: "config.json",
        problem: error.to_string(),
    })?;
    if !raw.architectures.iter().any(|name| name == ARCHITECTURE) {
        return Err(EmbedError::Unsupported {
            field: "architectures",
            found: format!("{:?}", raw.architectures),
            expected: "BertForSequenceClassification, which reads query and passage together",
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

/// Pooler and classifier.
#[derive(Debug)]
pub(super) struct Head {
    pooler: Option<Plain>,
    classifier: Plain,
}

impl Head {
    /// Takes the tensors of the head out of `weights`.
    pub fn new(weights: &Weights, hidden: usize, labels: usize) -> Result<Self, EmbedError> {
        let name = "pooler.dense";
        let pooler = match weights.contains(&format!("{name}.weight")) {
            true => Some(Plain::new(weights, name, hidden, hidden)?),
            false => None,
        };
        Ok(Self { pooler, classifier: Plain::new(weights, "classifier", hidden, labels)? })
    }

    /// The relevance of a pair, 0 to 1, from the state of its first token.
    pub fn score(&self, state: &[f32]) -> Result<f32, EmbedError> {
        let state: Vec<f64> = state.iter().map(|x| f64::from(*x)).collect();
        let state = match &self.pooler {
            Some(pooler) => pooler.forward(&state).map(f64::tanh).collect(),
            None => state,
        };
        // The last logit speaks for relevance, the one before it against.
        let logit = self.classifier.forward(&state).fold(0.0, |before, logit| logit - before);
        let score = 1.0 / (1.0 + (-logit).exp());
        if score.is_nan() {
            return Err(EmbedError::Compute { problem: format!("a pair has the logit {logit}") });
        }
        Ok(score as f32)
    }
}

/// A small dense layer.
#[derive(Debug)]
struct Plain {
    /// (outputs, inputs), as it is in the file.
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Plain {
    fn new(
        weights: &Weights,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<Self, EmbedError> {
        let weight = weights.table(&format!("{name}.weight"), outputs, inputs)?;
        Ok(Self { weight, bias: weights.vector(&format!("{name}.bias"), outputs)? })
    }

    fn forward(&self, input: &[f64]) -> impl Iterator<Item = f64> {
        let rows = self.weight.chunks_exact(input.len()).zip(&self.bias);
        rows.map(move |(row, bias)| {
            let products = row.iter().zip(input).map(|(weight, x)| f64::from(*weight) * x);
            f64::from(*bias) + products.sum::<f64>()
        })
    }
}
