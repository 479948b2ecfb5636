//! `POST /v1/chat/completions`.
//!
//! The last message of the user is the question, those before it the conversation.

use serde_json::{Value, json};

use super::{MODEL_NAME, TENANT_HEADER, scope_of_model};
use crate::error::{ApiError, Location};
use crate::request::fields::{is_blank, missing, wrong};
use crate::request::json::Item;
use crate::request::{Field, Fields, Kind, Request};
use lodestone_engine::answer::generate::Sampling;
use lodestone_types::{Scope, SubTenantId, TenantId, limits};

/// Values in the parts of one message.
const PART_VALUES_MAX: usize = 4096;
/// Bytes and values of a list of tools, which is read only to be refused.
const TOOLS_BYTES_MAX: usize = 1 << 20;
const TOOLS_VALUES_MAX: usize = 10_000;
/// Greatest `max_tokens`; the server's own limit is lower.
const TOKENS_MAX: u64 = 1 << 30;

/// A value of which only the emptiness or one member counts.
const SMALL: Kind =
    Kind::Json { values_max: TOOLS_VALUES_MAX, bytes_max: TOOLS_BYTES_MAX, schema: || json!({}) };

static MODEL: Field = Field::body(
    "model",
    MODEL_NAME,
    "`TENANT` or `TENANT/SUB_TENANT`; of another tenant than `x-lodestone-tenant` without effect.",
)
.required();
static SUB_TENANT_HEADER: Field = Field::header(
    "x-lodestone-sub-tenant",
    Kind::Identifier,
    "The sub-tenant; absent: that of `model`, or `default` where that names another tenant.",
);
static MESSAGES: Field = Field::body(
    "messages",
    Kind::Objects { item: &[&ROLE, &CONTENT], min: 1, max: limits::CHAT_MESSAGES_MAX },
    "The chat; the last message of the user is the question, up to 16,384 characters.",
)
.required();
static ROLE: Field = Field::body(
    "role",
    Kind::Choice {
        words: &["system", "developer", "user", "assistant"],
        default: None,
        is_exact: true,
    },
    "Its author. Messages of the system go to the generator as wishes as to form.",
)
.required();
static CONTENT: Field = Field::body(
    "content",
    Kind::Json {
        values_max: PART_VALUES_MAX,
        bytes_max: limits::BODY_BYTES_MAX_INPUTS,
        schema: || {
            let part = json!({
                "type": "object", "required": ["type", "text"],
                "properties": {"type": {"enum": ["text"]}, "text": {"type": "string"}},
            });
            json!({"anyOf": [{"type": "string"}, {"type": "array", "items": part}]})
        },
    },
    "Its text, or parts of the type `text`.",
);
static STREAM: Field =
    Field::body("stream", Kind::Boolean { default: false }, "Answer as server-sent events.");
static STREAM_OPTIONS: Field = Field::body(
    "stream_options",
    Kind::Json {
        values_max: 64,
        bytes_max: 4096,
        schema: || json!({"type": "object", "properties": {"include_usage": {"type": "boolean"}}}),
    },
    "With `include_usage` the last chunk of a stream counts its tokens.",
);
static MAX_TOKENS: Field = Field::body(
    "max_tokens",
    Kind::Integer { min: 1, max: TOKENS_MAX, default: None },
    "Tokens of a generated answer; more than the server's own limit has no effect.",
)
.or(&["max_completion_tokens"]);
static TEMPERATURE: Field =
    Field::body("temperature", Kind::Number { min: 0.0, max: 2.0 }, "Passed to the generator.");
static N: Field = Field::body(
    "n",
    Kind::Integer { min: 1, max: 1, default: None },
    "Number of answers: there is one.",
);
static TOOLS: Field =
    Field::body("tools", SMALL, "Refused unless empty: no tools are called.").or(&["functions"]);
static TOOL_CHOICE: Field =
    Field::body("tool_choice", SMALL, "With `none` the tools are not refused.");
static RESPONSE_FORMAT: Field =
    Field::body("response_format", SMALL, "Absent or of the type `text`; others are refused.");

/// `POST /v1/chat/completions`.
#[derive(Debug, Clone, PartialEq)]
pub struct Chat {
    /// The tenant and sub-tenant to answer from.
    pub scope: Scope,
    /// Whether the scope is named by `model` alone.
    pub is_named_by_model: bool,
    /// The question.
    pub question: String,
    /// The turns before it, oldest first.
    pub past: Vec<(String, String)>,
    /// The texts of the system, for the generator.
    pub instructions: String,
    /// Whether the answer is an event stream.
    pub stream: bool,
    /// Whether the stream ends with its usage.
    pub include_usage: bool,
    /// Wishes for the generator.
    pub sampling: Sampling,
}

