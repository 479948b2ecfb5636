//! The encoder's layers in 16-bit integers: half the multiplication time of f32, with vectors
//! within a cosine of .99998 of those of f32.
//!
//! Out of scope: embeddings before the layers and pooling after them (`bert`). These stay in f32,
//! as do softmax, layer norm, activation, rotary positions and the product of gates.
//!
//! ```text
//! weights  once: each column scaled by its largest value -> codes in -WEIGHT_MAX..=WEIGHT_MAX
//! states   each token scaled by its largest value        -> codes in -limit..=limit
//! product  codes x codes, i32 sums, AVX-512 VNNI         -> x token's step x column's step: f32
//! heads    queries x keys and weights x values likewise, each passage with steps of its own
//! ```
//!
//! Why not 8 bits: at half the cost of these products, the lowest cosine over real texts was .9975
//! with every layer in int8, and .9983 with 8 bits for the weights only. bf16 costs as much as
//! int16, and gave .99996 where int16 gave .999997 (benches/runs).
//!
//! Invariants
//! - No sum can overflow, whatever the states: a layer's `limit` is the largest value for which
//!   `limit` times the column with the largest sum of absolute codes fits i32. Scores and mixed
//!   values have their own bounds (`attention`).
//! - Sums are exact, so the result for a token does not depend on its batch.
//! - A non-finite value in a state makes the whole row non-finite, never silently wrong.
//! - Without the instructions there are no such layers: [`missing`] returns the reason, and f32
//!   computes.
//!
//! Children
//! - `quantize`: rounds values to codes; `product`: dense layers; `panel`: the tiles of their
//!   products
//! - `layer`: a block of BERT; `modern`: a block of ModernBERT; `heads`: attention for both
//! - `attention`: one head over one passage
//! - `machine`: detects the instructions; `x86`: the inner loops

#[cfg(target_arch = "x86_64")]
mod attention;
mod heads;
mod layer;
mod machine;
mod modern;
mod panel;
mod product;
mod quantize;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(super) use heads::Scratch;
pub(super) use layer::Layer;
pub(super) use modern::ModernLayer;

#[cfg(target_arch = "x86_64")]
use attention::Attention;
#[cfg(not(target_arch = "x86_64"))]
use machine::Attention;

use crate::EmbedError;
use crate::config::ModelConfig;
use crate::precision::Precision;

/// Values per register.
const LANES: usize = 16;

/// Builds all blocks by calling `layer` with their indices; `None` if f32 is used instead, because
/// the operator chose it or for a reason that is logged.
pub(super) fn layers<L>(
    config: &ModelConfig,
    precision: Precision,
    layer: impl FnMut(usize) -> Result<L, EmbedError>,
) -> Result<Option<Vec<L>>, EmbedError> {
    if precision == Precision::F32 {
        return Ok(None);
    }
    let layers = match missing(config) {
        None => (0..config.layers).map(layer).collect(),
        Some(problem) => Err(EmbedError::Compute { problem }),
    };
    match layers {
        Err(EmbedError::Compute { problem: reason }) => {
            tracing::info!(reason, "the model is computed in f32");
            Ok(None)
        }
        layers => layers.map(Some),
    }
}

/// Returns the reason why this machine or this model needs f32, if there is one.
pub(super) fn missing(config: &ModelConfig) -> Option<String> {
    if !machine::has_instructions() {
        return Some("the processor lacks AVX-512 VNNI".to_owned());
    }
    // Heads and the feed-forward layer must consist of whole panels.
    let ModelConfig { intermediate, .. } = *config;
    let widths = [("heads", config.head()), ("an intermediate layer", intermediate)];
    let odd = widths.into_iter().find(|(_, width)| !width.is_multiple_of(panel::PANEL));
    odd.map(|(what, width)| {
        format!("{what} of {width} numbers, not a multiple of {}", panel::PANEL)
    })
}

#[cfg(test)]
mod tests;
