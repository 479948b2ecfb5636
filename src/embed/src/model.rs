//! A loaded model directory: tokenizer, encoder and queue behind the [`Embedder`] trait.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bert::Bert;
use crate::config::ModelConfig;
use crate::device::{DeviceLimits, EmbedDevice, Engine, with_fallback};
use crate::files::ModelFiles;
use crate::fingerprints::fingerprint_of;
use crate::forward::{BatchPolicy, Forward};
use crate::lanes::QueuedText;
use crate::on_demand::OnDemand;
use crate::pooling;
use crate::precision::{Arithmetic, Precision};
use crate::prompts::{PROMPTS, Prompts, Role};
use crate::queue::{Queue, QueueBounds, SHARE_TOKENS_MIN};
use crate::reply::Reply;
use crate::sentence::{Encoder, Projection, SentenceEncoder};
use crate::shorter::Shorter;
use crate::steps::Steps;
use crate::tokens::Tokeniser;
use crate::weights::Weights;
use crate::{EmbedError, EmbedMeters, EmbedStats, Embedder, Lane};
use lodestone_types::{RequestContext, limits};

/// Waiting tokens above which a tenant's queries are refused: a few seconds of work.
const QUERY_TOKENS_MAX: usize = 32 * limits::EMBED_BATCH_TOKENS;
/// Maximum number of waiting tokens of one call for documents or answers: enough for the next
/// batches of several workers.
const CALL_TOKENS_MAX: usize = 8 * limits::EMBED_BATCH_TOKENS;
/// Maximum number of waiting tokens over all calls of such a lane: 4 MiB of token ids.
const LANE_TOKENS_MAX: usize = 512 * limits::EMBED_BATCH_TOKENS;

/// Half of the largest batch, because a query waits for one layer of a batch. The dense products
/// alone are as fast at 128 tokens as at 1,024; the cost of the smaller batch for the whole pass
/// was below the measurement noise of a busy machine.
const BATCH_TOKENS: usize = limits::EMBED_BATCH_TOKENS / 2;

pub(super) const BOUNDS: QueueBounds = QueueBounds {
    batch: BATCH_TOKENS,
    call: CALL_TOKENS_MAX,
    lane: LANE_TOKENS_MAX,
    query: QUERY_TOKENS_MAX,
};
/// Batches of a device that one call may have waiting, in addition to those being computed.
const CALL_DEVICE_BATCHES: usize = 4;
/// Minimum number of workers for a device: two keep it busy, one remains for queries.
const DEVICE_WORKERS_MIN: usize = 3;

/// A prompt may take at most one part in this many of the window, so that a chunk fits after it.
const PROMPT_SHARE: usize = 5;

/// Vocabulary size above which a model counts as made for many scripts. English models have 30,000
/// to 50,000 tokens, multilingual BERT 120,000, XLM-RoBERTa 250,000.
const MULTILINGUAL_TOKENS_MIN: usize = 100_000;

/// A sentence model with its worker threads.
#[derive(Debug)]
pub struct Model {
    known: Known,
    queue: Queue,
    /// The weights used by the queue, if they can be unloaded.
    on_demand: Option<Arc<OnDemand>>,
}

/// Everything about a model except its weights.
#[derive(Debug)]
struct Known {
    name: String,
    fingerprint: String,
    dimension: usize,
    arithmetic: Arithmetic,
    tokeniser: Tokeniser,
    prompts: Prompts,
    shorter: Shorter,
    /// Number of components to which vectors are truncated, if they are.
    cut: Option<usize>,
}

/// A model that is parsed, before its workers are started.
struct Parts<'f> {
    known: Known,
    forward: Passes<'f>,
}

/// The forward pass of a model: with kernels for a device, or CPU only.
enum Passes<'f> {
    Bert { config: Box<ModelConfig>, bert: Arc<Bert>, weights: Box<Weights<'f>> },
    Other(Arc<dyn Forward>),
}

impl Model {
    /// Loads a model and starts `workers` threads for it. Each computes its batches
    /// single-threaded, so `workers` is the number of cores that the model may use.
    /// # Errors
    /// [`EmbedError`] naming the malformed, missing or unsupported part of the files.
    pub fn load(files: &ModelFiles, workers: usize) -> Result<Self, EmbedError> {
        Self::load_on(files, workers, Precision::F32, None)
    }