impl Request for Chat {
    const FIELDS: &'static [&'static Field] = &[
        &MODEL, &MESSAGES, &STREAM, &STREAM_OPTIONS, &MAX_TOKENS, &TEMPERATURE, &N, &TOOLS,
        &TOOL_CHOICE, &RESPONSE_FORMAT, &TENANT_HEADER, &SUB_TENANT_HEADER,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let model = fields.required_text(&MODEL)?;
        let tenant = fields.id(&TENANT_HEADER, TenantId::parse_field)?;
        let sub_tenant = fields.id(&SUB_TENANT_HEADER, SubTenantId::parse_field)?;
        let Messages { question, past, instructions } = read_messages(fields)?;
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
            // Clients send the header with everything: models still tell sub-tenants apart.
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
        })
    }
}

/// The messages as a question with what was before it.
#[derive(Default)]
struct Messages {
    question: String,
    past: Vec<(String, String)>,
    instructions: String,
}

fn read_messages(fields: &mut Fields) -> Result<Messages, ApiError> {
    let items = fields.items(&MESSAGES)?.ok_or_else(|| missing(&MESSAGES))?;
    let mut read = Messages::default();
    let mut turns: Vec<(usize, String, String)> = Vec::new();
    for (at, item) in items.into_iter().enumerate() {
        let (role, text) =
            message(item).map_err(|error| error.within(&format!("{}[{at}]", MESSAGES.name)))?;
        match (role, turns.last_mut()) {
            ("user", _) if !is_blank(&text) => turns.push((at, text, String::new())),
            ("assistant", Some((_, _, answer))) => {
                if !answer.is_empty() && !text.is_empty() {
                    answer.push('\n');
                }
                answer.push_str(&text);
            }
            ("system" | "developer", _) if !is_blank(&text) => {
                if !read.instructions.is_empty() {
                    read.instructions.push('\n');
                }
                read.instructions.push_str(&text);
            }
            _ => {}
        }
    }
    let Some((at, question, _)) = turns.pop() else {
        let problem = "must hold a message of the user with a text: the question";
        return Err(ApiError::field("invalid_value", Location::Body, MESSAGES.name, problem));
    };
    let (max, chars) = (limits::QUERY_CHARS_MAX, question.chars().count());
    if chars > max {
        let place = format!("{}[{at}].content", MESSAGES.name);
        let problem = format!("is the question and longer than {max} characters");
        return Err(ApiError::field("invalid_value", Location::Body, &place, &problem));
    }
    if read.instructions.chars().count() > max {
        let problem = format!("hold more than {max} characters of the system");
        return Err(ApiError::field("invalid_value", Location::Body, MESSAGES.name, &problem));
    }
    // A chat may be as long as it likes: what is too far back no longer counts.
    let from = turns.len().saturating_sub(limits::SESSION_TURNS);
    let kept = turns.drain(from..).map(|(_, question, answer)| (cut(question), cut(answer)));
    read.past = kept.collect();
    read.question = question;
    Ok(read)
}

/// Author and text of a message.
fn message(item: Item) -> Result<(&'static str, String), ApiError> {
    let mut fields = item.fields()?;
    let role = fields.choice(&ROLE)?.ok_or_else(|| missing(&ROLE))?;
    let wrong = |problem: &str| wrong(&CONTENT, Location::Body, problem);
    let text = match fields.json(&CONTENT)? {
        None => String::new(),
        Some(Value::String(text)) => text,
        Some(Value::Array(parts)) => {
            let texts = parts.into_iter().map(|mut part| match (&part["type"], &part["text"]) {
                (Value::String(kind), Value::String(_)) if kind == "text" => {
                    Ok(part["text"].take().as_str().unwrap_or_default().to_owned())
                }
                _ => Err(wrong("holds a part that is not of the type text with a string text")),
            });
            texts.collect::<Result<Vec<_>, _>>()?.join("\n")
        }
        Some(_) => return Err(wrong("must be a string or an array of parts")),
    };
    Ok((role, text))
}

/// The beginning of a text, as long as a question may be.
fn cut(mut text: String) -> String {
    if let Some((at, _)) = text.char_indices().nth(limits::QUERY_CHARS_MAX) {
        text.truncate(at);
    }
    text
}

/// 400 for a form of answer that there is not: to leave it out would mislead the client.
fn refuse_unsupported(fields: &mut Fields) -> Result<(), ApiError> {
    fields.integer(&N)?;
    let tools = fields.json(&TOOLS)?;
    let is_unused = fields.json(&TOOL_CHOICE)?.is_some_and(|choice| choice == "none");
    let has_tools = tools.is_some_and(|tools| tools.as_array().is_none_or(|all| !all.is_empty()));
    let refuse = |field: &Field, problem: &str| {
        Err(ApiError::field("unsupported_parameter", Location::Body, field.name, problem))
    };
    if has_tools && !is_unused {
        return refuse(&TOOLS, "cannot be called: answers are made from documents alone");
    }
    match fields.json(&RESPONSE_FORMAT)? {
        Some(format) if format["type"] != "text" => {
            refuse(&RESPONSE_FORMAT, "must be of the type text: answers are texts with citations")
        }
        _ => Ok(()),
    }
}
