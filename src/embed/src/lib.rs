//! Text to vectors: a sentence model on the CPU or on a GPU, and its request queue.
//! Beside it, where one is installed, a model that reads query and passage together.
//!
//! Not here: cutting documents into chunks (`text`), storing or comparing vectors (`storage`,
//! `compute`). Only this crate depends on candle and tokenizers.
//!
//! ```text
//! embed(lane, texts)                         caller's thread
//!   tokens   text -> ids, framed, cut at the window
//!   lanes    ids wait in the lane of queries, answers or documents; tenants take turns
//!   queue    worker: queries first, then answers, else a batch of documents of 1,024 tokens
//!   sentence packed batch -> token states -> one vector of length 1 a passage;
//!            after each layer the worker serves what stands higher
//!   device   the same on a GPU where there is one, in batches of 16,384 tokens; candle there where
//!            our kernels do not serve, in builds that have it for GPUs
//!   reply    all vectors of the call are there: the caller wakes
//! ```
//!
//! Invariants:
//! - A vector depends on its text only, but for float rounding: passages of a batch are packed
//!   one behind the other without padding, and attention never crosses a passage's border.
//! - A query waits for one layer of one batch at most before it is served; on a GPU, for the
//!   batches under way, which is one of each of two workers at most. It never waits for the answers
//!   or documents of anybody, and for one query of each other tenant at most.
//! - Waiting work is bounded in tokens: callers block, queries are refused.
//! - The texts of a request that is over leave the queue.
//! - A panic in the model fails the batch it happened in, and nothing else.
//! - Vectors are comparable only under equal fingerprints.
//!
//! Modules:
//! - `embedder`: the trait that the rest of the server uses
//! - `model`: a model directory behind that trait; `files`: what is in it; `config`, `modules`,
//!   `prompts`, `tokens`, `weights`: what those say
//! - `sentence`: an encoder of any family with the `steps` behind it; `pooling`: the first of them
//! - `shorter`: models whose vectors may be cut; `fingerprints`: hashes of models; `on_demand`:
//!   weights that may be away
//! - `device`: the forward pass on a GPU, with a CPU fallback; `candle`: the same by candle's own
//!   layers, which is also the reference that the others are tested against
//! - `bert`, `modern`: the forward passes of BERT with RoBERTa, and of ModernBERT; `words`: their
//!   word table; `attention`; `product`: dense layers; `elementwise`: the loops between
//! - `int16`: the same layers in 16-bit integers; `precision`: the choice between the two
//! - `cross`: query and passage together to one score
//! - `sparse`: texts to weights of the words of a vocabulary
//! - `lanes`: the order of waiting work; `queue`: the worker threads; `reply`: a call that waits;
//!   `meters`: measurements of both
//! - `recent`: vectors of texts that were embedded lately
//! - `forward`: the forward pass as the queue sees it
//! - `hashing`: an embedder without a model, with the feature `testing`
//! - `error`: errors of models and texts

mod attention;
mod bert;
#[cfg(any(test, feature = "candle-cuda"))]
mod candle;
mod config;
mod cross;
mod device;
mod elementwise;
mod embedder;
mod error;
#[cfg(test)]
mod families;
mod files;
mod fingerprints;
mod forward;
#[cfg(feature = "testing")]
mod hashing;
mod int16;
mod lanes;
mod meters;
mod model;
mod modern;
mod modules;
mod on_demand;
mod pooling;
mod precision;
mod product;
mod prompts;
mod queue;
mod recent;
mod reply;
mod sentence;
mod shorter;
mod sparse;
mod steps;
mod tokens;
mod weights;
mod words;

pub use cross::CrossEncoder;
pub use device::{COSINE_MIN, DeviceLimits, EmbedDevice, Engine};
pub use embedder::{EmbedStats, Embedder, Failing, Lane};
pub use error::EmbedError;
pub use files::{ModelFiles, PartFiles, REQUIRED_FILES};
#[cfg(feature = "testing")]
pub use hashing::{EmbedderDouble, HashEmbedder};
pub use meters::EmbedMeters;
pub use model::Model;
pub use precision::{Arithmetic, Precision};
pub use prompts::{Prompts, Role};
pub use recent::{OwnedText, RecentVectors};
pub use sparse::{SparseModel, SparseVector};

#[cfg(test)]
mod tests;
