//! Collects a body in memory or, beyond a few pages, in a file.

use std::io::{ErrorKind, Write};
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{ApiError, Condition};
use crate::routes::off_thread;
use lodestone_engine::{Spill, Spills};

/// Creates spools for requests and responses, counted for one owner.
#[derive(Debug, Clone)]
pub struct Spooler {
    /// The spill files of the server.
    pub spills: Arc<Spills>,
    /// The owner of the key ([`lodestone_types::Grant::owner`]); empty if there is no key.
    pub owner: Arc<str>,
}

/// Data that is being received from a client.
#[derive(Debug)]
pub struct Spool {
    /// `None` only while another thread writes it, and after that has failed.
    spill: Option<Spill>,
}

impl Spooler {
    /// Begins an empty spool.
    pub fn begin(&self) -> Spool {
        Spool { spill: Some(self.spills.begin(&self.owner)) }
    }
}

impl Spool {
    /// Returns the number of bytes so far.
    pub fn len(&self) -> u64 {
        self.spill.as_ref().map_or(0, Spill::len)
    }

    /// Whether the spool is still empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends bytes. Writes to a file happen on a blocking thread.
    ///
    /// # Errors
    /// 503 if too many bytes are spooled at once, or the disk is full.
    pub async fn push(&mut self, data: Bytes) -> Result<(), ApiError> {
        let mut spill = self.take()?;
        if spill.fits(data.len()) {
            spill.write_all(&data).map_err(|error| refused(&error))?;
        } else {
            spill = off_thread(move || match spill.write_all(&data) {
                Ok(()) => Ok(spill),
                Err(error) => Err(refused(&error)),
            })
            .await?;
        }
        self.spill = Some(spill);
        Ok(())
    }

    /// Returns all bytes. A file is memory-mapped and takes no heap memory.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub async fn finish(mut self) -> Result<Bytes, ApiError> {
        let spill = self.take()?;
        let failed = |error: lodestone_engine::IoError| ApiError::internal(error.to_string());
        match spill.is_in_memory() {
            true => spill.finish().and_then(|spilled| spilled.into_bytes()).map_err(failed),
            false => {
                off_thread(move || spill.finish().and_then(|s| s.into_bytes()).map_err(failed))
                    .await
            }
        }
    }

    fn take(&mut self) -> Result<Spill, ApiError> {
        self.spill
            .take()
            .ok_or_else(|| ApiError::internal("a body was written after an earlier write failed"))
    }
}

/// Converts a failure to store a request or response into the client's error.
pub fn refused(error: &std::io::Error) -> ApiError {
    let reason = match error.kind() {
        ErrorKind::QuotaExceeded => "overloaded",
        ErrorKind::StorageFull => "storage_full",
        _ => {
            tracing::error!(%error, "writing a request body to a temporary file failed");
            let message = "the server cannot write temporary files; see the server log";
            return ApiError::new(Condition::Unavailable, "storage_unavailable", message);
        }
    };
    ApiError::new(Condition::Unavailable, reason, error.to_string())
}
