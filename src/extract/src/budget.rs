//! Limits of one upload, containers in containers included.

use std::cell::Cell;
use std::io;

use crate::ExtractError;

/// Bytes that the parts of one upload which are read may inflate to. A document whose text fits its
/// own limit stays far below: markup is about three times the text.
const INFLATED_BYTES_MAX: usize = 128 << 20;
/// Documents in documents: the attachment of a message in a message, and no deeper.
const DEPTH_MAX: usize = 2;
/// Documents that are read inside one upload.
const ENCLOSED_MAX: usize = 200;

/// Counters of one upload.
#[derive(Debug, Default)]
pub(super) struct Budget {
    inflated: Cell<usize>,
    depth: Cell<usize>,
    enclosed: Cell<usize>,
    /// The limit that was exceeded, if one was.
    exceeded: Cell<Option<(&'static str, usize)>>,
}

impl Budget {
    /// Counts inflated bytes.
    pub(super) fn inflate(&self, bytes: usize) -> io::Result<()> {
        self.inflated.set(self.inflated.get().saturating_add(bytes));
        if self.inflated.get() > INFLATED_BYTES_MAX {
            return Err(self.exceed("bytes of unpacked content", INFLATED_BYTES_MAX));
        }
        Ok(())
    }

    /// Remembers that a limit was exceeded. Readers in between know input errors only.
    pub(super) fn exceed(&self, what: &'static str, max: usize) -> io::Error {
        self.exceeded.set(Some((what, max)));
        io::Error::other(what)
    }

    /// The error of a reader that stopped: a limit where one was exceeded, else damage.
    pub(super) fn failure(&self, format: &'static str, problem: String) -> ExtractError {
        match self.exceeded.get() {
            Some((what, max)) => ExtractError::BeyondLimit { what, max },
            None => ExtractError::Broken { format, problem },
        }
    }

    /// Runs `read` for a document inside the one under way, unless that is too deep, or one too
    /// many.
    pub(super) fn enclosed<T>(
        &self,
        read: impl FnOnce() -> Result<T, ExtractError>,
    ) -> Result<T, ExtractError> {
        let is_beyond = |what, max| Err(ExtractError::BeyondLimit { what, max });
        if self.depth.get() >= DEPTH_MAX {
            return is_beyond("levels of documents in documents", DEPTH_MAX);
        }
        if self.enclosed.get() >= ENCLOSED_MAX {
            return is_beyond("documents in one document", ENCLOSED_MAX);
        }
        self.enclosed.set(self.enclosed.get() + 1);
        self.depth.set(self.depth.get() + 1);
        let outcome = read();
        self.depth.set(self.depth.get() - 1);
        outcome
    }
}
