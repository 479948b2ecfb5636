//! The operations of the server that a run needs, for one tenant and sub-tenant.

use std::collections::HashMap;

use lodestone_types::limits;
use serde_json::{Map, Value, json};

use super::call::{CallError, Caller};
use super::form::Form;
use crate::cli::transport::{Payload, Request, query};

/// Seconds that the server may hold a poll back until the job ends.
const POLL_SECONDS: &str = "30";

/// States of a source's processing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It waits or runs.
    Pending,
    /// It is searchable.
    Success,
    /// It ended with a reason.
    Errored,
}

/// A source as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// State of processing.
    pub status: Status,
    /// Messages about parts that were not read.
    pub warnings: Vec<String>,
}

/// State of a source, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processing {
    /// State of processing.
    pub status: Status,
    /// The error code, or empty.
    pub error_code: String,
    /// For an error, why.
    pub message: String,
}

/// One scope of one server.
#[derive(Clone, Copy)]
pub struct Server<'a> {
    /// Makes the requests.
    pub caller: Caller<'a>,
    /// The tenant.
    pub tenant: &'a str,
    /// The sub-tenant; empty means `default`.
    pub sub_tenant: &'a str,
}

impl Server<'_> {
    /// Uploads files, new ones too; metadata that are not in the form stay as they are stored. The
    /// answer to the batch.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn upload(&self, form: &Form) -> Result<Value, CallError> {
        self.post("/upload/batch_update", &[], Payload::Form(form))
    }

    /// Changes the given maps of a source, and nothing else; the state of its processing, which
    /// begins anew where its words change with them.
    ///
    /// # Errors
    /// [`CallError`].
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

    /// Has pages fetched; the answer to the batch.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn scrape(&self, items: &Value) -> Result<Value, CallError> {
        self.post("/upload/batch_scrape_webpage", &[], Payload::Json(items))
    }

    /// Sources by id; those that the server does not have are absent.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn sources(&self, ids: &[&str]) -> Result<HashMap<String, Listed>, CallError> {
        self.listed(ids, &|source| {
            let warnings = source["warnings"].as_array().into_iter().flatten();
            let text = |warning: &Value| warning["message"].as_str().map(str::to_owned);
            let warnings = warnings.filter_map(text).collect();
            Listed { status: status(&source["status"]), warnings }
        })
    }

    /// The stored maps of sources by id, as members of an upload.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn stored_maps(
        &self,
        ids: &[&str],
    ) -> Result<HashMap<String, Map<String, Value>>, CallError> {
        self.listed(ids, &|source| {
            let map = |name: &str| (name.to_owned(), source[name].clone());
            ["document_metadata", "tenant_metadata"].map(map).into_iter().collect()
        })
    }

    /// Facts that `read` takes from each source that the server has.
    fn listed<T>(
        &self,
        ids: &[&str],
        read: &dyn Fn(&Value) -> T,
    ) -> Result<HashMap<String, T>, CallError> {
        let mut found = HashMap::with_capacity(ids.len());
        let mut blocks: Vec<&[&str]> = ids.chunks(limits::SOURCE_IDS_MAX).collect();
        if blocks.is_empty() {
            // Asking for nothing still tells whether the server and the key will do.
            blocks.push(&[]);
        }
        for block in blocks {
            let body = json!({
                "tenant_id": self.tenant, "sub_tenant_id": self.sub_tenant, "source_ids": block,
            });
            let path = "/list/sources_by_id".to_owned();
            let answer = self.caller.call(&Request { path, body: Some(Payload::Json(&body)) });
            let answer = match answer {
                // The first upload makes the tenant, where the key may do that.
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

    /// Deletes sources. Those that the server does not have are none the worse.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn delete(&self, ids: &[&str]) -> Result<(), CallError> {
        let pairs: Vec<(&str, &str)> = ids.iter().map(|id| ("source_ids", *id)).collect();
        self.post("/upload/delete_source", &pairs, Payload::Delete)?;
        Ok(())
    }

    /// State of one source, once it has ended or the server has waited long enough; `None`
    /// when it is gone.
    ///
    /// # Errors
    /// [`CallError`].
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

    /// Jobs of the scope that wait or run, of all clients; `tell` gets the reason for which the
    /// newest waits where it is another than the queue.
    ///
    /// # Errors
    /// [`CallError`].
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

    /// A name always: without one, a look-up goes on in the other sub-tenants.
    fn sub_tenant_name(&self) -> &str {
        match self.sub_tenant {
            "" => "default",
            name => name,
        }
    }
}

/// Words of a newer server that are unknown here are neither end.
fn status(word: &Value) -> Status {
    match word.as_str() {
        Some("success") => Status::Success,
        Some("errored") => Status::Errored,
        _ => Status::Pending,
    }
}
