//! The built-in reader: scores how likely a passage answers a question.
//!
//! It is all-MiniLM-L6-v2 with a low-rank adapter (Hu et al. 2021) and a head, which
//! `scripts/train_reader` trains on the questions in `benches/reader`. The adapter, 1.6 MB, is part
//! of the program; the rest are the files of the embedding model, so nothing needs to be installed.
//! The weights are loaded with the first question and stay in memory.

use std::sync::Arc;
use std::time::Duration;

use super::head::Head;
use super::pairs::Pairs;
use super::{BOUNDS, CrossEncoder, PairScorer};
use crate::config::{ModelConfig, Pooling};
use crate::fingerprints;
use crate::forward::Forward;
use crate::on_demand::OnDemand;
use crate::precision::Precision;
use crate::queue::Queue;
use crate::sentence::Encoder;
use crate::tokens::Tokeniser;
use crate::weights::Weights;
use crate::{EmbedError, ModelFiles};

/// The adapter in safetensors format.
const ADAPTER: &[u8] = include_bytes!("reader.safetensors");
/// Fingerprint of the model that the adapter was trained for.
const BASE: &str = "2a5d6cfafccb9b3b974bf375bfa5861cc564ca01227970a3c6c6fa3e30c97fa6";
/// Time before weights that failed to load are tried again.
const AGAIN: Duration = Duration::from_secs(60);
/// Maximum tokens of a pair, as in training.
const WINDOW: usize = 160;

impl CrossEncoder {
    /// Opens the reader on top of the model with fingerprint `base`; `None` for any other model
    /// than the one it was trained for. `files` reads that model now, its weights may be left out;
    /// `source` reads all of it with the first pair.
    ///
    /// # Errors
    /// [`EmbedError`] naming the malformed part of the files.
    pub fn reader(
        base: &str,
        files: impl FnOnce() -> Result<ModelFiles, EmbedError>,
        source: impl Fn() -> Result<ModelFiles, EmbedError> + Send + Sync + 'static,
        workers: usize,
        precision: Precision,
    ) -> Result<Option<Self>, EmbedError> {
        if base != BASE {
            return Ok(None);
        }
        let files = files()?;
        let config = ModelConfig::parse(&files.config, Pooling::First)?;
        let window = config.window().min(WINDOW);
        let tokeniser = Tokeniser::parse(&files.tokenizer, config.vocabulary, window)?;
        let pairs = Pairs::new(tokeniser, config.token_types)?;
        let load = move || {
            let files = source()?;
            let embeds = ModelConfig::parse(&files.config, Pooling::Mean)?;
            if fingerprints::fingerprint(&embeds, &files, "", &[]) != BASE {
                let file = "model.safetensors".to_owned();
                let problem =
                    "the model files have changed since the start: restart the server".to_owned();
                return Err(EmbedError::Malformed { file, problem });
            }
            let config = ModelConfig::parse(&files.config, Pooling::First)?;
            let mut weights = Weights::parse(&files.weights)?;
            weights.adapt(&Weights::parse(ADAPTER)?)?;
            let head = Head::new(&config, &files.config, &weights, 1)?;
            let encoder = Encoder::new(&config, &weights, precision)?;
            Ok(Arc::new(PairScorer { encoder, head }) as Arc<dyn Forward>)
        };
        let queue = Queue::start(Arc::new(OnDemand::new(Box::new(load), AGAIN)), workers, BOUNDS);
        let fingerprint = fingerprints::adapted(BASE, ADAPTER);
        Ok(Some(Self { name: "built-in".to_owned(), fingerprint, pairs, queue }))
    }
}
