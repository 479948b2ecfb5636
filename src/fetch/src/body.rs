//! Reads response bodies, decompressing them on the fly up to a limit.

use std::io::{self, Read};

use brotli_decompressor::Decompressor;
use flate2::read::MultiGzDecoder;
use ureq::http::{HeaderMap, header};

use crate::error::RequestError;
use lodestone_types::FetchProblem;

/// Maximum window of Zstandard, as a power of two (RFC 9659).
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// Size of the brotli decoder's input buffer.
const BROTLI_BUFFER_BYTES: usize = 16 << 10;
/// First byte of a brotli stream with the non-standard large window, of up to 1 GiB.
const BROTLI_LARGE_WINDOW: u8 = 0x11;

/// Handling of bytes beyond the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overflow {
    /// Fail.
    Refuse,
    /// Stop reading at the limit.
    Cut,
}

/// Compression of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// No compression.
    Identity,
    /// Gzip.
    Gzip,
    /// Brotli.
    Brotli,
    /// Zstandard.
    Zstd,
}

impl Encoding {
    /// Reads the encoding from the headers. Several stacked encodings are an error, because none
    /// were asked for.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, FetchProblem> {
        let mut found = Self::Identity;
        for value in headers.get_all(header::CONTENT_ENCODING) {
            for name in value.to_str().map_err(|_| FetchProblem::Encoding)?.split(',') {
                let encoding = match name.trim().to_ascii_lowercase().as_str() {
                    "" | "identity" => continue,
                    "gzip" | "x-gzip" => Self::Gzip,
                    "br" => Self::Brotli,
                    "zstd" => Self::Zstd,
                    _ => return Err(FetchProblem::Encoding),
                };
                if found != Self::Identity {
                    return Err(FetchProblem::Encoding);
                }
                found = encoding;
            }
        }
        Ok(found)
    }
}

/// Reads and decompresses `body`; `explain` translates errors of the transfer.
pub(super) fn read(
    body: impl Read,
    encoding: Encoding,
    bytes_max: usize,
    overflow: Overflow,
    explain: &dyn Fn(&io::Error) -> RequestError,
) -> Result<Vec<u8>, RequestError> {
    let mut lost = None;
    let source = Source { body, explain, lost: &mut lost };
    let mut bytes = Vec::new();
    let result = decoded(source, encoding).and_then(|reader| {
        // One byte more than allowed tells a body that just fits from one that is too long.
        reader.take(bytes_max as u64 + 1).read_to_end(&mut bytes)
    });
    // The error of the transfer is the cause of the decoder's error.
    if let Some(error) = lost {
        return Err(error);
    }
    result.map_err(|_| FetchProblem::Encoding)?;
    if bytes.len() > bytes_max {
        match overflow {
            Overflow::Refuse => {
                return Err(FetchProblem::TooLarge { bytes_max: bytes_max as u64 }.into());
            }
            Overflow::Cut => bytes.truncate(bytes_max),
        }
    }
    Ok(bytes)
}

fn decoded<'a>(mut source: impl Read + 'a, encoding: Encoding) -> io::Result<Box<dyn Read + 'a>> {
    // An empty body is not compressed, whatever the headers say.
    let mut first = [0];
    if source.read(&mut first)? == 0 {
        return Ok(Box::new(io::empty()));
    }
    let body = io::Cursor::new(first).chain(source);
    Ok(match encoding {
        Encoding::Identity => Box::new(body),
        Encoding::Gzip => Box::new(MultiGzDecoder::new(body)),
        Encoding::Brotli if first[0] & 0x7F == BROTLI_LARGE_WINDOW => {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Encoding::Brotli => Box::new(Decompressor::new(body, BROTLI_BUFFER_BYTES)),
        Encoding::Zstd => {
            let mut decoder = zstd::Decoder::new(body)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
            Box::new(decoder)
        }
    })
}

/// A body that keeps its first error, because decoders replace it by their own.
struct Source<'a, R> {
    body: R,
    explain: &'a dyn Fn(&io::Error) -> RequestError,
    lost: &'a mut Option<RequestError>,
}

impl<R: Read> Read for Source<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.body.read(buffer).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                self.lost.get_or_insert_with(|| (self.explain)(error));
            }
        })
    }
}
