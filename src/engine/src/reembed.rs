//! Moves tenants to another embedding model, as operators request it.

use std::sync::Arc;

use crate::ingest::{IngestError, ReembedEstimate, ReembedRun};
use crate::{Engine, EngineError, Models};
use lodestone_catalog::Tenant;
use lodestone_embed::Embedder;
use lodestone_storage::collection::Manifest;
use lodestone_types::{Grant, JobStatus, TenantId, Timestamp};

/// An order about the vectors of tenants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReembedAction {
    /// Make vectors with another model, then switch to them.
    Start,
    /// Measure how much work that would be.
    Estimate,
    /// Bring the previous vectors up to date, then switch back to them.
    Back,
    /// Discard the vectors that are not searched: those being made, or those kept for going back.
    Discard,
}

/// The state of a tenant's vectors.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReembedState {
    /// Name of the model of the searched vectors, or its fingerprint if it is not loaded; `None` if
    /// there are no vectors.
    pub model: Option<String>,
    /// Whether that is the model chosen for the tenant, or else the model of new tenants.
    pub is_current: bool,
    /// Name of the model of the other vectors, or its fingerprint.
    pub other_model: Option<String>,
    /// Until when the other vectors are kept, if they are left from before a switch.
    pub kept_until: Option<Timestamp>,
    /// Bytes of the segments that hold the other vectors.
    pub other_bytes: u64,
}

/// A tenant and the state of its vectors.
#[derive(Debug, Clone)]
pub struct TenantReembed {
    /// The tenant.
    pub tenant: TenantId,
    /// The state of its vectors; empty if there is a problem.
    pub state: ReembedState,
    /// The current or last run of the change, if any.
    pub run: Option<ReembedRun>,
    /// The estimated work, if that was requested.
    pub estimate: Option<ReembedEstimate>,
    /// The reason why the order failed for this tenant; only set if the order named no tenant.
    pub problem: Option<String>,
}

impl Engine {
    /// All loaded embedding models.
    pub fn models(&self) -> &Models {
        &self.models
    }

    /// The model of a tenant: the one that made its vectors or, if it has none, the one chosen for
    /// it or the model of new tenants.
    ///
    /// # Errors
    /// [`IngestError::ModelMismatch`] if it is not loaded; errors of the disk.
    pub fn embedder_of(&self, tenant: &Arc<Tenant>) -> Result<Arc<dyn Embedder>, EngineError> {
        let collection = self.collection(tenant)?;
        Ok(self.ingest.model_of(tenant, &collection)?)
    }

    /// Carries out an order for one tenant, or for every tenant that the key reaches as a whole;
    /// returns their states. In the latter case, an error with one tenant does not stop the others.
    /// New vectors are made by the model `to`, by default the one chosen for the tenant or else the
    /// model of new tenants. The work itself runs in the background.
    ///
    /// # Errors
    /// [`EngineError::TenantNotFound`]; [`EngineError::Forbidden`] for a key that reaches only a
    /// part of a named tenant; a change that is refused; errors of the disk or the model.
    pub fn reembed(
        &self,
        grant: &Grant,
        only: Option<&TenantId>,
        action: Option<ReembedAction>,
        to: Option<&dyn Embedder>,
    ) -> Result<Vec<TenantReembed>, EngineError> {
        let mut tenants = match only {
            Some(id) => vec![(*self.find_tenant(grant, id)?).clone()],
            None => self.tenants(grant)?,
        };
        if only.is_some_and(|id| !grant.scope.allows_whole_tenant(id)) {
            let need = "changing the model of a tenant requires a key for all of its sub-tenants";
            return Err(EngineError::Forbidden { need });
        }
        tenants.retain(|tenant| grant.scope.allows_whole_tenant(&tenant.id));
        let mut states = Vec::with_capacity(tenants.len());
        for tenant in tenants {
            let tenant = Arc::new(tenant);
            match self.reembed_one(&tenant, only.is_some(), action, to) {
                Err(error) if only.is_none() => {
                    let collection = tenant.collection;
                    tracing::warn!(%collection, %error, "a re-embedding request for a tenant \
                        failed");
                    let (id, problem) = (tenant.id.clone(), Some(error.to_string()));
                    let (state, run, estimate) = Default::default();
                    states.push(TenantReembed { tenant: id, state, run, estimate, problem });
                }
                done => states.push(done?),
            }
        }
        Ok(states)
    }

