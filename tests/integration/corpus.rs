//! Shorthands for uploading and searching test documents.

use std::sync::Arc;

use lodestone_types::{ManualClock, Timestamp};
use serde_json::{Map, Value, json};

use crate::support::{Reply, TestServer};

/// Maximum number of items in one batch.
const BATCH_ITEMS_MAX: usize = 100;

/// Starts a server whose clock advances only on request.
pub fn server_and_clock() -> (TestServer, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(Timestamp(1_757_402_409_000)));
    let parts = Arc::clone(&clock);
    (TestServer::start_with_parts(|_| {}, |components| components.clock = parts), clock)
}

/// Returns the body with additional members.
pub fn with(mut body: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().expect("an object of changes") {
        body[name] = value.clone();
    }
    body
}

/// The source ids of chunks, in order.
pub fn ids_of(chunks: &[Value]) -> Vec<String> {
    chunks.iter().map(|chunk| chunk["source_id"].as_str().expect("an id").to_owned()).collect()
}

/// The distinct source ids of chunks, sorted.
pub fn id_set(chunks: &[Value]) -> Vec<String> {
    let mut ids = ids_of(chunks);
    ids.sort();
    ids.dedup();
    ids
}

/// The scores of chunks, in order.
pub fn scores_of(chunks: &[Value]) -> Vec<f64> {
    chunks.iter().map(|chunk| chunk["relevancy_score"].as_f64().expect("a score")).collect()
}

/// The array of this name in a body.
pub fn list(body: &Value, name: &str) -> Vec<Value> {
    body[name].as_array().unwrap_or_else(|| panic!("{name} of {body}")).clone()
}

/// Removes everything that may differ between equal requests: the request id, timings, and the
/// vector search paths, which change with merges.
pub fn timeless(mut body: Value) -> Value {
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("request_id");
        metadata.shift_remove("timings_ms");
        metadata.shift_remove("vector_paths");
    }
    body
}

impl TestServer {
    /// Uploads texts in batches and waits until all are searchable.
    pub fn index_items(&self, tenant: &str, sub_tenant: &str, items: &[Value]) {
        let path =
            format!("/upload/batch_upload_text?tenant_id={tenant}&sub_tenant_id={sub_tenant}");
        for items in items.chunks(BATCH_ITEMS_MAX) {
            let body = self.post(&path, json!({"items": items})).ok();
            assert_eq!(body["success"], true, "{body}");
        }
        for item in items {
            let id = item["file_id"].as_str().expect("an id");
            assert_eq!(self.settled(tenant, sub_tenant, id)["status"], "success", "{id}");
        }
    }

    /// Calls `/search/{operation}` for tenant `acme`, with additional members in the body.
    pub fn ask(&self, operation: &str, query: &str, changes: &Value) -> Reply {
        let name = if operation == "qna" { "question" } else { "query" };
        let mut body = Map::from_iter([("tenant_id".to_owned(), json!("acme"))]);
        body.insert(name.to_owned(), json!(query));
        self.post(&format!("/search/{operation}"), with(Value::Object(body), changes))
    }

    /// Returns the chunks of a hybrid search in tenant `acme`.
    pub fn chunks(&self, query: &str, changes: &Value) -> Vec<Value> {
        list(&self.ask("retrieve", query, changes).ok(), "chunks")
    }

    /// Returns the chunks of a full-text search in tenant `acme`.
    pub fn words(&self, query: &str, changes: &Value) -> Vec<Value> {
        let found = self.ask("full-text-search", query, changes).ok();
        found.as_array().expect("a bare array").clone()
    }

    /// Returns the complete response to a question in tenant `acme`.
    pub fn qna(&self, question: &str, changes: &Value) -> Value {
        self.ask("qna", question, changes).ok()
    }
}
