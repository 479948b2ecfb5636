//! Personal memories (docs/api.md, "Memories").

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::dto::inputs::{SUB_TENANT_QUERY, TENANT_QUERY, query_scope, source_id};
use crate::error::{ApiError, Location};
use crate::request::fields::{each, is_blank, missing, wrong};
use crate::request::members::Item;
use crate::request::{Field, Fields, Kind, Request};
use lodestone_types::{Memory, Metadata, Scope, SourceId, limits};

const NAME_CHARS_MAX: usize = 256;
const INSTRUCTIONS_CHARS_MAX: usize = 4096;
const COUNT_DEFAULT: u64 = 10;

static CONTENT: Field = Field::body(
    "user_memory",
    Kind::Content { bytes_max: limits::MEMORY_BYTES_MAX },
    "Text of the memory, at most 32 KiB; this or `user_assistant_pairs` is required.",
)
.or(&["raw_text"]);
static PAIRS: Field = Field::body(
    "user_assistant_pairs",
    Kind::Objects { item: &[&USER, &ASSISTANT], min: 1, max: limits::MEMORY_PAIRS_MAX },
    "Exchanges between user and assistant; not used if a text is sent.",
);
static EXPIRY: Field = Field::body(
    "expiry_time",
    Kind::Integer { min: 1, max: limits::MEMORY_SECONDS_MAX, default: None },
    "Seconds until the memory expires; never if null.",
);
static INFER: Field = Field::body(
    "infer",
    Kind::Boolean { default: false },
    "Whether a condensed form is stored in addition to the original; has no effect without a \
     generator.",
);
static INSTRUCTIONS: Field = Field::body(
    "custom_instructions",
    Kind::Text { chars_max: INSTRUCTIONS_CHARS_MAX, is_filled: false },
    "Instructions for condensing, stored with the original.",
);
static USER_NAME: Field = Field::body(
    "user_name",
    Kind::Text { chars_max: NAME_CHARS_MAX, is_filled: false },
    "Name of the user whom the memory is about, or who is asking.",
);
static MEMORY_ID: Field = Field::body(
    "memory_id",
    Kind::Identifier,
    "Memory id; generated if absent. An existing memory is replaced.",
);
static DELETED_ID: Field =
    Field::query("memory_id", Kind::Identifier, "Id of the memory to delete.").required();
static MAX_COUNT: Field = Field::query(
    "max_count",
    Kind::Integer { min: 0, max: limits::MEMORY_RESULTS_MAX as u64, default: Some(COUNT_DEFAULT) },
    "Maximum number of memories; 0 leaves it to the server.",
);
static QUERY: Field = Field::body(
    "query",
    Kind::Text { chars_max: limits::QUERY_CHARS_MAX, is_filled: true },
    "Query text.",
)
.required();
static MESSAGE: Field = Field::body(
    "user_message",
    Kind::Content { bytes_max: limits::MEMORY_BYTES_MAX },
    "Message from which memories are extracted, at most 32 KiB.",
)
.required();

/// Text of a conversation. The whole conversation is limited in bytes, so a single text needs no
/// limit of its own.
const SAID: Kind = Kind::Text { chars_max: limits::BODY_BYTES_MAX, is_filled: false };
static USER: Field = Field::body("user", SAID, "Message of the user.").required();
static ASSISTANT: Field = Field::body("assistant", SAID, "Reply of the assistant.").required();

/// One exchange between user and assistant.
struct Exchange {
    user: String,
    assistant: String,
}

impl Exchange {
    fn read(item: Item) -> Result<Self, ApiError> {
        let mut fields = item.fields()?;
        let user = fields.required_text(&USER)?;
        Ok(Self { user, assistant: fields.required_text(&ASSISTANT)? })
    }
}

/// Input of `POST /user_memory/add_user_memory`.
#[derive(Debug, Clone, PartialEq)]
pub struct AddMemory {
    /// Destination scope.
    pub scope: Scope,
    /// Id of the memory; generated when `None`.
    pub id: Option<SourceId>,
    /// Text of the memory.
    pub content: String,
    /// Lifetime in seconds; `None` if it never expires.
    pub life_seconds: Option<u64>,
    /// Instructions for condensing the memory, if that was requested.
    pub inferring: Option<Inferring>,
    /// All metadata sent with it.
    pub sent: Metadata,
}

