//! State that every handler receives, and the bridge from async code to the blocking engine.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::admission::AdmissionSettings;
use crate::auth::{AuthFailure, Authenticator};
use crate::download::DownloadSigner;
use crate::dto::operations::Readiness;
use crate::error::{ApiError, Condition};
use crate::fair_queue::{FairQueue, RunPermit};
use crate::listen::{Certificates, Stop};
use crate::recent::Recent;
use crate::reply::Json;
use crate::request::Call;
use crate::routes::off_thread;
use crate::watch::Watch;
use lodestone_catalog::{AuthError, CatalogError};
use lodestone_engine::query::Mode;
use lodestone_engine::{Engine, EngineError, TenantAccess};
use lodestone_types::{CollectionId, Grant, RequestContext, Stopped};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

/// Time for which a reading of the readiness is given out again.
const READINESS_AGE_MAX: Duration = Duration::from_secs(1);

/// State of the running application. Clones share the same underlying state.
#[derive(Debug, Clone)]
pub struct App {
    /// The engine that stores, searches and answers.
    pub engine: Arc<Engine>,
    /// Signs the download URLs of originals.
    pub download: Arc<DownloadSigner>,
    /// The shutdown signal, which ends requests that are merely waiting.
    pub stop: watch::Receiver<Stop>,
    /// The metrics of the process.
    pub watch: Arc<Watch>,
    /// The TLS certificates of the listener, if it uses TLS.
    pub certificates: Option<Arc<Certificates>>,
    expensive: FairQueue<CollectionId>,
    answers: FairQueue<CollectionId>,
    drawings: FairQueue<CollectionId>,
    pub(crate) readiness: Arc<Recent<Json<Readiness>>>,
}

impl App {
    /// Creates the application over an engine; `stop` announces shutdown.
    pub fn new(engine: Arc<Engine>, stop: watch::Receiver<Stop>) -> Self {
        Self::with_certificates(engine, stop, None)
    }

    /// Creates the application behind a TLS listener, whose certificates are included in the
    /// metrics.
    pub fn with_certificates(
        engine: Arc<Engine>,
        stop: watch::Receiver<Stop>,
        certificates: Option<Arc<Certificates>>,
    ) -> Self {
        let download = Arc::new(DownloadSigner::new(engine.ids()));
        let slots = AdmissionSettings::default();
        let expensive = FairQueue::new(engine.settings().embed_threads, slots.waiting_max);
        // An answer written by a remote generator waits for that service, not for a CPU core, and
        // possibly for minutes.
        let answers = match engine.writer() {
            Some(_) => FairQueue::keeping_free(slots.running_max, slots.waiting_max),
            None => expensive.clone(),
        };
        let drawings = FairQueue::new(engine.settings().embed_threads / 2, slots.waiting_max);
        let watch = Arc::new(Watch::new(Arc::clone(&engine), certificates.as_deref()));
        let readiness = Arc::new(Recent::new(READINESS_AGE_MAX));
        Self {
            engine,
            download,
            stop,
            watch,
            certificates,
            expensive,
            answers,
            drawings,
            readiness,
        }
    }

    /// Returns the context of a search or an answer that starts now: its deadline, cancellation and
    /// memory.
    pub fn search_context(&self, call: &Call) -> RequestContext {
        RequestContext::with_limit(self.engine.settings().query_timeout)
            .with_memory(Arc::clone(&call.results) as _)
    }

    /// Whether a search in this mode uses a reranker, which keeps a core busy.
    pub fn reranks(&self, mode: Mode) -> bool {
        mode == Mode::Accurate && self.engine.reranker().is_some()
    }

    /// Waits for a permit to run an expensive request on behalf of the tenant, after releasing the
    /// admission slot that the call holds.
    ///
    /// # Errors
    /// As [`FairQueue::enter`].
    pub async fn run_permit(
        &self,
        call: &Call,
        context: &RequestContext,
        access: &TenantAccess,
    ) -> Result<RunPermit<CollectionId>, ApiError> {
        self.run_permit_of(call, context, access.tenant.collection).await
    }

    /// Waits for a permit to run an expensive request on behalf of `owner`, after releasing the
    /// admission slot that the call holds.
    ///
    /// # Errors
    /// As [`FairQueue::enter`].
    pub async fn run_permit_of(
        &self,
        call: &Call,
        context: &RequestContext,
        owner: CollectionId,
    ) -> Result<RunPermit<CollectionId>, ApiError> {
        call.give_back();
        self.expensive.enter(context, owner).await
    }

    /// Waits for a permit to answer a question on behalf of the tenant, after releasing the
    /// admission slot that the call holds.
    ///
    /// # Errors
    /// As [`FairQueue::enter`].
    pub async fn answer_permit(
        &self,
        call: &Call,
        context: &RequestContext,
        access: &TenantAccess,
    ) -> Result<RunPermit<CollectionId>, ApiError> {
        call.give_back();
        self.answers.enter(context, access.tenant.collection).await
    }