    fn reembed_one(
        &self,
        tenant: &Arc<Tenant>,
        is_named: bool,
        action: Option<ReembedAction>,
        to: Option<&dyn Embedder>,
    ) -> Result<TenantReembed, EngineError> {
        let collection = self.ingest.open(tenant)?;
        let chosen = self.models.chosen(tenant.embedding_model.as_deref()).map(|it| &**it);
        let to = to.or(chosen);
        let target = || to.ok_or_else(|| IngestError::chosen_not_loaded(tenant));
        let mut estimate = None;
        match action {
            None => {}
            // One tenant whose model is not loaded does not stop the others.
            Some(ReembedAction::Estimate | ReembedAction::Start) if !is_named && to.is_none() => {}
            Some(ReembedAction::Estimate) => {
                estimate = Some(self.ingest.estimate_reembed(tenant, &collection, target()?)?);
            }
            Some(ReembedAction::Start) => {
                self.ingest.begin_reembed(tenant, &collection, Some(target()?))?;
            }
            Some(ReembedAction::Back) => {
                let kept = collection.snapshot().manifest.other.is_some();
                if is_named || kept {
                    self.ingest.begin_reembed(tenant, &collection, None)?;
                }
            }
            Some(ReembedAction::Discard) => {
                self.ingest.discard_other(&collection)?;
            }
        }
        self.ingest.note_reembed(tenant, &collection);
        let run = self.ingest.reembed_runs().into_iter();
        let run = run.into_iter().find(|run| run.tenant.collection == tenant.collection);
        // Read again, since the order may have chosen another model.
        let now = self.catalog.tenant_of(tenant.collection)?;
        let now = now.as_ref().unwrap_or(tenant);
        let state = self.vectors_of(now, &collection.snapshot().manifest);
        Ok(TenantReembed { tenant: tenant.id.clone(), state, run, estimate, problem: None })
    }

    fn vectors_of(&self, tenant: &Tenant, manifest: &Manifest) -> ReembedState {
        let name = |fingerprint: &str| {
            let loaded = self.models.with(fingerprint);
            loaded.map_or_else(|| fingerprint.to_owned(), |model| model.name().to_owned())
        };
        let (model, other) = (manifest.model(), manifest.other.as_ref());
        let own = self.models.chosen(tenant.embedding_model.as_deref());
        let keep_hours = self.settings.reembed.previous_vectors_hours;
        let kept = other.filter(|other| !other.is_wanted);
        ReembedState {
            model: model.map(name),
            is_current: model.is_none_or(|it| own.is_some_and(|own| own.fingerprint() == it)),
            other_model: other.map(|other| name(&other.embedding)),
            kept_until: kept
                .map(|other| Timestamp(other.since).plus_millis(keep_hours * 3_600_000)),
            other_bytes: other.map_or(0, |it| it.segments.iter().map(|one| one.bytes).sum()),
        }
    }

    /// Lists changes of model as jobs: of one tenant or of all that the key reaches, in one state
    /// or any.
    pub fn reembed_jobs(
        &self,
        grant: &Grant,
        only: Option<&TenantId>,
        status: Option<JobStatus>,
    ) -> Vec<ReembedRun> {
        let mut runs = self.ingest.reembed_runs();
        runs.retain(|run| {
            let id = &run.tenant.id;
            grant.scope.allows_whole_tenant(id)
                && only.is_none_or(|only| only == id)
                && status.is_none_or(|status| status == run.status)
        });
        runs.sort_by_key(|run| std::cmp::Reverse(run.asked_at));
        runs
    }
}
