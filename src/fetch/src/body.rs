//! Bodies: decompressed as they arrive, up to a limit.

use std::io::{self, Read};

use brotli_decompressor::Decompressor;
use flate2::read::MultiGzDecoder;
use ureq::http::{HeaderMap, header};

use crate::error::RequestError;
use lodestone_types::FetchProblem;

/// Window of Zstandard that is accepted, as a power of two (RFC 9659).
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// Bytes of the buffer before the brotli reader.
const BROTLI_BUFFER_BYTES: usize = 16 << 10;
/// First byte of a brotli stream with a window of up to a gigabyte, which is in no standard.
const BROTLI_LARGE_WINDOW: u8 = 0x11;

/// Treatment of bytes beyond the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overflow {
    /// The body is refused.
    Refuse,
    /// The bytes beyond the limit are not read.
    Cut,
}

/// Compression of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Not at all.
    Identity,
    /// Gzip.
    Gzip,
    /// Brotli.
    Brotli,
    /// Zstandard.
    Zstd,
}

impl Encoding {
    /// Reads the encoding from the head. Several, one over the other, are an error: none was asked
    /// for.
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

/// Reads `body`; `explain` translates its errors.
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
        // One more than fits tells a full body from one that is too long.
        reader.take(bytes_max as u64 + 1).read_to_end(&mut bytes)
    });
    // An error of the transfer comes before the error that the decoder made of it.
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
    // A body that is empty is not compressed, whatever its head says.
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

/// A body that remembers its error: decoders replace it by errors of their own.
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
