//! An embedding model on another server, reached through OpenAI's interface, which most servers
//! offer: `POST {url}/embeddings`.
//!
//! ```text
//! embed_as -> prefixes -> requests of at most `batch` texts
//!   gate     queries before answers before documents, with a limit for each
//!   client   sends one request; checks count, dimension and finiteness; normalizes
//!   failed   -> retried after a pause, documents more often than queries
//!   refused  -> split in halves; a single text is truncated, and fails alone if others pass
//! ```
//! After a failed query, all queries fail at once for a few seconds: searches then match words only
//! and do not wait for a server that is down.
//!
//! The model's name, the dimension and the prefix of documents determine a vector, so they make up
//! the fingerprint: the same model at another address keeps the existing vectors. It is up to the
//! operator to ensure that two servers compute the same vectors under one name.
//!
//! - `settings`: the server's description; `client`: one request; `gate`: order and pauses
//! - `offsets`: estimates tokens without a tokenizer

mod client;
mod gate;
mod offsets;
mod settings;

use std::ops::Range;
use std::time::{Duration, Instant};

use lodestone_embed::{EmbedError, EmbedStats, Embedder, Failing, Lane, Role};
use lodestone_fetch::Authorities;
use lodestone_types::RequestContext;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

pub use settings::EmbeddingServer;

use client::{Client, Failure};
use gate::Gate;

/// Attempts for a query or the texts of an answer, which somebody is waiting for.
const ATTEMPTS_WAITED_FOR: u32 = 2;
/// Attempts for documents, before their job is queued again.
const ATTEMPTS_OF_DOCUMENTS: u32 = 5;
/// The first pause between two attempts; each further pause is twice as long.
const PAUSE: Duration = Duration::from_millis(250);
/// Longest pause that a server may ask for; if it asks for more, the request is given up.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Time after a failed query during which no queries are sent.
const REST: Duration = Duration::from_secs(3);
/// Time that documents wait after a failure before their job is queued again.
const REST_OF_DOCUMENTS: Duration = Duration::from_secs(5);
/// Texts below twice this length in bytes are not truncated further when refused.
const CUT_BYTES_MIN: usize = 64;
/// A text that every model accepts.
const PROBE: &str = "ready";
/// Version of the fingerprint's composition.
const FINGERPRINT: &str = "embedding server 1";

/// An embedding model on another server.
#[derive(Debug)]
pub struct RemoteEmbedder {
    client: Client,
    server: EmbeddingServer,
    dimension: usize,
    fingerprint: String,
    gate: Gate,
    state: Mutex<State>,
    stats: Mutex<EmbedStats>,
}

/// Whether the server is failing.
#[derive(Debug, Default)]
struct State {
    failing: Option<Failing>,
    /// Until when no query is sent.
    rests_until: Option<Instant>,
}

impl RemoteEmbedder {
    /// Connects to a server and asks it for the dimension of its vectors. If the settings state the
    /// dimension, the server need not answer.
    ///
    /// # Errors
    /// [`EmbedError::Remote`] if the server has to answer and does not, or answers with another
    /// dimension than the settings state.
    pub fn connect(server: EmbeddingServer, authorities: &Authorities) -> Result<Self, EmbedError> {
        let client = Client::new(&server, authorities);
        let time = server.dimension.map_or(server.timeout, |_| server.query_timeout);
        let (dimension, problem) = match (server.dimension, client.width(PROBE, time)) {
            (Some(said), Ok(found)) if said != found => {
                let problem = format!(
                    "its vectors have {found} dimensions, but embedding-dimension is {said}"
                );
                return Err(EmbedError::Remote { problem });
            }
            (_, Ok(found)) => (found, None),
            (Some(said), Err(problem)) => (said, Some(problem)),
            (None, Err(problem)) => {
                let problem = format!(
                    "cannot determine the dimension of its vectors: {problem}; set \
                     embedding-dimension to start without asking"
                );
                return Err(EmbedError::Remote { problem });
            }
        };
        let mut hash = Sha256::new();
        let width = dimension.to_string();
        for part in [FINGERPRINT, &server.model, &width, &server.passage_prefix] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let model = Self {
            client,
            dimension,
            fingerprint: hex::encode(hash.finalize()),
            gate: Gate::default(),
            state: Mutex::default(),
            stats: Mutex::new(EmbedStats::default()),
            server,
        };
        if let Some(problem) = problem {
            model.note(&problem, false);
        }
        Ok(model)
    }

