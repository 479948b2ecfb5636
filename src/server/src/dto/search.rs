//! Questions and searches (docs/api.md, "Retrieve", "Full text" and "Questions").

use crate::dto::filters::{
    CONTEXT_LIST, DOCUMENT_FILTER, SYSTEM_FILTER, TENANT_FILTER, read_filter,
};
use crate::dto::inputs::{SUB_TENANT_BODY, TENANT_BODY, body_scope};
use crate::error::ApiError;
use crate::request::fields::each;
use crate::request::members::Item;
use crate::request::{Field, Fields, Kind, Request};
use lodestone_answer::generate::{Sampling, Tools};
use lodestone_engine::qna::Conversation;
use lodestone_engine::query::shares::wire::TASK_ROWS_MAX;
use lodestone_engine::query::{FullTextRequest, GraphContext, Join, Mode, Recall, RetrieveRequest};
use lodestone_text::Operator;
use lodestone_types::id::SessionId;
use lodestone_types::{Scope, limits};

const QUERY_TEXT: Kind = Kind::Text { chars_max: limits::QUERY_CHARS_MAX, is_filled: true };
const RESULTS_MAX: u64 = limits::RESULTS_MAX as u64;
/// Largest `offset`: ten pages of the maximum size. A filter is needed to reach further results.
const OFFSET_MAX: u64 = 10_000;
const _: () = assert!((OFFSET_MAX + RESULTS_MAX) as usize <= TASK_ROWS_MAX);
/// Maximum number of metadata keys counted per search.
const FACETS_MAX: usize = 20;
const IGNORED_DOC: &str = "Accepted without effect; named in metadata.ignored_parameters.";

static QUERY: Field = Field::body("query", QUERY_TEXT, "Query text.").required();
static QUESTION: Field = Field::body("question", QUERY_TEXT, "Question to answer.").required();
static MAX_CHUNKS: Field = Field::body(
    "max_chunks",
    Kind::Integer { min: 1, max: RESULTS_MAX, default: Some(10) },
    "Maximum number of chunks.",
);
static FULL_TEXT_MAX_CHUNKS: Field = Field::body(
    "max_chunks",
    Kind::Integer { min: 1, max: RESULTS_MAX, default: Some(25) },
    "Maximum number of chunks.",
);
static TOP_N: Field = Field::body(
    "top_n",
    Kind::Integer { min: 1, max: RESULTS_MAX, default: Some(10) },
    "Maximum number of chunks to answer from.",
)
.or(&["max_chunks"]);
static MODE: Field = Field::body(
    "mode",
    Kind::Choice { words: &["fast", "accurate"], default: None, is_exact: true },
    "Search effort. Absent: one pass, which finds 99 of 100 nearest vectors unless it compares \
     all; `fast`: likewise, 97 of 100; `accurate`: compares all vectors, followed by a second \
     pass and the reranker.",
);
static MIN_CONFIDENCE: Field = Field::body(
    "min_confidence",
    Kind::Share { default: 0.0 },
    "Minimum `confidence` of returned chunks, 0 to 1.",
);
static FUZZY: Field = Field::body(
    "fuzzy",
    Kind::Fuzzy,
    "Typos tolerated per word: `false` (none), `auto` (one from 4 letters, two from 8), 1 or 2. \
     Numbers and identifiers must match exactly.",
);
static PREFIX: Field = Field::body(
    "prefix",
    Kind::Boolean { default: false },
    "Whether the last word is matched as a prefix.",
);
static OFFSET: Field = Field::body(
    "offset",
    Kind::Integer { min: 0, max: OFFSET_MAX, default: Some(0) },
    "Number of best chunks to skip.",
);
static FACETS: Field = Field::body(
    "facets",
    Kind::Texts { min: 0, max: FACETS_MAX },
    "Metadata keys whose values are counted over all matching chunks; the response is then an \
     object.",
);
static HIGHLIGHTS: Field = Field::body(
    "highlights",
    Kind::Boolean { default: false },
    "Whether each chunk includes the positions of the query words in it.",
);
static OPERATOR: Field = Field::body(
    "operator",
    Kind::Choice { words: &["or", "and"], default: Some("or"), is_exact: false },
    "`or`: at least one term must occur; `and`: all terms must occur.",
);
const ALPHA_DOC: &str = "Weight of semantic against keyword search, 0 to 1, or `auto`. Absent: \
     0.8, or less if the embedding model does not support the script of the query.";
