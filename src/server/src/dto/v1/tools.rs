//! Functions that a client offers to the generator, and the calls in its messages.
//!
//! They are passed on in the form of `/chat/completions`, rebuilt from the supported members only.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::error::{ApiError, Location};
use crate::request::fields::wrong;
use crate::request::{Field, Fields, Kind};
use lodestone_answer::generate::{CALLS_MAX, Tools};

/// Maximum number of functions.
const TOOLS_MAX: usize = 128;
/// Longest function name in characters.
const NAME_CHARS_MAX: usize = 64;
/// Longest call id in characters.
const ID_CHARS_MAX: usize = 256;
/// Limits on the functions of a request, or the calls of a message, in bytes and values.
const BYTES_MAX: usize = 1 << 20;
const VALUES_MAX: usize = 10_000;

const NAME: &str = "must be 1 to 64 letters, digits, underscores or hyphens";

pub(super) static TOOLS: Field = Field::body(
    "tools",
    Kind::Json {
        values_max: VALUES_MAX,
        bytes_max: BYTES_MAX,
        schema: || json!({"type": "array", "maxItems": TOOLS_MAX, "items": {"type": "object"}}),
    },
    "Functions that the generator may call; refused if the server has no generator.",
);
pub(super) static TOOL_CHOICE: Field = Field::body(
    "tool_choice",
    Kind::Json {
        values_max: 16,
        bytes_max: 4096,
        schema: || {
            let words = json!({"enum": ["none", "auto", "required"]});
            json!({"anyOf": [words, {"type": "object"}]})
        },
    },
    "`none`, `auto`, `required`, or the function to call.",
);
pub(super) static PARALLEL: Field = Field::body(
    "parallel_tool_calls",
    Kind::Json { values_max: 1, bytes_max: 16, schema: || json!({"type": "boolean"}) },
    "Passed to the generator.",
);
pub(super) static FUNCTIONS: Field = Field::body(
    "functions",
    Kind::Json { values_max: VALUES_MAX, bytes_max: BYTES_MAX, schema: || json!({}) },
    "Old form of `tools`; refused unless empty.",
);
pub(super) static TOOL_CALLS: Field = Field::body(
    "tool_calls",
    Kind::Json {
        values_max: VALUES_MAX,
        bytes_max: BYTES_MAX,
        schema: || json!({"type": "array", "maxItems": CALLS_MAX, "items": {"type": "object"}}),
    },
    "In a message of the assistant: the calls that it requested.",
);
pub(super) static TOOL_CALL_ID: Field = Field::body(
    "tool_call_id",
    Kind::Text { chars_max: ID_CHARS_MAX, is_filled: true },
    "In a tool message: id of the call that it answers.",
);

/// Reads the functions together with the messages after the question; `None` if there are neither.
pub(super) fn read_tools(
    fields: &mut Fields,
    exchange: Vec<Value>,
) -> Result<Option<Tools>, ApiError> {
    if fields.json(&FUNCTIONS)?.is_some_and(|all| all.as_array().is_none_or(|all| !all.is_empty()))
    {
        let problem = "is deprecated and not supported; use tools";
        let name = FUNCTIONS.name;
        return Err(ApiError::field("unsupported_parameter", Location::Body, name, problem));
    }
    let mut offered = match fields.json(&TOOLS)? {
        None => Vec::new(),
        Some(Value::Array(all)) if all.len() <= TOOLS_MAX => all,
        Some(_) => {
            return Err(wrong(&TOOLS, Location::Body, "must be an array of at most 128 tools"));
        }
    };
    for (at, tool) in offered.iter_mut().enumerate() {
        *tool = definition(tool)
            .map_err(|(member, problem)| bad(&format!("{}[{at}]{member}", TOOLS.name), problem))?;
    }
    let mut names = BTreeSet::new();
    let name = |tool: &Value| tool["function"]["name"].as_str().map(str::to_owned);
    if let Some(at) = offered.iter().position(|tool| !names.insert(name(tool))) {
        let place = format!("{}[{at}].function.name", TOOLS.name);
        return Err(bad(&place, "is already used by another tool"));
    }
    let choice = fields.json(&TOOL_CHOICE)?;
    if let Some(choice) = &choice {
        check_choice(choice, &offered)?;
    }
    let parallel = match fields.json(&PARALLEL)? {
        None => None,
        Some(Value::Bool(parallel)) => Some(parallel),
        Some(_) => return Err(wrong(&PARALLEL, Location::Body, "must be true or false")),
    };
    if choice.as_ref().is_some_and(|choice| choice == "none") {
        offered.clear();
    }
    let has_any = !offered.is_empty() || !exchange.is_empty();
    Ok(has_any.then_some(Tools { offered, choice, parallel, exchange }))
}

