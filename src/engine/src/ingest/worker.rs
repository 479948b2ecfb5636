//! Threads that turn accepted jobs into visible rows.
//!
//! Each claims the waiting jobs of one collection, up to a limit, and publishes them together: one
//! segment, one commit, one transaction of the catalog. Several work at once, so that the model
//! stays busy while a segment is built. A claim reads documents for [`READ_MILLIS`]; jobs that it
//! has not reached by then are queued again, so that slow documents do not occupy a worker.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::ingest::failure::{self, PAUSE};
use crate::ingest::web::{self, Fetched};
use crate::ingest::{Ingest, IngestError, memory};
use crate::stage::stage;
use lodestone_catalog::job::{Claim, ClaimLimits, ClaimedJob, Duty, Outcome, Settlement};
use lodestone_catalog::{CatalogError, Tenant};
use lodestone_embed::Embedder;
use lodestone_storage::collection::{AddedSegment, Collection, Edit};
use lodestone_storage::segment::{NewSource, VectorKind};
use lodestone_types::{CollectionId, ErrorKind, JobErrorCode, Sequence, Stage, TenantId};

/// Size of a claim: large enough that the half dozen fsyncs of a commit are a small share of
/// embedding it, small enough that its first document is visible within seconds on one core.
pub(super) const CLAIM: ClaimLimits = ClaimLimits { jobs: 128, bytes: 256 << 10 };
/// Time in milliseconds after which a claim reads no further documents.
const READ_MILLIS: u64 = 2000;
/// Time that an idle worker sleeps before it checks for retries that are due.
const IDLE: Duration = Duration::from_secs(1);

/// Message of a job whose source was stored by a later operation. Such jobs exist if the catalog is
/// older than the segments.
const OUTDATED: &str = "a later version of this source is already stored; this one was discarded";

impl Ingest {
    /// Processes originals until shutdown.
    pub(super) fn work(&self) {
        self.work_at(Duty::Process, CLAIM);
    }

    /// Fetches and processes pages until shutdown.
    pub(super) fn work_on_pages(&self) {
        self.work_at(Duty::Fetch, web::PAGE);
    }

    fn work_at(&self, duty: Duty, limits: ClaimLimits) {
        while !self.stopping.is_set() {
            if !self.has_room_to_work() {
                self.stopping.wait(PAUSE);
                continue;
            }
            let claim = |except| self.catalog.claim_except(duty, limits, except);
            match self.fair_workers.take(duty, |tenant| self.workers_for(tenant), claim) {
                Ok(Some((claim, _turn))) => self.process_claim(duty, claim),
                Ok(None) => {
                    self.catalog.wait_for_work(duty, IDLE);
                }
                Err(error) => {
                    tracing::error!(%error, "claiming a job failed");
                    self.stopping.wait(PAUSE);
                }
            }
        }
    }

    /// Maximum number of workers per duty for a tenant; `None` if there is no limit.
    fn workers_for(&self, tenant: &TenantId) -> Option<usize> {
        let tenant = self.catalog.tenant(tenant).ok().flatten()?;
        self.catalog.limits_of(&tenant).ingest_workers.map(|limit| limit as usize)
    }

    /// Number of workers that are processing documents of a tenant.
    pub(crate) fn workers_at(&self, collection: CollectionId) -> usize {
        self.fair_workers.processing(collection)
    }

