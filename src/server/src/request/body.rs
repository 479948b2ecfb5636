//! Reads a request body within a byte limit and above a minimum transfer rate.
//!
//! Nothing is read until the caller asks for it, so refusing a request costs no more than its
//! header. Up to 64 KiB are collected in memory and the rest in a file, so a slow body takes no
//! more memory than that and holds up nobody.

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use crate::error::{ApiError, Condition};
use crate::listen::pace::{Pace, Waited};
use crate::request::spool::Spooler;

/// A request body that is being received.
#[derive(Debug)]
pub struct BodyReader {
    body: Body,
    bytes_max: usize,
    pace: Pace,
    spooler: Spooler,
    received: usize,
    waited: Waited,
}

impl BodyReader {
    /// Creates a reader; `length` is the `Content-Length`, if there is one.
    ///
    /// # Errors
    /// 413 `body_too_large` if the announced length exceeds the limit.
    pub fn new(
        body: Body,
        length: Option<usize>,
        bytes_max: usize,
        pace: Pace,
        spooler: Spooler,
    ) -> Result<Self, ApiError> {
        if length.is_some_and(|length| length > bytes_max) {
            return Err(too_large(bytes_max));
        }
        Ok(Self { body, bytes_max, pace, spooler, received: 0, waited: Waited::default() })
    }

    /// Returns a factory of spools for the data that is read.
    pub fn spooler(&self) -> Spooler {
        self.spooler.clone()
    }

    /// Returns the length of the body in bytes, if known.
    pub fn length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// Reads the next piece; `None` at the end.
    ///
    /// # Errors
    /// 413 above the byte limit, 408 below the minimum rate, 400 if the client breaks off.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        loop {
            let deadline = self.waited.begin(self.pace, Instant::now());
            let frame = match timeout_at(deadline, self.body.frame()).await {
                Err(_) if self.waited.is_too_slow(self.pace, Instant::now()) => {
                    return Err(too_slow());
                }
                Err(_) => continue,
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => {
                    let message = format!("the body ended early: {error}");
                    return Err(ApiError::invalid("malformed_body", message));
                }
                Ok(Some(Ok(frame))) => frame,
            };
            let data = frame.into_data().unwrap_or_default();
            self.waited.end(data.len(), Instant::now());
            if data.is_empty() {
                continue;
            }
            self.received += data.len();
            if self.received > self.bytes_max {
                return Err(too_large(self.bytes_max));
            }
            return Ok(Some(data));
        }
    }

    /// Reads the whole body.
    ///
    /// # Errors
    /// As [`Self::next`]; 503 if there is no room to store it.
    pub async fn collect(mut self) -> Result<Bytes, ApiError> {
        let mut spool = self.spooler.begin();
        while let Some(data) = self.next().await? {
            spool.push(data).await?;
        }
        spool.finish().await
    }
}

fn too_large(bytes_max: usize) -> ApiError {
    let message = format!("the body must be at most {bytes_max} bytes");
    ApiError::too_large("body_too_large", message)
}

fn too_slow() -> ApiError {
    let message = "the body arrived too slowly or not at all";
    ApiError::new(Condition::RequestTimeout, "body_timeout", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::support::Spools;
    use futures_util::stream;
    use std::time::Duration;

    const QUICK: Pace = Pace { window: Duration::from_millis(30), bytes_per_second_min: 0 };

    fn chunked(pieces: &'static [&'static [u8]]) -> Body {
        let pieces = pieces.iter().map(|piece| Ok::<_, std::io::Error>(Bytes::from_static(piece)));
        Body::from_stream(stream::iter(pieces))
    }

    fn reader(body: Body, length: Option<usize>, bytes_max: usize) -> Result<BodyReader, ApiError> {
        BodyReader::new(body, length, bytes_max, QUICK, Spools::new().spooler())
    }

    #[tokio::test]
    async fn the_limit_holds_before_and_while_reading() {
        let announced = reader(Body::empty(), Some(11), 10).unwrap_err();
        assert_eq!(announced.reason(), "body_too_large");
        let body = reader(chunked(&[b"12345", b"67890"]), None, 10).unwrap();
        assert_eq!(body.collect().await.unwrap(), "1234567890");
        let body = reader(chunked(&[b"12345", b"67890", b"1"]), None, 10).unwrap();
        assert_eq!(body.collect().await.unwrap_err().reason(), "body_too_large");
    }

    #[tokio::test]
    async fn a_silent_client_is_given_up() {
        let silent = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        let error = reader(silent, None, 10).unwrap().collect().await.unwrap_err();
        assert_eq!(error.into_response("r").status(), 408);
    }

    /// Goal: an announced length allocates nothing, and received data is stored on disk.
    #[tokio::test]
    async fn bodies_grow_with_what_has_arrived_and_in_a_file() {
        let spools = Spools::new();
        let slow = Pace { window: Duration::from_secs(600), bytes_per_second_min: 0 };
        let (sender, receiver) = tokio::sync::mpsc::channel::<Bytes>(1);
        let pieces = stream::unfold(receiver, |mut receiver| async move {
            let piece = receiver.recv().await?;
            Some((Ok::<_, std::io::Error>(piece), receiver))
        });
        let announced = 500 << 20;
        let body = Body::from_stream(pieces);
        let reader = BodyReader::new(body, Some(announced), announced, slow, spools.spooler());
        let reading = tokio::spawn(reader.unwrap().collect());
        let piece = Bytes::from(vec![7; 50_000]);
        for _ in 0..10 {
            sender.send(piece.clone()).await.unwrap();
        }
        while spools.bytes() < 400_000 {
            tokio::task::yield_now().await;
        }
        assert!(spools.bytes() <= 500_000, "{}", spools.bytes());
        drop(sender);
        let whole = reading.await.unwrap().unwrap();
        assert_eq!((whole.len(), spools.bytes()), (500_000, 500_000));
        assert!(whole.iter().all(|byte| *byte == 7));
        drop(whole);
        assert_eq!(spools.bytes(), 0, "given back");
    }
}
