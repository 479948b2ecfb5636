//! Questions and searches (API 3.5).

use crate::dto::filters::{CONTEXT_LIST, DOCUMENT_FILTER, Filters, SYSTEM_FILTER, TENANT_FILTER};
use crate::dto::inputs::{SUB_TENANT_BODY, TENANT_BODY, body_scope};
use crate::error::ApiError;
use crate::request::{Alpha, Field, Fields, Kind, Request};
use lodestone_types::id::SessionId;
use lodestone_types::{Scope, limits};

const QUERY_TEXT: Kind = Kind::Text { chars_max: limits::QUERY_CHARS_MAX, is_filled: true };
const RESULTS_MAX: u64 = limits::RESULTS_MAX as u64;
const IGNORED_DOC: &str = "Accepted without effect; named in metadata.ignored_parameters.";

static QUERY: Field = Field::body("query", QUERY_TEXT, "What to look for.").required();
static QUESTION: Field = Field::body("question", QUERY_TEXT, "What to answer.").required();
static MAX_CHUNKS: Field = Field::body(
    "max_chunks",
    Kind::Integer { min: 1, max: RESULTS_MAX, default: Some(10) },
    "Chunks wanted.",
);
static FULL_TEXT_MAX_CHUNKS: Field = Field::body(
    "max_chunks",
    Kind::Integer { min: 1, max: RESULTS_MAX, default: Some(25) },
    "Chunks wanted.",
);
static TOP_N: Field = Field::body(
    "top_n",
    Kind::Integer { min: 1, max: RESULTS_MAX, default: Some(10) },
    "Chunks to answer from.",
)
.or("max_chunks");
static MODE: Field = Field::body(
    "mode",
    Kind::Choice { words: &["fast", "accurate"], default: Some("fast"), is_exact: true },
    "One pass, or several query forms and a reranker.",
);
static OPERATOR: Field = Field::body(
    "operator",
    Kind::Choice { words: &["or", "and"], default: Some("or"), is_exact: false },
    "At least one term, or all of them.",
);
static ALPHA: Field = Field::body("alpha", Kind::Alpha, "Weight of the semantic side; or `auto`.");
static SEARCH_ALPHA: Field =
    Field::body("search_alpha", Kind::Alpha, "Weight of the semantic side; or `auto`.");
static RECENCY_BIAS: Field =
    Field::body("recency_bias", Kind::Share { default: 0.0 }, "How much newer sources gain.");
static PERSONALISE: Field = Field::body(
    "personalise_search",
    Kind::Boolean { default: false },
    "Let the scope's memories steer ranking.",
);
static GRAPH_CONTEXT: Field =
    Field::body("graph_context", Kind::Boolean { default: false }, "Add relations of entities.");
static PER_SOURCE: Field = Field::body(
    "max_chunks_per_source",
    Kind::Integer { min: 1, max: RESULTS_MAX, default: None },
    "Chunks of one source at most; absent: no limit.",
);
static EXPLAIN: Field = Field::body(
    "explain",
    Kind::Boolean { default: false },
    "Say of each chunk what its score is made of.",
);
static EXTRA_CONTEXT: Field = Field::body(
    "extra_context",
    Kind::Text { chars_max: limits::QUERY_CHARS_MAX, is_filled: false },
    "Steers the semantic side and reranking; its words are never required.",
);
static SESSION_ID: Field =
    Field::body("session_id", Kind::Identifier, "Conversation that this turn belongs to.");
static AI_GENERATION: Field =
    Field::body("ai_generation", Kind::Boolean { default: true }, "false: context only.");
static HIGHLIGHT_CHUNKS: Field =
    Field::body("highlight_chunks", Kind::Boolean { default: true }, "false: no chunks.");
static STREAM: Field =
    Field::body("stream", Kind::Boolean { default: false }, "Answer as server-sent events.");
