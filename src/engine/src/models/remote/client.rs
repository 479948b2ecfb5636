//! One request to an embedding server, and its answer, checked.

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
/// A number takes at most some 25 characters.
const ANSWER_BYTES_MAX: u64 = (BATCH_MAX * VECTOR_DIMENSION_MAX * 32) as u64;
/// Bytes of a refusal that are read, and characters of it that are told.
const REFUSAL_BYTES_MAX: u64 = 16 << 10;
const REFUSAL_CHARS: usize = 200;

/// A client of one model; connections are kept.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    url: String,
    model: String,
    key: Option<Secret>,
}

/// Why a request has no vectors.
#[derive(Debug)]
pub(super) enum Failure {
    /// Another attempt may help, after the time that the server names.
    Later(String, Option<Duration>),
    /// It will not help.
    Final(String),
    /// The server refuses these texts.
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
    /// A client without a proxy: the address is the operator's own choice.
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

    /// Vectors of length 1 for texts, in their order, and the number of tokens where it is told.
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
                let problem = format!("its vectors have {found} numbers, not {dimension}");
                return Err(Failure::Final(problem));
            }
            if !to_length_one(vector) {
                let problem = "a vector is not finite, or has no length".to_owned();
                return Err(Failure::Texts(problem));
            }
        }
        Ok((vectors, tokens))
    }

    /// The width of its vectors.
    ///
    /// # Errors
    /// A description of the error.
    pub fn width(&self, text: &str, time: Duration) -> Result<usize, String> {
        let answer = self.ask(&[text.to_owned()], time);
        let vectors = answer.and_then(|answer| in_order(answer.data, 1));
        match vectors {
            Ok(vectors) if (1..=VECTOR_DIMENSION_MAX).contains(&vectors[0].len()) => {
                Ok(vectors[0].len())
            }
            Ok(vectors) => {
                Err(format!("{} numbers, of {VECTOR_DIMENSION_MAX} at most", vectors[0].len()))
            }
            Err(Failure::Later(problem, _) | Failure::Final(problem) | Failure::Texts(problem)) => {
                Err(problem)
            }
        }
    }

    /// Closes the connections under whatever waits on them.
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
            .map_err(|_| Failure::Final("its answer is not a list of embeddings".to_owned()))
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
            return Failure::Later(format!("it answers {status}"), pause);
        }
        // Where the key is at issue servers repeat parts of it.
        if matches!(status, 401 | 403) {
            return Failure::Final(format!("it answers {status}: is embedding-key right?"));
        }
        let body = response.into_body().into_with_config().limit(REFUSAL_BYTES_MAX).read_to_vec();
        let words = String::from_utf8_lossy(&body.unwrap_or_default()).into_owned();
        let key = self.key.as_ref().filter(|key| !key.is_empty());
        let words = key.map_or_else(|| words.clone(), |key| words.replace(key.expose(), "..."));
        let line = words.chars().filter(|c| !c.is_control()).take(REFUSAL_CHARS);
        let problem = format!("it answers {status}: {}", line.collect::<String>());
        match status {
            400 | 413 | 422 => Failure::Texts(problem),
            _ => Failure::Final(problem),
        }
    }
}

/// The vectors of an answer in the order of the texts; a number that is none is NaN.
fn in_order(data: Vec<Item>, count: usize) -> Result<Vec<Vec<f32>>, Failure> {
    if data.len() != count {
        let problem = format!("it answers {} vectors for {count} texts", data.len());
        return Err(Failure::Final(problem));
    }
    let mut vectors = vec![None; count];
    for (at, item) in data.into_iter().enumerate() {
        let index = item.index.unwrap_or(at);
        let vector = item.embedding.into_iter().map(|number| number.unwrap_or(f32::NAN)).collect();
        match vectors.get_mut(index) {
            Some(place @ None) => *place = Some(vector),
            _ => return Err(Failure::Final(format!("it answers two vectors of index {index}"))),
        }
    }
    Ok(vectors.into_iter().flatten().collect())
}

/// Brings a vector to length 1; false where it has none.
fn to_length_one(vector: &mut [f32]) -> bool {
    let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    if !length.is_finite() || length < f64::from(f32::MIN_POSITIVE) {
        return false;
    }
    vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    true
}

/// Whole seconds, as such servers send them.
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
