//! Runs parsers in a child process that can do nothing but compute.
//!
//! Uploads are untrusted, and some of their readers are third-party code. Stack overflows and
//! out-of-memory cannot be caught within a process, so each such file is read in its own child
//! process:
//!
//! ```text
//! server                                 child: `lodestone parse`
//!   spawn, pipes for both ways     -->     confine: no files, no network, no processes,
//!   request as a line of JSON, bytes -->            512 MiB, 20 s of CPU time
//!   answer as JSON, picture        <--     read, extract or draw, answer, exit
//!   kill after 60 s
//! ```
//!
//! Formats whose reader is safe and makes a single linear pass (`Format::is_plain`) are read in the
//! server process, since a child costs some milliseconds.
//!
//! Invariants
//! - The server survives anything a child does, and the job ends with a stable code: one each for
//!   exceeding memory, exceeding time, a crash, and a child killed by the system.
//! - A child has [`MEMORY_BYTES_MAX`] beyond the memory of the program itself: its allocator
//!   reserves nothing in advance.
//! - A child sees one document and no file, socket, argument or environment variable of the server.
//!
//! - `confine`: drops privileges; `child`: reads one document
//! - `parent`: spawns, feeds, waits for and kills children

mod child;
mod confine;
mod parent;
#[cfg(test)]
mod tests;

pub use child::serve_one;
pub use confine::{MEMORY_BYTES_MAX, has_landlock};
pub use parent::Sandbox;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::{Drawing, ExtractError, Format, PagePicture, draw, read};
use lodestone_types::{Extracted, JobErrorCode};

/// The format and content of a document.
pub type Parsed = Result<(Format, Extracted), ExtractError>;

/// The image of a page.
pub type Drawn = Result<PagePicture, ExtractError>;

/// Reads documents, in this process or another.
pub trait Parser: fmt::Debug + Send + Sync {
    /// Like [`crate::extract`] for a document detected as `format`. Returns the actual format,
    /// which differs if an archive was named as another one.
    ///
    /// # Errors
    /// As [`crate::extract`], and errors of the child process.
    fn parse(&self, format: Format, bytes: &[u8]) -> Parsed;

    /// Like [`crate::draw`].
    ///
    /// # Errors
    /// As [`crate::draw`], and errors of the child process.
    fn draw(&self, format: Format, bytes: &[u8], drawing: &Drawing) -> Drawn;
}

/// Serialises a result of [`Parser::parse`] for another process of the same release.
pub fn parsed_to_bytes(result: Parsed) -> Vec<u8> {
    serde_json::to_vec(&Answer::of_text(result)).expect("plain data always prints")
}

/// Parses the output of [`parsed_to_bytes`]; `None` for other bytes.
pub fn parsed_from_bytes(bytes: &[u8]) -> Option<Parsed> {
    match serde_json::from_slice(bytes).ok()? {
        Answer::Drawn { .. } => None,
        answer => Some(answer.into_text()),
    }
}

/// Reads in the calling process: for tests, and if there is no program to start.
#[derive(Debug, Clone, Copy, Default)]
pub struct InProcess;

impl Parser for InProcess {
    fn parse(&self, format: Format, bytes: &[u8]) -> Parsed {
        read(format, bytes, &Budget::default())
    }

    fn draw(&self, format: Format, bytes: &[u8], drawing: &Drawing) -> Drawn {
        draw(format, bytes, drawing)
    }
}

/// The request to the child, sent before the bytes of the document.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    format: Format,
    /// The page to render, if an image is wanted instead of the text.
    drawing: Option<Drawing>,
}

/// The answer of the child. For an image, the bytes of the PNG follow.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Read(Format, Extracted),
    Drawn { pages: u32, size: (f32, f32), png_bytes: usize },
    NoPage { page: u32, pages: u32 },
    Failed { message: String, error_code: String },
}

impl Answer {
    /// Creates the answer for an extracted text.
    fn of_text(result: Parsed) -> Self {
        result.map_or_else(Self::of_error, |(format, extracted)| Self::Read(format, extracted))
    }

    /// Creates the answer for an image, and the bytes that follow it.
    fn of_picture(result: Drawn) -> (Self, Vec<u8>) {
        match result {
            Ok(PagePicture { pages, size, png }) => {
                (Self::Drawn { pages, size, png_bytes: png.len() }, png)
            }
            Err(error) => (Self::of_error(error), Vec::new()),
        }
    }

    fn of_error(error: ExtractError) -> Self {
        match error {
            ExtractError::PageUnknown { page, pages } => Self::NoPage { page, pages },
            error => {
                let error_code = error.error_code().as_str().to_owned();
                Self::Failed { message: error.to_string(), error_code }
            }
        }
    }

    /// The text, if this is an answer for one.
    fn into_text(self) -> Parsed {
        match self {
            Self::Read(format, extracted) => Ok((format, extracted)),
            other => Err(other.into_error()),
        }
    }

    /// The image, if this and the bytes that follow are an answer for one.
    fn into_picture(self, png: Vec<u8>) -> Drawn {
        match self {
            // A child may have died while writing it.
            Self::Drawn { pages, size, png_bytes } if png_bytes == png.len() => {
                Ok(PagePicture { pages, size, png })
            }
            other => Err(other.into_error()),
        }
    }

    fn into_error(self) -> ExtractError {
        match self {
            Self::Failed { message, error_code } => {
                let error_code =
                    JobErrorCode::from_word(&error_code).unwrap_or(JobErrorCode::CorruptFile);
                ExtractError::Reported { message, error_code }
            }
            Self::NoPage { page, pages } => ExtractError::PageUnknown { page, pages },
            Self::Read(format, _) => ExtractError::Crashed { format: format.as_str() },
            Self::Drawn { .. } => ExtractError::Crashed { format: Format::Pdf.as_str() },
        }
    }
}
