//! Sends one request to an embedding server and checks the answer.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use ureq::http::{HeaderMap, HeaderValue, Response, header};
use ureq::{Agent, Body};

use super::EmbeddingServer;
use super::settings::BATCH_MAX;
use lodestone_fetch::Authorities;
use lodestone_types::Secret;
use lodestone_types::limits::VECTOR_DIMENSION_MAX;

const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// Limit of an answer, at 32 bytes per number; a printed number takes at most about 25 characters.
const ANSWER_BYTES_MAX: u64 = (BATCH_MAX * VECTOR_DIMENSION_MAX * 32) as u64;
/// Bytes of a refusal that are read, and characters of it that are reported.
const REFUSAL_BYTES_MAX: u64 = 16 << 10;
const REFUSAL_CHARS: usize = 200;

/// A client for one model that keeps its connections.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    url: String,
    model: String,
    key: Option<Secret>,
}

/// The reason why a request yields no vectors.
#[derive(Debug)]
pub(super) enum Failure {
    /// A retry may help, after the pause that the server asks for, if any.
    Later(String, Option<Duration>),
    /// A retry will not help.
    Final(String),
    /// The server rejects these texts.
    Texts(String),
}

impl Failure {
    fn silent(error: &ureq::Error) -> Self {
        Self::Later(format!("it does not answer: {error}"), None)
    }
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Item {
    index: Option<usize>,
    embedding: Vec<Option<f32>>,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: Option<u64>,
}

impl Client {
    /// Creates a client that uses no proxy, because the operator chose the address.
    pub fn new(server: &EmbeddingServer, authorities: &Authorities) -> Self {
        let config = authorities
            .client(None)
            .timeout_resolve(Some(CONNECT_TIME_MAX))
            .timeout_connect(Some(CONNECT_TIME_MAX))
            .build();
        let url = format!("{}/embeddings", server.url.trim_end_matches('/'));
        let (model, key) = (server.model.clone(), server.key.clone());
        Self { agent: config.new_agent(), url, model, key }
    }

    /// Embeds texts. Returns vectors of unit length in their order, and the number of tokens if
    /// reported.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn vectors(
        &self,
        texts: &[String],
        dimension: usize,
        time: Duration,
    ) -> Result<(Vec<Vec<f32>>, Option<u64>), Failure> {
        let answer = self.ask(texts, time)?;
        let tokens = answer.usage.and_then(|usage| usage.prompt_tokens);
        let mut vectors = in_order(answer.data, texts.len())?;
        for vector in &mut vectors {
            if vector.len() != dimension {
                let found = vector.len();
                let problem = format!("its vectors have {found} dimensions instead of {dimension}");
                return Err(Failure::Final(problem));
            }
            if !to_length_one(vector) {
                let problem = "a vector is not finite or is zero".to_owned();
                return Err(Failure::Texts(problem));
            }
        }
        Ok((vectors, tokens))
    }

    /// Asks the server for the dimension of its vectors.
    ///
    /// # Errors
    /// A description of the problem.
    pub fn width(&self, text: &str, time: Duration) -> Result<usize, String> {
        let answer = self.ask(&[text.to_owned()], time);
        let vectors = answer.and_then(|answer| in_order(answer.data, 1));
        match vectors {
            Ok(vectors) if (1..=VECTOR_DIMENSION_MAX).contains(&vectors[0].len()) => {
                Ok(vectors[0].len())
            }
            Ok(vectors) => Err(format!(
                "{} dimensions; at most {VECTOR_DIMENSION_MAX} are supported",
                vectors[0].len()
            )),
            Err(Failure::Later(problem, _) | Failure::Final(problem) | Failure::Texts(problem)) => {
                Err(problem)
            }
        }
    }

    /// Shuts the connections down, which also ends the requests that wait on them.
    pub fn close(&self) {
        self.agent.clone().shutdown();
    }

