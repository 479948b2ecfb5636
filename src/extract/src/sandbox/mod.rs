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
//! - The server survives anything that a child does, and the job ends with a stable code.
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
pub use parent::Sandbox;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ExtractError, Format, extract};
use lodestone_types::{ErrorKind, Extracted, Fault};

/// A reader of documents, in this process or in another.
pub trait Parser: fmt::Debug + Send + Sync {
    /// As [`extract`].
    ///
    /// # Errors
    /// As [`extract`], and errors of the child process.
    fn parse(&self, format: Format, bytes: &[u8]) -> Result<Extracted, ExtractError>;
}

/// A reader in the process of the caller: for tests, and where there is no program to start.
#[derive(Debug, Clone, Copy, Default)]
pub struct InProcess;

impl Parser for InProcess {
    fn parse(&self, format: Format, bytes: &[u8]) -> Result<Extracted, ExtractError> {
        extract(format, bytes)
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
    Read(Extracted),
    Failed { message: String, fault: String, is_too_large: bool },
}

impl Answer {
    fn new(result: Result<Extracted, ExtractError>) -> Self {
        match result {
            Ok(extracted) => Self::Read(extracted),
            Err(error) => Self::Failed {
                message: error.to_string(),
                fault: error.fault().as_str().to_owned(),
                is_too_large: error.kind() == ErrorKind::TooLarge,
            },
        }
    }

    fn into_result(self) -> Result<Extracted, ExtractError> {
        match self {
            Self::Read(extracted) => Ok(extracted),
            Self::Failed { message, fault, is_too_large } => {
                let fault = Fault::from_word(&fault).unwrap_or(Fault::CorruptFile);
                Err(ExtractError::Reported { message, fault, is_too_large })
            }
        }
    }
}