static ALPHA: Field = Field::body("alpha", Kind::Alpha, ALPHA_DOC);
static SEARCH_ALPHA: Field = Field::body("search_alpha", Kind::Alpha, ALPHA_DOC);
static RECENCY_BIAS: Field = Field::body(
    "recency_bias",
    Kind::Share { default: 0.0 },
    "Weight of recency in the ranking, 0 to 1.",
);
static PERSONALISE: Field = Field::body(
    "personalise_search",
    Kind::Boolean { default: false },
    "Whether memories of the sub-tenant influence the ranking.",
);
static GRAPH_CONTEXT: Field = Field::body(
    "graph_context",
    Kind::GraphContext,
    "Whether the search follows entity names and returns relations of entities. `auto`: if the \
     question names several things, or asks for something about one that the first results do \
     not contain. Absent: `auto` in mode `accurate`, otherwise `false`.",
);
static PER_SOURCE: Field = Field::body(
    "max_chunks_per_source",
    Kind::Integer { min: 1, max: RESULTS_MAX, default: None },
    "Maximum number of chunks per source; no limit if absent.",
);
static JOIN_NEIGHBOURS: Field = Field::body(
    "join_neighbours",
    Kind::BooleanOrAuto,
    "Whether adjacent chunks of a source are merged into one result; `auto`: in sources of at \
     most four chunks.",
);
static EXPLAIN: Field = Field::body(
    "explain",
    Kind::Boolean { default: false },
    "Whether each chunk includes the components of its score.",
);
static EXTRA_CONTEXT: Field = Field::body(
    "extra_context",
    Kind::Text { chars_max: limits::QUERY_CHARS_MAX, is_filled: false },
    "Text that guides semantic search and reranking; its words are not used as keywords.",
);
static SESSION_ID: Field =
    Field::body("session_id", Kind::Identifier, "Id of the conversation to continue.");
static HISTORY: Field = Field::body(
    "history",
    Kind::Objects { item: &[&PAST_QUESTION, &PAST_ANSWER], min: 0, max: limits::SESSION_TURNS },
    "Previous turns of the conversation, oldest first, instead of `session_id`.",
);
static PAST_QUESTION: Field =
    Field::body("question", QUERY_TEXT, "Question of the turn.").required();
static PAST_ANSWER: Field = Field::body(
    "answer",
    Kind::Text { chars_max: limits::QUERY_CHARS_MAX, is_filled: false },
    "Answer to the question.",
);
static AI_GENERATION: Field = Field::body(
    "ai_generation",
    Kind::Boolean { default: true },
    "Whether to write an answer; if false, only the context is returned.",
);
static HIGHLIGHT_CHUNKS: Field = Field::body(
    "highlight_chunks",
    Kind::Boolean { default: true },
    "Whether the response includes the retrieved chunks.",
);
static STREAM: Field = Field::body(
    "stream",
    Kind::Boolean { default: false },
    "Whether to respond with server-sent events.",
);
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
    "Whether the question may be split into several queries; requires a generator.",
);
static AUTO_AGENT_ROUTING: Field =
    Field::body("auto_agent_routing", Kind::Boolean { default: false }, IGNORED_DOC)
        .without_effect();
static SEARCH_MODES: Field =
    Field::body("search_modes", Kind::Texts { min: 0, max: 100 }, IGNORED_DOC).without_effect();