    /// The URL of the server.
    pub fn place(&self) -> &str {
        &self.server.url
    }

    /// Checks that the server answers with vectors of the right dimension.
    ///
    /// # Errors
    /// [`EmbedError::Remote`].
    pub fn look(&self) -> Result<(), EmbedError> {
        self.embed(Lane::Query, vec![PROBE.to_owned()]).map(drop)
    }

    /// Embeds the texts of one request, with retries until it succeeds or is given up.
    fn request(
        &self,
        lane: Lane,
        context: &RequestContext,
        texts: &[String],
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let (attempts_max, time) = match lane {
            Lane::Query => (ATTEMPTS_WAITED_FOR, self.server.query_timeout),
            Lane::Answer => (ATTEMPTS_WAITED_FOR, self.server.timeout),
            Lane::Bulk => (ATTEMPTS_OF_DOCUMENTS, self.server.timeout),
        };
        let until = Instant::now() + time;
        let mut attempts = 0;
        loop {
            self.rested(lane)?;
            let permit = self.gate.enter(lane, context)?;
            // A query has one time limit for all attempts; answers and documents have one per
            // attempt.
            let left = match lane {
                Lane::Query => until.saturating_duration_since(Instant::now()),
                Lane::Answer | Lane::Bulk => time,
            };
            let left = context.deadline().map_or(left, |deadline| {
                left.min(deadline.saturating_duration_since(Instant::now()))
            });
            let begun = Instant::now();
            let answered = self.client.vectors(texts, self.dimension, left);
            drop(permit);
            let (problem, pause) = match answered {
                Ok((vectors, tokens)) => {
                    self.count(begun, texts, tokens);
                    self.recover();
                    return Ok(vectors);
                }
                Err(Failure::Texts(problem)) => return self.part(lane, context, texts, problem),
                Err(Failure::Final(problem)) => (problem, None),
                Err(Failure::Later(problem, pause)) => (problem, Some(pause.unwrap_or(PAUSE))),
            };
            self.gate.check(context)?;
            attempts += 1;
            let pause = pause.map(|pause| pause.max(PAUSE * (1 << (attempts - 1))));
            let has_time =
                |pause: &Duration| lane != Lane::Query || Instant::now() + *pause < until;
            let pause = pause.filter(|pause| attempts < attempts_max && *pause <= PAUSE_MAX);
            let Some(pause) = pause.filter(has_time) else {
                return Err(self.fail(lane, context, problem)?);
            };
            self.gate.pause(pause, context)?;
        }
    }

    /// Embeds refused texts by halves, and a single text by its beginning. If the server refuses
    /// even the probe text, the texts are not at fault.
    fn part(
        &self,
        lane: Lane,
        context: &RequestContext,
        texts: &[String],
        problem: String,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        if texts.len() > 1 {
            let (first, second) = texts.split_at(texts.len() / 2);
            let mut vectors = self.request(lane, context, first)?;
            vectors.extend(self.request(lane, context, second)?);
            return Ok(vectors);
        }
        if texts[0] == PROBE {
            return Err(self.fail(lane, context, problem)?);
        }
        self.request(lane, context, &[PROBE.to_owned()])?;
        let text = &texts[0];
        if text.len() < 2 * CUT_BYTES_MIN {
            return Err(EmbedError::Compute { problem });
        }
        let half = text.floor_char_boundary(text.len() / 2);
        self.request(lane, context, &[text[..half].to_owned()])
    }

    /// Fails a query immediately if another one failed a moment ago.
    fn rested(&self, lane: Lane) -> Result<(), EmbedError> {
        let rests = self.state.lock().rests_until.is_some_and(|until| Instant::now() < until);
        match lane == Lane::Query && rests {
            true => Err(EmbedError::Remote { problem: "it failed recently".to_owned() }),
            false => Ok(()),
        }
    }

