//! Operations that change the embedding model of tenants.

use crate::app::{App, blocking};
use crate::dto::reembed::{EstimateView, Reembed, ReembedQuery, ReembedStatus, TenantVectors};
use crate::error::{ApiError, Location};
use crate::reply::Json;
use crate::request::Call;
use crate::routes::{Group, Route};
use lodestone_engine::ingest::ReembedEstimate;
use lodestone_engine::{ReembedAction, TenantReembed};
use lodestone_types::{JobStatus, Role};

/// Returns the re-embedding operations.
pub fn routes() -> Vec<Route<App>> {
    let (group, admin) = (Group::Admin, Role::Admin);
    let begin = "Change the embedding model of tenants, or estimate the work";
    vec![
        Route::<App>::post("/admin/reembed", group, admin, begin).queued().handle(blocking(order)),
        Route::<App>::get(
            "/admin/reembed",
            group,
            admin,
            "Get the embedding models of tenants and the progress of changes",
        )
        .handle(blocking(status)),
    ]
}

fn order(app: &App, call: &Call, request: Reembed) -> Result<Json<ReembedStatus>, ApiError> {
    let Reembed { tenant, action, to } = request;
    let models = app.engine.models();
    let to = match &to {
        None => None,
        Some(name) => Some(&**models.named(name).ok_or_else(|| {
            let names: Vec<&str> = models.all().map(|model| model.name()).collect();
            let problem = format!("must name a loaded model: {}", names.join(", "));
            ApiError::field("invalid_value", Location::Body, "to", &problem)
        })?),
    };
    let states = app.engine.reembed(call.grant()?, tenant.as_ref(), Some(action), to)?;
    let message = match action {
        ReembedAction::Estimate => "Estimated; nothing was changed",
        ReembedAction::Discard => "Vectors not in use were discarded",
        ReembedAction::Start | ReembedAction::Back => {
            "Re-embedding requested; GET /admin/reembed shows the progress"
        }
    };
    Ok(answer(states, message))
}

fn status(app: &App, call: &Call, request: ReembedQuery) -> Result<Json<ReembedStatus>, ApiError> {
    let states = app.engine.reembed(call.grant()?, request.tenant.as_ref(), None, None)?;
    Ok(answer(states, "Successfully fetched tenant models"))
}

fn answer(states: Vec<TenantReembed>, message: &str) -> Json<ReembedStatus> {
    let tenants = states.into_iter().map(view).collect();
    Json::new(ReembedStatus { tenants, success: true, message: message.to_owned() })
}

fn view(of: TenantReembed) -> TenantVectors {
    let TenantReembed { tenant, state, run, estimate, problem } = of;
    let failed = problem.as_ref().map(|_| JobStatus::Errored);
    TenantVectors {
        tenant_id: tenant.to_string(),
        model: state.model,
        is_current: state.is_current,
        other_model: state.other_model,
        other_bytes: state.other_bytes,
        kept_until: state.kept_until.map(|at| at.to_string()),
        status: failed
            .or(run.as_ref().map(|run| run.status))
            .map(|status| status.as_str().to_owned()),
        chunks_done: run.as_ref().map_or(0, |run| run.chunks_done),
        chunks: run.as_ref().map_or(0, |run| run.chunks),
        reason: problem.or(run.map(|run| run.message)).unwrap_or_default(),
        estimate: estimate.map(estimated),
    }
}

fn estimated(of: ReembedEstimate) -> EstimateView {
    let round = |number: f64| (number * 10.0).round() / 10.0;
    EstimateView {
        chunks: of.chunks,
        tokens: of.tokens,
        chunks_per_second: round(of.chunks_per_second),
        seconds: round(of.seconds),
        disk_bytes: of.disk_bytes,
        free_bytes: of.free_bytes,
    }
}
