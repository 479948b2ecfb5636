//! Ingestion of web pages, which are accepted here and fetched in the background.

use bytes::Bytes;

use crate::app::{App, blocking, lookup_error};
use crate::dto::batch::BatchResult;
use crate::dto::upload::Accepted;
use crate::dto::web::{BatchScrapeWebpage, ScrapeWebpage, UpdateWebpage};
use crate::error::{ApiError, Location};
use crate::reply::Json;
use crate::request::Call;
use crate::routes::batch::{item_of, upload_all};
use crate::routes::once::Once;
use crate::routes::upload::{kept, replaced, update, upload};
use crate::routes::{Group, Route};
use lodestone_catalog::job::MetadataChange;
use lodestone_engine::EngineError;
use lodestone_engine::ingest::Submission;
use lodestone_types::{Origin, Role, SourceDetail, SourceId, SourceKind, TenantMode, WebUrl};

/// Returns the web page operations.
pub fn routes() -> Vec<Route<App>> {
    let (group, write) = (Group::Upload, Role::Write);
    vec![
        Route::<App>::post("/upload/scrape_webpage", group, write, "Fetch and index a web page")
            .urlencoded()
            .handle(blocking(scrape)),
        Route::<App>::patch("/upload/update_webpage", group, write, "Fetch a web page again")
            .urlencoded()
            .handle(blocking(update_webpage)),
        Route::<App>::post(
            "/upload/batch_scrape_webpage", group, write, "Fetch and index several web pages",
        )
        .handle(blocking(batch_scrape)),
    ]
}

/// Builds the submission of a page whose content will be fetched later.
fn submission(
    source: Option<SourceId>,
    url: &WebUrl,
    tenant_metadata: MetadataChange,
    document_metadata: MetadataChange,
) -> Submission {
    Submission {
        source,
        kind: SourceKind::Webpage,
        content: Bytes::new(),
        filename: String::new(),
        content_type: None,
        tenant_metadata,
        document_metadata,
        origin: Origin {
            url: url.as_str().to_owned(),
            detail: SourceDetail {
                requested_url: url.as_str().to_owned(),
                ..SourceDetail::default()
            },
            ..Origin::default()
        },
    }
}

fn scrape(app: &App, call: &Call, request: ScrapeWebpage) -> Result<Once<Accepted>, ApiError> {
    let ScrapeWebpage { scope, url, id, tenant_metadata, document_metadata } = request;
    let (tenant, document) = (replaced(tenant_metadata), replaced(document_metadata));
    upload(app, call, &scope, submission(id, &url, tenant, document))
}

fn update_webpage(
    app: &App,
    call: &Call,
    request: UpdateWebpage,
) -> Result<Json<Accepted>, ApiError> {
    let UpdateWebpage { scope, source_id, url, tenant_metadata, document_metadata } = request;
    let url = match url {
        Some(url) => url,
        None => {
            let access = app.engine.open(call.grant()?, &scope, Some(TenantMode::Standard))?;
            let view = app.engine.source(&access, &source_id)?.ok_or_else(|| {
                let source_id = source_id.clone();
                lookup_error(&access, EngineError::SourceNotFound { source_id })
            })?;
            WebUrl::parse(view.record.url_to_fetch()).map_err(|_| {
                let problem = "is required: the source has no stored URL";
                ApiError::field("missing_field", Location::Query, "web_url", problem)
            })?
        }
    };
    let (tenant, document) = (kept(tenant_metadata), kept(document_metadata));
    update(app, call, &scope, submission(Some(source_id), &url, tenant, document))
}

fn batch_scrape(
    app: &App,
    call: &Call,
    request: BatchScrapeWebpage,
) -> Result<Once<BatchResult>, ApiError> {
    let BatchScrapeWebpage { scope, items } = request;
    let items = items.into_iter().map(|item| {
        item_of(item, |id, url, tenant, document| submission(id, &url, tenant, document))
    });
    upload_all(app, call, &scope, items.collect())
}