    /// Loads a model as [`Self::load`] does, but at reduced precision on the CPU if `precision`
    /// allows it, and on a `device`, if given, with `workers` CPU cores as fallback. A model
    /// without device kernels stays on the CPU, which is logged.
    ///
    /// # Errors
    /// As [`Self::load`]; the device never causes one.
    pub fn load_on(
        files: &ModelFiles,
        workers: usize,
        precision: Precision,
        device: Option<EmbedDevice>,
    ) -> Result<Self, EmbedError> {
        let parts = Parts::of(files, precision)?;
        let (forward, workers, bounds) = parts.forward.behind(workers, device);
        let queue = Queue::start(forward, workers, bounds);
        Ok(Self { known: parts.known, queue, on_demand: None })
    }

    /// Opens a model whose weights are loaded on first use and unloaded by [`Embedder::unload`].
    /// `source` reads the files, now and at every load. They are checked now, as in
    /// [`Self::load_on`].
    ///
    /// # Errors
    /// As [`Self::load_on`].
    pub fn on_demand(
        source: impl Fn() -> Result<ModelFiles, EmbedError> + Send + Sync + 'static,
        workers: usize,
        precision: Precision,
        device: Option<EmbedDevice>,
    ) -> Result<Self, EmbedError> {
        let files = source()?;
        let Parts { known, .. } = Parts::of(&files, precision)?;
        let (fingerprint, name) = (known.fingerprint.clone(), known.name.clone());
        let (all_workers, bounds) = match &device {
            None => (workers, BOUNDS),
            Some(device) => behind_device(workers, device.limits),
        };
        let load = move || {
            let begun = Instant::now();
            let files = source()?;
            let parts = Parts::of(&files, precision)?;
            if parts.known.fingerprint != fingerprint {
                let file = "model.safetensors".to_owned();
                let problem =
                    "the model files have changed since the start: restart the server".to_owned();
                return Err(EmbedError::Malformed { file, problem });
            }
            let (forward, _, _) = parts.forward.behind(workers, device.clone());
            let seconds = begun.elapsed().as_secs_f64();
            tracing::info!(model = name, seconds, "loaded an embedding model");
            Ok(forward)
        };
        let on_demand = Arc::new(OnDemand::new(Box::new(load), Duration::ZERO));
        let queue = Queue::start(Arc::clone(&on_demand) as _, all_workers, bounds);
        Ok(Self { known, queue, on_demand: Some(on_demand) })
    }

    /// Returns the prompts that are put before texts.
    pub fn prompts(&self) -> &Prompts {
        &self.known.prompts
    }

    /// Returns the arithmetic used on the CPU.
    pub fn arithmetic(&self) -> Arithmetic {
        self.known.arithmetic
    }

    /// Returns the engine that currently computes embeddings.
    pub fn engine(&self) -> Engine {
        self.queue.engine()
    }
}

/// Embeds texts, each after the prompt of its role, on the workers of a queue.
pub(super) fn embed(
    queue: &Queue,
    read: (&Tokeniser, &Prompts),
    lane: Lane,
    context: &RequestContext,
    texts: Vec<(Role, String)>,
) -> Result<Vec<Vec<f32>>, EmbedError> {
    let reply = queue.call(context, texts.len());
    let submitted = submit(queue, read, lane, texts, &reply);
    submitted.and_then(|()| reply.wait()).inspect_err(|_| queue.abandon(&reply))
}

/// Tokenises texts with their prompts on the caller's thread and pushes them to the queue a batch
/// at a time, so that workers start on full batches while the rest is tokenised.
fn submit(
    queue: &Queue,
    (tokeniser, prompts): (&Tokeniser, &Prompts),
    lane: Lane,
    texts: Vec<(Role, String)>,
    reply: &Arc<Reply>,
) -> Result<(), EmbedError> {
    let mut group = Vec::new();
    let mut tokens = 0;
    for (index, (role, text)) in texts.into_iter().enumerate() {
        let ids = match prompts.of(role) {
            "" => tokeniser.ids(&text)?,
            _ => tokeniser.ids(&prompts.before(role, &text))?,
        };
        tokens += ids.len();
        group.push(QueuedText::new(ids, reply, index));
        if tokens >= limits::EMBED_BATCH_TOKENS {
            queue.push(lane, reply, std::mem::take(&mut group))?;
            tokens = 0;
        }
    }
    queue.push(lane, reply, group)
}

impl Embedder for Model {
    fn dimension(&self) -> usize {
        self.known.dimension
    }

    fn name(&self) -> &str {
        &self.known.name
    }

    fn fingerprint(&self) -> &str {
        &self.known.fingerprint
    }

