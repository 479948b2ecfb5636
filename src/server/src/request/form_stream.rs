//! Feeds the bytes of a form from the reader of its body to the parser.
//!
//! The parser (multer) buffers everything it can get, and searches its buffer from the start each
//! time more arrives, for as long as it finds neither a boundary nor the end of a part's headers.
//! It is therefore given one slice at a time, the next only once it can make no progress with the
//! data it has, and at most [`IN_VAIN_BYTES_MAX`] without producing anything.

use std::io;
use std::sync::Arc;
use std::task::{Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::{self, StreamExt};
use parking_lot::Mutex;

use crate::error::ApiError;
use crate::request::body::BodyReader;

/// Number of bytes given to the parser at a time.
const SLICE_BYTES: usize = 64 << 10;
/// Number of bytes within which the parser must find a boundary, or the end of a part's headers;
/// otherwise the form is malformed. Before the first boundary, it may get a second slice before it
/// has looked at the first.
const IN_VAIN_BYTES_MAX: usize = 2 * SLICE_BYTES;

/// State shared between the feed and the consumer of the parser. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct FormStream(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Whether the parser has asked for data in vain since it last received or produced something.
    is_hungry: bool,
    /// Bytes received by the parser since it last produced something.
    bytes_in_vain: usize,
    error: Option<ApiError>,
}

impl FormStream {
    /// Records that the parser has produced a part or a piece of one.
    pub fn progress(&self) {
        let mut state = self.0.lock();
        (state.is_hungry, state.bytes_in_vain) = (false, 0);
    }

    /// Takes the error that ended the stream, if there is one.
    pub fn take_error(&self) -> Option<ApiError> {
        self.0.lock().error.take()
    }

    /// Returns the stream that the parser reads.
    pub fn slices(
        &self,
        reader: BodyReader,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        let feed = self.clone();
        let mut pieces = Box::pin(stream::unfold(reader, |mut reader| async move {
            reader.next().await.transpose().map(|piece| (piece, reader))
        }));
        let mut rest = Bytes::new();
        stream::poll_fn(move |context| {
            let mut state = feed.0.lock();
            if !state.is_hungry {
                state.is_hungry = true;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if rest.is_empty() {
                match ready!(pieces.poll_next_unpin(context)) {
                    None => return Poll::Ready(None),
                    Some(Ok(piece)) => rest = piece,
                    Some(Err(error)) => return Poll::Ready(Some(Err(state.ended_by(error)))),
                }
            }
            if state.bytes_in_vain >= IN_VAIN_BYTES_MAX {
                return Poll::Ready(Some(Err(state.ended_by(endless()))));
            }
            let slice = rest.split_to(rest.len().min(SLICE_BYTES));
            state.is_hungry = false;
            state.bytes_in_vain += slice.len();
            Poll::Ready(Some(Ok(slice)))
        })
    }
}

impl State {
    fn ended_by(&mut self, error: ApiError) -> io::Error {
        let told = io::Error::other(error.to_string());
        self.error = Some(error);
        told
    }
}

fn endless() -> ApiError {
    let message = format!(
        "the form cannot be read: no boundary, or no end of a part's headers, within \
         {IN_VAIN_BYTES_MAX} bytes"
    );
    ApiError::invalid("malformed_body", message)
}
