//! Turns text into vectors: a sentence embedding model on the CPU or a GPU, and its request queue.
//! Optionally also a cross-encoder, which scores a query and a passage together, and a sparse
//! model.
//!
//! Out of scope: cutting documents into chunks (`text`), and storing or comparing vectors
//! (`storage`, `compute`). Only this crate depends on candle and tokenizers.
//!
//! ```text
//! embed(lane, texts)                         on the caller's thread
//!   tokens   text -> token ids, with framing tokens, truncated to the window
//!   lanes    ids wait in the lane of queries, answers or documents; tenants take turns
//!   queue    worker: queries first, then answers, else a batch of documents of 1,024 tokens
//!   sentence packed batch -> token states -> one unit vector per passage;
//!            after each layer the worker serves waiting work of higher priority
//!   device   the same on a GPU, in batches of 16,384 tokens; builds with candle for GPUs
//!            use it for models that our kernels do not support
//!   reply    wakes the caller once all vectors of the call are there
//! ```
//!
//! Invariants:
//! - A vector depends on its text only, up to float rounding: the passages of a batch are packed
//!   back to back without padding, and attention never crosses the boundary between passages.
//! - A query waits for at most one layer of one batch before it is served; on a GPU, for the
//!   batches in progress, at most one for each of two workers. It never waits for answers or
//!   documents of any tenant, and for at most one query of each other tenant.
//! - Waiting work is bounded in tokens: callers block, queries are refused.
//! - The texts of a request that is over leave the queue.
//! - A panic in the model fails only the batch in which it happened.
//! - Vectors are comparable only if their fingerprints are equal.
//!
//! Modules:
//! - `embedder`: the trait that the rest of the server uses
//! - `model`: implements that trait for a model directory; `files`: the files of the directory;
//!   `config`, `modules`, `prompts`, `tokens`, `weights`: their parsers
//! - `sentence`: an encoder of any family and the `steps` after it; `pooling`: the first of them
//! - `shorter`: models whose vectors may be truncated; `fingerprints`: hashes of models;
//!   `on_demand`: weights that are loaded on first use and unloaded when idle
//! - `device`: the forward pass on a GPU, with a CPU fallback; `candle`: the forward pass by
//!   candle's own layers, also the reference that the others are tested against
//! - `bert`, `modern`: the forward passes of BERT and RoBERTa, and of ModernBERT; `words`: their
//!   word embedding table; `attention`; `product`: dense layers; `elementwise`: the loops in
//!   between
//! - `int16`: the layers in 16-bit integers; `precision`: the choice between f32 and int16
//! - `cross`: scores a query and a passage together
//! - `sparse`: maps texts to weights over the words of a vocabulary
//! - `lanes`: the order of waiting work; `queue`: the worker threads; `reply`: the result that a
//!   call waits for; `meters`: metrics of the queue and its workers
//! - `recent`: a cache of the vectors of recently embedded texts
//! - `forward`: the forward pass as the queue sees it
//! - `hashing`: an embedder without a model, behind the feature `testing`
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
