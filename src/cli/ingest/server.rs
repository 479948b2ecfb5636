//! The server operations that a run uses, for one tenant and sub-tenant.

use std::collections::HashMap;

use lodestone_types::limits;
use serde_json::{Map, Value, json};

use super::call::{CallError, Caller};
use super::form::Form;
use crate::cli::transport::{Payload, Request, query};

/// Seconds for which the server may hold a poll until the job ends.
const POLL_SECONDS: &str = "30";

/// Processing state of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Waiting or being processed.
    Pending,
    /// Processed and searchable.
    Success,
    /// Processing failed.
    Errored,
}

/// A source as listed by the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Processing state.
    pub status: Status,
    /// Messages about parts that were not read.
    pub warnings: Vec<String>,
}

/// The processing state of a source, with the error if it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processing {
    /// Processing state.
    pub status: Status,
    /// Error code; possibly empty.
    pub error_code: String,
    /// The reason for a failure.
    pub message: String,
}

/// One scope of one server.
#[derive(Clone, Copy)]
pub struct Server<'a> {
    /// Sends the requests.
    pub caller: Caller<'a>,
    /// The tenant.
    pub tenant: &'a str,
    /// The sub-tenant; empty means `default`.
    pub sub_tenant: &'a str,
}

impl Server<'_> {
    /// Uploads files, both new and known ones; metadata that is not in the form is kept. Returns
    /// the response to the batch.
    ///
    /// # Errors
    /// [`CallError`] if the request fails.
    pub fn upload(&self, form: &Form) -> Result<Value, CallError> {
        self.post("/upload/batch_update", &[], Payload::Form(form))
    }

    /// Updates the given metadata maps of a source and nothing else. Returns the processing state,
    /// since processing starts again if the indexed text depends on them.
    ///
    /// # Errors
    /// [`CallError`] if the request fails.
    pub fn update_metadata(
        &self,
        id: &str,
        maps: &Map<String, Value>,
    ) -> Result<Status, CallError> {
        let mut body = maps.clone();
        body.insert("source_id".to_owned(), id.into());
        let body = Value::Object(body);
        let answer = self.post("/upload/update_metadata", &[], Payload::PatchJson(&body))?;
        Ok(status(&answer["status"]))
    }

    /// Asks the server to fetch pages; returns the response to the batch.
    ///
    /// # Errors
    /// [`CallError`] if the request fails.
    pub fn scrape(&self, items: &Value) -> Result<Value, CallError> {
        self.post("/upload/batch_scrape_webpage", &[], Payload::Json(items))
    }

    /// Looks up sources by id; those that the server does not have are absent.
    ///
    /// # Errors
    /// [`CallError`] if the request fails.
    pub fn sources(&self, ids: &[&str]) -> Result<HashMap<String, Listed>, CallError> {
        self.listed(ids, &|source| {
            let warnings = source["warnings"].as_array().into_iter().flatten();
            let text = |warning: &Value| warning["message"].as_str().map(str::to_owned);
            let warnings = warnings.filter_map(text).collect();
            Listed { status: status(&source["status"]), warnings }
        })
    }

    /// Returns the stored metadata maps of sources by id, as members of an upload.
    ///
    /// # Errors
    /// [`CallError`] if the request fails.
    pub fn stored_maps(
        &self,
        ids: &[&str],
    ) -> Result<HashMap<String, Map<String, Value>>, CallError> {
        self.listed(ids, &|source| {
            let map = |name: &str| (name.to_owned(), source[name].clone());
            ["document_metadata", "tenant_metadata"].map(map).into_iter().collect()
        })
    }

    /// Extracts data with `read` from each source that the server has.
    fn listed<T>(
        &self,
        ids: &[&str],
        read: &dyn Fn(&Value) -> T,
    ) -> Result<HashMap<String, T>, CallError> {
        let mut found = HashMap::with_capacity(ids.len());
        let mut blocks: Vec<&[&str]> = ids.chunks(limits::SOURCE_IDS_MAX).collect();
        if blocks.is_empty() {
            // An empty request still checks that server and key work.
            blocks.push(&[]);
        }
        for block in blocks {
            let body = json!({
                "tenant_id": self.tenant, "sub_tenant_id": self.sub_tenant, "source_ids": block,
            });
            let path = "/list/sources_by_id".to_owned();
            let answer = self.caller.call(&Request { path, body: Some(Payload::Json(&body)) });
            let answer = match answer {
                // The first upload creates the tenant, if the key permits it.
                Err(CallError::Refused(body)) if body.reason == "tenant_not_found" => {
                    return Ok(HashMap::new());
                }
                answer => answer?,
            };
            for source in answer["sources"].as_array().map_or(&[][..], Vec::as_slice) {
                if let Some(id) = source["id"].as_str() {
                    found.insert(id.to_owned(), read(source));
                }
            }
        }
        Ok(found)
    }

    /// Deletes sources; unknown ones are ignored.
    ///
    /// # Errors
    /// [`CallError`] if the request fails.
    pub fn delete(&self, ids: &[&str]) -> Result<(), CallError> {
        let pairs: Vec<(&str, &str)> = ids.iter().map(|id| ("source_ids", *id)).collect();
        self.post("/upload/delete_source", &pairs, Payload::Delete)?;
        Ok(())
    }

    /// Polls the processing state of a source, until it has ended or the server's wait time is
    /// over; `None` if the source is gone.
    ///
    /// # Errors
    /// [`CallError`] if the request fails.
    pub fn processing(&self, id: &str) -> Result<Option<Processing>, CallError> {
        let path = "/upload/verify_processing";
        let pairs = [("file_id", id), ("wait", POLL_SECONDS)];
        let answer = match self.post(path, &pairs, Payload::Empty) {
            Err(CallError::Refused(body)) if body.reason == "source_not_found" => {
                return Ok(None);
            }
            answer => answer?,
        };
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        let (error_code, message) = (text("error_code"), text("message"));
        Ok(Some(Processing { status: status(&answer["status"]), error_code, message }))
    }

    /// Returns the number of jobs in the scope, of all clients, that are waiting or running. Passes
    /// `tell` the reason why the newest is waiting, unless it merely waits in the queue.
    ///
    /// # Errors
    /// [`CallError`] if the request fails.
    pub fn outstanding(&self, tell: &dyn Fn(&str)) -> Result<usize, CallError> {
        let path = format!("/jobs{}&limit=1", self.scope(&[]));
        let answer = self.caller.call(&Request { path, body: None })?;
        let count = |name: &str| answer["counts"][name].as_u64().unwrap_or(0) as usize;
        let newest = &answer["jobs"][0];
        let reason = newest["message"].as_str().filter(|reason| !reason.is_empty());
        if let Some(reason) = reason.filter(|_| status(&newest["status"]) == Status::Pending) {
            tell(&format!("waiting: {reason}"));
        }
        Ok(count("queued") + count("in_progress"))
    }

    fn post(
        &self,
        path: &str,
        pairs: &[(&str, &str)],
        payload: Payload<'_>,
    ) -> Result<Value, CallError> {
        let path = format!("{path}{}", self.scope(pairs));
        self.caller.call(&Request { path, body: Some(payload) })
    }

    fn scope(&self, pairs: &[(&str, &str)]) -> String {
        let scope = [("tenant_id", self.tenant), ("sub_tenant_id", self.sub_tenant_name())];
        query(&[&scope, pairs].concat())
    }

    /// Always names the sub-tenant, because without a name the look-up would also search others.
    fn sub_tenant_name(&self) -> &str {
        match self.sub_tenant {
            "" => "default",
            name => name,
        }
    }
}

/// Words that only a newer server uses are treated as pending.
fn status(word: &Value) -> Status {
    match word.as_str() {
        Some("success") => Status::Success,
        Some("errored") => Status::Errored,
        _ => Status::Pending,
    }
}