static USER_NAME: Field = Field::body(
    "user_name",
    Kind::Text { chars_max: 256, is_filled: false },
    "Passed to the generator.",
);
static USER_INSTRUCTIONS: Field = Field::body(
    "user_instructions",
    Kind::Text { chars_max: 4096, is_filled: false },
    "Passed to the generator.",
);
static MULTI_STEP: Field = Field::body(
    "multi_step_reasoning",
    Kind::Boolean { default: true },
    "Permits splitting the question; needs a generator.",
);
static AUTO_AGENT_ROUTING: Field =
    Field::body("auto_agent_routing", Kind::Boolean { default: false }, IGNORED_DOC);
static SEARCH_MODES: Field =
    Field::body("search_modes", Kind::Texts { min: 0, max: 100 }, IGNORED_DOC);

/// How much work a search may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One hybrid pass.
    Fast,
    /// Several query forms, exact scores, a reranker where there is one.
    Accurate,
}

impl Mode {
    /// The word used on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Accurate => "accurate",
        }
    }
}

/// What retrieve and qna share.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchOptions {
    /// Chunks wanted.
    pub max_chunks: usize,
    /// How much work.
    pub mode: Mode,
    /// Weight of the semantic side.
    pub alpha: Alpha,
    /// How much newer sources gain, 0 to 1.
    pub recency_bias: f32,
    /// Whether memories steer ranking.
    pub personalise_search: bool,
    /// Whether relations of entities are wanted.
    pub graph_context: bool,
    /// Chunks of one source at most.
    pub per_source_max: Option<usize>,
    /// Whether scores are explained.
    pub explain: bool,
    /// Steers the semantic side; never empty.
    pub extra_context: Option<String>,
    /// The restrictions.
    pub filters: Filters,
}

impl SearchOptions {
    fn read(fields: &mut Fields, max_chunks: &Field, alpha: &Field) -> Result<Self, ApiError> {
        Ok(Self {
            max_chunks: fields.integer(max_chunks)?.unwrap_or(10) as usize,
            mode: match fields.choice(&MODE)? {
                Some("accurate") => Mode::Accurate,
                _ => Mode::Fast,
            },
            alpha: fields.alpha(alpha)?,
            recency_bias: fields.share(&RECENCY_BIAS)?,
            personalise_search: fields.boolean(&PERSONALISE)?,
            graph_context: fields.boolean(&GRAPH_CONTEXT)?,
            per_source_max: fields.integer(&PER_SOURCE)?.map(|most| most as usize),
            explain: fields.boolean(&EXPLAIN)?,
            extra_context: fields.text(&EXTRA_CONTEXT)?.filter(|text| !text.trim().is_empty()),
            filters: Filters::read(fields)?,
        })
    }
}

/// `POST /search/retrieve`.
#[derive(Debug, Clone, PartialEq)]
pub struct Retrieve {
    /// Where to look.
    pub scope: Scope,
    /// What to look for.
    pub query: String,
    /// How.
    pub options: SearchOptions,
}

impl Request for Retrieve {
    const FIELDS: &'static [&'static Field] = &[
        &QUERY,
        &TENANT_BODY,
        &SUB_TENANT_BODY,
        &MAX_CHUNKS,
        &MODE,
        &ALPHA,
        &RECENCY_BIAS,
        &PERSONALISE,
        &GRAPH_CONTEXT,
        &PER_SOURCE,
        &EXPLAIN,
        &EXTRA_CONTEXT,
        &TENANT_FILTER,
        &DOCUMENT_FILTER,
        &SYSTEM_FILTER,
        &CONTEXT_LIST,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = body_scope(fields)?;
        let query = fields.required_text(&QUERY)?;
        let options = SearchOptions::read(fields, &MAX_CHUNKS, &ALPHA)?;
        Ok(Self { scope, query, options })
    }
}

/// How the terms of a full-text search combine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermOperator {
    /// At least one term occurs.
    Or,
    /// All terms occur.
    And,
}

/// `POST /search/full-text-search`.
#[derive(Debug, Clone, PartialEq)]
pub struct FullTextSearch {
    /// Where to look.
    pub scope: Scope,
    /// What to look for.
    pub query: String,
    /// How its terms combine.
    pub operator: TermOperator,
    /// Chunks wanted.
    pub max_chunks: usize,
    /// The restrictions.
    pub filters: Filters,
}

