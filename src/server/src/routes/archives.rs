//! Export and import of tenants as archives.

use std::io::{self, Write};

use axum::body::Body;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use schemars::{Schema, SchemaGenerator};
use tokio::sync::mpsc;

use crate::app::{App, blocking};
use crate::dto::archives::{ExportTenant, ImportTenant, ImportedTenant};
use crate::error::ApiError;
use crate::file_body::FromFile;
use crate::reply::{Json, Reply};
use crate::request::Call;
use crate::routes::{Group, Route};
use lodestone_engine::archive::Export;
use lodestone_types::Role;

/// Largest archive that can be imported, in bytes.
const ARCHIVE_BYTES_MAX: usize = 4 << 30;
/// Size of the pieces in which an export is sent.
const PIECE_BYTES: usize = 64 << 10;
/// Number of pieces buffered for a slow client.
const PIECES_WAITING: usize = 4;

/// Returns the archive operations.
pub fn routes() -> Vec<Route<App>> {
    let (group, admin) = (Group::Admin, Role::Admin);
    vec![
        Route::<App>::get("/tenant/export", group, admin, "Export a tenant as JSON Lines")
            .handle(blocking(export)),
        Route::<App>::post("/tenant/import", group, admin, "Create a tenant from an export")
            .lines(ARCHIVE_BYTES_MAX)
            .handle(blocking(import)),
    ]
}

fn export(app: &App, call: &Call, request: ExportTenant) -> Result<Archive, ApiError> {
    let ExportTenant { tenant, sub_tenant } = request;
    Ok(Archive(app.engine.export(call.grant()?, &tenant, sub_tenant.as_ref())?))
}

fn import(app: &App, call: &Call, request: ImportTenant) -> Result<Json<ImportedTenant>, ApiError> {
    let imported = app.engine.import(call.grant()?, request.tenant, &request.archive)?;
    call.tell_subject(imported.collection);
    Ok(Json::new(ImportedTenant {
        tenant_id: imported.tenant.to_string(),
        sources: imported.sources,
        chunks: imported.chunks,
        original_bytes: imported.original_bytes,
        reembedded: imported.reembedded,
        success: true,
        message: "Tenant imported".to_owned(),
    }))
}

/// An archive that is written while it is sent.
struct Archive(Export);

impl Reply for Archive {
    const MEDIA_TYPES: &'static [&'static str] = &["application/x-ndjson"];

    fn schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "string", "format": "binary"})
    }

    fn into_response(self) -> Result<Response, ApiError> {
        let Self(export) = self;
        let (pieces_in, pieces) = mpsc::channel(PIECES_WAITING);
        tokio::task::spawn_blocking(move || send(export, pieces_in));
        let pieces = stream::unfold(pieces, |mut pieces| async move {
            let piece: io::Result<Bytes> = pieces.recv().await?;
            Some((piece, pieces))
        });
        let mut response = Response::new(Body::from_stream(pieces));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
        let disposition = HeaderValue::from_static("attachment; filename=\"tenant.jsonl\"");
        headers.insert(CONTENT_DISPOSITION, disposition);
        response.extensions_mut().insert(FromFile);
        Ok(response)
    }
}

/// Writes an archive into the response body. On an error, the body breaks off.
fn send(export: Export, pieces: mpsc::Sender<io::Result<Bytes>>) {
    let collection = export.collection();
    let mut out = Pieces { waiting: BytesMut::with_capacity(PIECE_BYTES), pieces };
    if let Err(error) = export.write(&mut out) {
        match error.kind() {
            io::ErrorKind::BrokenPipe => {
                tracing::info!(%collection, "the client disconnected during an export")
            }
            _ => {
                tracing::error!(%collection, %error, "an export failed");
                // The send fails if the client has also disconnected.
                let _ = out.pieces.blocking_send(Err(error));
            }
        }
    }
}

/// A writer that sends pieces into the response body.
struct Pieces {
    waiting: BytesMut,
    pieces: mpsc::Sender<io::Result<Bytes>>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = self.waiting.split().freeze();
        match piece.is_empty() {
            true => Ok(()),
            false => self.pieces.blocking_send(Ok(piece)).map_err(|_| gone()),
        }
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the client disconnected")
}