/// Instructions for condensing a memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inferring {
    /// Name of the user whom the memory is about; possibly empty.
    pub user_name: String,
    /// Free-text instructions; possibly empty.
    pub instructions: String,
}

impl Request for AddMemory {
    const FIELDS: &'static [&'static Field] = &[
        &TENANT_QUERY, &SUB_TENANT_QUERY, &CONTENT, &PAIRS, &EXPIRY, &INFER, &INSTRUCTIONS,
        &USER_NAME, &MEMORY_ID,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let text = fields.text(&CONTENT)?;
        let pairs: Option<Vec<Exchange>> = match fields.items(&PAIRS)? {
            Some(items) => Some(each(&PAIRS, items, Exchange::read)?),
            None => None,
        };
        let life_seconds = fields.integer(&EXPIRY)?;
        let infer = fields.boolean(&INFER)?;
        let custom_instructions = fields.text(&INSTRUCTIONS)?;
        let user_name = fields.text(&USER_NAME)?;
        let id = source_id(fields, &MEMORY_ID)?;
        let inferring = infer.then(|| Inferring {
            user_name: user_name.clone().unwrap_or_default(),
            instructions: custom_instructions.clone().unwrap_or_default(),
        });
        let mut sent = Metadata::from_iter([
            (INFER.name.to_owned(), infer.into()),
            (INSTRUCTIONS.name.to_owned(), custom_instructions.into()),
            (USER_NAME.name.to_owned(), user_name.clone().into()),
            (EXPIRY.name.to_owned(), life_seconds.into()),
        ]);
        if let Some(pairs) = &pairs {
            let pair = |pair: &Exchange| json!({"user": pair.user, "assistant": pair.assistant});
            let pairs = pairs.iter().map(pair).collect();
            sent.insert(PAIRS.name.to_owned(), pairs);
        }
        let content = match (text, pairs) {
            (Some(text), _) => text,
            (None, Some(pairs)) => conversation(&pairs, user_name.as_deref())?,
            (None, None) => return Err(missing(&CONTENT)),
        };
        Ok(Self { scope, id, content, life_seconds, inferring, sent })
    }
}

/// Formats exchanges as one text with one line per speaker.
fn conversation(pairs: &[Exchange], user_name: Option<&str>) -> Result<String, ApiError> {
    let user = user_name.map(str::trim).filter(|name| !name.is_empty()).unwrap_or("User");
    let mut lines = Vec::with_capacity(2 * pairs.len());
    for pair in pairs {
        for (speaker, said) in [(user, &pair.user), ("Assistant", &pair.assistant)] {
            if !is_blank(said) {
                lines.push(format!("{speaker}: {}", said.trim()));
            }
        }
    }
    if lines.is_empty() {
        return Err(wrong(&PAIRS, Location::Body, "must not be blank"));
    }
    let text = lines.join("\n");
    if text.len() > limits::MEMORY_BYTES_MAX {
        let bytes_max = limits::MEMORY_BYTES_MAX;
        let message = format!("{} must be at most {bytes_max} bytes", PAIRS.name);
        let error = ApiError::too_large("content_too_large", message);
        return Err(error.at(Location::Body, PAIRS.name));
    }
    Ok(text)
}

/// Input of `GET /user_memory/list_user_memories`.
#[derive(Debug, Clone, PartialEq)]
pub struct ListMemories {
    /// Scope addressed.
    pub scope: Scope,
}

impl Request for ListMemories {
    const FIELDS: &'static [&'static Field] = &[&TENANT_QUERY, &SUB_TENANT_QUERY];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        Ok(Self { scope: query_scope(fields)? })
    }
}

/// Input of `DELETE /user_memory/delete_user_memory`.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteMemory {
    /// Scope addressed.
    pub scope: Scope,
    /// Id of the memory.
    pub id: SourceId,
}

