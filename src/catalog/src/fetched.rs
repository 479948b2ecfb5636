//! Recording of fetched originals for jobs accepted without one.

use rusqlite::params;

use super::error::Result;
use super::rows::Statements;
use super::{Catalog, allowance};
use crate::job::FetchedOriginal;
use lodestone_types::Sequence;

impl Catalog {
    /// Durably records the original of a job in progress, so that it need not be fetched again
    /// after an interruption. Returns false if the job has been cancelled.
    ///
    /// # Errors
    /// [`crate::CatalogError::TenantLimit`] if it does not fit within the tenant's limits; storage
    /// errors.
    pub fn fetched(&self, sequence: Sequence, original: FetchedOriginal) -> Result<bool> {
        let now = self.inner.clock.now();
        let defaults = self.inner.options.tenant_limits;
        self.write(move |connection| {
            let FetchedOriginal { raw_key, url, content_type, size_bytes, content_hash } =
                &original;
            let changed = connection.changed(
                "UPDATE jobs SET fetch = 0, raw_key = ?2, url = ?3, content_type = ?4,
                    size_bytes = ?5, content_hash = ?6, updated_at = ?7
                 WHERE seq = ?1 AND status = 'in_progress' AND fetch = 1",
                params![
                    sequence.0 as i64, raw_key, url, content_type, *size_bytes as i64,
                    content_hash, now.0 as i64,
                ],
            )?;
            if changed == 1 {
                allowance::fetched(connection, sequence, *size_bytes, defaults)?;
            }
            Ok(changed == 1)
        })
    }
}
