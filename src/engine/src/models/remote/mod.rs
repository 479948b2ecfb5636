//! The embedding model of another server, behind the interface that most of them offer, OpenAI's:
//! `POST {url}/embeddings`.
//!
//! ```text
//! embed_as -> prefixes -> requests of at most `batch` texts
//!   gate     queries before answers before documents; a bound on each
//!   client   one request, its answer checked: count, width, finite, brought to length 1
//!   failed   -> again after a pause, documents more often than queries
//!   refused  -> halves; a single text is cut, then fails alone, if others are accepted
//! ```
//! After a failed query all queries fail at once for some seconds: searches go by words then, and
//! do not wait for a server that is down.
//!
//! A vector is decided by the model's name, its width and the prefix of documents, so those make
//! the fingerprint: the same model at another address keeps the vectors of before. That two servers
//! compute the same under one name is the operator's word.
//!
//! - `settings`: the server as plain data; `client`: one request; `gate`: order and pauses
//! - `offsets`: tokens without a tokenizer

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

/// Attempts of a request with a query or an answer's texts: somebody waits.
const ATTEMPTS_WAITED_FOR: u32 = 2;
/// Attempts of a request with documents, before their job is queued again.
const ATTEMPTS_OF_DOCUMENTS: u32 = 5;
/// The first pause between two attempts; each is twice as long as the one before.
const PAUSE: Duration = Duration::from_millis(250);
/// Longest pause that a server may ask for.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Time after a failed query in which queries are not sent.
const REST: Duration = Duration::from_secs(3);
/// Time that documents wait before their job is queued again.
const REST_OF_DOCUMENTS: Duration = Duration::from_secs(5);
/// Bytes below which a refused text is not cut any more.
const CUT_BYTES_MIN: usize = 64;
/// A text that every model accepts.
const PROBE: &str = "ready";
/// Version of what the fingerprint is made of.
const FINGERPRINT: &str = "embedding server 1";

/// The model of another server.
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

/// Whether the server fails.
#[derive(Debug, Default)]
struct State {
    failing: Option<Failing>,
    /// The end of the time in which no query is sent.
    rests_until: Option<Instant>,
}

impl RemoteEmbedder {
    /// The model of a server, which is asked for the width of its vectors. Where the settings say
    /// that, it need not answer.
    ///
    /// # Errors
    /// [`EmbedError::Remote`] where it has to answer and does not, or with another width than the
    /// settings say.
    pub fn connect(server: EmbeddingServer, authorities: &Authorities) -> Result<Self, EmbedError> {
        let client = Client::new(&server, authorities);
        let time = server.dimension.map_or(server.timeout, |_| server.query_timeout);
        let (dimension, problem) = match (server.dimension, client.width(PROBE, time)) {
            (Some(said), Ok(found)) if said != found => {
                let problem =
                    format!("its vectors have {found} numbers and embedding-dimension says {said}");
                return Err(EmbedError::Remote { problem });
            }
            (_, Ok(found)) => (found, None),
            (Some(said), Err(problem)) => (said, Some(problem)),
            (None, Err(problem)) => {
                let problem = format!(
                    "it cannot be asked for the width of its vectors: {problem}; \
                     embedding-dimension says it without asking"
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

    /// The URL of its server.
    pub fn place(&self) -> &str {
        &self.server.url
    }

    /// Whether it answers, and with vectors of the right width.
    ///
    /// # Errors
    /// [`EmbedError::Remote`].
    pub fn look(&self) -> Result<(), EmbedError> {
        self.embed(Lane::Query, vec![PROBE.to_owned()]).map(drop)
    }

    /// Vectors of the texts of one request, asked for until it has an answer or is given up.
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
            // A query has one span of time for all attempts, documents have one for each.
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

    /// Vectors of refused texts: by halves, and of a single text by its beginning. Where the
    /// server refuses everything, the texts are not at fault.
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

    /// Fails a query at once shortly after one that failed.
    fn rested(&self, lane: Lane) -> Result<(), EmbedError> {
        let rests = self.state.lock().rests_until.is_some_and(|until| Instant::now() < until);
        match lane == Lane::Query && rests {
            true => Err(EmbedError::Remote { problem: "it failed a moment ago".to_owned() }),
            false => Ok(()),
        }
    }

    /// The error of a request that is given up. Documents rest before they are told: their job is
    /// read again from the beginning.
    ///
    /// # Errors
    /// [`EmbedError::Closed`] and [`EmbedError::Stopped`] of that rest.
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

    /// Takes note of a failure; no query is sent for a while where `rests`.
    fn note(&self, problem: &str, rests: bool) {
        let now = Instant::now();
        let mut state = self.state.lock();
        if state.failing.is_none() {
            tracing::warn!(%problem, url = self.server.url, "the embedding server fails");
        }
        let since = state.failing.as_ref().map_or(now, |failing| failing.since);
        // Behind a colon are words of the system or of the server, which are for the log.
        let problem = problem.split(':').next().unwrap_or_default().to_owned();
        state.failing = Some(Failing { since, problem });
        if rests {
            state.rests_until = Some(now + REST);
        }
    }

    fn recover(&self) {
        if std::mem::take(&mut *self.state.lock()).failing.is_some() {
            tracing::info!(url = self.server.url, "the embedding server answers again");
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
            // Refused by most servers.
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

    /// Nothing is known of its vocabulary, so no text is called unreadable.
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
