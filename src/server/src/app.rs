//! State that every handler gets, and the bridge from async to the blocking engine.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::admission::AdmissionSettings;
use crate::auth::{AuthFailure, Authenticator};
use crate::download::DownloadSigner;
use crate::error::{ApiError, Condition};
use crate::fair_queue::{FairQueue, RunPermit};
use crate::listen::{Certificates, Stop};
use crate::request::Call;
use crate::routes::off_thread;
use crate::watch::Watch;
use lodestone_catalog::{AuthError, CatalogError};
use lodestone_engine::{Engine, EngineError, TenantAccess};
use lodestone_types::{CollectionId, Grant, RequestContext};
use tokio::sync::watch;

/// The application behind the table of routes. Clones share one.
#[derive(Debug, Clone)]
pub struct App {
    /// The product.
    pub engine: Arc<Engine>,
    /// Signs URLs of originals.
    pub download: Arc<DownloadSigner>,
    /// The stop signal, which ends requests that only wait.
    pub stop: watch::Receiver<Stop>,
    /// Metrics.
    pub watch: Arc<Watch>,
    /// The certificate of the listener, if it has one.
    pub certificates: Option<Arc<Certificates>>,
    expensive: FairQueue<CollectionId>,
    drawings: FairQueue<CollectionId>,
}

impl App {
    /// The application over an engine, until `stop` says so.
    pub fn new(engine: Arc<Engine>, stop: watch::Receiver<Stop>) -> Self {
        Self::with_certificates(engine, stop, None)
    }

    /// The application behind a listener with TLS, whose certificate is watched.
    pub fn with_certificates(
        engine: Arc<Engine>,
        stop: watch::Receiver<Stop>,
        certificates: Option<Arc<Certificates>>,
    ) -> Self {
        let download = Arc::new(DownloadSigner::new(engine.ids()));
        let slots = AdmissionSettings::default();
        // An answer that a generator writes waits for that, and not for a core.
        let at_once = match engine.writer() {
            Some(_) => slots.running_max,
            None => engine.settings().embed_threads,
        };
        let expensive = FairQueue::new(at_once, slots.waiting_max);
        let drawings = FairQueue::new(engine.settings().embed_threads / 2, slots.waiting_max);
        let watch = Arc::new(Watch::new(Arc::clone(&engine), certificates.as_deref()));
        Self { engine, download, stop, watch, certificates, expensive, drawings }
    }

    /// The bounds of a search or an answer that begins now.
    pub fn search_context(&self) -> RequestContext {
        RequestContext::with_limit(self.engine.settings().query_timeout)
    }

    /// Waits for the permit of an expensive request, and gives back the slot that it had.
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

    /// Waits for the permit of an expensive request of `owner`, and gives back the slot that it
    /// had.
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

    /// Waits for the permit to draw a page, and gives back the slot that the request had. Pages are
    /// drawn on up to half of the cores.
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

/// The failure of a key, which the log tells where it is none of its bearer.
pub(crate) fn failure_of(error: AuthError) -> AuthFailure {
    match error {
        AuthError::Missing | AuthError::Invalid => AuthFailure::Invalid,
        AuthError::Expired => AuthFailure::Expired,
        AuthError::Storage { source: CatalogError::Behind { .. } } => AuthFailure::Behind,
        failure @ AuthError::Storage { .. } => {
            tracing::error!(%failure, "a key could not be looked up");
            AuthFailure::Unavailable
        }
    }
}

/// Result of a handler.
pub type Handling<T> = Pin<Box<dyn Future<Output = Result<T, ApiError>> + Send>>;

/// Makes a handler of work that blocks.
pub fn blocking<R, T>(
    work: fn(&App, &Call, R) -> Result<T, ApiError>,
) -> impl Fn(App, Call, R) -> Handling<T> + Clone + Send + Sync + 'static
where
    R: Send + 'static,
    T: Send + 'static,
{
    move |app, call, request| Box::pin(off_thread(move || work(&app, &call, request)))
}

/// Makes a handler of a search: of work that blocks, and ends with its client and its time.
pub fn searching<R, T>(
    work: fn(&App, &Call, &RequestContext, R) -> Result<T, ApiError>,
) -> impl Fn(App, Call, R) -> Handling<T> + Clone + Send + Sync + 'static
where
    R: Send + 'static,
    T: Send + 'static,
{
    move |app, call, request| {
        Box::pin(async move {
            let context = app.search_context();
            // Dropped with this future, when the client has gone.
            let _listening = context.cancel().on_drop();
            off_thread(move || work(&app, &call, &context, request)).await
        })
    }
}

/// Parts that an answer through `access` lacks, for [`crate::Json::with_degraded`].
pub fn degraded(access: &TenantAccess) -> Vec<String> {
    let mut lacks = match access.segments_missing() {
        0 => Vec::new(),
        1 => vec!["1 segment quarantined".to_owned()],
        missing => vec![format!("{missing} segments quarantined")],
    };
    if access.has_foreign_model() {
        lacks.push("vectors of another model: searched by words only".to_owned());
    }
    if access.needs_help() {
        lacks.push("not rebuilt by itself: see the log".to_owned());
    }
    lacks
}

/// The error of a look-up through `access`. While a part of the tenant is quarantined, absence
/// cannot be told from damage, so "not found" becomes 503 (API 8.20).
pub fn lookup_error(access: &TenantAccess, error: EngineError) -> ApiError {
    let error = ApiError::from(error);
    let is_absence = matches!(
        error.condition(),
        Condition::SourceNotFound | Condition::MemoryNotFound | Condition::EmbeddingsNotFound
    );
    if !is_absence || access.segments_missing() == 0 {
        return error;
    }
    let message = "what was named may be in a part of the tenant that is quarantined";
    ApiError::new(Condition::Unavailable, "quarantined", message).with_degraded(degraded(access))
}
