//! Converts the messages of a chat to a question and the conversation before it.

use serde_json::{Value, json};

use super::tools::{Exchange, TOOL_CALL_ID, TOOL_CALLS};
use crate::error::{ApiError, Location};
use crate::request::fields::{is_blank, missing, wrong};
use crate::request::indexed::place;
use crate::request::members::Item;
use crate::request::{Field, Fields, Kind};
use lodestone_types::limits;

/// Maximum number of values in the parts of one message.
const PART_VALUES_MAX: usize = 4096;

pub(super) static MESSAGES: Field = Field::body(
    "messages",
    Kind::Objects {
        item: &[&ROLE, &CONTENT, &TOOL_CALLS, &TOOL_CALL_ID],
        min: 1,
        max: limits::CHAT_MESSAGES_MAX,
    },
    "Messages of the chat; the last one of the user is the question, at most 16,384 characters.",
)
.required();
static ROLE: Field = Field::body(
    "role",
    Kind::Choice {
        words: &["system", "developer", "user", "assistant", "tool"],
        default: None,
        is_exact: true,
    },
    "Author of the message. System messages are passed to the generator as wishes about form; \
     tool messages are results of tools.",
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
    "Text of the message, or parts of the type `text`.",
);
/// The messages of a chat, split into the question and its context.
#[derive(Debug, Default)]
pub(super) struct Messages {
    pub(super) question: String,
    /// Earlier questions and answers, oldest first.
    pub(super) past: Vec<(String, String)>,
    /// The system messages.
    pub(super) instructions: String,
    /// Calls made after the question and their results, for the generator.
    pub(super) exchange: Vec<Value>,
}

/// One message.
struct Message {
    role: &'static str,
    text: String,
    calls: Option<Value>,
    /// The id of the call that the message is the result of.
    result_of: Option<String>,
}

/// Reads the messages of a request.
pub(super) fn read_messages(fields: &mut Fields) -> Result<Messages, ApiError> {
    let items = fields.items(&MESSAGES)?.ok_or_else(|| missing(&MESSAGES))?;
    let mut read = Messages::default();
    let mut turns: Vec<(usize, String, String)> = Vec::new();
    let mut exchange = Exchange::default();
    for (at, item) in items.into_iter().enumerate() {
        let within = |error: ApiError| error.within(&place(&MESSAGES, at));
        let Message { role, text, calls, result_of } = message(item).map_err(within)?;
        match (role, turns.last_mut()) {
            ("user", _) if !is_blank(&text) => {
                turns.push((at, text, String::new()));
                exchange.restart();
            }
            ("assistant", Some((_, _, answer))) => {
                if let Some(calls) = calls {
                    exchange.call(&text, &calls).map_err(within)?;
                }
                add_line(answer, &text);
            }
            ("tool", _) => {
                let id = result_of.ok_or_else(|| within(missing(&TOOL_CALL_ID)))?;
                exchange.result(&id, &text).map_err(within)?;
            }
            ("system" | "developer", _) if !is_blank(&text) => {
                add_line(&mut read.instructions, &text);
            }
            _ => {}
        }
    }
    read.exchange = exchange.finish(&MESSAGES)?;
    let Some((at, question, _)) = turns.pop() else {
        let problem = "must contain a user message with text: the question";
        return Err(ApiError::field("invalid_value", Location::Body, MESSAGES.name, problem));
    };
    let (max, chars) = (limits::QUERY_CHARS_MAX, question.chars().count());
    if chars > max {
        let place = format!("{}[{at}].content", MESSAGES.name);
        let problem = format!("is the question and must be at most {max} characters");
        return Err(ApiError::field("invalid_value", Location::Body, &place, &problem));
    }
    if read.instructions.chars().count() > max {
        let problem = format!("must have at most {max} characters of system text");
        return Err(ApiError::field("invalid_value", Location::Body, MESSAGES.name, &problem));
    }
    // A chat may be of any length; only the most recent turns count.
    let from = turns.len().saturating_sub(limits::SESSION_TURNS);
    let kept = turns.drain(from..).map(|(_, question, answer)| (cut(question), cut(answer)));
    read.past = kept.collect();
    read.question = question;
    Ok(read)
}

fn add_line(text: &mut String, line: &str) {
    if !text.is_empty() && !line.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

/// Reads author, text and calls of a message.
fn message(item: Item) -> Result<Message, ApiError> {
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
                _ => Err(wrong("must contain only parts of type text with a string in text")),
            });
            texts.collect::<Result<Vec<_>, _>>()?.join("\n")
        }
        Some(_) => return Err(wrong("must be a string or an array of parts")),
    };
    let calls = fields.json(&TOOL_CALLS)?;
    let result_of = fields.text(&TOOL_CALL_ID)?;
    Ok(Message { role, text, calls, result_of })
}

/// Truncates a text to the maximum length of a question.
fn cut(mut text: String) -> String {
    if let Some((at, _)) = text.char_indices().nth(limits::QUERY_CHARS_MAX) {
        text.truncate(at);
    }
    text
}
