//! Recovery of jobs that were in progress when the server stopped.

use std::sync::atomic::Ordering;

use uuid::Uuid;

use super::Catalog;
use super::error::Result;
use super::rows::{Statements, blob};
use super::settle::{End, apply, find};
use crate::job::Settled;
use lodestone_types::{CollectionId, JobErrorCode, JobEvent, Sequence};

const MESSAGE: &str = "the server stopped several times while this document was processed";

impl Catalog {
    /// Lists, by collection, the jobs that were in progress when the server stopped, except those
    /// of deleted tenants. The caller settles as published the ones whose sequence a manifest
    /// contains, then calls [`Self::requeue_interrupted`].
    pub fn interrupted(&self) -> Result<Vec<(CollectionId, Vec<Sequence>)>> {
        self.read(|connection| {
            let sql = "SELECT j.collection, j.seq FROM jobs j JOIN tenants t
                    ON t.collection = j.collection
                WHERE j.status = 'in_progress' AND t.deleting = 0
                ORDER BY j.collection, j.seq";
            let mut groups: Vec<(CollectionId, Vec<Sequence>)> = Vec::new();
            connection.each(sql, [], |cells| {
                let (collection, sequence) = (cells.collection()?, Sequence(cells.number()?));
                match groups.last_mut() {
                    Some((last, sequences)) if *last == collection => sequences.push(sequence),
                    _ => groups.push((collection, vec![sequence])),
                }
                Ok(())
            })?;
            Ok(groups)
        })
    }

    /// The oldest waiting or running job of a collection.
    pub fn oldest_unsettled(&self, collection: CollectionId) -> Result<Option<Sequence>> {
        self.read(|connection| {
            let sql = "SELECT min(seq) FROM jobs
                WHERE collection = ?1 AND status IN ('queued', 'in_progress')";
            let oldest =
                connection.one(sql, [blob(collection)], |cells| cells.optional_number())?;
            Ok(oldest.map(Sequence))
        })
    }

    /// Requeues interrupted jobs, and fails those interrupted too often. Returns their number; a
    /// second call does nothing. Claims are refused until this has run.
    pub fn requeue_interrupted(&self) -> Result<usize> {
        if self.inner.is_recovered.load(Ordering::SeqCst) {
            return Ok(0);
        }
        let count = self.write_telling(move |connection, teller| {
            let running = connection.all(
                "SELECT seq FROM jobs WHERE status = 'in_progress' ORDER BY seq",
                [],
                |cells| cells.number(),
            )?;
            for sequence in &running {
                let end = End {
                    event: JobEvent::Interrupted,
                    chunks: None,
                    error_code: Some(JobErrorCode::Internal),
                    message: MESSAGE.into(),
                };
                // Originals of superseded jobs become orphans, which are later collected by
                // reference.
                let mut settled = Settled::default();
                if let Some(job) = find(connection, Sequence(*sequence))? {
                    apply(connection, &job, end, teller, &mut settled)?;
                    if settled.states.iter().any(|(_, state)| state.is_settled()) {
                        let collection = CollectionId(Uuid::from_bytes(job.collection));
                        teller.tell_drained(connection, collection)?;
                    }
                }
            }
            Ok(running.len())
        })?;
        self.inner.is_recovered.store(true, Ordering::SeqCst);
        self.inner.work.notify();
        Ok(count)
    }
}
