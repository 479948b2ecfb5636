//! Tools that work on memories.

use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{count, list, text};
use crate::mcp::api::Refusal;
use crate::mcp::session::Session;
use crate::mcp::tool::{Effect, Entry, entry};
use lodestone_types::Role;

/// Number of memories recalled unless the caller gives one.
const MEMORIES_DEFAULT: u32 = 10;
const MEMORIES_MAX: u32 = 50;

/// Returns the memory tools.
pub(super) fn tools() -> Vec<Entry> {
    let (read, write) = (Role::Read, Role::Write);
    vec![
        entry!(
            "remember",
            "Remember",
            write,
            Effect::Adds,
            remember,
            "Remembers a fact about the user or the conversation for later sessions. Facts are not \
             documents: they are returned by `recall`, but not by `search` and `ask`."
        ),
        entry!(
            "recall",
            "Recall",
            read,
            Effect::Reads,
            recall,
            "Finds facts stored by `remember`."
        ),
        entry!(
            "forget",
            "Forget",
            write,
            Effect::Removes,
            forget,
            "Deletes a fact stored by `remember`."
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RememberInput {
    /// Fact, as a sentence that can be understood on its own.
    text: String,
    /// Id of an existing memory to replace.
    memory_id: Option<String>,
    /// Seconds after which it expires; never if absent.
    #[schemars(range(min = 1))]
    expires_in: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct RememberOutput {
    /// Memory id.
    memory_id: String,
}

async fn remember(session: Session, input: RememberInput) -> Result<RememberOutput, Refusal> {
    let mut body = json!({"user_memory": input.text});
    if let Some(id) = input.memory_id {
        body["memory_id"] = json!(id);
    }
    if let Some(seconds) = input.expires_in {
        body["expiry_time"] = json!(seconds);
    }
    let path = "/user_memory/add_user_memory";
    let added = session.ask::<Value>(Method::POST, path, Vec::new(), body).await;
    let names = [("user_memory", "text"), ("expiry_time", "expires_in")];
    let added = added.map_err(|refusal| refusal.in_words_of(&names))?;
    Ok(RememberOutput { memory_id: text(&added["memory_id"]) })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecallInput {
    /// Subject of the facts to find.
    query: String,
    /// Maximum number of facts, 1 to 50.
    #[schemars(range(min = 1, max = MEMORIES_MAX))]
    limit: Option<u32>,
}

/// Remembered fact.
#[derive(Debug, Serialize, JsonSchema)]
struct Recalled {
    /// Memory id, for `forget`.
    memory_id: String,
    /// Fact, as stored.
    text: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct RecallOutput {
    /// Facts, best first.
    memories: Vec<Recalled>,
}

async fn recall(session: Session, input: RecallInput) -> Result<RecallOutput, Refusal> {
    let limit = count("limit", input.limit, MEMORIES_MAX, MEMORIES_DEFAULT)?;
    let (query, body) = (vec![("max_count", limit.to_string())], json!({"query": input.query}));
    let path = "/user_memory/retrieve_user_memory";
    let found: Value = session.ask(Method::POST, path, query, body).await?;
    let memory = |memory: &Value| Recalled {
        memory_id: text(&memory["memory_id"]),
        text: text(&memory["memory_content"]),
    };
    let memories = list(&found["retrieved_user_memories"]).iter().map(memory).collect();
    Ok(RecallOutput { memories })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForgetInput {
    /// Memory id.
    memory_id: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ForgetOutput {
    /// Always `true`, because an unknown memory is an error.
    forgotten: bool,
}

async fn forget(session: Session, input: ForgetInput) -> Result<ForgetOutput, Refusal> {
    let query = vec![("memory_id", input.memory_id)];
    let path = "/user_memory/delete_user_memory";
    let _: Value = session.ask(Method::DELETE, path, query, Value::Null).await?;
    Ok(ForgetOutput { forgotten: true })
}
