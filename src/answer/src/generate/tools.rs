//! Functions that the client of an answer offers to the generator.
//!
//! Nothing is called here: a call goes back to the client, which makes it and asks again with its
//! result.

use serde_json::Value;

/// Calls of one reply at most.
pub const CALLS_MAX: usize = 128;

/// Functions on offer, and what has become of earlier calls, all in the form of
/// `/chat/completions`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tools {
    /// Definitions.
    pub offered: Vec<Value>,
    /// The member `tool_choice`.
    pub choice: Option<Value>,
    /// The member `parallel_tool_calls`.
    pub parallel: Option<bool>,
    /// Messages behind the question: calls of the generator and the client's results.
    pub exchange: Vec<Value>,
}

impl Tools {
    /// Whether an answer that calls nothing is not what was asked for.
    pub fn must_be_called(&self) -> bool {
        self.choice.as_ref().is_some_and(|choice| choice.is_object() || choice == "required")
    }

    /// Everything that takes room in a prompt, as text.
    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        self.offered.iter().chain(&self.exchange).map(Value::to_string)
    }

    /// Adds them to the body of a request.
    pub(super) fn add_to(&self, body: &mut Value) {
        if let Some(messages) = body["messages"].as_array_mut() {
            messages.extend(self.exchange.iter().cloned());
        }
        if !self.offered.is_empty() {
            body["tools"] = self.offered.clone().into();
            let wishes = [
                ("tool_choice", self.choice.clone()),
                ("parallel_tool_calls", self.parallel.map(Value::from)),
            ];
            for (name, wish) in wishes {
                if let Some(wish) = wish {
                    body[name] = wish;
                }
            }
        }
    }
}

/// A call that the generator wants its client to make.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// Its id, which the result repeats.
    pub id: String,
    /// Name of the function.
    pub name: String,
    /// Arguments as the generator has written them: JSON, if it did well.
    pub arguments: String,
}
