//! Sends records to the server in batches.

use std::collections::HashMap;
use std::io::{IsTerminal, stderr};

use lodestone_types::Metric;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::record::Record;
use super::tally::Tally;
use super::{failure, metric};
use crate::cli::client::connection::Connection;
use crate::cli::client::failure::Failure;
use crate::cli::ingest::call::{CallError, Caller};
use crate::cli::transport::{Payload, Request, query};

/// Maximum number of records per request, for texts and for vectors.
const TEXTS_MAX: usize = 100;
const VECTORS_MAX: usize = 1000;
/// Maximum number of vector components per request, each about 12 bytes as text.
const NUMBERS_MAX: usize = 1 << 20;
/// Maximum size of the texts in a request, in bytes.
const TEXT_BYTES_MAX: usize = 8 << 20;
/// Hexadecimal digits of the hash in the id of a batch: 128 bits.
const HASH_CHARS: usize = 32;

/// The kind of records that an import holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Texts, which the server embeds.
    Texts,
    /// Vectors, possibly with texts.
    Vectors,
}

/// Collects records and sends them.
pub struct Sender<'a> {
    /// Counts of imported and rejected records.
    pub tally: Tally,
    /// Texts that the server has accepted for processing, by id and name.
    pub accepted: Vec<(String, String)>,
    caller: Caller<'a>,
    connection: &'a Connection,
    tenant: &'a str,
    resumes: bool,
    width: Option<usize>,
    waiting: Vec<Record>,
    numbers: usize,
    text_bytes: usize,
}

impl<'a> Sender<'a> {
    /// Creates a sender to the tenant that flags, environment or profile name.
    ///
    /// # Errors
    /// [`Failure::Usage`] if none is named.
    pub fn new(
        caller: Caller<'a>,
        connection: &'a Connection,
        resumes: bool,
    ) -> Result<Self, Failure> {
        let tenant = connection.tenant()?;
        let (tally, accepted, waiting) = Default::default();
        let (width, numbers, text_bytes) = (None, 0, 0);
        Ok(Self {
            tally,
            accepted,
            caller,
            connection,
            tenant,
            resumes,
            width,
            waiting,
            numbers,
            text_bytes,
        })
    }

