//! An item of a run that failed, and the stage at which it did.

use std::fmt::{self, Display};

use serde::Serialize;
use serde_json::Value;

use super::call::ErrorBody;

/// Stage at which an item failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Before it was sent.
    Local,
    /// The server did not accept it.
    Upload,
    /// It was accepted and could not be processed.
    Processing,
}

/// An item that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The path or address.
    pub name: String,
    /// The id of its source, or empty.
    pub file_id: String,
    /// Stage at which it failed.
    pub step: Step,
    /// The error code: the server's, or one of the client.
    pub error_code: String,
    /// The reason word of the server, or empty.
    pub reason: String,
    /// The text for people.
    pub message: String,
}

impl Failure {
    /// A failure on this side.
    pub fn local(name: String, file_id: &str, error_code: &str, message: &str) -> Self {
        let (error_code, message) = (error_code.to_owned(), message.to_owned());
        let (file_id, reason) = (file_id.to_owned(), String::new());
        Self { name, file_id, step: Step::Local, error_code, reason, message }
    }

    /// The request that carried it was refused.
    pub fn of_request(name: String, file_id: &str, body: &ErrorBody) -> Self {
        let ErrorBody { error_code, reason, message, .. } = body.clone();
        Self { name, file_id: file_id.to_owned(), step: Step::Upload, error_code, reason, message }
    }

    /// It is an entry of `failed` in the answer to a batch.
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
