//! Reading a body under a byte limit, a pace and a share of memory.
//!
//! Nothing is read before the caller asks, so a refused request costs one header. All bodies
//! together may hold a bounded number of bytes; at that bound a reader waits, then gives up.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::error::{ApiError, Condition};

/// Bodies up to this size are read without a share; the number of connections bounds them.
const FREE_BYTES: usize = 64 << 10;
/// A body of unknown length reserves memory in steps of this size.
const STEP_BYTES: usize = 1 << 20;
/// Time that a body waits for memory before the client is told to come back.
const MEMORY_WAIT: Duration = Duration::from_secs(10);

/// Least rate at which a client must send.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Longest silence; also the time before the rate counts.
    pub stall: Duration,
    /// Least bytes for each second over the whole body.
    pub bytes_per_second_min: u64,
}

/// The memory that all bodies together may hold.
#[derive(Debug, Clone)]
pub struct BodyMemory(Arc<Semaphore>);

impl BodyMemory {
    /// A budget of `bytes`, counted in KiB.
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new((bytes >> 10).min(Semaphore::MAX_PERMITS))))
    }
}

/// A body's part of the budget; given back when the last holder lets go.
#[derive(Debug, Default)]
pub struct Reservation {
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Reservation {
    async fn grow_to(&self, memory: &BodyMemory, bytes: usize) -> Result<(), ApiError> {
        let held = self.permit.lock().as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = bytes.div_ceil(1024).saturating_sub(held) as u32;
        if bytes <= FREE_BYTES || missing == 0 {
            return Ok(());
        }
        let acquired = timeout(MEMORY_WAIT, Arc::clone(&memory.0).acquire_many_owned(missing));
        let Ok(Ok(permit)) = acquired.await else {
            let message = "too many large bodies are being received";
            return Err(ApiError::new(Condition::Unavailable, "overloaded", message));
        };
        match &mut *self.permit.lock() {
            Some(held) => held.merge(permit),
            none => *none = Some(permit),
        }
        Ok(())
    }
}

/// One body on its way in.
#[derive(Debug)]
pub struct BodyReader {
    body: Body,
    length: Option<usize>,
    bytes_max: usize,
    pace: Pace,
    memory: BodyMemory,
    reservation: Arc<Reservation>,
    received: usize,
    started: Option<Instant>,
}

impl BodyReader {
    /// A reader that has not begun. `length` is the `Content-Length`, if there is one.
    ///
    /// # Errors
    /// 413 `body_too_large` when the announced length is over the limit.
    pub fn new(
        body: Body,
        length: Option<usize>,
        bytes_max: usize,
        pace: Pace,
        memory: BodyMemory,
    ) -> Result<Self, ApiError> {
        if length.is_some_and(|length| length > bytes_max) {
            return Err(too_large(bytes_max));
        }
        let reservation = Arc::default();
        let (received, started) = (0, None);
        Ok(Self { body, length, bytes_max, pace, memory, reservation, received, started })
    }

    /// The body's share of memory, to be held as long as its bytes are.
    pub fn reservation(&self) -> Arc<Reservation> {
        Arc::clone(&self.reservation)
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// 413 over the limit, 408 below the pace, 400 when the client breaks off, 503 without memory.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let started = match self.started {
            Some(started) => started,
            None => {
                self.reservation.grow_to(&self.memory, self.length.unwrap_or(0)).await?;
                *self.started.insert(Instant::now())
            }
        };
        loop {
            let frame = match timeout(self.pace.stall, self.body.frame()).await {
                Err(_) => return Err(too_slow()),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => {
                    let message = format!("the body broke off: {error}");
                    return Err(ApiError::invalid("malformed_body", message));
                }
                Ok(Some(Ok(frame))) => frame,
            };
            let Ok(data) = frame.into_data() else { continue };
            self.received += data.len();
            if self.received > self.bytes_max {
                return Err(too_large(self.bytes_max));
            }
            let elapsed = started.elapsed();
            let least = elapsed.as_secs().saturating_mul(self.pace.bytes_per_second_min);
            if elapsed > self.pace.stall && (self.received as u64) < least {
                return Err(too_slow());
            }
            if self.length.is_none() {
                let step = self.received.next_multiple_of(STEP_BYTES);
                let wanted = if self.received <= FREE_BYTES { self.received } else { step };
                self.reservation.grow_to(&self.memory, wanted).await?;
            }
            return Ok(Some(data));
        }
    }

    /// The whole body.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub async fn collect(mut self) -> Result<Bytes, ApiError> {
        let Some(first) = self.next().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.next().await? else { return Ok(first) };
        let capacity = self.length.unwrap_or(first.len() + second.len());
        let mut bytes = BytesMut::with_capacity(capacity);
        bytes.extend_from_slice(&first);
        bytes.extend_from_slice(&second);
        while let Some(data) = self.next().await? {
            bytes.extend_from_slice(&data);
        }
        Ok(bytes.freeze())
    }
}

fn too_large(bytes_max: usize) -> ApiError {
    let message = format!("the body is larger than the {bytes_max} bytes allowed here");
    ApiError::too_large("body_too_large", message)
}

fn too_slow() -> ApiError {
    let message = "the body came too slowly or not at all";
    ApiError::new(Condition::RequestTimeout, "body_timeout", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;

    const QUICK: Pace = Pace { stall: Duration::from_millis(30), bytes_per_second_min: 0 };

    fn chunked(pieces: &'static [&'static [u8]]) -> Body {
        let pieces = pieces.iter().map(|piece| Ok::<_, std::io::Error>(Bytes::from_static(piece)));
        Body::from_stream(stream::iter(pieces))
    }

    fn reader(body: Body, length: Option<usize>, bytes_max: usize) -> Result<BodyReader, ApiError> {
        BodyReader::new(body, length, bytes_max, QUICK, BodyMemory::new(1 << 20))
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

    #[tokio::test]
    async fn memory_is_given_back() {
        let memory = BodyMemory::new(1 << 20);
        let body = Body::from(vec![0; 1 << 20]);
        let reader = BodyReader::new(body, Some(1 << 20), 1 << 20, QUICK, memory.clone()).unwrap();
        let reservation = reader.reservation();
        assert_eq!(reader.collect().await.unwrap().len(), 1 << 20);
        assert_eq!(memory.0.available_permits(), 0);
        drop(reservation);
        assert_eq!(memory.0.available_permits(), 1024);
    }
}
