//! Functions that the client of an answer offers to the generator.
//!
//! Nothing is called here: calls go back to the client, which executes them and asks again with
//! their results.

use serde_json::Value;

/// Maximum number of calls in a reply.
pub const CALLS_MAX: usize = 128;

/// The functions offered and the exchange about earlier calls, all in the format of
/// `/chat/completions`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tools {
    /// Definitions of the functions.
    pub offered: Vec<Value>,
    /// The member `tool_choice`.
    pub choice: Option<Value>,
    /// The member `parallel_tool_calls`.
    pub parallel: Option<bool>,
    /// Messages after the question: the generator's calls and the client's results.
    pub exchange: Vec<Value>,
}

impl Tools {
    /// Whether the client requires a call, so that an answer without one is a failure.
    pub fn must_be_called(&self) -> bool {
        self.choice.as_ref().is_some_and(|choice| choice.is_object() || choice == "required")
    }

    /// Everything that takes up space in a prompt, as text.
    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        self.offered.iter().chain(&self.exchange).map(Value::to_string)
    }

    /// Adds the tools to the body of a request.
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

/// A call that the generator wants the client to make.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// Id of the call, repeated by its result.
    pub id: String,
    /// Name of the function.
    pub name: String,
    /// Arguments as written by the generator; not necessarily valid JSON.
    pub arguments: String,
}
