//! Rendered pages of sources, or a URL that serves one for an hour.
//!
//! Rendering takes a child process and part of a CPU core, so it has a fair queue of its own: slow
//! pages delay other pages, but no answers.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use schemars::{Schema, SchemaGenerator};

use crate::app::{App, degraded, lookup_error};
use crate::download::Claim;
use crate::dto::pictures::{PageImage, PageImageAddress};
use crate::error::ApiError;
use crate::reply::{Json, Reply};
use crate::request::Call;
use crate::routes::content_guard::guard;
use crate::routes::{Group, Route, off_thread};
use lodestone_engine::{Original, TenantAccess};
use lodestone_extract::{Drawing, PagePicture};
use lodestone_types::{Role, SourceId, TenantMode};

const PNG: &str = "image/png";
/// Headers with the document's page count and the page's size in points.
const PAGE_COUNT: &str = "x-page-count";
const PAGE_WIDTH: &str = "x-page-width";
const PAGE_HEIGHT: &str = "x-page-height";

/// Returns the rendering operation.
pub fn routes() -> Vec<Route<App>> {
    vec![
        Route::<App>::post(
            "/fetch/page_image",
            Group::Fetch,
            Role::Read,
            "Render a page of a PDF as an image",
        )
        .handle(page_image),
    ]
}

async fn page_image(app: App, call: Call, request: PageImage) -> Result<PageImageReply, ApiError> {
    let PageImage { scope, file_id, drawing, return_content } = request;
    if !return_content {
        call.require_writer()?;
    }
    let call = Arc::new(call);
    let (opening, caller) = (app.clone(), Arc::clone(&call));
    let (access, original, scope, source) = off_thread(move || {
        let access = opening.engine.open(caller.grant()?, &scope, Some(TenantMode::Standard))?;
        let original = with_pages(&opening, &access, &file_id)?;
        Ok((access, original, scope, file_id))
    })
    .await?;
    if return_content {
        return drawn(app, &call, &access, original, drawing).await;
    }
    let (key_id, page) = (call.grant()?.key_id.to_string(), drawing.page);
    let collection = access.tenant.collection.to_string();
    let claim = Claim { key_id, collection, scope, source, drawing: Some(drawing) };
    let (token, end) = app.download.sign(&claim, app.engine.clock().now());
    let answer = PageImageAddress {
        file_id: claim.source.to_string(),
        page,
        success: true,
        message: "Signed URL created".to_owned(),
        content_type: PNG.to_owned(),
        download_url: format!("{}/fetch/download/{token}", call.base_url),
        expires_at: end.to_string(),
    };
    Ok(PageImageReply::Address(Box::new(Json::new(answer).with_degraded(degraded(&access)))))
}

/// Opens the original of a source that has pages.
pub(super) fn with_pages(
    app: &App,
    access: &TenantAccess,
    id: &SourceId,
) -> Result<Original, ApiError> {
    let original = app.engine.original_with_pages(access, id);
    original.map_err(|error| lookup_error(access, error))
}

/// Renders a page with a permit of the queue, unless it was rendered recently.
pub(super) async fn drawn(
    app: App,
    call: &Call,
    access: &TenantAccess,
    mut original: Original,
    drawing: Drawing,
) -> Result<PageImageReply, ApiError> {
    if let Some(picture) = app.engine.recent_picture(&original, &drawing) {
        return Ok(PageImageReply::Picture(picture));
    }
    let permit = app.draw_permit(call, &app.search_context(call), access).await?;
    off_thread(move || {
        let picture = app.engine.draw(&mut original, &drawing);
        drop(permit);
        Ok(PageImageReply::Picture(picture?))
    })
    .await
}

/// The response of `page_image`.
#[derive(Debug)]
pub enum PageImageReply {
    /// The rendered page.
    Picture(Arc<PagePicture>),
    /// A signed URL of the page.
    Address(Box<Json<PageImageAddress>>),
}

impl Reply for PageImageReply {
    const MEDIA_TYPES: &'static [&'static str] = &[PNG, "application/json"];

    fn schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "string", "format": "binary"})
    }

    fn with_ignored(self, names: &[String]) -> Self {
        match self {
            Self::Address(json) => Self::Address(Box::new(json.with_ignored(names))),
            picture @ Self::Picture(_) => picture,
        }
    }

    fn into_response(self) -> Result<Response, ApiError> {
        let picture = match self {
            Self::Address(json) => return json.into_response(),
            Self::Picture(picture) => picture,
        };
        let ((width, height), pages) = (picture.size, picture.pages);
        let mut response = Response::new(Body::from(Bytes::from_owner(Png(picture))));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PNG));
        headers.insert(PAGE_COUNT, pages.into());
        for (name, points) in [(PAGE_WIDTH, width), (PAGE_HEIGHT, height)] {
            let points = HeaderValue::try_from(points.to_string());
            headers.insert(name, points.map_err(|error| ApiError::internal(error.to_string()))?);
        }
        guard(headers);
        Ok(response)
    }
}

/// The PNG bytes of a page that may be shared with other responses.
struct Png(Arc<PagePicture>);

impl AsRef<[u8]> for Png {
    fn as_ref(&self) -> &[u8] {
        &self.0.png
    }
}
