//! Rendered pages (docs/api.md, "Page images").

use schemars::JsonSchema;
use serde::Serialize;

use crate::dto::inputs::{
    OTHER_THAN_FILE_ID, SUB_TENANT_BODY, TENANT_BODY, body_scope, required_source_id,
};
use crate::error::ApiError;
use crate::request::fields::missing;
use crate::request::indexed::place;
use crate::request::members::Item;
use crate::request::{Field, Fields, Kind, Request};
use lodestone_extract::Drawing;
use lodestone_types::{PageArea, Scope, SourceId, limits};

const WIDTH_DEFAULT: u64 = 1024;
/// Largest coordinate in points, in either direction from the page's corner.
const COORDINATE_MAX: f64 = 1.0e6;

static FILE_ID: Field =
    Field::body("file_id", Kind::Identifier, "Source id.").or(OTHER_THAN_FILE_ID).required();
const PAGE_NUMBER: Kind =
    Kind::Integer { min: 1, max: limits::PDF_PAGES_MAX as u64, default: None };
static PAGE: Field = Field::body("page", PAGE_NUMBER, "Page number, from 1.").required();
static WIDTH: Field = Field::body(
    "width",
    Kind::Integer {
        min: limits::PICTURE_WIDTH_MIN as u64,
        max: limits::PICTURE_WIDTH_MAX as u64,
        default: Some(WIDTH_DEFAULT),
    },
    "Width in pixels; the height follows from the page. At most 8,388,608 pixels in total.",
);
static FORMAT: Field = Field::body(
    "format",
    Kind::Choice { words: &["png"], default: Some("png"), is_exact: true },
    "Image format.",
);
static HIGHLIGHT: Field = Field::body(
    "highlight",
    Kind::Objects {
        item: &[&ON_PAGE, &LEFT, &TOP, &BOX_WIDTH, &BOX_HEIGHT],
        min: 0,
        max: limits::PICTURE_MARKS_SENT_MAX,
    },
    "Rectangles to highlight, in the form of the `boxes` of citations and chunks; at most 64 on \
     the page.",
);
static ON_PAGE: Field = Field::body(
    "page",
    PAGE_NUMBER,
    "Page of the rectangle; rectangles on other pages are ignored.",
);
const POINTS: Kind = Kind::Number { min: -COORDINATE_MAX, max: COORDINATE_MAX };
const EXTENT: Kind = Kind::Number { min: 0.0, max: COORDINATE_MAX };
static LEFT: Field = Field::body("x", POINTS, "Left edge in points.").required();
static TOP: Field = Field::body("y", POINTS, "Top edge in points.").required();
static BOX_WIDTH: Field = Field::body("width", EXTENT, "Width in points.").required();
static BOX_HEIGHT: Field = Field::body("height", EXTENT, "Height in points.").required();
static RETURN_CONTENT: Field = Field::body(
    "return_content",
    Kind::Boolean { default: true },
    "Whether to return the image itself; if false, a signed URL is returned instead.",
);

/// Input of `POST /fetch/page_image`.
#[derive(Debug, Clone, PartialEq)]
pub struct PageImage {
    /// Scope addressed.
    pub scope: Scope,
    /// The source.
    pub file_id: SourceId,
    /// The page, its width in pixels, and the marks to draw on it.
    pub drawing: Drawing,
    /// Whether to return the image itself rather than a URL.
    pub return_content: bool,
}

impl Request for PageImage {
    const FIELDS: &'static [&'static Field] = &[
        &TENANT_BODY, &SUB_TENANT_BODY, &FILE_ID, &PAGE, &WIDTH, &FORMAT, &HIGHLIGHT,
        &RETURN_CONTENT,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = body_scope(fields)?;
        let file_id = required_source_id(fields, &FILE_ID)?;
        let page = fields.integer(&PAGE)?.ok_or_else(|| missing(&PAGE))? as u32;
        let width = fields.integer(&WIDTH)?.unwrap_or(WIDTH_DEFAULT) as u16;
        fields.choice(&FORMAT)?;
        let mut marks = Vec::new();
        for (at, item) in fields.items(&HIGHLIGHT)?.unwrap_or_default().into_iter().enumerate() {
            let within = |error: ApiError| error.within(&place(&HIGHLIGHT, at));
            let (on, area) = mark(item).map_err(within)?;
            if on.is_none_or(|on| on == u64::from(page)) {
                marks.push(area);
            }
        }
        if marks.len() > limits::PICTURE_MARKS_MAX {
            let max = limits::PICTURE_MARKS_MAX;
            let problem = format!("must have at most {max} rectangles on page {page}");
            let (name, location) = (HIGHLIGHT.name, HIGHLIGHT.location);
            return Err(ApiError::field("too_many_items", location, name, &problem));
        }
        let return_content = fields.boolean(&RETURN_CONTENT)?;
        Ok(Self { scope, file_id, drawing: Drawing { page, width, marks }, return_content })
    }
}

/// Reads one marked rectangle: its page, if it names one, and its area.
fn mark(item: Item) -> Result<(Option<u64>, PageArea), ApiError> {
    let mut fields = item.fields()?;
    let mut points = |field: &Field| {
        let value = fields.number(field)?.ok_or_else(|| missing(field))?;
        Ok::<_, ApiError>(value as f32)
    };
    let (x, y) = (points(&LEFT)?, points(&TOP)?);
    let (width, height) = (points(&BOX_WIDTH)?, points(&BOX_HEIGHT)?);
    Ok((fields.integer(&ON_PAGE)?, PageArea { x, y, width, height }))
}

/// Answer to `page_image` without content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PageImageAddress {
    /// Source id.
    pub file_id: String,
    /// The page.
    pub page: u32,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
    /// Media type of the picture.
    pub content_type: String,
    /// Signed URL.
    pub download_url: String,
    /// Time at which the URL expires, epoch seconds.
    pub expires_at: String,
}