/// Reads the fields shared by retrieve and qna, and whether scores are to be explained.
fn read_search(
    fields: &mut Fields,
    query: String,
    max_chunks: &Field,
    alpha: &Field,
) -> Result<(RetrieveRequest, bool), ApiError> {
    let max_chunks = fields.integer(max_chunks)?.unwrap_or(10) as usize;
    let (mode, recall) = match fields.choice(&MODE)? {
        Some("accurate") => (Mode::Accurate, Recall::Usual),
        Some(_) => (Mode::Fast, Recall::Quick),
        None => (Mode::Fast, Recall::Usual),
    };
    let alpha = fields.alpha(alpha)?;
    let recency_bias = fields.share(&RECENCY_BIAS)?;
    let is_personalised = fields.boolean(&PERSONALISE)?;
    let graph_context = fields.graph_context(&GRAPH_CONTEXT)?.unwrap_or(match mode {
        Mode::Fast => GraphContext::Off,
        Mode::Accurate => GraphContext::Auto,
    });
    let per_source_max = fields.integer(&PER_SOURCE)?.map(|most| most as usize);
    let explain = fields.boolean(&EXPLAIN)?;
    let request = RetrieveRequest {
        query,
        extra_context: fields.text(&EXTRA_CONTEXT)?.filter(|text| !text.trim().is_empty()),
        max_chunks,
        mode,
        recall,
        alpha,
        recency_bias,
        is_personalised,
        graph_context,
        per_source_max,
        join: Join::Never,
        min_confidence: fields.share(&MIN_CONFIDENCE)?,
        filter: read_filter(fields)?,
    };
    Ok((request, explain))
}

/// Reads the conversation so far: a session or the turns themselves.
fn read_conversation(fields: &mut Fields) -> Result<Conversation, ApiError> {
    let session = fields.id(&SESSION_ID, SessionId::parse_field)?;
    let turn = |item: Item| {
        let mut fields = item.fields()?;
        let question = fields.required_text(&PAST_QUESTION)?;
        Ok((question, fields.text(&PAST_ANSWER)?.unwrap_or_default()))
    };
    let turns = each(&HISTORY, fields.items(&HISTORY)?.unwrap_or_default(), turn)?;
    match (session, turns.is_empty()) {
        (Some(_), false) => {
            let problem = "and session_id are mutually exclusive";
            Err(ApiError::field("conflicting_values", HISTORY.location, HISTORY.name, problem))
        }
        (Some(session), true) => Ok(Conversation::Session(session)),
        (None, false) => Ok(Conversation::Told(turns)),
        (None, true) => Ok(Conversation::New),
    }
}

/// Input of `POST /search/retrieve`.
#[derive(Debug, Clone, PartialEq)]
pub struct Retrieve {
    /// Scope to search.
    pub scope: Scope,
    /// The search.
    pub request: RetrieveRequest,
    /// The conversation that precedes it.
    pub conversation: Conversation,
    /// Whether to explain scores.
    pub explain: bool,
}

impl Request for Retrieve {
    const FIELDS: &'static [&'static Field] = &[
        &QUERY, &TENANT_BODY, &SUB_TENANT_BODY, &MAX_CHUNKS, &MODE, &ALPHA, &RECENCY_BIAS,
        &PERSONALISE, &GRAPH_CONTEXT, &PER_SOURCE, &JOIN_NEIGHBOURS, &MIN_CONFIDENCE, &EXPLAIN,
        &EXTRA_CONTEXT, &TENANT_FILTER, &DOCUMENT_FILTER, &SYSTEM_FILTER, &CONTEXT_LIST,
        &SESSION_ID, &HISTORY,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = body_scope(fields)?;
        let query = fields.required_text(&QUERY)?;
        let (mut request, explain) = read_search(fields, query, &MAX_CHUNKS, &ALPHA)?;
        request.join = match fields.boolean_or_auto(&JOIN_NEIGHBOURS)? {
            Some(true) => Join::Always,
            Some(false) => Join::Never,
            None => Join::Auto,
        };
        let conversation = read_conversation(fields)?;
        Ok(Self { scope, request, conversation, explain })
    }
}

/// Input of `POST /search/full-text-search`.
#[derive(Debug, Clone, PartialEq)]
pub struct FullTextSearch {
    /// Scope to search.
    pub scope: Scope,
    /// The search.
    pub request: FullTextRequest,
    /// Whether to count facet values, which also turns the response from a list into an object.
    pub has_facets: bool,
    /// Whether to return the positions of matched words.
    pub has_highlights: bool,
}

