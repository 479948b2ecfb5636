//! Operations that begin backups and report their state.

use std::collections::BTreeMap;

use crate::app::{App, blocking};
use crate::dto::backups::{BackupStatus, BackupView, BeginBackup, LastBackup, MissingTenant};
use crate::error::ApiError;
use crate::reply::Json;
use crate::request::Call;
use crate::routes::{Group, Route};
use lodestone_engine::backup::{BackupManifest, Listed, TakeOptions};
use lodestone_types::Role;

/// Returns the backup operations.
pub fn routes() -> Vec<Route<App>> {
    let (group, admin) = (Group::Admin, Role::Admin);
    vec![
        Route::<App>::post("/admin/backups", group, admin, "Start a backup")
            .queued()
            .handle(blocking(begin)),
        Route::<App>::get(
            "/admin/backups",
            group,
            admin,
            "List backups, and get the state of a running one",
        )
        .handle(blocking(list)),
    ]
}

fn begin(app: &App, call: &Call, request: BeginBackup) -> Result<Json<BackupStatus>, ApiError> {
    let BeginBackup { to, of, tenant, with_keys, full } = request;
    let options = TakeOptions { tenant, with_keys, is_full: full };
    app.engine.begin_backup(call.grant()?, to.as_ref(), of.as_deref(), options)?;
    status(app, call, Vec::new(), "Backup started; GET /admin/backups shows its state")
}

fn list(app: &App, call: &Call, (): ()) -> Result<Json<BackupStatus>, ApiError> {
    let listed = app.engine.backups(call.grant()?)?;
    let views = listed.iter().map(|one| match one {
        Listed::Finished(manifest) => view(manifest),
        Listed::CutOff(id) => broken(id, "cut_off"),
        Listed::Damaged(id, _) => broken(id, "damaged"),
    });
    status(app, call, views.collect(), "Successfully fetched backups")
}

fn status(
    app: &App,
    call: &Call,
    backups: Vec<BackupView>,
    message: &str,
) -> Result<Json<BackupStatus>, ApiError> {
    let state = app.engine.backup_state(call.grant()?)?;
    let last = state.last.map(|last| LastBackup {
        ended_at: last.ended_at.to_string(),
        backup: last.result.as_ref().ok().map(view),
        error: last.result.err().unwrap_or_default(),
    });
    Ok(Json::new(BackupStatus {
        running: state.running_since.is_some(),
        running_since: state.running_since.map(|at| at.to_string()),
        copied_bytes: state.copied_bytes,
        last,
        next_at: state.next_at.map(|at| at.to_string()),
        backups,
        success: true,
        message: message.to_owned(),
    }))
}

fn view(manifest: &BackupManifest) -> BackupView {
    let state = match (manifest.lacks_nothing(), manifest.is_whole) {
        (false, _) => "incomplete",
        (true, false) => "one_tenant",
        (true, true) => "complete",
    };
    let left_out = manifest
        .left_out
        .iter()
        .map(|one| MissingTenant { tenant_id: one.tenant.clone(), reason: one.reason.clone() });
    let missing = manifest.missing_originals().map(|(tenant, count)| (tenant.to_owned(), count));
    let tenants = &manifest.tenants;
    BackupView {
        tenant_ids: tenants.iter().map(|tenant| tenant.name.clone()).collect(),
        left_out: left_out.collect(),
        missing_originals: missing.collect(),
        sources: tenants.iter().map(|tenant| tenant.sources).sum(),
        chunks: tenants.iter().map(|tenant| tenant.chunks).sum(),
        bytes: tenants.iter().map(|tenant| tenant.bytes).sum(),
        new_bytes: manifest.new_bytes,
        new_files: manifest.new_files,
        has_keys: manifest.keys.is_some(),
        damage: manifest.damage.clone(),
        ..broken(&manifest.id, state)
    }
}

/// Describes a backup of which nothing else is known.
fn broken(id: &str, state: &str) -> BackupView {
    BackupView {
        backup_id: id.to_owned(),
        state: state.to_owned(),
        tenant_ids: Vec::new(),
        left_out: Vec::new(),
        missing_originals: BTreeMap::new(),
        sources: 0,
        chunks: 0,
        bytes: 0,
        new_bytes: 0,
        new_files: 0,
        has_keys: false,
        damage: Vec::new(),
    }
}
