//! Chat completions: `POST /v1/chat/completions`.
//!
//! The last user message is the question, and the messages before it are the conversation.

use serde_json::json;

use super::messages::{MESSAGES, Messages, read_messages};
use super::tools::{FUNCTIONS, PARALLEL, TOOL_CHOICE, TOOLS, read_tools};
use super::{MODEL_NAME, TENANT_HEADER, scope_of_model};
use crate::error::{ApiError, Location};
use crate::request::fields::wrong;
use crate::request::{Field, Fields, Kind, Request};
use lodestone_answer::generate::{Sampling, Tools};
use lodestone_types::{Scope, SubTenantId};

/// Largest `max_tokens` accepted; the server's own limit is lower.
const TOKENS_MAX: u64 = 1 << 30;

/// A value of which only a single member matters.
const SMALL: Kind = Kind::Json { values_max: 10_000, bytes_max: 1 << 20, schema: || json!({}) };

static MODEL: Field = Field::body(
    "model",
    MODEL_NAME,
    "`TENANT` or `TENANT/SUB_TENANT`; has no effect if it names a tenant other than \
     `x-lodestone-tenant`.",
)
.required();
static SUB_TENANT_HEADER: Field = Field::header(
    "x-lodestone-sub-tenant",
    Kind::Identifier,
    "Sub-tenant; if absent, that of `model`, or `default` if `model` names another tenant.",
);
static STREAM: Field = Field::body(
    "stream",
    Kind::Boolean { default: false },
    "Whether to respond with server-sent events.",
);
static STREAM_OPTIONS: Field = Field::body(
    "stream_options",
    Kind::Json {
        values_max: 64,
        bytes_max: 4096,
        schema: || json!({"type": "object", "properties": {"include_usage": {"type": "boolean"}}}),
    },
    "With `include_usage`, the last chunk of a stream contains the token counts.",
);
static MAX_TOKENS: Field = Field::body(
    "max_tokens",
    Kind::Integer { min: 1, max: TOKENS_MAX, default: None },
    "Maximum number of tokens in a generated answer; has no effect above the server's own limit.",
)
.or(&["max_completion_tokens"]);
static TEMPERATURE: Field =
    Field::body("temperature", Kind::Number { min: 0.0, max: 2.0 }, "Passed to the generator.");
static N: Field = Field::body(
    "n",
    Kind::Integer { min: 1, max: 1, default: None },
    "Number of answers; only 1 is supported.",
);
static RESPONSE_FORMAT: Field = Field::body(
    "response_format",
    SMALL,
    "Format of the response; types other than `text` are refused.",
);

/// Input of `POST /v1/chat/completions`.
#[derive(Debug, Clone, PartialEq)]
pub struct Chat {
    /// The tenant and sub-tenant to answer from.
    pub scope: Scope,
    /// Whether the scope was named only by `model`.
    pub is_named_by_model: bool,
    /// The question.
    pub question: String,
    /// The turns before the question, oldest first.
    pub past: Vec<(String, String)>,
    /// The system messages, passed to the generator.
    pub instructions: String,
    /// Whether to stream the answer as events.
    pub stream: bool,
    /// Whether the stream ends with token usage.
    pub include_usage: bool,
    /// Sampling parameters for the generator.
    pub sampling: Sampling,
    /// Functions that the generator may call, and the results of earlier calls.
    pub tools: Option<Tools>,
}

impl Request for Chat {
    const FIELDS: &'static [&'static Field] = &[
        &MODEL, &MESSAGES, &STREAM, &STREAM_OPTIONS, &MAX_TOKENS, &TEMPERATURE, &N, &TOOLS,
        &TOOL_CHOICE, &PARALLEL, &FUNCTIONS, &RESPONSE_FORMAT, &TENANT_HEADER, &SUB_TENANT_HEADER,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let model = fields.required_text(&MODEL)?;
        let tenant = fields.tenant(&TENANT_HEADER)?;
        let sub_tenant = fields.id(&SUB_TENANT_HEADER, SubTenantId::parse_field)?;
        let Messages { question, past, instructions, exchange } = read_messages(fields)?;
        let tools = read_tools(fields, exchange)?;
        refuse_unsupported(fields)?;
        let stream = fields.boolean(&STREAM)?;
        let options = fields.json(&STREAM_OPTIONS)?;
        if options.as_ref().is_some_and(|options| !options.is_object()) {
            return Err(wrong(&STREAM_OPTIONS, Location::Body, "must be a JSON object"));
        }
        let sampling = Sampling {
            tokens_max: fields.integer(&MAX_TOKENS)?.map(|tokens| tokens as usize),
            temperature: fields.number(&TEMPERATURE)?,
        };
        let is_named_by_model = tenant.is_none();
        let named = scope_of_model(&model);
        let mut scope = match tenant {
            // Clients send the header with every request, so `model` may still select a sub-tenant
            // of it.
            Some(tenant) => match named.filter(|named| named.tenant == tenant) {
                Some(named) => named,
                None => Scope { tenant, sub_tenant: SubTenantId::default_name() },
            },
            None => named.ok_or_else(|| ApiError::model_not_found(Location::Body))?,
        };
        if let Some(sub_tenant) = sub_tenant {
            scope.sub_tenant = sub_tenant;
        }
        Ok(Self {
            scope,
            is_named_by_model,
            question,
            past,
            instructions,
            stream,
            include_usage: options.is_some_and(|options| options["include_usage"] == true),
            sampling,
            tools,
        })
    }
}

/// Refuses features that change the form of an answer and are not supported: ignoring them would
/// mislead the client.
fn refuse_unsupported(fields: &mut Fields) -> Result<(), ApiError> {
    fields.integer(&N)?;
    match fields.json(&RESPONSE_FORMAT)? {
        Some(format) if format["type"] != "text" => {
            let problem = "must have the type text; other response formats are not supported";
            let name = RESPONSE_FORMAT.name;
            Err(ApiError::field("unsupported_parameter", Location::Body, name, problem))
        }
        _ => Ok(()),
    }
}
