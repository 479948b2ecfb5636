//! Errors of documents, and of the processes that read them.

use crate::sandbox::MEMORY_BYTES_MAX;
use lodestone_types::{ErrorKind, JobErrorCode};

/// The reason why a document yields no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// The format is not supported. The wording is part of the API contract.
    #[error("Unsupported file format: {name}")]
    Unsupported {
        /// Name of the format.
        name: String,
    },
    /// The file is empty.
    #[error("the file is empty")]
    EmptyFile,
    /// The bytes violate the format.
    #[error("the {format} is damaged at line {line}: {problem}")]
    Damaged {
        /// The format.
        format: &'static str,
        /// The line at which reading stopped, from 1.
        line: usize,
        /// Description of the damage.
        problem: String,
    },
    /// The file contains comments, which the format does not allow.
    #[error("line {line} contains a comment, which {format} does not allow")]
    Commented {
        /// The format.
        format: &'static str,
        /// The line of the comment, from 1.
        line: usize,
    },
    /// The container or binary structure of the document violates the format.
    #[error("the {format} is damaged: {problem}")]
    Broken {
        /// The format.
        format: &'static str,
        /// Description of the damage.
        problem: String,
    },
    /// The document cannot be read without a password or a licence.
    #[error("the {format} is encrypted: save it without a password and upload it again")]
    Encrypted {
        /// The format.
        format: &'static str,
    },
    /// The document is well formed but exceeds a limit.
    #[error("the document is beyond a limit: {what} (at most {max})")]
    BeyondLimit {
        /// The limited quantity.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// An error reported by a parser in another process.
    #[error("{message}")]
    Reported {
        /// Its message.
        message: String,
        /// Its code in jobs.
        error_code: JobErrorCode,
    },
    /// A parser in another process crashed twice.
    #[error("the {format} reader crashed on it twice: the file is probably damaged")]
    Crashed {
        /// The format.
        format: &'static str,
    },
    /// A parser in another process reached its memory limit.
    #[error("reading the {format} takes more than {} MiB of memory", MEMORY_BYTES_MAX >> 20)]
    OutOfMemory {
        /// The format.
        format: &'static str,
    },
    /// A parser in another process was killed from outside, twice, the second time with no other
    /// parser running.
    #[error("the system killed the {format} reader, twice, as it does when memory runs out")]
    Killed {
        /// The format.
        format: &'static str,
    },
    /// A parser in another process took too long.
    #[error("reading the {format} took longer than 20 seconds of CPU time or a minute")]
    TooSlow {
        /// The format.
        format: &'static str,
    },
    /// A parser process could not be started.
    #[error("no parser could be started: {problem}")]
    NoParser {
        /// The error of the operating system.
        problem: String,
    },
    /// The format has no pages that could be drawn.
    #[error("a {format} document has no pages that can be rendered: only PDFs have")]
    NoPages {
        /// The format.
        format: &'static str,
    },
    /// The page takes too long to render, or crashes the renderer.
    #[error("page {page} cannot be rendered: {problem}")]
    NotDrawn {
        /// The page, from 1.
        page: u32,
        /// The reason.
        problem: &'static str,
    },
    /// The document does not have that many pages.
    #[error("page {page} does not exist: the document has {pages}")]
    PageUnknown {
        /// The requested page, from 1.
        page: u32,
        /// Number of pages of the document.
        pages: u32,
    },
    /// There is no text in the document.
    #[error(
        "no text was found in the document: it contains only white space, markup or empty \
        values"
    )]
    NoText,
    /// The pages of the document only contain pictures.
    #[error(
        "no text was found in the {format}: its pages contain only pictures, probably scans; run \
         text recognition (OCR) and upload the result"
    )]
    OnlyPictures {
        /// The format.
        format: &'static str,
    },
}

impl ExtractError {
    /// The error kind, which says what the caller should do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unsupported { .. }
            | Self::EmptyFile
            | Self::Damaged { .. }
            | Self::Commented { .. }
            | Self::Broken { .. }
            | Self::Crashed { .. }
            | Self::TooSlow { .. }
            | Self::Encrypted { .. }
            | Self::OnlyPictures { .. }
            | Self::NoPages { .. }
            | Self::NotDrawn { .. }
            | Self::PageUnknown { .. }
            | Self::NoText => ErrorKind::Invalid,
            Self::Reported { error_code: JobErrorCode::TooLarge, .. } => ErrorKind::TooLarge,
            Self::Reported { .. } => ErrorKind::Invalid,
            Self::NoParser { .. } | Self::Killed { .. } => ErrorKind::Unavailable,
            Self::BeyondLimit { .. } | Self::OutOfMemory { .. } => ErrorKind::TooLarge,
        }
    }

    /// The code with which a job ends after this error. Except for [`Self::NoParser`] and
    /// [`Self::Killed`], the document is at fault and a retry cannot help.
    pub fn error_code(&self) -> JobErrorCode {
        match self {
            Self::EmptyFile | Self::NoText | Self::OnlyPictures { .. } => JobErrorCode::NoText,
            Self::Reported { error_code, .. } => *error_code,
            Self::TooSlow { .. } => JobErrorCode::Timeout,
            Self::NoParser { .. } | Self::Killed { .. } => JobErrorCode::Internal,
            Self::BeyondLimit { .. } | Self::OutOfMemory { .. } => JobErrorCode::TooLarge,
            Self::Encrypted { .. } => JobErrorCode::EncryptedFile,
            Self::Unsupported { .. }
            | Self::NoPages { .. }
            | Self::NotDrawn { .. }
            | Self::PageUnknown { .. }
            | Self::Damaged { .. }
            | Self::Commented { .. }
            | Self::Broken { .. }
            | Self::Crashed { .. } => JobErrorCode::CorruptFile,
        }
    }
}

/// The line of `text` that contains `byte`, from 1.
pub(super) fn line_of(text: &str, byte: usize) -> usize {
    1 + text.as_bytes()[..byte.min(text.len())].iter().filter(|&&b| b == b'\n').count()
}
