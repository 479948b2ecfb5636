//! Limits of one upload, including containers within containers.

use std::cell::Cell;
use std::io;

use crate::ExtractError;

/// Maximum inflated bytes of all parts read from one upload. Documents within the text limit stay
/// far below it: markup is about three times the size of the text.
const INFLATED_BYTES_MAX: usize = 128 << 20;
/// Maximum nesting of documents: an attachment of a message attached to a message, and no deeper.
const DEPTH_MAX: usize = 2;
/// Maximum number of documents read inside one upload.
const ENCLOSED_MAX: usize = 200;

/// Counters of one upload.
#[derive(Debug, Default)]
pub(super) struct Budget {
    inflated: Cell<usize>,
    depth: Cell<usize>,
    enclosed: Cell<usize>,
    /// The limit that was exceeded, if any.
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

    /// Records an exceeded limit. The readers in between only know I/O errors.
    pub(super) fn exceed(&self, what: &'static str, max: usize) -> io::Error {
        self.exceeded.set(Some((what, max)));
        io::Error::other(what)
    }

    /// Converts a reader's failure: to the exceeded limit if there was one, else to damage.
    pub(super) fn failure(&self, format: &'static str, problem: String) -> ExtractError {
        match self.exceeded.get() {
            Some((what, max)) => ExtractError::BeyondLimit { what, max },
            None => ExtractError::Broken { format, problem },
        }
    }

    /// Runs `read` for a document inside the current one, unless nesting or the number of documents
    /// exceeds its limit.
    pub(super) fn enclosed<T>(
        &self,
        read: impl FnOnce() -> Result<T, ExtractError>,
    ) -> Result<T, ExtractError> {
        let is_beyond = |what, max| Err(ExtractError::BeyondLimit { what, max });
        if self.depth.get() >= DEPTH_MAX {
            return is_beyond("levels of nested documents", DEPTH_MAX);
        }
        if self.enclosed.get() >= ENCLOSED_MAX {
            return is_beyond("documents inside one document", ENCLOSED_MAX);
        }
        self.enclosed.set(self.enclosed.get() + 1);
        self.depth.set(self.depth.get() + 1);
        let outcome = read();
        self.depth.set(self.depth.get() - 1);
        outcome
    }
}
