//! Parsers in a child process that can do nothing but compute.
//!
//! Uploads are untrusted, and some of their readers are third-party code. Stack overflows and
//! exhausted memory cannot be caught inside a process, so each such file is read by a child process
//! of its own:
//!
//! ```text
//! server                                 child: `lodestone parse`
//!   spawn, pipes for both ways     -->     confine: no files, no network, no processes,
//!   request as a line of JSON, bytes -->            512 MiB, 20 s of CPU time
//!   answer as JSON, picture        <--     read, extract or draw, answer, exit
//!   kill after 60 s
//! ```
//!
//! Formats with a safe reader of one linear pass (`Format::is_plain`) are read in the server's
//! process: a child costs some milliseconds.
//!
//! Invariants
//! - The server survives anything that a child does, and the job ends with a stable code: the limit
//!   of memory, that of time, a crash and a child that the system killed have one each.
//! - A child has [`MEMORY_BYTES_MAX`] beyond what the program takes by itself: its allocator
//!   reserves nothing in advance.
//! - A child sees one document and no file, socket, argument or variable of the server's.
//!
//! - `confine`: rights that a child drops; `child`: reading one document
//! - `parent`: spawning, feeding, waiting, killing

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

/// The format and the content of a document.
pub type Parsed = Result<(Format, Extracted), ExtractError>;

/// A picture of a page.
pub type Drawn = Result<PagePicture, ExtractError>;

/// A reader of documents, in this process or in another.
pub trait Parser: fmt::Debug + Send + Sync {
    /// As [`crate::extract`] for a document that was judged to be of `format`; with the format that
    /// it turned out to have, which differs where an archive was named for another.
    ///
    /// # Errors
    /// As [`crate::extract`], and errors of the child process.
    fn parse(&self, format: Format, bytes: &[u8]) -> Parsed;

    /// As [`crate::draw`].
    ///
    /// # Errors
    /// As [`crate::draw`], and errors of the child process.
    fn draw(&self, format: Format, bytes: &[u8], drawing: &Drawing) -> Drawn;
}

/// A result of [`Parser::parse`] as bytes, for another process of this release.
pub fn parsed_to_bytes(result: Parsed) -> Vec<u8> {
    serde_json::to_vec(&Answer::of_text(result)).expect("plain data always prints")
}

/// The result that [`parsed_to_bytes`] made bytes of; `None` of other bytes.
pub fn parsed_from_bytes(bytes: &[u8]) -> Option<Parsed> {
    match serde_json::from_slice(bytes).ok()? {
        Answer::Drawn { .. } => None,
        answer => Some(answer.into_text()),
    }
}

/// A reader in the process of the caller: for tests, and where there is no program to start.
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

/// The request to the child, before the bytes of the document.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    format: Format,
    /// The page to be drawn, where a picture is wanted and not the text.
    drawing: Option<Drawing>,
}

/// The answer of the child. Behind that of a picture stand the bytes of its file.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Read(Format, Extracted),
    Drawn { pages: u32, size: (f32, f32), png_bytes: usize },
    NoPage { page: u32, pages: u32 },
    Failed { message: String, error_code: String },
}

impl Answer {
    /// The answer that tells of text.
    fn of_text(result: Parsed) -> Self {
        result.map_or_else(Self::of_error, |(format, extracted)| Self::Read(format, extracted))
    }

    /// The answer that tells of a picture, and the bytes behind it.
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

    /// The text, where this tells of one.
    fn into_text(self) -> Parsed {
        match self {
            Self::Read(format, extracted) => Ok((format, extracted)),
            other => Err(other.into_error()),
        }
    }

    /// The picture, where this and the bytes behind it tell of one.
    fn into_picture(self, png: Vec<u8>) -> Drawn {
        match self {
            // A child may have ended in the middle of it.
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
