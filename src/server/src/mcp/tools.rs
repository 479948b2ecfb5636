//! The tools that language models may call.
//!
//! Results are short, because a model pays for every token. The ids in the results of one tool are
//! accepted as arguments by the others.
//!
//! - `documents`: search, answers, reading and adding; `memories`: facts from earlier sessions

mod documents;
mod memories;

use serde_json::Value;

use crate::mcp::api::Refusal;
use crate::mcp::tool::Entry;

pub(super) use documents::read;

/// Returns all tools.
pub(super) fn all() -> Vec<Entry> {
    [documents::tools(), memories::tools()].concat()
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(super) fn filled(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Checks a number given by the caller, or returns the default.
pub(super) fn count(
    name: &str,
    given: Option<u32>,
    max: u32,
    default: u32,
) -> Result<u32, Refusal> {
    match given {
        None => Ok(default),
        Some(count) if (1..=max).contains(&count) => Ok(count),
        Some(_) => Err(Refusal::new(format!("{name} must be from 1 to {max}"))),
    }
}

pub(super) fn number(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
