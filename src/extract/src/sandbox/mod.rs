//! Parsers in a child process that can do nothing but compute.
//!
//! Uploads are untrusted, and some of their readers are third-party code. Stack overflows and
//! exhausted memory cannot be caught inside a process, so each such file is read by a child process
//! of its own:
//!
//! ```text
//! server                                 child: `lodestone parse`
//!   spawn, pipes for both ways     -->     confine: no files, no network, no processes,
//!   format as a line of JSON, bytes -->             512 MiB, 20 s of CPU time
//!   answer as JSON                 <--     read, extract, answer, exit
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
use crate::{ExtractError, Format, read};
use lodestone_types::{Extracted, Fault};

/// The format and the content of a document.
pub type Parsed = Result<(Format, Extracted), ExtractError>;

/// A reader of documents, in this process or in another.
pub trait Parser: fmt::Debug + Send + Sync {
    /// As [`crate::extract`] for a document that was judged to be of `format`; with the format that
    /// it turned out to have, which differs where an archive was named for another.
    ///
    /// # Errors
    /// As [`crate::extract`], and errors of the child process.
    fn parse(&self, format: Format, bytes: &[u8]) -> Parsed;
}

/// A reader in the process of the caller: for tests, and where there is no program to start.
#[derive(Debug, Clone, Copy, Default)]
pub struct InProcess;

impl Parser for InProcess {
    fn parse(&self, format: Format, bytes: &[u8]) -> Parsed {
        read(format, bytes, &Budget::default())
    }
}

/// The request to the child, before the bytes of the document.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    format: Format,
}

/// The answer of the child.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Read(Format, Extracted),
    Failed { message: String, fault: String },
}

impl Answer {
    fn new(result: Parsed) -> Self {
        match result {
            Ok((format, extracted)) => Self::Read(format, extracted),
            Err(error) => Self::Failed {
                message: error.to_string(),
                fault: error.fault().as_str().to_owned(),
            },
        }
    }

    fn into_result(self) -> Parsed {
        match self {
            Self::Read(format, extracted) => Ok((format, extracted)),
            Self::Failed { message, fault } => {
                let fault = Fault::from_word(&fault).unwrap_or(Fault::CorruptFile);
                Err(ExtractError::Reported { message, fault })
            }
        }
    }
}
