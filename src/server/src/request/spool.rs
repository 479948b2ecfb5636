//! A body on its way into memory or, beyond a few pages, into a file.

use std::io::{ErrorKind, Write};
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{ApiError, Condition};
use crate::routes::off_thread;
use lodestone_engine::{Spill, Spills};

/// The files of requests, and the key that they are counted for.
#[derive(Debug, Clone)]
pub struct Spooler {
    /// The files.
    pub spills: Arc<Spills>,
    /// Id of the key.
    pub owner: Arc<str>,
}

/// Bytes that a client is sending.
#[derive(Debug)]
pub struct Spool {
    /// `None` only while another thread writes it, and after a failure there.
    spill: Option<Spill>,
}

impl Spooler {
    /// No bytes yet.
    pub fn begin(&self) -> Spool {
        Spool { spill: Some(self.spills.begin(&self.owner)) }
    }
}

impl Spool {
    /// Number of bytes so far.
    pub fn len(&self) -> u64 {
        self.spill.as_ref().map_or(0, Spill::len)
    }

    /// Whether there are none yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds bytes. Where a file is written another thread does it.
    ///
    /// # Errors
    /// 503 where too many bytes are on their way, or the disk is full.
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

    /// All bytes. Those of a file are mapped: they take no memory of the process.
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
        self.spill.take().ok_or_else(|| ApiError::internal("a body was written after a failure"))
    }
}

/// The answer to a client whose request or answer finds no place.
pub fn refused(error: &std::io::Error) -> ApiError {
    let reason = match error.kind() {
        ErrorKind::QuotaExceeded => "overloaded",
        ErrorKind::StorageFull => "storage_full",
        _ => {
            tracing::error!(%error, "a body could not be written to a temporary file");
            let message = "the server cannot write temporary files";
            return ApiError::new(Condition::Unavailable, "storage_unavailable", message);
        }
    };
    ApiError::new(Condition::Unavailable, reason, error.to_string())
}