    /// Returns the address of the server.
    pub fn server(&self) -> &'a str {
        self.connection.server()
    }

    /// Creates the vector tenant unless it exists. An existing one must use the metric `wanted`.
    ///
    /// # Errors
    /// [`Failure`] if the metric differs, or the server refuses.
    pub fn open_vectors(&mut self, wanted: Option<Metric>) -> Result<(), Failure> {
        let path = format!("/tenant/stats{}", query(&[("tenant_id", self.tenant)]));
        let tenant = self.tenant;
        let found = match self.caller.call(&Request { path, body: None }) {
            Err(CallError::Refused(body)) if body.status == 404 => {
                let metric = wanted.unwrap_or_default().as_str();
                let pairs = [("tenant_id", tenant), ("metric", metric)];
                let path = format!("/embeddings/create_tenant{}", query(&pairs));
                return self.ask(&Request { path, body: Some(Payload::Empty) }).map(drop);
            }
            found => found.map_err(|error| failure(self.connection.server(), error))?,
        };
        let found = found["metric"].as_str().unwrap_or_default();
        let Ok(own) = metric(found) else {
            return Err(Failure::Usage(format!(
                "tenant {tenant} stores documents: choose another one for vectors"
            )));
        };
        match wanted.filter(|wanted| *wanted != own) {
            None => Ok(()),
            Some(wanted) => Err(Failure::Usage(format!(
                "tenant {tenant} uses the metric {found}, but these vectors use {}: choose another \
                 tenant, or --metric {found}",
                wanted.as_str()
            ))),
        }
    }

    /// Adds a record; returns whether the batch is full.
    pub fn push(&mut self, contents: Contents, name: &str, record: Record) -> bool {
        match (contents, &record.vector) {
            (Contents::Vectors, None) => self.tally.refuse(name, "without a vector"),
            (Contents::Texts, Some(_)) => self.tally.refuse(name, "a vector among texts"),
            (Contents::Vectors, Some(vector))
                if *self.width.get_or_insert(vector.len()) != vector.len() =>
            {
                self.tally.refuse(name, "a vector of another dimension than the first");
            }
            (_, vector) => {
                self.numbers += vector.as_ref().map_or(0, Vec::len);
                self.text_bytes += record.text.as_ref().map_or(0, String::len);
                self.waiting.push(record);
            }
        }
        let most = if contents == Contents::Texts { TEXTS_MAX } else { VECTORS_MAX };
        self.waiting.len() >= most
            || self.numbers >= NUMBERS_MAX
            || self.text_bytes >= TEXT_BYTES_MAX
    }

    /// Sends the collected records.
    ///
    /// # Errors
    /// [`Failure`] if they could not be stored.
    pub fn flush(&mut self, contents: Contents) -> Result<(), Failure> {
        (self.numbers, self.text_bytes) = (0, 0);
        let waiting = std::mem::take(&mut self.waiting);
        let mut place_of = HashMap::new();
        let mut records: Vec<Record> = Vec::with_capacity(waiting.len());
        for record in waiting {
            let place = *place_of.entry(record.id.clone()).or_insert(records.len());
            if place < records.len() {
                self.tally.refuse(record.id.as_str(), "an id that occurs again later");
                records[place] = record;
            } else {
                records.push(record);
            }
        }
        if records.is_empty() {
            return Ok(());
        }
        match contents {
            Contents::Texts => self.send_texts(records)?,
            Contents::Vectors => self.send_vectors(&records)?,
        }
        if stderr().is_terminal() {
            eprint!("\r{} taken ", self.tally.taken + self.tally.known);
        }
        Ok(())
    }

    fn send_vectors(&mut self, records: &[Record]) -> Result<(), Failure> {
        let ids: Vec<&str> = records.iter().map(|record| record.id.as_str()).collect();
        let batch = batch_id(&ids);
        let count = records.len() as u64;
        // A batch has lost vectors if they were deleted, or moved to another one.
        let is_whole = |stored: &Value| stored["chunk_count"].as_u64() == Some(count);
        if self.resumes && self.known(&[batch.as_str()])?.iter().any(is_whole) {
            self.tally.known += count;
            return Ok(());
        }
        let metadata: Vec<_> = records.iter().map(|record| &record.metadata).collect();
        let vectors: Vec<_> = records.iter().map(|record| &record.vector).collect();
        let body = json!({
            "file_id": batch, "embeddings": vectors, "ids": ids, "metadata": metadata,
        });
        let path = self.scoped("/upload/upload_embeddings");
        let upload = Request { path, body: Some(Payload::Json(&body)) };
        match self.caller.call(&upload) {
            // Some of them belong to another batch: an earlier run grouped them differently.
            Err(CallError::Refused(told)) if told.reason == "chunk_id_exists" => {
                let named = json!({
                    "tenant_id": self.tenant, "sub_tenant_id": self.connection.sub_tenant(),
                    "chunk_ids": ids,
                });
                let path = "/embeddings/delete".to_owned();
                self.ask(&Request { path, body: Some(Payload::DeleteJson(&named)) })?;
                self.ask(&upload)?;
            }
            answer => {
                answer.map_err(|error| failure(self.connection.server(), error))?;
            }
        }
        self.tally.taken += count;
        Ok(())
    }

    fn send_texts(&mut self, mut records: Vec<Record>) -> Result<(), Failure> {
        if self.resumes {
            let ids: Vec<&str> = records.iter().map(|record| record.id.as_str()).collect();
            let known = self.known(&ids)?;
            let before = records.len();
            let is_known = |record: &Record| {
                let is_it = |source: &Value| source["id"] == record.id.as_str();
                known.iter().any(|source| is_it(source) && source["status"] != "errored")
            };
            records.retain(|record| !is_known(record));
            self.tally.known += (before - records.len()) as u64;
        }
        if records.is_empty() {
            return Ok(());
        }
        let item = |record: &Record| {
            json!({
                "content": record.text, "file_id": record.id.as_str(),
                "document_metadata": record.metadata,
            })
        };
        let body = json!({"items": records.iter().map(item).collect::<Vec<_>>()});
        let path = self.scoped("/upload/batch_upload_text");
        let upload = Request { path, body: Some(Payload::Json(&body)) };
        let failed = match self.caller.call(&upload) {
            // If no item of a batch was accepted, the response is an error that lists the items.
            Err(CallError::Refused(told)) if !told.failed.is_empty() => told.failed,
            answer => {
                let answer = answer.map_err(|error| failure(self.connection.server(), error))?;
                answer["failed"].as_array().cloned().unwrap_or_default()
            }
        };
        self.tally.taken += (records.len() - failed.len().min(records.len())) as u64;
        let index = |item: &Value| item["index"].as_u64().map(|at| at as usize);
        let refused: Vec<usize> = failed.iter().filter_map(index).collect();
        let taken = records.iter().enumerate().filter(|(at, _)| !refused.contains(at));
        let id = |record: &Record| record.id.as_str().to_owned();
        self.accepted.extend(taken.map(|(_, record)| (id(record), id(record))));
        for item in failed {
            let record = index(&item).and_then(|at| records.get(at));
            let id = record.map_or("?", |record| record.id.as_str());
            let reason = item["message"].as_str().or(item["error_code"].as_str());
            self.tally.refuse(id, reason.unwrap_or("refused"));
        }
        Ok(())
    }

    /// Looks up sources by id; those that the server does not have are absent.
    fn known(&self, ids: &[&str]) -> Result<Vec<Value>, Failure> {
        let body = json!({
            "tenant_id": self.tenant, "sub_tenant_id": self.connection.sub_tenant(),
            "source_ids": ids,
        });
        let path = "/list/sources_by_id".to_owned();
        let request = Request { path, body: Some(Payload::Json(&body)) };
        let answer = match self.caller.call(&request) {
            // The tenant does not exist yet.
            Err(CallError::Refused(told)) if told.status == 404 => return Ok(Vec::new()),
            answer => answer.map_err(|error| failure(self.connection.server(), error))?,
        };
        Ok(answer["sources"].as_array().cloned().unwrap_or_default())
    }

    fn scoped(&self, path: &str) -> String {
        let scope = [("tenant_id", self.tenant), ("sub_tenant_id", self.connection.sub_tenant())];
        format!("{path}{}", query(&scope))
    }

    fn ask(&self, request: &Request<'_>) -> Result<Value, Failure> {
        self.caller.call(request).map_err(|error| failure(self.connection.server(), error))
    }
}

/// Derives the id of a batch of vectors from the ids of its records, so that it replaces no others.
/// Values are left out: with them, changed vectors would need to be deleted from an older batch
/// before they can be stored in another.
fn batch_id(ids: &[&str]) -> String {
    let hash = hex::encode(Sha256::digest(json!(ids).to_string().as_bytes()));
    format!("import-{}", &hash[..HASH_CHARS])
}
