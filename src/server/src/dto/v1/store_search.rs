//! Search in vector stores.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::store_files::TextPiece;
use super::vector_stores::OneStore;
use super::{TENANT_HEADER, VECTOR_STORE_ID, filters};
use crate::error::{ApiError, Location};
use crate::request::fields::{is_blank, missing, wrong};
use crate::request::{Field, Fields, Kind, Request};
use lodestone_types::{Filter, Metadata, limits};

/// Maximum number of texts in one query, which are searched together.
const QUERY_PARTS_MAX: usize = 32;
/// Names of rankers that enable the reranker, if one is installed.
const RANKERS: &[&str] = &["auto", "default-2024-11-15"];

static QUERY: Field = Field::body(
    "query",
    Kind::Json {
        values_max: QUERY_PARTS_MAX + 1,
        bytes_max: 1 << 20,
        schema: || {
            json!({"anyOf": [
                {"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1},
            ]})
        },
    },
    "Query text, at most 16,384 characters; several texts are searched as one.",
)
.required();
static RESULTS: Field = Field::body(
    "max_num_results",
    Kind::Integer { min: 1, max: limits::STORE_RESULTS_MAX as u64, default: Some(10) },
    "Maximum number of results.",
);
static RANKING_OPTIONS: Field = Field::body(
    "ranking_options",
    Kind::Json {
        values_max: 64,
        bytes_max: 4096,
        schema: || {
            json!({"type": "object", "additionalProperties": true, "properties": {
                "ranker": {"enum": ["none", "auto", "default-2024-11-15"]},
                "score_threshold": {"type": "number", "minimum": 0, "maximum": 1},
            }})
        },
    },
    "`score_threshold` excludes results with a lower score; a `ranker` other than `none` applies \
     the reranker, if one is installed.",
);
static REWRITE_QUERY: Field = Field::body(
    "rewrite_query",
    Kind::Boolean { default: false },
    "Has no effect: the query is searched unchanged.",
)
.without_effect();

/// Input of `POST /v1/vector_stores/{vector_store_id}/search`.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchStore {
    /// The vector store.
    pub store: OneStore,
    /// The texts of the query.
    pub query: Vec<String>,
    /// The condition on attributes.
    pub filter: Filter,
    /// Maximum number of results.
    pub results_max: usize,
    /// Lowest score that a result may have.
    pub score_min: f32,
    /// Whether to apply the reranker.
    pub is_reranked: bool,
}

impl Request for SearchStore {
    const FIELDS: &'static [&'static Field] = &[
        &VECTOR_STORE_ID,
        &QUERY,
        &RESULTS,
        &filters::FILTERS,
        &RANKING_OPTIONS,
        &REWRITE_QUERY,
        &TENANT_HEADER,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let query = read_query(fields)?;
        let filter = filters::read(fields)?;
        let (score_min, is_reranked) = read_ranking(fields)?;
        let results_max = fields.integer(&RESULTS)?.unwrap_or_default() as usize;
        let store = OneStore::of(fields)?;
        Ok(Self { store, query, filter, results_max, score_min, is_reranked })
    }
}

fn read_query(fields: &mut Fields) -> Result<Vec<String>, ApiError> {
    let wrong = |problem: &str| wrong(&QUERY, Location::Body, problem);
    let query: Vec<String> = match fields.json(&QUERY)?.ok_or_else(|| missing(&QUERY))? {
        Value::String(text) => vec![text],
        Value::Array(items) => items
            .into_iter()
            .map(|item| match item {
                Value::String(text) => Ok(text),
                _ => Err(wrong("must be a string or an array of strings")),
            })
            .collect::<Result<_, _>>()?,
        _ => return Err(wrong("must be a string or an array of strings")),
    };
    if query.iter().all(|text| is_blank(text)) {
        return Err(wrong("must not be blank"));
    }
    let (max, chars) = (limits::QUERY_CHARS_MAX, query.iter().map(|text| text.chars().count()));
    match chars.sum::<usize>() + query.len() > max {
        true => Err(wrong(&format!("is longer than {max} characters"))),
        false => Ok(query),
    }
}

/// Reads the lowest score of a result, and whether the reranker is requested.
fn read_ranking(fields: &mut Fields) -> Result<(f32, bool), ApiError> {
    let Some(options) = fields.json(&RANKING_OPTIONS)? else { return Ok((0.0, false)) };
    let wrong = |member: &str, problem: &str| {
        let place = format!("{}{member}", RANKING_OPTIONS.name);
        Err(ApiError::field("invalid_value", Location::Body, &place, problem))
    };
    if !options.is_object() {
        return wrong("", "must be a JSON object");
    }
    let score_min = match &options["score_threshold"] {
        Value::Null => 0.0,
        value => match value.as_f64().filter(|score| (0.0..=1.0).contains(score)) {
            Some(score) => score as f32,
            None => return wrong(".score_threshold", "must be a number from 0 to 1"),
        },
    };
    match options["ranker"].as_str() {
        None if options["ranker"].is_null() => Ok((score_min, false)),
        Some("none") => Ok((score_min, false)),
        Some(word) if RANKERS.contains(&word) => Ok((score_min, true)),
        _ => wrong(".ranker", "must be none, auto or default-2024-11-15"),
    }
}

/// Chunk found by a search.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StoreResult {
    /// File id.
    pub file_id: String,
    /// File name, or the title if it has none.
    pub filename: String,
    /// Probability that the chunk is relevant to the query, 0 to 1.
    pub score: f32,
    /// Attributes of the file.
    pub attributes: Metadata,
    /// Text of the chunk, as a single piece.
    pub content: Vec<TextPiece>,
}

/// Response to a search of a vector store.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StoreResults {
    /// Always `vector_store.search_results.page`.
    pub object: &'static str,
    /// Query texts.
    pub search_query: Vec<String>,
    /// Results, best first.
    pub data: Vec<StoreResult>,
    /// Always false.
    pub has_more: bool,
    /// Always null.
    pub next_page: Option<String>,
}
