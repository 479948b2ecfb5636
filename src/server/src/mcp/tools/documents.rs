//! Tools that work on documents.

use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{count, filled, list, number, text};
use crate::mcp::api::Refusal;
use crate::mcp::session::Session;
use crate::mcp::tool::{Effect, Entry, entry};
use lodestone_types::Role;

/// Number of passages returned by a search unless the caller gives one.
const PASSAGES_DEFAULT: u32 = 8;
const PASSAGES_MAX: u32 = 100;
/// Number of sources per listing unless the caller gives one.
const SOURCES_DEFAULT: u32 = 50;
const SOURCES_MAX: u32 = 1000;
/// Number of chunks per read unless the caller gives one.
const CHUNKS_DEFAULT: u32 = 20;
const CHUNKS_MAX: u32 = 200;
/// `add_text` polls at this interval, in seconds, until the text is searchable.
const WAIT_STEP_SECONDS: u64 = 5;
const WAIT_STEPS_MAX: u32 = 12;

/// Members of a search body that restrict it, with the tool arguments that set them.
const NARROWED: [(&str, &str); 2] = [("document_metadata", "filter"), ("context_list", "file_ids")];

/// Returns the document tools.
pub(super) fn tools() -> Vec<Entry> {
    let (read, write) = (Role::Read, Role::Write);
    vec![
        entry!(
            "search",
            "Search passages",
            read,
            Effect::Reads,
            search,
            "Finds the passages of the knowledge base that are closest to a query, by meaning and \
             by keywords. Use it to look things up; use `ask` for a question that has one answer. \
             A `confidence` below 0.2 means that a passage is hardly relevant to the query."
        ),
        entry!(
            "ask",
            "Ask a question",
            read,
            Effect::Reads,
            ask,
            "Answers a question from the knowledge base and cites the passages that support the \
             answer. If the documents do not contain an answer, it says so: do not guess then."
        ),
        entry!(
            "read_source",
            "Read a source",
            read,
            Effect::Reads,
            read_source,
            "Reads the text of a document in order, either the whole document or one page, slide \
             or sheet. Long documents are returned in parts: continue with `from` set to `next`."
        ),
        entry!(
            "list_sources",
            "List sources",
            read,
            Effect::Reads,
            list_sources,
            "Lists the documents of the knowledge base, newest first."
        ),
        entry!(
            "add_text",
            "Add a text",
            write,
            Effect::Adds,
            add_text,
            "Adds a text to the knowledge base as a document. If `file_id` is that of an existing \
             document, the document is replaced."
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchInput {
    /// Query: a question, a phrase or keywords.
    query: String,
    /// Maximum number of passages, 1 to 100.
    #[schemars(range(min = 1, max = PASSAGES_MAX))]
    limit: Option<u32>,
    /// Only search documents with these `document_metadata` values: {"key": value}, or {"key":
    /// {"$gte": value}} with $eq, $ne, $gt, $gte, $lt, $lte, $in, $nin.
    filter: Option<Map<String, Value>>,
    /// Only use these documents.
    file_ids: Option<Vec<String>>,
}

/// Passage found by a search.
#[derive(Debug, Serialize, JsonSchema)]
struct FoundPassage {
    /// Document id, for `read_source`.
    file_id: String,
    /// Title of the document.
    title: String,
    /// Page, slide or sheet.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<u32>,
    /// Text of the passage.
    text: String,
    /// Probability that it is relevant to the query, 0 to 1.
    confidence: f64,
    /// URL of the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SearchOutput {
    /// Passages, best first.
    passages: Vec<FoundPassage>,
    /// Possible reasons why the filter matched nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

async fn search(session: Session, input: SearchInput) -> Result<SearchOutput, Refusal> {
    let mut body = json!({
        "query": input.query,
        "max_chunks": count("limit", input.limit, PASSAGES_MAX, PASSAGES_DEFAULT)?,
    });
    narrow(&mut body, input.filter, input.file_ids);
    let found = session.post::<Value>("/search/retrieve", body).await;
    let found = found.map_err(|refusal| refusal.in_words_of(&NARROWED))?;
    let passage = |chunk: &Value| FoundPassage {
        file_id: text(&chunk["source_id"]),
        title: text(&chunk["source_title"]),
        page: page_of(chunk),
        text: text(&chunk["chunk_content"]),
        confidence: chunk["confidence"].as_f64().unwrap_or_default(),
        url: filled(&chunk["source_url"]),
    };
    let passages = list(&found["chunks"]).iter().map(passage).collect();
    Ok(SearchOutput { passages, warnings: warnings(&found) })
}

fn warnings(found: &Value) -> Vec<String> {
    list(&found["metadata"]["warnings"]).iter().map(|told| text(&told["message"])).collect()
}

fn narrow(body: &mut Value, filter: Option<Map<String, Value>>, files: Option<Vec<String>>) {
    if let Some(filter) = filter {
        body["document_metadata"] = Value::Object(filter);
    }
    if let Some(files) = files {
        body["context_list"] = json!(files);
    }
}

/// Reads the page from the `layout` of a chunk, which is JSON inside a string.
fn page_of(chunk: &Value) -> Option<u32> {
    let layout: Value = serde_json::from_str(chunk["layout"].as_str()?).ok()?;
    ["page", "slide", "sheet"].into_iter().find_map(|name| number(&layout[name]))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskInput {
    /// Question in natural language.
    question: String,
    /// Only use documents with these `document_metadata` values, as for `search`.
    filter: Option<Map<String, Value>>,
    /// Only use these documents.
    file_ids: Option<Vec<String>>,
}

/// Passage that supports an answer.
#[derive(Debug, Serialize, JsonSchema)]
struct Citation {
    /// Number of the citation in the answer.
    n: u32,
    /// Document id, for `read_source`.
    file_id: String,
    /// Title of the document.
    title: String,
    /// Page, slide or sheet.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<u32>,
    /// Text of the passage.
    text: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AskOutput {
    /// Answer, in which `[n]` refers to a citation.
    answer: String,
    /// Cited passages; empty if the documents do not answer the question.
    citations: Vec<Citation>,
    /// Whether the documents contradict each other and the answer reports both statements.
    conflict: bool,
    /// Possible reasons why the filter matched nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

async fn ask(session: Session, input: AskInput) -> Result<AskOutput, Refusal> {
    let mut body = json!({"question": input.question});
    narrow(&mut body, input.filter, input.file_ids);
    session.progress(1.0, "searching and reading").await;
    let found = session.post::<Value>("/search/qna", body).await;
    let found = found.map_err(|refusal| refusal.in_words_of(&NARROWED))?;
    let title = |file: &Value| {
        let source = list(&found["sources"]).iter().find(|source| source["source_id"] == *file);
        source.map(|source| text(&source["source_title"])).unwrap_or_default()
    };
    let citation = |cited: &Value| Citation {
        n: number(&cited["n"]).unwrap_or_default(),
        file_id: text(&cited["file_id"]),
        title: title(&cited["file_id"]),
        page: number(&cited["page"]),
        text: text(&cited["text"]),
    };
    Ok(AskOutput {
        answer: text(&found["answer"]),
        citations: list(&found["citations"]).iter().map(citation).collect(),
        conflict: found["metadata"]["conflict"] == true,
        warnings: warnings(&found),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadInput {
    /// Document id, as returned by other tools.
    file_id: String,
    /// Only read this page, slide or sheet, counted from 1.
    #[schemars(range(min = 1))]
    page: Option<u32>,
    /// Part to start with: `next` of the previous call.
    from: Option<u32>,
    /// Maximum number of parts, about 200 words each, 1 to 200.
    #[schemars(range(min = 1, max = CHUNKS_MAX))]
    parts: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::mcp) struct ReadOutput {
    /// Title of the document.
    pub title: String,
    /// Text of the parts that were read.
    pub text: String,
    /// `from` for the next call; null at the end.
    pub next: Option<u32>,
}

async fn read_source(session: Session, input: ReadInput) -> Result<ReadOutput, Refusal> {
    let body = json!({
        "file_id": input.file_id,
        "page": input.page,
        "offset": input.from.unwrap_or(0),
        "limit": count("parts", input.parts, CHUNKS_MAX, CHUNKS_DEFAULT)?,
    });
    let found: Value = session.post("/list/chunks", body).await?;
    Ok(read(&found))
}

/// Joins the text of listed chunks, separated by blank lines.
pub(in crate::mcp) fn read(found: &Value) -> ReadOutput {
    let mut whole = String::new();
    for chunk in list(&found["chunks"]) {
        let gap = if whole.is_empty() { "" } else { "\n\n" };
        whole.push_str(gap);
        whole.push_str(chunk["chunk_content"].as_str().unwrap_or_default().trim());
    }
    let next = number(&found["next_offset"]);
    ReadOutput { title: text(&found["title"]), text: whole, next }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListInput {
    /// Maximum number of documents, 1 to 1,000.
    #[schemars(range(min = 1, max = SOURCES_MAX))]
    limit: Option<u32>,
    /// `next` of the previous call.
    cursor: Option<String>,
}

/// Document of the knowledge base.
#[derive(Debug, Serialize, JsonSchema)]
struct ListedSource {
    /// Document id.
    file_id: String,
    /// Title of the document.
    title: String,
    /// Processing state: queued, in_progress, success or errored.
    status: String,
    /// Reason for the state errored.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// URL of the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Metadata of the document.
    metadata: Map<String, Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ListOutput {
    /// Documents, newest first.
    sources: Vec<ListedSource>,
    /// Total number of documents.
    total: u64,
    /// `cursor` for the next call; null at the end.
    next: Option<String>,
}

async fn list_sources(session: Session, input: ListInput) -> Result<ListOutput, Refusal> {
    let limit = count("limit", input.limit, SOURCES_MAX, SOURCES_DEFAULT)?;
    let mut query = vec![("limit", limit.to_string())];
    query.extend(input.cursor.map(|cursor| ("cursor", cursor)));
    let found: Value = session.ask(Method::GET, "/list/sources", query, Value::Null).await?;
    let source = |source: &Value| ListedSource {
        file_id: text(&source["id"]),
        title: text(&source["title"]),
        status: text(&source["status"]),
        error: filled(&source["error_message"]),
        url: filled(&source["url"]),
        metadata: source["document_metadata"].as_object().cloned().unwrap_or_default(),
    };
    Ok(ListOutput {
        sources: list(&found["sources"]).iter().map(source).collect(),
        total: found["total"].as_u64().unwrap_or_default(),
        next: found["next_cursor"].as_str().map(str::to_owned),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AddInput {
    /// Text of the document.
    text: String,
    /// Title of the document.
    title: Option<String>,
    /// Document id; generated if absent. An existing document is replaced.
    file_id: Option<String>,
    /// URL from which the text comes.
    url: Option<String>,
    /// Metadata, by which searches can filter.
    metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AddOutput {
    /// Document id.
    file_id: String,
    /// Processing state: `success` once it is searchable; queued, in_progress or errored.
    status: String,
    /// Reason for the state errored.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

async fn add_text(session: Session, input: AddInput) -> Result<AddOutput, Refusal> {
    let mut body = json!({"content": input.text});
    let texts = [("title", input.title), ("file_id", input.file_id), ("url", input.url)];
    for (name, value) in texts {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
    if let Some(metadata) = input.metadata {
        body["document_metadata"] = Value::Object(metadata);
    }
    let path = "/upload/upload_text";
    let accepted = session.ask::<Value>(Method::POST, path, Vec::new(), body).await;
    let names = [("content", "text"), ("document_metadata", "metadata")];
    let accepted = accepted.map_err(|refusal| refusal.in_words_of(&names))?;
    let file_id = text(&accepted["file_id"]);
    let mut status = accepted;
    for step in 1..=WAIT_STEPS_MAX {
        let is_open = ["queued", "in_progress"].contains(&status["status"].as_str().unwrap_or(""));
        if !is_open {
            break;
        }
        session.progress(f64::from(step), status["status"].as_str().unwrap_or_default()).await;
        let query = vec![("file_id", file_id.clone()), ("wait", WAIT_STEP_SECONDS.to_string())];
        let path = "/upload/verify_processing";
        // The text has been accepted even if this look-up fails, so the caller must not add it
        // again.
        let Ok(next) = session.ask(Method::GET, path, query, Value::Null).await else { break };
        status = next;
    }
    let (status, error) = match status["status"].as_str() {
        Some("errored") => ("errored", filled(&status["message"])),
        Some(status) => (status, None),
        None => ("", None),
    };
    Ok(AddOutput { file_id, status: status.to_owned(), error })
}
