//! Failures of items, and the stage at which they occurred.

use std::fmt::{self, Display};

use serde::Serialize;
use serde_json::Value;

use super::call::ErrorBody;

/// Stage at which an item failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Before the item was sent.
    Local,
    /// The server did not accept the item.
    Upload,
    /// The item was accepted but could not be processed.
    Processing,
}

/// An item that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Path or address.
    pub name: String,
    /// Id of the source; possibly empty.
    pub file_id: String,
    /// Stage at which the item failed.
    pub step: Step,
    /// Error code of the server or the client.
    pub error_code: String,
    /// Reason given by the server; possibly empty.
    pub reason: String,
    /// Message for people.
    pub message: String,
}

impl Failure {
    /// Creates a failure on the client's side.
    pub fn local(name: String, file_id: &str, error_code: &str, message: &str) -> Self {
        let (error_code, message) = (error_code.to_owned(), message.to_owned());
        let (file_id, reason) = (file_id.to_owned(), String::new());
        Self { name, file_id, step: Step::Local, error_code, reason, message }
    }

    /// Creates a failure because the request was refused.
    pub fn of_request(name: String, file_id: &str, body: &ErrorBody) -> Self {
        let ErrorBody { error_code, reason, message, .. } = body.clone();
        Self { name, file_id: file_id.to_owned(), step: Step::Upload, error_code, reason, message }
    }

    /// Creates a failure from an entry of `failed` in a batch response.
    pub fn of_entry(name: String, file_id: &str, entry: &Value) -> Self {
        let text = |member: &str| entry[member].as_str().unwrap_or_default().to_owned();
        Self {
            name,
            file_id: file_id.to_owned(),
            step: Step::Upload,
            error_code: text("error_code"),
            reason: text("reason"),
            message: text("message"),
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [self.error_code.as_str(), self.reason.as_str()];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        write!(f, "{}: {}: {}", self.name, words.join(" "), self.message)
    }
}
