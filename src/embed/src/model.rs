//! A model directory, loaded: tokenizer, encoder and queue behind [`Embedder`].

use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::bert::Bert;
use crate::config::ModelConfig;
use crate::device::{EmbedDevice, Engine, with_fallback};
use crate::files::{ModelFiles, PROMPTS};
use crate::forward::BatchPolicy;
use crate::lanes::QueuedText;
use crate::modules::Steps;
use crate::pooling;
use crate::precision::{Arithmetic, Precision};
use crate::prompts::{Prompts, Role};
use crate::queue::{Queue, QueueBounds, SHARE_TOKENS_MIN};
use crate::reply::Reply;
use crate::sentence::{Encoder, Projection, SentenceEncoder};
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

/// Share of the window that a prompt may take: a chunk has to fit behind it.
const PROMPT_SHARE: usize = 5;

/// Tokens of a vocabulary from which on it is made for many scripts. Those of English models have
/// 30,000 to 50,000, that of multilingual BERT 120,000, that of XLM-RoBERTa 250,000.
const MULTILINGUAL_TOKENS_MIN: usize = 100_000;

/// A sentence model with its worker threads.
#[derive(Debug)]
pub struct Model {
    name: String,
    fingerprint: String,
    dimension: usize,
    arithmetic: Arithmetic,
    tokeniser: Tokeniser,
    prompts: Prompts,
    shorter: Shorter,
    /// Width to which vectors are cut.
    cut: Option<usize>,
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
        let steps = Steps::of(files)?;
        let config = ModelConfig::parse(&files.config, steps.pooling)?;
        let tokeniser = Tokeniser::parse(&files.tokenizer, config.vocabulary, config.window())?;
        let prompts = Prompts::parse(files.parts.get(PROMPTS).map(Vec::as_slice))?;
        check_prompts(&prompts, &tokeniser)?;
        let weights = Weights::parse(&files.weights)?;
        let projection = Projection::load(files, &steps, config.hidden)?;
        let whole = projection.width(config.hidden);
        let shorter = Shorter::parse(&files.config);
        let cut = shorter.width(files, whole)?;
        let dimension = cut.unwrap_or(whole);
        let fingerprint = fingerprint_of(&config, files, &steps, &projection, (&prompts, cut));
        let encoder = Encoder::new(&config, &weights, precision)?;
        let arithmetic = encoder.arithmetic();
        let queue = match encoder {
            Encoder::Bert(bert) if projection.is_empty() => {
                start(&config, bert, &weights, workers, device)
            }
            encoder => {
                if device.is_some() {
                    tracing::warn!("there are no kernels for this model: the CPU embeds");
                }
                let pooling = config.pooling;
                let forward = SentenceEncoder { encoder, pooling, projection };
                Queue::start(Arc::new(forward), workers, BOUNDS)
            }
        };
        drop(weights);
        let name = files.name.clone();
        Ok(Self {
            name,
            fingerprint,
            dimension,
            arithmetic,
            tokeniser,
            prompts,
            shorter,
            cut,
            queue,
        })
    }

    /// The prompts that stand before texts.
    pub fn prompts(&self) -> &Prompts {
        &self.prompts
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
    fn submit(
        &self,
        lane: Lane,
        texts: impl Iterator<Item = (Role, String)>,
        reply: &Arc<Reply>,
    ) -> Result<(), EmbedError> {
        let mut group = Vec::new();
        let mut tokens = 0;
        for (index, (role, text)) in texts.enumerate() {
            let ids = match self.prompts.of(role) {
                "" => self.tokeniser.ids(&text)?,
                _ => self.tokeniser.ids(&self.prompts.before(role, &text))?,
            };
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
        let prompted = self.prompts.before(Role::Document, text);
        self.tokeniser.count(&prompted).expect("loading has tried the tokenizer's only failure")
    }

    fn text_of_tokens(&self, ids: &[u32]) -> Option<String> {
        // What cannot be decoded is no text.
        self.tokeniser.text(ids).ok().flatten()
    }

    fn is_multilingual(&self) -> bool {
        self.tokeniser.size() >= MULTILINGUAL_TOKENS_MIN
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
        let role = lane.role();
        self.embed_as(lane, context, texts.into_iter().map(|text| (role, text)).collect())
    }

    fn embed_as(
        &self,
        lane: Lane,
        context: &RequestContext,
        texts: Vec<(Role, String)>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let reply = self.queue.call(context, texts.len());
        let vectors = self.submit(lane, texts.into_iter(), &reply).and_then(|()| reply.wait());
        let vectors = vectors.inspect_err(|_| self.queue.abandon(&reply))?;
        let Some(width) = self.cut else { return Ok(vectors) };
        let cut = |mut vector: Vec<f32>| {
            vector.truncate(width);
            pooling::unit(vector)
        };
        vectors.into_iter().map(cut).collect()
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

/// Refuses prompts that leave a chunk too few tokens.
fn check_prompts(prompts: &Prompts, tokeniser: &Tokeniser) -> Result<(), EmbedError> {
    let max = tokeniser.window() / PROMPT_SHARE;
    for prompt in [&prompts.query, &prompts.document] {
        let (tokens, _) = tokeniser.count(prompt)?;
        if tokens > max {
            let problem = format!("a prompt of {tokens} tokens, at most {max} may be: {prompt:?}");
            return Err(EmbedError::Malformed { file: PROMPTS.to_owned(), problem });
        }
    }
    Ok(())
}

/// The fingerprint of a sentence model. Dense layers, the prompt of documents and the width of cut
/// vectors are parts of it where there are some, so that models without keep theirs; the prompt of
/// queries is none, since no stored vector is made with it.
fn fingerprint_of(
    config: &ModelConfig,
    files: &ModelFiles,
    steps: &Steps,
    projection: &Projection,
    (prompts, cut): (&Prompts, Option<usize>),
) -> String {
    let mut more = String::new();
    let mut weights: Vec<&[u8]> = Vec::new();
    if !projection.is_empty() {
        more.push_str(&format!("\n{}", projection.identity()));
        let folders = steps.dense.iter().flatten();
        let files_of = |folder| files.parts.get(&format!("{folder}/model.safetensors"));
        weights.extend(folders.filter_map(files_of).map(Vec::as_slice));
    }
    if !prompts.document.is_empty() {
        more.push_str(&format!("\ndocuments behind {:?}", prompts.document));
    }
    if let Some(width) = cut {
        more.push_str(&format!("\ncut to {width}"));
    }
    fingerprint(config, files, &more, &weights)
}

/// SHA-256 over the computation, the configuration as understood and `more` of it, tokenizer and
/// weights. The configuration's text is left out: the same model is published with different
/// comments in it.
pub(super) fn fingerprint(
    config: &ModelConfig,
    files: &ModelFiles,
    more: &str,
    more_weights: &[&[u8]],
) -> String {
    let mut hash = Sha256::new();
    let settings = format!("{COMPUTATION}\n{}\n{}{more}", config.window(), config.identity());
    let parts = [settings.as_bytes(), &files.tokenizer, &files.weights];
    for part in parts.into_iter().chain(more_weights.iter().copied()) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}
