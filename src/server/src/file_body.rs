//! Response bodies that are read from a file while they are sent.
//!
//! ```text
//! head -> pieces of the file, as they are | in base64 | inside a JSON string -> tail
//! ```
//! However large the file and however slow the client, a body takes the memory of one piece. Its
//! length is known in advance, so the client notices if it breaks off.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, BodyDataStream};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use lodestone_engine::ingest::MemoryShare;
use lodestone_engine::{FileSlice, SpilledFile};

/// Size of one piece in bytes; a multiple of three, so that base64 needs padding only at the end.
const PIECE_BYTES: usize = 48 << 10;

/// Encoding of a file within a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// The bytes unchanged.
    Raw,
    /// Base64.
    Base64,
    /// The inside of a JSON string; the file must hold UTF-8.
    JsonText,
}

/// Marks a response whose body is a file and is not compressed, which would take memory and CPU
/// time for as long as it is sent.
#[derive(Debug, Clone, Copy)]
pub struct FromFile;

/// Decodes UTF-8 piece by piece, even if a piece ends within a character.
#[derive(Debug, Default)]
pub struct TextPieces {
    carried: Vec<u8>,
}

impl TextPieces {
    /// Returns the text of a piece, including a character begun by the previous one; `None` if it
    /// is not UTF-8. A character cut off at the end is kept for the next piece.
    pub fn text_of(&mut self, piece: &[u8]) -> Option<String> {
        let mut bytes = std::mem::take(&mut self.carried);
        bytes.extend_from_slice(piece);
        let end = match std::str::from_utf8(&bytes) {
            Ok(_) => bytes.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => return None,
        };
        self.carried = bytes.split_off(end);
        String::from_utf8(bytes).ok()
    }

    /// Whether the last piece ended at a character boundary.
    pub fn is_whole(&self) -> bool {
        self.carried.is_empty()
    }
}

/// Length in bytes of a text inside a JSON string as `serde_json` writes it.
pub fn json_text_len(text: &str) -> u64 {
    let bytes_of = |byte: u8| match byte {
        b'"' | b'\\' | 0x08 | 0x09 | 0x0a | 0x0c | 0x0d => 2,
        0..=0x1f => 6,
        _ => 1,
    };
    text.bytes().map(bytes_of).sum()
}

/// Length in bytes of `bytes` bytes in base64.
pub fn base64_len(bytes: u64) -> u64 {
    bytes.div_ceil(3) * 4
}

/// Builds a body of `head`, `file` in its encoding, and `tail`. `coded_bytes` is the length of the
/// encoded file.
pub fn body(head: Bytes, file: FileSlice, coding: Coding, coded_bytes: u64, tail: Bytes) -> Body {
    held(head, file, coding, coded_bytes, tail, ())
}

/// Builds a body from a spill file, whose share of the disk budget is released with it.
pub fn body_of_spilled(spilled: SpilledFile) -> Body {
    let (file, bytes) = (spilled.file.clone(), spilled.file.len());
    held(Bytes::new(), file, Coding::Raw, bytes, Bytes::new(), spilled)
}

/// Builds a body from memory, whose reservation is released with it.
pub fn body_in_memory(bytes: Bytes, share: MemoryShare) -> Body {
    let left = bytes.len() as u64;
    let stream = Body::from(bytes).into_data_stream();
    Body::new(OfKnownLength { stream, left, _held: share })
}

fn held(
    head: Bytes,
    file: FileSlice,
    coding: Coding,
    coded_bytes: u64,
    tail: Bytes,
    held: impl Send + Unpin + 'static,
) -> Body {
    let left = head.len() as u64 + coded_bytes + tail.len() as u64;
    let reader = Reader { file, at: 0, coding, text: TextPieces::default() };
    let pieces = stream::unfold(Some(reader), |reader| async move {
        let mut reader = reader.filter(|reader| reader.at < reader.file.len())?;
        let read = tokio::task::spawn_blocking(move || (reader.next(), reader)).await;
        match read {
            Ok((piece, reader)) => Some((piece, Some(reader))),
            Err(error) => Some((Err(io::Error::other(error)), None)),
        }
    });
    let ends = |bytes: Bytes| stream::iter([Ok::<_, io::Error>(bytes)]);
    let pieces = ends(head).chain(pieces).chain(ends(tail));
    let stream = Body::from_stream(pieces).into_data_stream();
    Body::new(OfKnownLength { stream, left, _held: held })
}

