//! Parsers in a process of their own, which can do nothing but compute.
//!
//! A file from a stranger meets readers of a dozen formats, some of them other people's code. Stack
//! overflows and exhausted memory cannot be caught in a process; so each such file is read by a
//! child that lives for it alone:
//!
//! ```text
//! server                                 child: `lodestone parse`
//!   spawn, pipes for both ways     -->     confine: no files, no network, no processes,
//!   format as a line of JSON, bytes -->             512 MiB, 20 s of CPU time
//!   answer as JSON                 <--     read, extract, answer, exit
//!   kill after 60 s
//! ```
//!
//! Formats that our own safe, linear readers take in one pass (`Format::is_plain`) are read in the
//! process: a child costs some milliseconds.
//!
//! Invariants
//! - Whatever a child does, the server goes on, and the job ends with a stable code.
//! - A child sees one document and no file, socket, argument or variable of the server's.
//!
//! - `confine`: what a child gives up before it reads; `child`: its whole life
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

/// Reads documents: in this process or in another.
pub trait Parser: fmt::Debug + Send + Sync {
    /// As [`extract`].
    ///
    /// # Errors
    /// As [`extract`], and what can happen to another process.
    fn parse(&self, format: Format, bytes: &[u8]) -> Result<Extracted, ExtractError>;
}

/// Reads in the process of the caller: for tests, and where there is no program to start.
#[derive(Debug, Clone, Copy, Default)]
pub struct InProcess;

impl Parser for InProcess {
    fn parse(&self, format: Format, bytes: &[u8]) -> Result<Extracted, ExtractError> {
        extract(format, bytes)
    }
}

/// What the child is asked for, before the bytes of the document.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    format: Format,
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Read(Extracted),
    Refused { message: String, fault: String, is_too_large: bool },
}

impl Answer {
    fn new(result: Result<Extracted, ExtractError>) -> Self {
        match result {
            Ok(extracted) => Self::Read(extracted),
            Err(error) => Self::Refused {
                message: error.to_string(),
                fault: error.fault().as_str().to_owned(),
                is_too_large: error.kind() == ErrorKind::TooLarge,
            },
        }
    }

    fn into_result(self) -> Result<Extracted, ExtractError> {
        match self {
            Self::Read(extracted) => Ok(extracted),
            Self::Refused { message, fault, is_too_large } => {
                let fault = Fault::from_word(&fault).unwrap_or(Fault::CorruptFile);
                Err(ExtractError::Told { message, fault, is_too_large })
            }
        }
    }
}
