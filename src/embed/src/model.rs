//! A model directory, loaded: tokenizer, encoder and queue behind [`Embedder`].

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::bert::Bert;
use crate::config::ModelConfig;
use crate::device::{EmbedDevice, Engine, with_fallback};
use crate::forward::BatchPolicy;
use crate::lanes::QueuedText;
use crate::precision::{Arithmetic, Precision};
use crate::queue::{Queue, QueueBounds, SHARE_TOKENS_MIN};
use crate::reply::Reply;
use crate::shorter::Shorter;
use crate::tokens::Tokeniser;
use crate::weights::Weights;
use crate::{EmbedError, EmbedMeters, EmbedStats, Embedder, Lane};
use lodestone_types::{RequestContext, limits};

/// Changes whenever the same files would give other vectors than before: another window,
/// another pooling. It is part of the fingerprint.
const COMPUTATION: &str = "lodestone bert 1";

/// Queries of a tenant are refused when more than this waits: some seconds of work.
const QUERY_TOKENS_MAX: usize = 32 * limits::EMBED_BATCH_TOKENS;
/// Most tokens that one call for documents or answers has waiting: the next batches of a few
/// workers.
const CALL_TOKENS_MAX: usize = 8 * limits::EMBED_BATCH_TOKENS;
/// All such calls of a lane together: 4 MiB of tokens.
const LANE_TOKENS_MAX: usize = 512 * limits::EMBED_BATCH_TOKENS;

/// Half of the largest batch: a query waits for one layer of a batch. The dense products alone are
/// as fast at 128 tokens as at 1,024; the cost of the smaller batch to the whole pass was not
/// measurable beside the noise of a busy machine.
const BATCH_TOKENS: usize = limits::EMBED_BATCH_TOKENS / 2;

const BOUNDS: QueueBounds = QueueBounds {
    batch: BATCH_TOKENS,
    call: CALL_TOKENS_MAX,
    lane: LANE_TOKENS_MAX,
    query: QUERY_TOKENS_MAX,
};
/// Batches of a device that one call may have waiting, beyond those that are computed.
const CALL_DEVICE_BATCHES: usize = 4;
/// Workers beside a device at least: two keep it busy, one is there for queries.
const DEVICE_WORKERS_MIN: usize = 3;

/// The bytes of a model directory.
#[derive(Debug, Clone)]
pub struct ModelFiles {
    /// The directory's name, which is the model's name on the wire.
    pub name: String,
    /// `config.json`.
    pub config: Vec<u8>,
    /// `1_Pooling/config.json`, which sentence-transformers writes; without it the mean is used.
    pub pooling: Option<Vec<u8>>,
    /// `tokenizer.json`.
    pub tokenizer: Vec<u8>,
    /// `model.safetensors`.
    pub weights: Vec<u8>,
}