impl Request for DeleteMemory {
    const FIELDS: &'static [&'static Field] = &[&TENANT_QUERY, &DELETED_ID, &SUB_TENANT_QUERY];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let id = source_id(fields, &DELETED_ID)?.ok_or_else(|| missing(&DELETED_ID))?;
        Ok(Self { scope, id })
    }
}

/// Input of `POST /user_memory/retrieve_user_memory`.
#[derive(Debug, Clone, PartialEq)]
pub struct RetrieveMemories {
    /// Scope addressed.
    pub scope: Scope,
    /// Maximum number of memories; `None` leaves it to the server.
    pub max_count: Option<usize>,
    /// The query.
    pub query: String,
    /// Name of the user.
    pub user_name: Option<String>,
}

impl Request for RetrieveMemories {
    const FIELDS: &'static [&'static Field] =
        &[&TENANT_QUERY, &SUB_TENANT_QUERY, &MAX_COUNT, &QUERY, &USER_NAME];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let max_count = fields.integer(&MAX_COUNT)?.unwrap_or(COUNT_DEFAULT) as usize;
        let max_count = (max_count > 0).then_some(max_count);
        let query = fields.required_text(&QUERY)?;
        let user_name = named(fields)?;
        Ok(Self { scope, max_count, query, user_name })
    }
}

/// Input of `POST /user_memory/generate_user_memory`.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateMemories {
    /// Destination scope.
    pub scope: Scope,
    /// The user's message.
    pub message: String,
    /// Name of the user.
    pub user_name: Option<String>,
}

impl Request for GenerateMemories {
    const FIELDS: &'static [&'static Field] =
        &[&TENANT_QUERY, &SUB_TENANT_QUERY, &MESSAGE, &USER_NAME];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let message = fields.required_text(&MESSAGE)?;
        let user_name = named(fields)?;
        Ok(Self { scope, message, user_name })
    }
}

/// Reads the user's name, unless it is blank.
fn named(fields: &mut Fields) -> Result<Option<String>, ApiError> {
    Ok(fields.text(&USER_NAME)?.filter(|name| !name.trim().is_empty()))
}

/// Memory of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemoryView {
    /// Memory id.
    pub memory_id: String,
    /// Text of the memory.
    pub memory_content: String,
    /// Creation time in epoch seconds.
    pub created_at: String,
    /// Expiry time in epoch seconds; null if it never expires.
    pub expires_at: Option<String>,
}

impl From<Memory> for MemoryView {
    fn from(memory: Memory) -> Self {
        Self {
            memory_id: memory.id.to_string(),
            memory_content: memory.content,
            created_at: memory.created_at.to_string(),
            expires_at: memory.expires_at.map(|end| end.to_string()),
        }
    }
}

/// Memory found by a search.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RetrievedMemory {
    /// The memory.
    #[serde(flatten)]
    pub memory: MemoryView,
    /// Relevance to the query, 0 to 1; non-increasing along the list.
    pub relevancy_score: f32,
}

/// Response of `add_user_memory`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AddedMemory {
    /// Always `true`.
    pub success: bool,
    /// Always `true`.
    pub user_memory_added: bool,
    /// Memory id.
    pub memory_id: String,
    /// Number of searchable chunks created from it.
    pub chunks_created: usize,
}

/// Response of `list_user_memories`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemoryList {
    /// Always `true`.
    pub success: bool,
    /// Memories, newest first.
    pub user_memories: Vec<MemoryView>,
}

/// Response of `delete_user_memory`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeletedMemory {
    /// Always `true`.
    pub success: bool,
    /// Always `true`, because an unknown memory is an error.
    pub user_memory_deleted: bool,
}

/// Response of `retrieve_user_memory`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RetrievedMemories {
    /// Always `true`.
    pub success: bool,
    /// Memories, best first.
    pub retrieved_user_memories: Vec<RetrievedMemory>,
    /// Older name of `retrieved_user_memories`, with the same value.
    pub user_memories: Vec<RetrievedMemory>,
}

/// Response of `generate_user_memory`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GeneratedMemories {
    /// Always `true`.
    pub success: bool,
    /// Memories extracted from the message, in its order; empty if nothing is worth keeping.
    pub generated_user_memories: Vec<MemoryView>,
}
