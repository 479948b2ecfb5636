//! Error bodies for clients of the OpenAI-compatible interface.

use serde_json::{Value, json};

use crate::error::{ApiError, Condition, Location};

/// Paths below this one report errors in OpenAI's form.
const ROOT: &str = "/v1";

/// Form of an error body. Statuses and headers are the same in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorForm {
    /// The form of all other paths (docs/api.md, "Errors").
    Own,
    /// `{"error": {"message", "type", "param", "code"}}`.
    OpenAi,
}

impl ErrorForm {
    /// Returns the form for a path from which the operator's prefix has been removed.
    pub fn of_path(path: &str) -> Self {
        match path.strip_prefix(ROOT) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => Self::OpenAi,
            _ => Self::Own,
        }
    }
}

impl ApiError {
    /// Creates the 404 for a name that is not a model, or a tenant that the key cannot reach; both
    /// look the same.
    pub fn model_not_found(location: Location) -> Self {
        let message = "model does not exist or this key has no access to it; GET /v1/models lists \
            the available ones";
        Self::new(Condition::ModelNotFound, "model_not_found", message).at(location, "model")
    }

    /// Builds the body in the given form.
    pub fn body_as(&self, form: ErrorForm, request_id: &str) -> Value {
        if form == ErrorForm::Own {
            return self.body(request_id);
        }
        let kind = match self.0.condition {
            Condition::Unauthorized => "authentication_error",
            Condition::Forbidden => "permission_error",
            Condition::RateLimited => "rate_limit_error",
            Condition::Internal | Condition::Unavailable | Condition::AtWriter => "server_error",
            _ => "invalid_request_error",
        };
        let param = self.0.errors.first().map(|(_, field)| field);
        json!({"error": {
            "message": self.0.message, "type": kind, "param": param, "code": self.0.reason,
        }})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_follows_the_path() {
        for path in ["/v1", "/v1/", "/v1/models", "/v1/nothing/here"] {
            assert_eq!(ErrorForm::of_path(path), ErrorForm::OpenAi, "{path}");
        }
        for path in ["", "/", "/v10", "/v1x/models", "/search/v1/x", "/V1/models"] {
            assert_eq!(ErrorForm::of_path(path), ErrorForm::Own, "{path}");
        }
    }

    #[test]
    fn an_error_names_its_field_and_its_reason() {
        let error = ApiError::field("too_many_items", Location::Body, "input", "is too long");
        let expected = json!({"error": {
            "message": "input is too long", "type": "invalid_request_error",
            "param": "input", "code": "too_many_items",
        }});
        assert_eq!(error.body_as(ErrorForm::OpenAi, "r"), expected);
        let error = ApiError::internal("a secret");
        let body = error.body_as(ErrorForm::OpenAi, "r");
        assert_eq!(
            (&body["error"]["type"], &body["error"]["param"]),
            (&json!("server_error"), &Value::Null)
        );
        assert!(!body.to_string().contains("secret"));
    }
}
