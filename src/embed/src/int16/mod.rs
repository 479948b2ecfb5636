//! The encoder's layers in 16-bit integers: half the multiplications' time of f32, with vectors
//! within a cosine of .99998 of those of f32.
//!
//! Not here: embeddings before the layers and pooling behind them (`bert`), which stay f32, as do
//! softmax, layer norm, activation, rotary positions and the product of gates.
//!
//! ```text
//! weights  once: each column by its largest number      -> codes in -WEIGHT_MAX..=WEIGHT_MAX
//! states   each token by its largest number             -> codes in -limit..=limit
//! product  codes x codes, i32 sums, AVX-512 VNNI         -> x token's step x column's step: f32
//! heads    queries x keys and weights x values likewise, each passage with steps of its own
//! ```
//!
//! Why not 8 bits: at the price of one half of these products, the lowest cosine over real texts
//! was .9975 with every layer in int8, .9983 with 8 bits in the weights alone; bf16 costs what
//! int16 costs and gave .99996 where int16 gave .999997 (benches/runs).
//!
//! Invariants
//! - No sum can overflow, whatever the states are: a layer's `limit` is the largest number for
//!   which `limit` times the column with the largest sum of absolute codes is within i32; scores
//!   and mixed values have bounds of their own (`attention`).
//! - Sums are exact, so a token's numbers do not depend on its batch.
//! - A state that is not finite makes its whole row not finite, never a wrong number.
//! - Without the instructions there is no such layer: [`missing`] says why, and f32 computes.
//!
//! Children
//! - `quantize`: numbers to codes; `product`: dense layers; `panel`: the tiles of their products
//! - `layer`: a block of BERT; `modern`: one of ModernBERT; `heads`: what both have of attention
//! - `attention`: one head over one passage
//! - `machine`: whether the instructions are there; `x86`: the inner loops

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

/// Numbers of a register.
const LANES: usize = 16;

/// The blocks that `layer` makes, by their index; `None` where f32 computes them, for the operator
/// asked for it, or for a reason that the log then tells.
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

/// Why this machine or this model stays with f32, if it does.
pub(super) fn missing(config: &ModelConfig) -> Option<String> {
    if !machine::has_instructions() {
        return Some("the processor lacks AVX-512 VNNI".to_owned());
    }
    // A head's queries, keys and values are whole panels, and so is what the wide layer has.
    let ModelConfig { intermediate, .. } = *config;
    let widths = [("heads", config.head()), ("an intermediate layer", intermediate)];
    let odd = widths.into_iter().find(|(_, width)| !width.is_multiple_of(panel::PANEL));
    odd.map(|(what, width)| {
        format!("{what} of {width} numbers, not a multiple of {}", panel::PANEL)
    })
}

#[cfg(test)]
mod tests;
