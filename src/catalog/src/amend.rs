//! Changes of the metadata of sources that were accepted and are not visible yet.

use std::collections::HashSet;

use rusqlite::params;

use super::Catalog;
use super::error::Result;
use super::rows::{Statements, blob};
use lodestone_types::{CollectionId, JobStatus, Metadata, Sequence, SourceId, SubTenantId};

/// The jobs whose metadata an amendment reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amended {
    /// Whether one waits or runs: it will publish the new maps.
    pub waits: bool,
    /// Whether one has failed: its source shows the new maps until a version of it is visible.
    pub is_errored: bool,
}

impl Catalog {
    /// Replaces metadata maps of the jobs of a source that have not succeeded; `None` keeps a map.
    /// A job that a worker holds is marked, so that the worker releases it ([`Self::amended`]).
    /// Returns the kinds of jobs that were changed.
    pub fn amend(
        &self,
        collection: CollectionId,
        sub_tenant: &SubTenantId,
        source: &SourceId,
        tenant_metadata: Option<&Metadata>,
        document_metadata: Option<&Metadata>,
    ) -> Result<Amended> {
        let text = |map: &Metadata| serde_json::to_string(map).expect("JSON values are valid JSON");
        let (tenant, document) = (tenant_metadata.map(text), document_metadata.map(text));
        let (sub_tenant, source) = (sub_tenant.clone(), source.clone());
        let now = self.inner.clock.now();
        self.write(move |connection| {
            let amend = "UPDATE jobs SET tenant_metadata = coalesce(?4, tenant_metadata),
                    document_metadata = coalesce(?5, document_metadata),
                    revision = revision + 1, updated_at = ?6
                WHERE source = ?1 AND collection = ?2 AND sub_tenant = ?3
                    AND status <> 'success' RETURNING status";
            let now = now.0 as i64;
            let (source, sub_tenant) = (source.as_str(), sub_tenant.as_str());
            let values = params![source, blob(collection), sub_tenant, tenant, document, now];
            let mut amended = Amended::default();
            connection.each(amend, values, |cells| {
                match cells.word(JobStatus::from_word)? {
                    JobStatus::Queued | JobStatus::InProgress => amended.waits = true,
                    JobStatus::Errored => amended.is_errored = true,
                    JobStatus::Success => {}
                }
                Ok(())
            })?;
            Ok(amended)
        })
    }

    /// The jobs of `claimed`, given with their revision at that time, that were amended since.
    pub fn amended(&self, claimed: &[(Sequence, u32)]) -> Result<Vec<Sequence>> {
        self.read(|connection| {
            let mut amended = Vec::new();
            for (sequence, revision) in claimed {
                if connection.any(
                    "SELECT 1 FROM jobs WHERE seq = ?1 AND revision <> ?2",
                    params![sequence.0 as i64, revision],
                )? {
                    amended.push(*sequence);
                }
            }
            Ok(amended)
        })
    }

    /// Keys of the originals that any job or file of a collection refers to.
    pub fn raw_keys(&self, collection: CollectionId) -> Result<HashSet<String>> {
        self.read(|connection| {
            let keys = connection.all(
                "SELECT raw_key FROM jobs WHERE collection = ?1
                 UNION ALL SELECT raw_key FROM files WHERE collection = ?1",
                [blob(collection)],
                |cells| cells.next(),
            )?;
            Ok(keys.into_iter().collect())
        })
    }
}