fn check_choice(choice: &Value, offered: &[Value]) -> Result<(), ApiError> {
    let name = &choice["function"]["name"];
    let is_offered = offered.iter().any(|tool| tool["function"]["name"] == *name);
    let problem = match choice {
        Value::String(word) if matches!(word.as_str(), "none" | "auto") => return Ok(()),
        Value::String(word) if word == "required" && !offered.is_empty() => return Ok(()),
        Value::String(word) if word == "required" => "must not be required when tools is empty",
        Value::Object(_) if choice["type"] != "function" || !name.is_string() => {
            "must be none, auto, required, or an object of type function with a name"
        }
        Value::Object(_) if is_offered => return Ok(()),
        Value::Object(_) => "names a function that is not among tools",
        _ => "must be none, auto, required, or an object of type function with a name",
    };
    Err(wrong(&TOOL_CHOICE, Location::Body, problem))
}

/// Returns the definition of a function, or the member that is wrong and the reason.
fn definition(tool: &Value) -> Result<Value, (&'static str, &'static str)> {
    if tool["type"] != "function" {
        return Err((".type", "must be function"));
    }
    let given = tool["function"].as_object().ok_or((".function", "must be an object"))?;
    let name = given.get("name").and_then(Value::as_str).unwrap_or_default();
    if !is_name(name) {
        return Err((".function.name", NAME));
    }
    let mut function = Map::from_iter([("name".to_owned(), name.into())]);
    let mut keep = |member: &str, is_right: fn(&Value) -> bool| {
        let value = given.get(member).filter(|value| !value.is_null());
        if let Some(value) = value {
            function.insert(member.to_owned(), value.clone());
        }
        value.is_none_or(is_right)
    };
    if !keep("description", Value::is_string) {
        return Err((".function.description", "must be a string"));
    }
    if !keep("parameters", Value::is_object) {
        return Err((".function.parameters", "must be a JSON schema"));
    }
    if !keep("strict", Value::is_boolean) {
        return Err((".function.strict", "must be true or false"));
    }
    Ok(json!({ "type": "function", "function": function }))
}

fn is_name(name: &str) -> bool {
    let is_right = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(is_right)
}

/// The calls that follow the question of a chat, with their results.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    messages: Vec<Value>,
    /// Ids of the calls that still lack a result.
    open: Vec<String>,
}

impl Exchange {
    /// Discards the calls that belong to an earlier question.
    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }

    /// Adds an assistant message with calls.
    pub(super) fn call(&mut self, text: &str, calls: &Value) -> Result<(), ApiError> {
        let problem =
            || wrong(&TOOL_CALLS, Location::Body, "must be an array of at most 128 calls");
        let calls =
            calls.as_array().filter(|calls| calls.len() <= CALLS_MAX).ok_or_else(problem)?;
        if calls.is_empty() {
            return Ok(());
        }
        let mut kept = Vec::with_capacity(calls.len());
        for (at, call) in calls.iter().enumerate() {
            let wrong = |member: &str, problem: &str| {
                Err(bad(&format!("{}[{at}].{member}", TOOL_CALLS.name), problem))
            };
            let function = &call["function"];
            let id = call["id"].as_str().unwrap_or_default();
            if id.is_empty() || id.chars().count() > ID_CHARS_MAX {
                return wrong("id", "must be a string of 1 to 256 characters");
            }
            let Some(name) = function["name"].as_str().filter(|name| is_name(name)) else {
                return wrong("function.name", NAME);
            };
            let Some(arguments) = function["arguments"].as_str() else {
                return wrong("function.arguments", "must be a string");
            };
            self.open.push(id.to_owned());
            let function = json!({ "name": name, "arguments": arguments });
            kept.push(json!({ "id": id, "type": "function", "function": function }));
        }
        let content = Some(text).filter(|text| !text.is_empty());
        let message = json!({ "role": "assistant", "content": content, "tool_calls": kept });
        self.messages.push(message);
        Ok(())
    }

    /// Adds the result of a call.
    pub(super) fn result(&mut self, id: &str, text: &str) -> Result<(), ApiError> {
        let Some(at) = self.open.iter().position(|open| open == id) else {
            let problem = "must be the id of a call of the preceding assistant message that has no \
                result yet";
            return Err(wrong(&TOOL_CALL_ID, Location::Body, problem));
        };
        self.open.swap_remove(at);
        self.messages.push(json!({ "role": "tool", "tool_call_id": id, "content": text }));
        Ok(())
    }

    /// Returns the messages, after checking that every call has a result.
    pub(super) fn finish(self, messages: &Field) -> Result<Vec<Value>, ApiError> {
        match self.open.first() {
            None => Ok(self.messages),
            Some(id) => {
                let problem = format!("must include the result of the call {id}");
                Err(bad(messages.name, &problem))
            }
        }
    }
}

fn bad(place: &str, problem: &str) -> ApiError {
    ApiError::field("invalid_value", Location::Body, place, problem)
}