impl Request for FullTextSearch {
    const FIELDS: &'static [&'static Field] = &[
        &QUERY, &TENANT_BODY, &SUB_TENANT_BODY, &OPERATOR, &FUZZY, &PREFIX, &FULL_TEXT_MAX_CHUNKS,
        &OFFSET, &MIN_CONFIDENCE, &FACETS, &HIGHLIGHTS, &TENANT_FILTER, &DOCUMENT_FILTER,
        &SYSTEM_FILTER, &CONTEXT_LIST,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = body_scope(fields)?;
        let query = fields.required_text(&QUERY)?;
        let operator = match fields.choice(&OPERATOR)? {
            Some("and") => Operator::And,
            _ => Operator::Or,
        };
        let max_chunks = fields.integer(&FULL_TEXT_MAX_CHUNKS)?.unwrap_or(25) as usize;
        let facets = fields.texts(&FACETS)?;
        let has_facets = facets.is_some();
        let request = FullTextRequest {
            query,
            operator,
            fuzzy: fields.fuzzy(&FUZZY)?,
            is_prefix: fields.boolean(&PREFIX)?,
            offset: fields.integer(&OFFSET)?.unwrap_or(0) as usize,
            max_chunks,
            min_confidence: fields.share(&MIN_CONFIDENCE)?,
            facets: facets.unwrap_or_default(),
            is_counted: has_facets,
            filter: read_filter(fields)?,
        };
        let has_highlights = fields.boolean(&HIGHLIGHTS)?;
        Ok(Self { scope, request, has_facets, has_highlights })
    }
}

/// Input of `POST /search/qna`.
#[derive(Debug, Clone, PartialEq)]
pub struct Qna {
    /// Scope to search.
    pub scope: Scope,
    /// The conversation that precedes the question.
    pub conversation: Conversation,
    /// The search; its query is the question.
    pub request: RetrieveRequest,
    /// Whether to explain scores.
    pub explain: bool,
    /// Whether to write an answer, rather than only return its context.
    pub ai_generation: bool,
    /// Whether to return chunks; always true without generation.
    pub highlight_chunks: bool,
    /// Whether to stream the answer as events.
    pub stream: bool,
    /// User name for the generator; possibly empty.
    pub user_name: String,
    /// Instructions for the generator; possibly empty.
    pub user_instructions: String,
    /// Whether the question may be split into several searches.
    pub multi_step_reasoning: bool,
    /// Sampling parameters for the generator.
    pub sampling: Sampling,
    /// Tools that the generator may call.
    pub tools: Option<Tools>,
}

impl Request for Qna {
    const FIELDS: &'static [&'static Field] = &[
        &QUESTION, &TENANT_BODY, &SUB_TENANT_BODY, &SESSION_ID, &HISTORY, &CONTEXT_LIST,
        &AI_GENERATION, &HIGHLIGHT_CHUNKS, &TENANT_FILTER, &DOCUMENT_FILTER, &SYSTEM_FILTER,
        &SEARCH_ALPHA, &RECENCY_BIAS, &STREAM, &TOP_N, &USER_NAME, &USER_INSTRUCTIONS, &MULTI_STEP,
        &AUTO_AGENT_ROUTING, &SEARCH_MODES, &MODE, &GRAPH_CONTEXT, &PERSONALISE, &PER_SOURCE,
        &MIN_CONFIDENCE, &EXPLAIN, &EXTRA_CONTEXT,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = body_scope(fields)?;
        let question = fields.required_text(&QUESTION)?;
        let conversation = read_conversation(fields)?;
        let (request, explain) = read_search(fields, question, &TOP_N, &SEARCH_ALPHA)?;
        let ai_generation = fields.boolean(&AI_GENERATION)?;
        let highlight_chunks = fields.boolean(&HIGHLIGHT_CHUNKS)? || !ai_generation;
        let stream = fields.boolean(&STREAM)?;
        let user_name = fields.text(&USER_NAME)?.unwrap_or_default();
        let user_instructions = fields.text(&USER_INSTRUCTIONS)?.unwrap_or_default();
        let multi_step_reasoning = fields.boolean(&MULTI_STEP)?;
        Ok(Self {
            scope,
            conversation,
            request,
            explain,
            ai_generation,
            highlight_chunks,
            stream,
            user_name,
            user_instructions,
            multi_step_reasoning,
            sampling: Sampling::default(),
            tools: None,
        })
    }
}
