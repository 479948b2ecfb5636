//! Metadata changes to sources that are accepted but not yet visible, and the fields that their
//! jobs keep of the visible version.

use std::collections::HashSet;

use rusqlite::params;

use super::error::Result;
use super::rows::{Statements, blob, detail_to_text};
use super::{Catalog, known};
use lodestone_types::{
    CollectionId, JobStatus, Metadata, Sequence, SourceId, SourceRecord, SubTenantId,
};

/// The kinds of jobs that an amendment reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amended {
    /// Whether a job is waiting or running: it will publish the new maps.
    pub waits: bool,
    /// Whether a job has failed: its source shows the new maps until a version of it becomes
    /// visible.
    pub is_errored: bool,
    /// The newest acceptance of the source; `None` if the source is not known.
    pub newest: Option<Sequence>,
}

impl Catalog {
    /// Replaces the metadata maps in all jobs of a source that have not succeeded; `None` keeps a
    /// map. Jobs held by a worker get a new revision, so that the worker releases them
    /// ([`Self::amended`]). Returns the kinds of jobs changed.
    pub fn amend(
        &self,
        collection: CollectionId,
        sub_tenant: &SubTenantId,
        source: &SourceId,
        tenant_metadata: Option<&Metadata>,
        document_metadata: Option<&Metadata>,
    ) -> Result<Amended> {
        let (tenant, document) = (tenant_metadata.map(text_of), document_metadata.map(text_of));
        let (sub_tenant, source) = (sub_tenant.clone(), source.clone());
        let now = self.inner.clock.now();
        self.write(move |connection| {
            let amend = "UPDATE jobs SET tenant_metadata = coalesce(?4, tenant_metadata),
                    document_metadata = coalesce(?5, document_metadata),
                    revision = revision + 1, updated_at = ?6
                WHERE source = ?1 AND collection = ?2 AND sub_tenant = ?3
                    AND status <> 'success' RETURNING status";
            let newest = known::newest(connection, collection, &sub_tenant, &source)?;
            let now = now.0 as i64;
            let (source, sub_tenant) = (source.as_str(), sub_tenant.as_str());
            let values = params![source, blob(collection), sub_tenant, tenant, document, now];
            let mut amended = Amended { newest, ..Amended::default() };
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

    /// Sources with a job that has not succeeded, among `sources` or in the whole sub-tenant.
    pub fn yet_to_succeed(
        &self,
        collection: CollectionId,
        sub_tenant: &SubTenantId,
        sources: Option<&[SourceId]>,
    ) -> Result<Vec<SourceId>> {
        let any = "SELECT 1 FROM jobs WHERE source = ?3 AND collection = ?1 AND sub_tenant = ?2
            AND status <> 'success'";
        let every = "SELECT DISTINCT source FROM jobs WHERE collection = ?1 AND sub_tenant = ?2
            AND status IN ('queued', 'in_progress', 'errored')";
        let (collection, sub_tenant) = (blob(collection), sub_tenant.as_str());
        self.read(|connection| {
            let Some(sources) = sources else {
                return connection
                    .all(every, params![collection, sub_tenant], |cells| cells.source());
            };
            let mut found = Vec::new();
            for source in sources {
                if connection.any(any, params![collection, sub_tenant, source.as_str()])? {
                    found.push(source.clone());
                }
            }
            Ok(found)
        })
    }

    /// Copies into the unfinished jobs of these visible sources the fields that they keep of them,
    /// so that they no longer depend on a visible version. No version may be published
    /// concurrently.
    pub fn keep_stored(&self, collection: CollectionId, stored: Vec<SourceRecord>) -> Result<()> {
        self.write(move |connection| {
            for record in &stored {
                let scope = (record.id.as_str(), blob(collection), record.sub_tenant.as_str());
                let sql = "SELECT seq, url, detail FROM jobs WHERE source = ?1
                    AND collection = ?2 AND sub_tenant = ?3 AND status <> 'success'";
                let jobs = connection.all(sql, scope, |cells| {
                    Ok((cells.number()?, cells.next::<String>()?, cells.detail()?))
                })?;
                for (sequence, mut url, mut detail) in jobs {
                    detail.keep_from(&mut url, &record.detail, &record.url);
                    connection.run(
                        "UPDATE jobs SET tenant_metadata = coalesce(tenant_metadata, ?2),
                            document_metadata = coalesce(document_metadata, ?3), url = ?4,
                            detail = ?5 WHERE seq = ?1",
                        params![
                            sequence as i64,
                            text_of(&record.tenant_metadata),
                            text_of(&record.document_metadata),
                            url,
                            detail_to_text(&detail),
                        ],
                    )?;
                }
            }
            Ok(())
        })
    }

    /// Returns the jobs of `claimed`, each given with its revision at claim time, that have been
    /// amended since.
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

    /// Keys of all originals that jobs or files of a collection refer to.
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

fn text_of(map: &Metadata) -> String {
    serde_json::to_string(map).expect("JSON values are valid JSON")
}
