//! The body of a request to `/chat/completions`.
//!
//! Servers differ in what they accept: some models need `max_completion_tokens`, some reject a
//! temperature, and some servers do not know `stream_options`. A parameter that a refusal names is
//! omitted, or renamed, from then on.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::generate::{Message, Prompt, Speaker};

/// The parameters that a server is known to reject.
#[derive(Debug, Default)]
pub(super) struct Dialect {
    no_temperature: AtomicBool,
    no_usage: AtomicBool,
    new_limit: AtomicBool,
}

impl Dialect {
    /// Builds the body of a request.
    pub(super) fn body(&self, model: &str, prompt: &Prompt) -> Value {
        let messages: Vec<Value> = prompt.messages.iter().map(message).collect();
        let mut body = json!({ "model": model, "messages": messages, "stream": true });
        let limit = match self.new_limit.load(Ordering::Relaxed) {
            true => "max_completion_tokens",
            false => "max_tokens",
        };
        body[limit] = prompt.reply_tokens_max.into();
        if !self.no_temperature.load(Ordering::Relaxed) {
            body["temperature"] = match prompt.temperature {
                0.0 => 0.into(),
                temperature => temperature.into(),
            };
        }
        if !self.no_usage.load(Ordering::Relaxed) {
            body["stream_options"] = json!({ "include_usage": true });
        }
        if let Some(tools) = &prompt.tools {
            tools.add_to(&mut body);
        }
        body
    }

    /// Learns from the text of a refusal; returns whether another attempt is worthwhile.
    pub(super) fn learn(&self, refusal: &str) -> bool {
        let parts = [
            ("max_tokens", &self.new_limit),
            ("temperature", &self.no_temperature),
            ("stream_options", &self.no_usage),
        ];
        let mut named = parts.iter().filter(|(name, _)| refusal.contains(name));
        named.any(|(_, known)| !known.swap(true, Ordering::Relaxed))
    }
}

fn message(message: &Message) -> Value {
    let role = match message.speaker {
        Speaker::System => "system",
        Speaker::User => "user",
    };
    json!({ "role": role, "content": message.text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::ANSWERING;

    #[test]
    fn what_is_refused_by_name_is_left_out() {
        let text = "Hi".to_owned();
        let messages = vec![Message { speaker: Speaker::User, text }];
        let effort = ANSWERING;
        let prompt =
            Prompt { messages, reply_tokens_max: 9, temperature: 0.0, effort, tools: None };
        let dialect = Dialect::default();
        let body = dialect.body("m", &prompt);
        assert_eq!((&body["max_tokens"], &body["temperature"]), (&json!(9), &json!(0)));
        assert_eq!(body["messages"], json!([{ "role": "user", "content": "Hi" }]));
        let freer = Prompt { temperature: 0.7, ..prompt.clone() };
        assert_eq!(dialect.body("m", &freer)["temperature"], 0.7);
        assert!(!dialect.learn("no such model"));
        assert!(dialect.learn("Unsupported parameter: 'max_tokens', use 'max_completion_tokens'"));
        assert!(!dialect.learn("max_tokens"), "it was left out already");
        assert!(dialect.learn("temperature must be 1"));
        let body = dialect.body("m", &prompt);
        assert_eq!(body["max_completion_tokens"], 9);
        assert!(body.get("max_tokens").is_none() && body.get("temperature").is_none());
    }
}