    fn ask(&self, texts: &[String], time: Duration) -> Result<Answer, Failure> {
        let body = json!({"model": self.model, "input": texts, "encoding_format": "float"});
        let call = self.agent.post(&self.url).config().timeout_global(Some(time)).build();
        let mut call = call.header(header::CONTENT_TYPE, "application/json");
        if let Some(value) = self.authorization() {
            call = call.header(header::AUTHORIZATION, value);
        }
        let sent = call.send(body.to_string());
        let response = sent.map_err(|error| Failure::silent(&error))?;
        let status = response.status().as_u16();
        if status != 200 {
            return Err(self.refusal(status, response));
        }
        let body = response.into_body().into_with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let body = body.map_err(|error| Failure::silent(&error))?;
        serde_json::from_slice(&body)
            .map_err(|_| Failure::Final("its response is not a list of embeddings".to_owned()))
    }

    fn authorization(&self) -> Option<HeaderValue> {
        let key = self.key.as_ref().filter(|key| !key.is_empty())?;
        let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose())).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    fn refusal(&self, status: u16, response: Response<Body>) -> Failure {
        if matches!(status, 408 | 429 | 500..=599) {
            let pause = asked_pause(response.headers());
            return Failure::Later(format!("it returned status {status}"), pause);
        }
        // Servers that reject a key often repeat parts of it, so their text is not reported.
        if matches!(status, 401 | 403) {
            return Failure::Final(format!("it returned status {status}: check embedding-key"));
        }
        let body = response.into_body().into_with_config().limit(REFUSAL_BYTES_MAX).read_to_vec();
        let words = String::from_utf8_lossy(&body.unwrap_or_default()).into_owned();
        let key = self.key.as_ref().filter(|key| !key.is_empty());
        let words = key.map_or_else(|| words.clone(), |key| words.replace(key.expose(), "..."));
        let line = words.chars().filter(|c| !c.is_control()).take(REFUSAL_CHARS);
        let problem = format!("it returned status {status}: {}", line.collect::<String>());
        match status {
            400 | 413 | 422 => Failure::Texts(problem),
            _ => Failure::Final(problem),
        }
    }
}

/// Sorts the vectors of an answer into the order of the texts; a missing number becomes NaN.
fn in_order(data: Vec<Item>, count: usize) -> Result<Vec<Vec<f32>>, Failure> {
    if data.len() != count {
        let problem = format!("it returned {} vectors for {count} texts", data.len());
        return Err(Failure::Final(problem));
    }
    let mut vectors = vec![None; count];
    for (at, item) in data.into_iter().enumerate() {
        let index = item.index.unwrap_or(at);
        let vector = item.embedding.into_iter().map(|number| number.unwrap_or(f32::NAN)).collect();
        match vectors.get_mut(index) {
            Some(place @ None) => *place = Some(vector),
            _ => return Err(Failure::Final(format!("it returned two vectors with index {index}"))),
        }
    }
    Ok(vectors.into_iter().flatten().collect())
}

/// Normalizes a vector to unit length; false if it has no finite, nonzero length.
fn to_length_one(vector: &mut [f32]) -> bool {
    let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    if !length.is_finite() || length < f64::from(f32::MIN_POSITIVE) {
        return false;
    }
    vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    true
}

/// Parses `Retry-After` in whole seconds, the form that these servers send.
fn asked_pause(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_put_in_order_and_checked() {
        let item = |index, x: f32| Item { index, embedding: vec![Some(x), Some(0.0)] };
        let ordered = in_order(vec![item(Some(1), 1.0), item(Some(0), 2.0)], 2).unwrap();
        assert_eq!(ordered, [[2.0, 0.0], [1.0, 0.0]]);
        assert!(in_order(vec![item(None, 1.0)], 2).is_err());
        assert!(in_order(vec![item(Some(0), 1.0), item(Some(0), 1.0)], 2).is_err());
        assert!(in_order(vec![item(Some(7), 1.0)], 1).is_err());
        let mut vector = [3.0, 4.0];
        assert!(to_length_one(&mut vector) && vector == [0.6, 0.8]);
        for mut wrong in [[0.0, 0.0], [f32::NAN, 1.0], [f32::INFINITY, 1.0]] {
            assert!(!to_length_one(&mut wrong), "{wrong:?}");
        }
    }
}