    /// Processes one claim. After any error or panic, every job is settled or released.
    fn process_claim(&self, duty: Duty, claim: Claim) {
        let (jobs, of) = (claim.jobs.len(), tracing::field::display(claim.collection));
        let _trace = stage!("ingest", jobs = jobs, collection = of);
        let claimed: Vec<Sequence> = claim.jobs.iter().map(|job| job.sequence).collect();
        let (collection, mut held) = (claim.collection, claimed.clone());
        let result = catch_unwind(AssertUnwindSafe(|| self.try_process(duty, claim, &mut held)));
        // Jobs of a tenant that was deleted meanwhile are not settled.
        if let Ok(None) = self.catalog.tenant_of(collection) {
            self.catalog.end_deleted(&claimed);
        }
        let may_be_damage = match &result {
            Ok(result) => result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Corrupt),
            Err(_panic) => true,
        };
        if may_be_damage
            && let Ok(Some(tenant)) = self.catalog.tenant_of(collection)
            && let Ok(collection) = self.open(&tenant)
        {
            self.quarantine(&collection);
        }
        let outcome = match result {
            Ok(Ok(())) => return,
            Ok(Err(error)) => failure::give_back(&error),
            Err(_) => Outcome::Failed {
                error_code: JobErrorCode::Internal,
                message: "processing failed unexpectedly; see the server log".to_owned(),
            },
        };
        let settlements: Vec<_> = held
            .into_iter()
            .map(|sequence| Settlement { sequence, outcome: outcome.clone() })
            .collect();
        self.settle_when_there_is_room(collection, &settlements);
        if outcome == Outcome::Released {
            self.stopping.wait(PAUSE);
        }
    }

    /// Processes the jobs of a claim. `held` is kept to those jobs that have neither ended nor been
    /// queued again.
    fn try_process(
        &self,
        duty: Duty,
        claim: Claim,
        held: &mut Vec<Sequence>,
    ) -> Result<(), IngestError> {
        let Some(tenant) = self.catalog.tenant(&claim.tenant)? else { return Ok(()) };
        let collection = self.open(&tenant)?;
        if let Some(outcome) = self.hopeless(&tenant, &collection) {
            let ended = claim.jobs.into_iter().map(|job| (job, outcome.clone())).collect();
            return self.end(&tenant, &collection, ended);
        }
        let Fetched { jobs: claimed, mut ended } = match duty {
            Duty::Process => Fetched { jobs: claim.jobs, ended: Vec::new() },
            Duty::Fetch => {
                let _stage = stage!("fetch");
                self.fetch(&collection, claim)?
            }
        };
        let sizes = claimed.iter().map(|job| (job.size_bytes, job.metadata_bytes()));
        let bytes = memory::claim_bytes(sizes);
        let Some(_memory) = self.memory.share(bytes, &self.stopping) else {
            let back = claimed.into_iter().map(|job| (job, Outcome::Released));
            return self.end(&tenant, &collection, back.chain(ended).collect());
        };
        let (snapshot, model) = (collection.snapshot(), self.model_of(&tenant, &collection)?);
        let (mut jobs, mut drafts) = (Vec::new(), Vec::new());
        // Chunks that the tenant has no room for are rejected before they are embedded.
        let mut allowance = self.vector_allowance(&tenant, &snapshot)?;
        let reads_until = self.clock.now().plus_millis(READ_MILLIS);
        let mut unread = claimed.into_iter();
        for job in unread.by_ref() {
            let stage = stage!("read", job_id = job.job_id);
            let drafted = self.draft(&tenant, &snapshot, &*model, &job).and_then(|draft| {
                let rows = draft.chunk_count() as usize;
                allowance.take(&snapshot, &job.sub_tenant, &job.source, rows).map_err(no_room)?;
                Ok(draft)
            });
            drop(stage);
            match drafted {
                Ok(draft) => {
                    drafts.push(draft);
                    jobs.push(job);
                }
                Err(outcome) => ended.push((job, outcome)),
            }
            if self.clock.now() >= reads_until {
                break;
            }
        }
        drop(snapshot);
        self.queue_again(&collection, unread.as_slice(), held)?;
        let drafted: Vec<Sequence> = jobs.iter().map(|job| job.sequence).collect();
        self.catalog.set_stage(&drafted, Stage::Embedding);
        let claimed = drafted.first().zip(drafted.last()).map(|(first, last)| (*first, *last));
        let mut kept =
            claimed.map(|claim| self.kept.open(&*self.store, &*model, collection.id(), claim));
        let embedded = self.embed(&tenant, &*model, drafts, kept.as_mut());
        let mut sources = embedded.unwrap_or_else(|outcome| {
            ended.extend(jobs.drain(..).map(|job| (job, outcome.clone())));
            Vec::new()
        });
        let ended_now: Vec<Sequence> = ended.iter().map(|(job, _)| job.sequence).collect();
        self.end(&tenant, &collection, ended)?;
        // Other workers may hold those that are retried from now on.
        held.retain(|sequence| !ended_now.contains(sequence));
        self.add_claims(&mut sources);
        if !sources.is_empty() {
            self.publish(&tenant, &collection, &*model, jobs, sources)?;
        }
        kept.map_or(Ok(()), |kept| kept.close(&self.catalog))
    }

    /// The outcome for all jobs of a collection that takes no vectors of a loaded model, or no
    /// commit before an operator repairs it; `None` for a usable collection. The originals of the
    /// jobs stay.
    fn hopeless(&self, tenant: &Tenant, collection: &Collection) -> Option<Outcome> {
        if let Err(error) = self.model_of(tenant, collection) {
            let (error_code, message) = (JobErrorCode::EmbeddingFailed, error.to_string());
            return Some(Outcome::Rejected { error_code, message });
        }
        collection.require_known().err().map(|error| {
            tracing::error!(%error, "storing a document failed");
            let message = "part of the tenant is damaged, so nothing can be added; upload the \
                document again once the tenant is repaired";
            Outcome::Rejected { error_code: JobErrorCode::Internal, message: message.to_owned() }
        })
    }

    /// Requeues jobs that a claim has not reached. Other workers may take them at once.
    fn queue_again(
        &self,
        collection: &Collection,
        unread: &[ClaimedJob],
        held: &mut Vec<Sequence>,
    ) -> Result<(), IngestError> {
        if unread.is_empty() {
            return Ok(());
        }
        let released =
            |job: &ClaimedJob| Settlement { sequence: job.sequence, outcome: Outcome::Released };
        self.catalog.settle(collection.id(), unread.iter().map(released).collect(), None)?;
        held.retain(|sequence| unread.iter().all(|job| job.sequence != *sequence));
        Ok(())
    }

    /// Settles jobs that are not published now.
    fn end(
        &self,
        tenant: &Tenant,
        collection: &Arc<Collection>,
        ended: Vec<(ClaimedJob, Outcome)>,
    ) -> Result<(), IngestError> {
        let (failed, again): (Vec<_>, Vec<_>) =
            ended.into_iter().partition(|(job, outcome)| failure::is_final(job, outcome));
        for (job, outcome) in failed {
            self.end_badly(tenant, collection, &job, outcome)?;
        }
        if again.is_empty() {
            return Ok(());
        }
        let waits = again.iter().any(|(_, outcome)| *outcome == Outcome::Released);
        let settlement =
            |(job, outcome): (ClaimedJob, Outcome)| Settlement { sequence: job.sequence, outcome };
        self.catalog.settle(collection.id(), again.into_iter().map(settlement).collect(), None)?;
        if waits {
            self.stopping.wait(PAUSE);
        }
        Ok(())
    }

    /// Builds a segment, commits it and settles its jobs, atomically under the writer's lock.
    fn publish(
        &self,
        tenant: &Tenant,
        collection: &Arc<Collection>,
        model: &dyn Embedder,
        jobs: Vec<ClaimedJob>,
        sources: Vec<NewSource>,
    ) -> Result<(), IngestError> {
        let sequences: Vec<Sequence> = jobs.iter().map(|job| job.sequence).collect();
        self.catalog.set_stage(&sequences, Stage::Indexing);
        let stage = stage!("index", sources = sources.len());
        let segment = collection.build(model.dimension(), VectorKind::F16, &sources)?;
        drop(stage);
        let _stage = stage!("commit");
        let mut writer = collection.writer()?;
        let claimed: Vec<(Sequence, u32)> =
            jobs.iter().map(|job| (job.sequence, job.revision)).collect();
        let amended = self.catalog.amended(&claimed)?;
        let mut live = self.catalog.live(&sequences)?;
        live.retain(|sequence| !amended.contains(sequence));
        let base = writer.base();
        let mut allowance = self.vector_allowance(tenant, &base)?;
        let mut refused: Vec<(Sequence, Outcome)> = Vec::new();
        for (job, source) in jobs.iter().zip(&sources) {
            if live.contains(&job.sequence)
                && let Err(error) =
                    allowance.take(&base, &job.sub_tenant, &job.source, source.rows.len())
            {
                refused.push((job.sequence, no_room(error)));
            }
        }
        live.retain(|sequence| refused.iter().all(|(other, _)| other != sequence));
        let is_live = |job: &&ClaimedJob| live.contains(&job.sequence);
        let released = |sequence| Settlement { sequence, outcome: Outcome::Released };
        if live.is_empty() {
            drop(writer);
            let ended = amended.into_iter().map(released).collect();
            self.catalog.settle(collection.id(), ended, None)?;
            self.end(tenant, collection, without_room(jobs, refused))?;
            return Ok(collection.discard(&segment)?);
        }
        let withheld = jobs.iter().filter(|job| !is_live(job));
        let withheld = withheld.map(|job| (job.sub_tenant.clone(), job.source.clone())).collect();
        let edit = Edit {
            add: vec![AddedSegment { segment, withheld }],
            applied: live.clone(),
            embedding: Some(model.fingerprint().to_owned()),
            ..Edit::default()
        };
        let outcome = writer.commit(&edit)?;
        let settlements = jobs.iter().zip(&sources).filter(|(job, _)| is_live(job));
        let settlements = settlements.map(|(job, source)| Settlement {
            sequence: job.sequence,
            outcome: match outcome.outdated.contains(&job.sequence) {
                false => Outcome::Published { chunks: source.rows.len() as u64 },
                true => Outcome::Rejected {
                    error_code: JobErrorCode::Internal,
                    message: OUTDATED.to_owned(),
                },
            },
        });
        let ended = settlements.chain(amended.into_iter().map(released)).collect();
        let settled = self.catalog.settle(collection.id(), ended, collection.head())?;
        writer.forget_applied(&live);
        drop(writer);
        self.delete_originals(&outcome.orphaned_uploads);
        self.delete_released(collection, &jobs, settled.obsolete_raw_keys);
        tracing::debug!(collection = %tenant.collection, sources = jobs.len(), "published");
        self.look_after(collection);
        self.end(tenant, collection, without_room(jobs, refused))
    }

    /// Settles the jobs that a manifest already contains, then requeues the other interrupted ones;
    /// returns the number of the latter. Must be called once, before any worker starts.
    ///
    /// # Errors
    /// Errors of the catalog. The jobs of a collection that cannot be opened stay queued.
    pub fn recover(&self) -> Result<usize, IngestError> {
        for (id, sequences) in self.catalog.interrupted()? {
            let Some(tenant) = self.catalog.tenant_of(id)? else { continue };
            let collection = match self.open(&tenant) {
                Ok(collection) => collection,
                Err(error) => {
                    tracing::error!(collection = %id, %error, "recovery skipped a collection");
                    continue;
                }
            };
            let snapshot = collection.snapshot();
            let applied = |sequence: &Sequence| snapshot.manifest.applied.contains(&sequence.0);
            let settlements: Vec<Settlement> = sequences
                .into_iter()
                .filter(applied)
                .map(|sequence| Settlement {
                    sequence,
                    outcome: Outcome::Published { chunks: chunks_of(&snapshot, sequence) },
                })
                .collect();
            let marked: Vec<Sequence> = settlements.iter().map(|s| s.sequence).collect();
            let settled = self.catalog.settle(id, settlements, collection.head())?;
            match collection.writer() {
                Ok(mut writer) => writer.forget_applied(&marked),
                // A collection that refuses writes must not prevent the others from starting.
                Err(error) => tracing::error!(collection = %id, %error, "it refuses writes"),
            }
            self.delete_originals(&settled.obsolete_raw_keys);
        }
        Ok(self.catalog.requeue_interrupted()?)
    }
}

/// The outcome of a job whose chunks the tenant has no room for.
fn no_room(error: CatalogError) -> Outcome {
    match error {
        CatalogError::TenantLimit { .. } => {
            Outcome::Rejected { error_code: JobErrorCode::TenantLimit, message: error.to_string() }
        }
        error => Outcome::Failed { error_code: JobErrorCode::Internal, message: error.to_string() },
    }
}

/// The jobs that were refused, with their outcomes.
fn without_room(
    jobs: Vec<ClaimedJob>,
    mut refused: Vec<(Sequence, Outcome)>,
) -> Vec<(ClaimedJob, Outcome)> {
    let end = |job: ClaimedJob| {
        let at = refused.iter().position(|(sequence, _)| *sequence == job.sequence)?;
        Some((job, refused.swap_remove(at).1))
    };
    jobs.into_iter().filter_map(end).collect()
}

fn chunks_of(snapshot: &lodestone_storage::collection::Snapshot, sequence: Sequence) -> u64 {
    let found =
        snapshot.all_sources().find(|found| found.live.segment.sequence(found.source) == sequence);
    found.map_or(0, |found| found.rows().len() as u64)
}