    fn token_offsets(&self, text: &str) -> Vec<Range<usize>> {
        self.known.tokeniser.offsets(text).expect("loading has tried the tokenizer's only failure")
    }

    fn unknown(&self, text: &str) -> Vec<Range<usize>> {
        self.known.tokeniser.unknown(text).expect("loading has tried the tokenizer's only failure")
    }

    fn tokens_read(&self, text: &str) -> (usize, bool) {
        let prompted = self.known.prompts.before(Role::Document, text);
        self.known
            .tokeniser
            .count(&prompted)
            .expect("loading has tried the tokenizer's only failure")
    }

    fn text_of_tokens(&self, ids: &[u32]) -> Option<String> {
        // Ids that cannot be decoded have no text.
        self.known.tokeniser.text(ids).ok().flatten()
    }

    fn is_multilingual(&self) -> bool {
        self.known.tokeniser.size() >= MULTILINGUAL_TOKENS_MIN
    }

    fn may_shorten_to(&self, dimension: usize) -> bool {
        dimension == self.known.dimension
            || self.known.shorter.allows(dimension, self.known.dimension)
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
        let read = (&self.known.tokeniser, &self.known.prompts);
        let vectors = embed(&self.queue, read, lane, context, texts)?;
        let Some(width) = self.known.cut else { return Ok(vectors) };
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

    fn idle_for(&self) -> Option<Duration> {
        self.on_demand.as_ref()?.idle_for()
    }

    fn is_loaded(&self) -> bool {
        self.on_demand.as_ref().is_none_or(|weights| weights.idle_for().is_some())
    }

    fn unload(&self, idle: Duration) -> bool {
        self.on_demand.as_ref().is_some_and(|weights| weights.unload(idle))
    }
}

impl<'f> Parts<'f> {
    fn of(files: &'f ModelFiles, precision: Precision) -> Result<Self, EmbedError> {
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
        let forward = match encoder {
            Encoder::Bert(bert) if projection.is_empty() => {
                let bert = Arc::new(bert);
                Passes::Bert { config: Box::new(config), bert, weights: Box::new(weights) }
            }
            encoder => {
                let pooling = config.pooling;
                Passes::Other(Arc::new(SentenceEncoder { encoder, pooling, projection }))
            }
        };
        let name = files.name.clone();
        let known =
            Known { name, fingerprint, dimension, arithmetic, tokeniser, prompts, shorter, cut };
        Ok(Self { known, forward })
    }
}

impl Passes<'_> {
    /// Returns the forward pass, on the CPU alone or on a device with a CPU fallback, with the
    /// number of workers to start and the bounds of their queue.
    fn behind(
        self,
        workers: usize,
        device: Option<EmbedDevice>,
    ) -> (Arc<dyn Forward>, usize, QueueBounds) {
        let (config, bert, weights) = match self {
            Self::Bert { config, bert, weights } => (config, bert, weights),
            Self::Other(forward) => {
                if device.is_some() {
                    tracing::warn!("no kernels for this model: embedding on the CPU");
                }
                return (forward, workers, BOUNDS);
            }
        };
        let Some(device) = device else { return (bert, workers, BOUNDS) };
        let limits = device.limits;
        let cpu =
            BatchPolicy { batch: BATCH_TOKENS, share: SHARE_TOKENS_MIN, workers: workers.max(1) };
        match with_fallback(&config, &bert, &weights, device, cpu) {
            None => (bert, workers, BOUNDS),
            Some(forward) => {
                let (workers, bounds) = behind_device(workers, limits);
                (forward, workers, bounds)
            }
        }
    }
}

/// Returns the number of workers for a device, and the bounds of their queue.
fn behind_device(workers: usize, limits: DeviceLimits) -> (usize, QueueBounds) {
    let call = CALL_TOKENS_MAX.max(CALL_DEVICE_BATCHES * limits.batch_tokens);
    (workers.max(DEVICE_WORKERS_MIN), QueueBounds { call, ..BOUNDS })
}

/// Refuses prompts that leave too few tokens for a chunk.
pub(super) fn check_prompts(prompts: &Prompts, tokeniser: &Tokeniser) -> Result<(), EmbedError> {
    let max = tokeniser.window() / PROMPT_SHARE;
    for prompt in [&prompts.query, &prompts.document] {
        let (tokens, _) = tokeniser.count(prompt)?;
        if tokens > max {
            let problem =
                format!("a prompt of {tokens} tokens; at most {max} are allowed: {prompt:?}");
            return Err(EmbedError::Malformed { file: PROMPTS.to_owned(), problem });
        }
    }
    Ok(())
}