    /// Turns a problem into the error of a request that is given up. Documents wait first, because
    /// their job starts from the beginning when it is queued again.
    ///
    /// # Errors
    /// [`EmbedError::Closed`] and [`EmbedError::Stopped`] if that wait was cut short.
    fn fail(
        &self,
        lane: Lane,
        context: &RequestContext,
        problem: String,
    ) -> Result<EmbedError, EmbedError> {
        self.note(&problem, lane == Lane::Query);
        if lane == Lane::Bulk {
            self.gate.pause(REST_OF_DOCUMENTS, context)?;
        }
        Ok(EmbedError::Remote { problem })
    }

    /// Records a failure; with `rests`, no query is sent for a while.
    fn note(&self, problem: &str, rests: bool) {
        let now = Instant::now();
        let mut state = self.state.lock();
        if state.failing.is_none() {
            tracing::warn!(%problem, url = self.server.url, "the embedding server fails");
        }
        let since = state.failing.as_ref().map_or(now, |failing| failing.since);
        // The part after a colon stems from the system or the server, and is only for the log.
        let problem = problem.split(':').next().unwrap_or_default().to_owned();
        state.failing = Some(Failing { since, problem });
        if rests {
            state.rests_until = Some(now + REST);
        }
    }

    fn recover(&self) {
        if std::mem::take(&mut *self.state.lock()).failing.is_some() {
            tracing::info!(url = self.server.url, "the embedding server is working again");
        }
    }

    fn count(&self, begun: Instant, texts: &[String], tokens: Option<u64>) {
        let estimated = || texts.iter().map(|text| offsets::tokens(text).len() as u64).sum();
        let mut stats = self.stats.lock();
        stats.model_seconds += begun.elapsed().as_secs_f64();
        stats.tokens += tokens.unwrap_or_else(estimated);
        stats.passages += texts.len() as u64;
    }

    fn prefixed(&self, role: Role, text: &str) -> String {
        let prefix = match role {
            Role::Query => &self.server.query_prefix,
            Role::Document => &self.server.passage_prefix,
        };
        match format!("{prefix}{text}") {
            // Most servers refuse an empty text.
            empty if empty.trim().is_empty() => "-".to_owned(),
            text => text,
        }
    }
}

impl Embedder for RemoteEmbedder {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn name(&self) -> &str {
        &self.server.model
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn failing(&self) -> Option<Failing> {
        self.state.lock().failing.clone()
    }

    fn token_offsets(&self, text: &str) -> Vec<Range<usize>> {
        offsets::tokens(text)
    }

    /// Always true: the vocabulary is unknown, so no text may be called unreadable.
    fn is_multilingual(&self) -> bool {
        true
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
        let texts: Vec<String> =
            texts.iter().map(|(role, text)| self.prefixed(*role, text)).collect();
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(self.server.batch) {
            vectors.extend(self.request(lane, context, batch)?);
        }
        Ok(vectors)
    }

    fn stats(&self) -> EmbedStats {
        *self.stats.lock()
    }

    fn close(&self) {
        self.gate.close();
        self.client.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_move_and_another_prefix_of_documents_is_another_model() {
        let server = EmbeddingServer {
            url: "http://127.0.0.1:1/v1".to_owned(),
            model: "small".to_owned(),
            key: None,
            dimension: Some(8),
            query_prefix: String::new(),
            passage_prefix: String::new(),
            batch: 1,
            timeout: Duration::from_secs(1),
            query_timeout: Duration::from_secs(1),
        };
        let print = |change: fn(&mut EmbeddingServer)| {
            let mut server = server.clone();
            change(&mut server);
            let model = RemoteEmbedder::connect(server, &Authorities::default()).unwrap();
            model.fingerprint().to_owned()
        };
        let usual = print(|_| ());
        assert_eq!(print(|server| server.url = "http://127.0.0.2/v1".to_owned()), usual);
        assert_eq!(print(|server| server.query_prefix = "query: ".to_owned()), usual);
        assert_ne!(print(|server| server.passage_prefix = "passage: ".to_owned()), usual);
        assert_ne!(print(|server| server.dimension = Some(9)), usual);
        assert_ne!(print(|server| server.model = "large".to_owned()), usual);
    }
}
