//! An encoder and the steps after it: from token ids to the vector of a text.
//!
//! ```text
//! encoder -> pooling -> dense layers, if the model has any -> normalisation
//! ```

use std::ops::Range;

use serde::Deserialize;

use crate::EmbedError;
use crate::bert::Bert;
use crate::config::{Family, ModelConfig, Pooling};
use crate::files::ModelFiles;
use crate::forward::Forward;
use crate::modern::ModernBert;
use crate::pooling;
use crate::precision::{Arithmetic, Precision};
use crate::steps::Steps;
use crate::weights::{Dense, Weights};
use lodestone_types::limits;

/// A loaded encoder of any family.
#[derive(Debug)]
pub(super) enum Encoder {
    Bert(Bert),
    Modern(ModernBert),
}

impl Encoder {
    /// Loads the encoder's tensors from `weights`.
    pub fn new(
        config: &ModelConfig,
        weights: &Weights,
        precision: Precision,
    ) -> Result<Self, EmbedError> {
        match &config.family {
            Family::Bert | Family::Roberta { .. } => {
                Ok(Self::Bert(Bert::new(config.clone(), weights, precision)?))
            }
            Family::Modern(modern) => {
                Ok(Self::Modern(ModernBert::new(config, modern, weights, precision)?))
            }
        }
    }

    /// Returns the arithmetic of the transformer blocks.
    pub fn arithmetic(&self) -> Arithmetic {
        match self {
            Self::Bert(bert) => bert.arithmetic(),
            Self::Modern(modern) => modern.arithmetic(),
        }
    }

    /// Runs the encoder on a packed batch and applies `head` to each passage. `head` receives the
    /// states of the passage after the last layer, (tokens, hidden), the width `hidden`, and
    /// `pause`. `second_from` is as for [`Bert::states`]; only BERT has token types.
    pub fn each(
        &self,
        batch: &[&[u32]],
        second_from: Option<&[usize]>,
        pause: &mut dyn FnMut(),
        mut head: impl FnMut(&[f32], usize, &mut dyn FnMut()) -> Result<Vec<f32>, EmbedError>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let (states, spans) = match self {
            Self::Bert(bert) => bert.states(batch, second_from, pause)?,
            Self::Modern(modern) => modern.states(batch, pause)?,
        };
        let hidden = states.len() / spans.last().map_or(1, |span| span.end);
        let of = |span: &Range<usize>| &states[span.start * hidden..span.end * hidden];
        spans.iter().map(|span| head(of(span), hidden, pause)).collect()
    }
}

/// The steps after pooling: dense layers, and normalisations between them.
#[derive(Debug, Default)]
pub(super) struct Projection {
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Dense { dense: Dense, is_tanh: bool },
    Normalise,
}

/// The fields of interest of a dense layer's `config.json`.
#[derive(Debug, Deserialize)]
struct RawDense {
    in_features: usize,
    out_features: usize,
    #[serde(default = "yes")]
    bias: bool,
    activation_function: Option<String>,
    module_input_name: Option<String>,
}

fn yes() -> bool {
    true
}

impl Projection {
    /// Loads the steps of a model whose pooled states have `width` components.
    pub fn load(files: &ModelFiles, steps: &Steps, width: usize) -> Result<Self, EmbedError> {
        let mut width = width;
        let mut loaded = Vec::with_capacity(steps.dense.len());
        for folder in &steps.dense {
            let Some(folder) = folder else {
                loaded.push(Step::Normalise);
                continue;
            };
            let (dense, is_tanh) = load_dense(files, folder, width)?;
            width = dense.bias.len();
            loaded.push(Step::Dense { dense, is_tanh });
        }
        Ok(Self { steps: loaded })
    }

    /// Whether there are no steps after pooling.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the number of components of a vector, given those of a pooled state.
    pub fn width(&self, pooled: usize) -> usize {
        let width = |step: &Step| match step {
            Step::Dense { dense, .. } => Some(dense.bias.len()),
            Step::Normalise => None,
        };
        self.steps.iter().rev().find_map(width).unwrap_or(pooled)
    }

    /// Describes the steps as text for fingerprints; the weights are hashed separately.
    pub fn identity(&self) -> String {
        let step = |step: &Step| match step {
            Step::Dense { dense, is_tanh } => format!("dense {} {is_tanh}", dense.bias.len()),
            Step::Normalise => "normalise".to_owned(),
        };
        self.steps.iter().map(step).collect::<Vec<_>>().join(", ")
    }

    fn apply(&self, state: Vec<f32>) -> Result<Vec<f32>, EmbedError> {
        let mut state = state;
        for step in &self.steps {
            state = match step {
                Step::Normalise => pooling::unit(state)?,
                Step::Dense { dense, is_tanh } => {
                    let mut output = dense.forward(&state);
                    if *is_tanh {
                        output.iter_mut().for_each(|x| *x = x.tanh());
                    }
                    output
                }
            };
        }
        Ok(state)
    }
}

/// Loads the dense layer of a folder. Also returns whether its activation is tanh.
fn load_dense(files: &ModelFiles, folder: &str, width: usize) -> Result<(Dense, bool), EmbedError> {
    let file = format!("{folder}/config.json");
    let part = |file: &str| {
        let missing = || EmbedError::Malformed {
            file: file.to_owned(),
            problem: "it was not read".to_owned(),
        };
        files.parts.get(file).ok_or_else(missing)
    };
    let raw: RawDense = serde_json::from_slice(part(&file)?)
        .map_err(|error| EmbedError::Malformed { file, problem: error.to_string() })?;
    let unsupported = |field, found, expected| EmbedError::Unsupported { field, found, expected };
    if raw.in_features != width {
        let found = format!("{} behind {width} numbers", raw.in_features);
        return Err(unsupported("in_features", found, "the width of the step before"));
    }
    if !(1..=limits::VECTOR_DIMENSION_MAX).contains(&raw.out_features) {
        return Err(unsupported("out_features", raw.out_features.to_string(), "1 to 3024"));
    }
    if raw.module_input_name.as_deref().is_some_and(|name| name != "sentence_embedding") {
        let found = raw.module_input_name.unwrap_or_default();
        return Err(unsupported("module_input_name", found, "sentence_embedding"));
    }
    let is_tanh = match raw.activation_function.as_deref() {
        // Tanh is the default of sentence-transformers.
        None | Some("torch.nn.modules.activation.Tanh") => true,
        Some("torch.nn.modules.linear.Identity") => false,
        Some(found) => {
            let expected = "Identity or Tanh of torch.nn.modules";
            return Err(unsupported("activation_function", found.to_owned(), expected));
        }
    };
    let weights = Weights::parse_in(folder, part(&format!("{folder}/model.safetensors"))?)?;
    let dense = weights.dense_with("linear", (width, raw.out_features), raw.bias)?;
    Ok((dense, is_tanh))
}

/// An encoder of any family and the steps after it, as a forward pass.
#[derive(Debug)]
pub(super) struct SentenceEncoder {
    pub encoder: Encoder,
    pub pooling: Pooling,
    pub projection: Projection,
}

impl Forward for SentenceEncoder {
    fn forward(
        &self,
        batch: &[&[u32]],
        pause: &mut dyn FnMut(),
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.encoder.each(batch, None, pause, |states, hidden, _| {
            pooling::unit(self.projection.apply(self.pooling.state(states, hidden))?)
        })
    }
}
