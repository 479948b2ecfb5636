//! What can be wrong with a document, and whose fault it is.

use lodestone_types::{ErrorKind, Fault};

/// Why a document gives no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// The format is not read by this release. The wording is part of the contract (API 7 #26).
    #[error("Unsupported file format: {name}")]
    Unsupported {
        /// What the file seems to be, in words.
        name: String,
    },
    /// There is not one byte.
    #[error("the file is empty")]
    EmptyFile,
    /// The bytes are not what the format demands.
    #[error("the {format} is damaged at line {line}: {problem}")]
    Damaged {
        /// The format.
        format: &'static str,
        /// The line at which reading stopped, from 1.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// The container or the binary structure of a document is not what the format demands.
    #[error("the {format} is damaged: {problem}")]
    Broken {
        /// The format.
        format: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// Nobody can read it without a password or a licence.
    #[error("the {format} is encrypted: save it without a password and upload it again")]
    Encrypted {
        /// The format.
        format: &'static str,
    },
    /// The document is well formed, but beyond a bound.
    #[error("the document is beyond a limit: {what} (at most {max})")]
    BeyondLimit {
        /// What there is too much of.
        what: &'static str,
        /// The bound.
        max: usize,
    },
    /// A parser in another process refused it.
    #[error("{message}")]
    Told {
        /// What it said.
        message: String,
        /// Why the job ends.
        fault: Fault,
        /// Whether it was beyond a bound.
        is_too_large: bool,
    },
    /// A parser in another process ended without an answer, twice.
    #[error("the {format} reader broke down on it: damaged, or more than 512 MiB to read")]
    BrokeDown {
        /// The format.
        format: &'static str,
    },
    /// A parser in another process took too long.
    #[error("reading the {format} took longer than 20 seconds of CPU time or a minute")]
    TooSlow {
        /// The format.
        format: &'static str,
    },
    /// No process could be started.
    #[error("no parser could be started: {problem}")]
    NoParser {
        /// What the system says.
        problem: String,
    },
    /// There is nothing to search for.
    #[error("no text was found in the document: it holds only white space, markup or empty values")]
    NoText,
    /// There are pages, and all that they show is pictures.
    #[error(
        "no text was found in the {format}: its pages hold only pictures, as scanned pages do; \
         recognise the text (OCR) and upload the result"
    )]
    OnlyPictures {
        /// The format.
        format: &'static str,
    },
}

impl ExtractError {
    /// What the caller should do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unsupported { .. }
            | Self::EmptyFile
            | Self::Damaged { .. }
            | Self::Broken { .. }
            | Self::BrokeDown { .. }
            | Self::TooSlow { .. }
            | Self::Encrypted { .. }
            | Self::OnlyPictures { .. }
            | Self::NoText => ErrorKind::Invalid,
            Self::Told { is_too_large: false, .. } => ErrorKind::Invalid,
            Self::Told { is_too_large: true, .. } => ErrorKind::TooLarge,
            Self::NoParser { .. } => ErrorKind::Unavailable,
            Self::BeyondLimit { .. } => ErrorKind::TooLarge,
        }
    }

    /// Why a job that met this error ends. But for [`Self::NoParser`] the document is at fault:
    /// trying again cannot help.
    pub fn fault(&self) -> Fault {
        match self {
            Self::EmptyFile | Self::NoText | Self::OnlyPictures { .. } => Fault::NoText,
            Self::Told { fault, .. } => *fault,
            Self::TooSlow { .. } => Fault::Timeout,
            Self::NoParser { .. } => Fault::Internal,
            Self::Encrypted { .. } => Fault::EncryptedFile,
            Self::Unsupported { .. }
            | Self::Damaged { .. }
            | Self::Broken { .. }
            | Self::BrokeDown { .. }
            | Self::BeyondLimit { .. } => Fault::CorruptFile,
        }
    }
}

/// The line of `text` in which `byte` stands, from 1.
pub(super) fn line_of(text: &str, byte: usize) -> usize {
    1 + text.as_bytes()[..byte.min(text.len())].iter().filter(|&&b| b == b'\n').count()
}
