//! Failures of a verb and their exit codes.

use serde_json::Value;

/// The reason why a verb failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The operation failed.
    #[error("{0}")]
    Failed(String),
    /// The flags, variables or profile are invalid.
    #[error("{0}")]
    Usage(String),
    /// The object does not exist, or the key has no access to it.
    #[error("{0}")]
    NotFound(String),
    /// The key is missing, invalid, or lacks permission.
    #[error("{0}")]
    NotAllowed(String),
    /// The documents contain nothing that matches.
    #[error("nothing was found")]
    NothingFound,
}

impl Failure {
    /// Returns the exit code of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::NotFound(_) => 3,
            Self::NotAllowed(_) => 4,
            Self::NothingFound => 5,
        }
    }

    /// Returns a failure of the same kind with another message.
    pub fn told(&self, words: String) -> Self {
        match self {
            Self::Failed(_) => Self::Failed(words),
            Self::Usage(_) => Self::Usage(words),
            Self::NotFound(_) => Self::NotFound(words),
            Self::NotAllowed(_) => Self::NotAllowed(words),
            Self::NothingFound => Self::NothingFound,
        }
    }

    /// Converts the body of an error response (docs/api.md, "Errors") into a failure.
    pub fn of(server: &str, status: u16, retry_after_s: Option<u64>, body: &Value) -> Self {
        let reason = body["reason"].as_str().unwrap_or_default();
        let told = match body["message"].as_str() {
            Some(message) => format!("{message} ({status} {reason})"),
            None => format!("the answer is not from a Lodestone server: {status}"),
        };
        match (status, retry_after_s) {
            (401, _) => Self::NotAllowed(format!(
                "{server}: {told}; set a key with --api-key-file, LODESTONE_API_KEY or a profile"
            )),
            (403, _) => Self::NotAllowed(format!("{server}: {told}")),
            (404, _) if !reason.is_empty() && reason != "route_not_found" => {
                Self::NotFound(format!("{server}: {told}"))
            }
            (429 | 503, Some(seconds)) => {
                Self::Failed(format!("{server}: {told}; try again in {seconds} s"))
            }
            _ => Self::Failed(format!("{server}: {told}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_kind_has_its_exit_code() {
        let code = |status, body: Value| Failure::of("http://a", status, None, &body).exit_code();
        let told = |reason: &str| json!({"message": "m", "reason": reason});
        assert_eq!(code(401, told("invalid_api_key")), 4);
        assert_eq!(code(403, told("insufficient_role")), 4);
        assert_eq!(code(404, told("tenant_not_found")), 3);
        assert_eq!(code(404, told("route_not_found")), 1);
        assert_eq!(code(404, Value::Null), 1, "a server of another kind");
        assert_eq!(code(400, told("invalid_value")), 1);
        let busy = Failure::of("http://a", 429, Some(7), &told("rate_limited")).to_string();
        assert!(busy.contains("in 7 s"), "{busy}");
    }
}