/// Reads the bytes of a file from offset `at`, at most one piece; empty at the end of the file.
///
/// # Errors
/// The operating system's error.
pub async fn piece(file: FileSlice, at: u64) -> io::Result<Bytes> {
    let read = tokio::task::spawn_blocking(move || {
        let mut piece = vec![0; PIECE_BYTES];
        let read = file.read_at(at, &mut piece).map_err(io::Error::other)?;
        piece.truncate(read);
        Ok(piece.into())
    });
    read.await.map_err(io::Error::other)?
}

struct Reader {
    file: FileSlice,
    at: u64,
    coding: Coding,
    text: TextPieces,
}

impl Reader {
    fn next(&mut self) -> io::Result<Bytes> {
        let mut piece = vec![0; PIECE_BYTES];
        let read = self.file.read_at(self.at, &mut piece).map_err(io::Error::other)?;
        piece.truncate(read);
        self.at += read as u64;
        Ok(match self.coding {
            Coding::Raw => piece.into(),
            Coding::Base64 => STANDARD.encode(&piece).into(),
            Coding::JsonText => {
                let text = self.text.text_of(&piece);
                let text = text.ok_or_else(|| io::Error::other("the file is not valid UTF-8"))?;
                let quoted = Bytes::from(serde_json::to_vec(&text)?);
                quoted.slice(1..quoted.len() - 1)
            }
        })
    }
}

/// A body of known length.
struct OfKnownLength<H> {
    stream: BodyDataStream,
    left: u64,
    /// Resources that are released at the end of the body.
    _held: H,
}

impl<H: Unpin> HttpBody for OfKnownLength<H> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let piece = std::task::ready!(Pin::new(&mut self.stream).poll_next(cx));
        if let Some(Ok(bytes)) = &piece {
            self.left = self.left.saturating_sub(bytes.len() as u64);
        }
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    async fn sent(bytes: &[u8], coding: Coding, coded_bytes: u64) -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        std::fs::write(&path, bytes).unwrap();
        let file = FileSlice::open(&path).unwrap();
        let body = body("<".into(), file, coding, coded_bytes, ">".into());
        let told = body.size_hint().exact().unwrap();
        let sent = body.collect().await.unwrap().to_bytes();
        assert_eq!(sent.len() as u64, told);
        sent[1..sent.len() - 1].to_vec()
    }

    #[tokio::test]
    async fn files_are_sent_in_every_coding_across_the_borders_of_pieces() {
        // Characters of one to four bytes, so that piece boundaries fall within them.
        let text = "a\u{e9}\u{20ac}\u{1f4da}\"\\\n\u{1}\u{7f}".repeat(10_001);
        let text = &text[..text.len() - 1];
        let bytes = text.as_bytes();
        assert!(bytes.len() > 3 * PIECE_BYTES && !bytes.len().is_multiple_of(3));
        assert_eq!(sent(bytes, Coding::Raw, bytes.len() as u64).await, bytes);
        let coded = sent(bytes, Coding::Base64, base64_len(bytes.len() as u64)).await;
        assert_eq!(coded, STANDARD.encode(bytes).into_bytes());
        let coded = sent(bytes, Coding::JsonText, json_text_len(text)).await;
        assert_eq!(
            format!("\"{}\"", String::from_utf8(coded).unwrap()),
            serde_json::to_string(text).unwrap()
        );
        assert_eq!(sent(b"", Coding::Raw, 0).await, b"");
    }

    #[test]
    fn all_characters_have_the_length_that_they_are_written_with() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            let mut buffer = [0; 4];
            let text: &str = c.encode_utf8(&mut buffer);
            let written = serde_json::to_string(text).unwrap().len() as u64 - 2;
            assert_eq!(json_text_len(text), written, "{c:?}");
        }
    }
}