impl Request for FullTextSearch {
    const FIELDS: &'static [&'static Field] = &[
        &QUERY,
        &TENANT_BODY,
        &SUB_TENANT_BODY,
        &OPERATOR,
        &FULL_TEXT_MAX_CHUNKS,
        &TENANT_FILTER,
        &DOCUMENT_FILTER,
        &SYSTEM_FILTER,
        &CONTEXT_LIST,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = body_scope(fields)?;
        let query = fields.required_text(&QUERY)?;
        let operator = match fields.choice(&OPERATOR)? {
            Some("and") => TermOperator::And,
            _ => TermOperator::Or,
        };
        let max_chunks = fields.integer(&FULL_TEXT_MAX_CHUNKS)?.unwrap_or(25) as usize;
        Ok(Self { scope, query, operator, max_chunks, filters: Filters::read(fields)? })
    }
}

/// `POST /search/qna`.
#[derive(Debug, Clone, PartialEq)]
pub struct Qna {
    /// Where to look.
    pub scope: Scope,
    /// What to answer.
    pub question: String,
    /// The conversation, if any.
    pub session_id: Option<SessionId>,
    /// How to look.
    pub options: SearchOptions,
    /// Whether an answer is wanted, not only its context.
    pub ai_generation: bool,
    /// Whether chunks are wanted; always true without generation.
    pub highlight_chunks: bool,
    /// Whether the answer is an event stream.
    pub stream: bool,
    /// Passed to the generator; possibly empty.
    pub user_name: String,
    /// Passed to the generator; possibly empty.
    pub user_instructions: String,
    /// Whether the question may be split.
    pub multi_step_reasoning: bool,
    /// Parameters that were sent and have no effect.
    pub ignored_parameters: Vec<&'static str>,
}

impl Request for Qna {
    const FIELDS: &'static [&'static Field] = &[
        &QUESTION,
        &TENANT_BODY,
        &SUB_TENANT_BODY,
        &SESSION_ID,
        &CONTEXT_LIST,
        &AI_GENERATION,
        &HIGHLIGHT_CHUNKS,
        &TENANT_FILTER,
        &DOCUMENT_FILTER,
        &SYSTEM_FILTER,
        &SEARCH_ALPHA,
        &RECENCY_BIAS,
        &STREAM,
        &TOP_N,
        &USER_NAME,
        &USER_INSTRUCTIONS,
        &MULTI_STEP,
        &AUTO_AGENT_ROUTING,
        &SEARCH_MODES,
        &MODE,
        &GRAPH_CONTEXT,
        &PERSONALISE,
        &PER_SOURCE,
        &EXPLAIN,
        &EXTRA_CONTEXT,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = body_scope(fields)?;
        let question = fields.required_text(&QUESTION)?;
        let session_id = fields.id(&SESSION_ID, SessionId::parse_field)?;
        let options = SearchOptions::read(fields, &TOP_N, &SEARCH_ALPHA)?;
        let ai_generation = fields.boolean(&AI_GENERATION)?;
        let highlight_chunks = fields.boolean(&HIGHLIGHT_CHUNKS)? || !ai_generation;
        let stream = fields.boolean(&STREAM)?;
        let user_name = fields.text(&USER_NAME)?.unwrap_or_default();
        let user_instructions = fields.text(&USER_INSTRUCTIONS)?.unwrap_or_default();
        let multi_step_reasoning = fields.boolean(&MULTI_STEP)?;
        let mut ignored_parameters = Vec::new();
        for field in [&AUTO_AGENT_ROUTING, &SEARCH_MODES] {
            if fields.is_given(field)? {
                ignored_parameters.push(field.name);
            }
        }
        Ok(Self {
            scope,
            question,
            session_id,
            options,
            ai_generation,
            highlight_chunks,
            stream,
            user_name,
            user_instructions,
            multi_step_reasoning,
            ignored_parameters,
        })
    }
}
