//! Ingestion of web pages (docs/api.md, "Web pages").

use crate::dto::inputs::{
    BatchItem, DOCUMENT_METADATA, DOCUMENT_METADATA_FORM, FILE_ID_BODY, OTHER_THAN_FILE_ID,
    SOURCE_ID_QUERY, SUB_TENANT_QUERY, TENANT_METADATA, TENANT_METADATA_FORM, TENANT_QUERY,
    batch_items, chosen_id, query_scope, required_source_id, source_id,
};
use crate::error::ApiError;
use crate::request::fields::{missing, wrong};
use crate::request::{Field, Fields, Kind, Request};
use lodestone_types::{Metadata, Scope, SourceId, WebUrl, limits};

pub(super) const ADDRESS: Kind =
    Kind::Text { chars_max: limits::WEB_URL_CHARS_MAX, is_filled: true };
const ADDRESS_DOC: &str = "Absolute http or https URL of the page, at most 2,048 characters.";

static WEB_URL: Field = Field::query("web_url", ADDRESS, ADDRESS_DOC).required().anywhere();
static NEW_WEB_URL: Field =
    Field::query("web_url", ADDRESS, "New URL of the page; the stored URL if absent.").anywhere();
static ITEM_WEB_URL: Field = Field::body("web_url", ADDRESS, ADDRESS_DOC).required();
static TENANT_MAP: Field = TENANT_METADATA_FORM.anywhere();
static DOCUMENT_MAP: Field = DOCUMENT_METADATA_FORM.anywhere();
static FILE_ID: Field =
    Field::query("file_id", Kind::Identifier, "Source id; generated if absent.")
        .or(OTHER_THAN_FILE_ID);
static ITEMS: Field = Field::body(
    "items",
    Kind::Objects {
        item: &[&ITEM_WEB_URL, &FILE_ID_BODY, &TENANT_METADATA, &DOCUMENT_METADATA],
        min: 1,
        max: limits::BATCH_ITEMS_MAX,
    },
    "Pages to fetch.",
)
.required();

/// Input of `POST /upload/scrape_webpage`.
#[derive(Debug, Clone, PartialEq)]
pub struct ScrapeWebpage {
    /// Destination scope.
    pub scope: Scope,
    /// Address of the page.
    pub url: WebUrl,
    /// Id of the source; generated when `None`.
    pub id: Option<SourceId>,
    /// Values of the tenant's schema.
    pub tenant_metadata: Option<Metadata>,
    /// Metadata of the document.
    pub document_metadata: Option<Metadata>,
}

impl Request for ScrapeWebpage {
    const FIELDS: &'static [&'static Field] =
        &[&TENANT_QUERY, &SUB_TENANT_QUERY, &WEB_URL, &FILE_ID, &TENANT_MAP, &DOCUMENT_MAP];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let (sent, url) = fields.sent_text(&WEB_URL)?.ok_or_else(|| missing(&WEB_URL))?;
        let url = address(&sent, &url)?;
        let id = source_id(fields, &FILE_ID)?;
        let tenant_metadata = fields.metadata(&TENANT_MAP)?;
        let document_metadata = fields.metadata(&DOCUMENT_MAP)?;
        let id = chosen_id(id, document_metadata.as_ref(), DOCUMENT_MAP.location)?;
        Ok(Self { scope, url, id, tenant_metadata, document_metadata })
    }
}

/// Input of `PATCH /upload/update_webpage`.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateWebpage {
    /// Scope addressed.
    pub scope: Scope,
    /// The source.
    pub source_id: SourceId,
    /// New address of the page; `None` keeps the stored one.
    pub url: Option<WebUrl>,
    /// New values of the tenant's schema; `None` keeps the stored map.
    pub tenant_metadata: Option<Metadata>,
    /// New metadata of the document; `None` keeps the stored map.
    pub document_metadata: Option<Metadata>,
}

impl Request for UpdateWebpage {
    const FIELDS: &'static [&'static Field] = &[
        &TENANT_QUERY, &SUB_TENANT_QUERY, &SOURCE_ID_QUERY, &NEW_WEB_URL, &TENANT_MAP,
        &DOCUMENT_MAP,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let source_id = required_source_id(fields, &SOURCE_ID_QUERY)?;
        let url = fields.sent_text(&NEW_WEB_URL)?;
        let url = url.map(|(sent, url)| address(&sent, &url)).transpose()?;
        let tenant_metadata = fields.metadata(&TENANT_MAP)?;
        let document_metadata = fields.metadata(&DOCUMENT_MAP)?;
        Ok(Self { scope, source_id, url, tenant_metadata, document_metadata })
    }
}

/// Input of `POST /upload/batch_scrape_webpage`.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchScrapeWebpage {
    /// Destination scope.
    pub scope: Scope,
    /// The pages in request order, each labelled with its address as sent.
    pub items: Vec<BatchItem<WebUrl>>,
}

impl Request for BatchScrapeWebpage {
    const FIELDS: &'static [&'static Field] = &[&TENANT_QUERY, &SUB_TENANT_QUERY, &ITEMS];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let items = batch_items(fields, &ITEMS, |item| {
            BatchItem::read(item, &FILE_ID_BODY, |fields| {
                let given = fields.required_text(&ITEM_WEB_URL);
                let url = given.clone().and_then(|given| address(&ITEM_WEB_URL, &given));
                (given.unwrap_or_default(), url)
            })
        })?;
        Ok(Self { scope, items })
    }
}

pub(super) fn address(field: &Field, text: &str) -> Result<WebUrl, ApiError> {
    WebUrl::parse(text.trim())
        .map_err(|error| wrong(field, field.location, &format!("is not allowed: {error}")))
}