impl ModelFiles {
    /// Reads the files of `directory` through `read`.
    ///
    /// # Errors
    /// [`EmbedError::Unreadable`] names the file that is missing or refused.
    pub fn read(
        directory: &Path,
        read: &dyn Fn(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Self, EmbedError> {
        let required = |name: &str| {
            let path = directory.join(name);
            read(&path).map_err(|error| EmbedError::Unreadable {
                path: path.display().to_string(),
                problem: error.to_string(),
            })
        };
        let name = directory
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok(Self {
            name,
            config: required("config.json")?,
            pooling: read(&directory.join("1_Pooling").join("config.json")).ok(),
            tokenizer: required("tokenizer.json")?,
            weights: required("model.safetensors")?,
        })
    }
}

/// A BERT-family sentence model with its worker threads.
#[derive(Debug)]
pub struct Model {
    name: String,
    fingerprint: String,
    dimension: usize,
    arithmetic: Arithmetic,
    tokeniser: Tokeniser,
    shorter: Shorter,
    queue: Queue,
}

impl Model {
    /// Loads a model and starts `workers` threads for it; each runs its batches on its own, so
    /// `workers` is the number of cores that the model may use.
    ///
    /// # Errors
    /// [`EmbedError`] naming the malformed, missing or unsupported part of the files.
    pub fn load(files: &ModelFiles, workers: usize) -> Result<Self, EmbedError> {
        Self::load_on(files, workers, Precision::F32, None)
    }

    /// The same with less than f32 on the CPU if `precision` allows it, and on a `device` with the
    /// CPU as fallback on `workers` cores. A model without kernels stays on the CPU, and the log
    /// says so.
    ///
    /// # Errors
    /// As [`Self::load`]; never because of the device.
    pub fn load_on(
        files: &ModelFiles,
        workers: usize,
        precision: Precision,
        device: Option<EmbedDevice>,
    ) -> Result<Self, EmbedError> {
        let config = ModelConfig::parse(&files.config, files.pooling.as_deref())?;
        let tokeniser = Tokeniser::parse(&files.tokenizer, config.vocabulary, config.window())?;
        let weights = Weights::parse(&files.weights)?;
        let fingerprint = fingerprint(&config, files);
        let dimension = config.hidden;
        let shorter = Shorter::parse(&files.config);
        let bert = Bert::new(config.clone(), &weights, precision)?;
        let arithmetic = bert.arithmetic();
        let queue = start(&config, bert, &weights, workers, device);
        drop(weights);
        let name = files.name.clone();
        Ok(Self { name, fingerprint, dimension, arithmetic, tokeniser, shorter, queue })
    }

    /// Arithmetic on the CPU.
    pub fn arithmetic(&self) -> Arithmetic {
        self.arithmetic
    }

    /// The engine that embeds at the moment.
    pub fn engine(&self) -> Engine {
        self.queue.engine()
    }

    /// Tokenises in the caller's thread and hands over in groups of a batch: the workers start
    /// while the rest is tokenised, and with full batches.
    fn submit(&self, lane: Lane, texts: Vec<String>, reply: &Arc<Reply>) -> Result<(), EmbedError> {
        let mut group = Vec::new();
        let mut tokens = 0;
        for (index, text) in texts.into_iter().enumerate() {
            let ids = self.tokeniser.ids(&text)?;
            tokens += ids.len();
            group.push(QueuedText::new(ids, reply, index));
            if tokens >= limits::EMBED_BATCH_TOKENS {
                self.queue.push(lane, reply, std::mem::take(&mut group))?;
                tokens = 0;
            }
        }
        self.queue.push(lane, reply, group)
    }
}

impl Embedder for Model {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn token_offsets(&self, text: &str) -> Vec<Range<usize>> {
        self.tokeniser.offsets(text).expect("loading has tried the tokenizer's only failure")
    }

    fn unknown(&self, text: &str) -> Vec<Range<usize>> {
        self.tokeniser.unknown(text).expect("loading has tried the tokenizer's only failure")
    }

    fn tokens_read(&self, text: &str) -> (usize, bool) {
        self.tokeniser.count(text).expect("loading has tried the tokenizer's only failure")
    }

    fn text_of_tokens(&self, ids: &[u32]) -> Option<String> {
        // What cannot be decoded is no text.
        self.tokeniser.text(ids).ok().flatten()
    }

    fn may_shorten_to(&self, dimension: usize) -> bool {
        dimension == self.dimension || self.shorter.allows(dimension, self.dimension)
    }

    fn embed_within(
        &self,
        lane: Lane,
        context: &RequestContext,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let reply = self.queue.call(context, texts.len());
        let vectors = self.submit(lane, texts, &reply).and_then(|()| reply.wait());
        vectors.inspect_err(|_| self.queue.abandon(&reply))
    }

    fn stats(&self) -> EmbedStats {
        self.queue.stats()
    }

    fn meters(&self) -> Option<&EmbedMeters> {
        Some(self.queue.meters())
    }

    fn close(&self) {
        self.queue.close();
    }
}

/// Starts the workers: on the CPU alone, or on a device with a CPU fallback.
fn start(
    config: &ModelConfig,
    bert: Bert,
    weights: &Weights,
    workers: usize,
    device: Option<EmbedDevice>,
) -> Queue {
    let bert = Arc::new(bert);
    let Some(device) = device else {
        return Queue::start(bert, workers, BOUNDS);
    };
    let limits = device.limits;
    let cpu = BatchPolicy { batch: BATCH_TOKENS, share: SHARE_TOKENS_MIN, workers: workers.max(1) };
    let Some(forward) = with_fallback(config, &bert, weights, device, cpu) else {
        return Queue::start(bert, workers, BOUNDS);
    };
    let call = CALL_TOKENS_MAX.max(CALL_DEVICE_BATCHES * limits.batch_tokens);
    let bounds = QueueBounds { call, ..BOUNDS };
    Queue::start(forward, workers.max(DEVICE_WORKERS_MIN), bounds)
}

/// SHA-256 over the computation, the configuration as understood, tokenizer and weights. The
/// configuration's text is left out: the same model is published with different comments in it.
pub(super) fn fingerprint(config: &ModelConfig, files: &ModelFiles) -> String {
    let mut hash = Sha256::new();
    let settings = format!("{COMPUTATION}\n{}\n{config:?}", config.window());
    for part in [settings.as_bytes(), &files.tokenizer, &files.weights] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}