    /// Blocks until the tenant may keep a core busy beside a generator, or the request of `context`
    /// ends. Must be called on a thread of the runtime's blocking pool.
    ///
    /// The caller may hold a permit of [`Self::answer_permit`] of a server with a generator.
    /// Nothing that holds the permit returned here waits for one of those, so the two never wait
    /// for each other.
    ///
    /// # Errors
    /// As [`FairQueue::enter`], and if the client disconnects.
    pub fn core_permit(
        &self,
        context: &RequestContext,
        access: &TenantAccess,
    ) -> Result<RunPermit<CollectionId>, ApiError> {
        let (leaving, left) = oneshot::channel::<()>();
        context.cancel().on_cancel(move || drop(leaving));
        Handle::current().block_on(async {
            tokio::select! {
                biased;
                _ = left => Err(Stopped::ClientGone.into()),
                permit = self.expensive.enter(context, access.tenant.collection) => permit,
            }
        })
    }

    /// Waits for a permit to render a page, after releasing the admission slot that the call holds.
    /// Rendering uses at most half of the CPU cores.
    ///
    /// # Errors
    /// As [`FairQueue::enter`].
    pub async fn draw_permit(
        &self,
        call: &Call,
        context: &RequestContext,
        access: &TenantAccess,
    ) -> Result<RunPermit<CollectionId>, ApiError> {
        call.give_back();
        self.drawings.enter(context, access.tenant.collection).await
    }
}

impl Authenticator for App {
    fn is_at_hand(&self, token: &str) -> bool {
        self.engine.is_key_at_hand(token)
    }

    fn authenticate(&self, token: &str) -> Result<Grant, AuthFailure> {
        self.engine.authenticate(token).map_err(failure_of)
    }
}

/// Maps a catalog error to the failure reported to the caller. Storage faults, which are not the
/// caller's doing, are logged here.
pub(crate) fn failure_of(error: AuthError) -> AuthFailure {
    match error {
        AuthError::Missing | AuthError::Invalid => AuthFailure::Invalid,
        AuthError::Expired => AuthFailure::Expired,
        AuthError::Storage { source: CatalogError::Behind { .. } } => AuthFailure::Behind,
        failure @ AuthError::Storage { .. } => {
            tracing::error!(%failure, "API key lookup failed");
            AuthFailure::Unavailable
        }
    }
}

/// The future that a handler returns.
pub type Handling<T> = Pin<Box<dyn Future<Output = Result<T, ApiError>> + Send>>;

/// Makes a handler out of blocking work, which runs off the async threads.
pub fn blocking<R, T>(
    work: fn(&App, &Call, R) -> Result<T, ApiError>,
) -> impl Fn(App, Call, R) -> Handling<T> + Clone + Send + Sync + 'static
where
    R: Send + 'static,
    T: Send + 'static,
{
    move |app, call, request| Box::pin(off_thread(move || work(&app, &call, request)))
}

/// Makes a handler out of a blocking search, which is cancelled when its client disconnects or its
/// deadline passes.
pub fn searching<R, T>(
    work: fn(&App, &Call, &RequestContext, R) -> Result<T, ApiError>,
) -> impl Fn(App, Call, R) -> Handling<T> + Clone + Send + Sync + 'static
where
    R: Send + 'static,
    T: Send + 'static,
{
    move |app, call, request| {
        Box::pin(async move {
            let context = app.search_context(&call);
            // Dropped together with this future when the client disconnects.
            let _listening = context.cancel().on_drop();
            off_thread(move || work(&app, &call, &context, request)).await
        })
    }
}

/// Lists what a response read through `access` lacks, for [`crate::Json::with_degraded`].
pub fn degraded(access: &TenantAccess) -> Vec<String> {
    let mut lacks = match access.segments_missing() {
        0 => Vec::new(),
        1 => vec!["1 segment quarantined".to_owned()],
        missing => vec![format!("{missing} segments quarantined")],
    };
    if access.has_foreign_model() {
        lacks.push("vectors made by another model: keyword search only".to_owned());
    }
    if access.needs_help() {
        lacks.push("needs manual repair: see the server log".to_owned());
    }
    lacks
}

/// Converts the error of a look-up through `access`. While a part of the tenant is quarantined, a
/// missing item cannot be told from a damaged one, so "not found" becomes 503.
pub fn lookup_error(access: &TenantAccess, error: EngineError) -> ApiError {
    let error = ApiError::from(error);
    let is_absence = matches!(
        error.condition(),
        Condition::SourceNotFound | Condition::MemoryNotFound | Condition::EmbeddingsNotFound
    );
    if !is_absence || access.segments_missing() == 0 {
        return error;
    }
    let message = "not found, but part of the tenant is quarantined and may hold it";
    ApiError::new(Condition::Unavailable, "quarantined", message).with_degraded(degraded(access))
}
