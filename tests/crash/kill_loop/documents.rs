//! A tenant of documents: its journal, and random writes.

use std::time::Duration;

use serde_json::{Value, json};

use super::dice::Dice;
use super::text::{Kind, Owner, content, word};
use super::{Counts, Step, Stop, Written, ask, broken, scoped, written};
use crate::process::http::Client;

pub const SUB_TENANTS: [&str; 2] = ["default", "second"];
pub const DOCUMENTS: u32 = 10;
/// Maximum number of uploads of one tenant in the queue; more would only prolong the wait at the
/// end.
const WAITING_MAX: usize = 8;
const OBSERVE_PAUSE: Duration = Duration::from_millis(5);

/// The state of a document once its jobs have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Absent,
    Present { version: u32, kind: Kind, marker: Option<u32> },
}

/// The journal of one document.
#[derive(Debug, Clone)]
pub struct Document {
    pub number: u32,
    pub sub_tenant: u32,
    /// The state after the last acknowledged write.
    pub acknowledged: State,
    /// States that later, unanswered writes may have left.
    pub later: Vec<State>,
    /// Versions that a search may still show.
    pub visible: Vec<u32>,
    /// Versions that no search may ever show again.
    pub dead: Vec<u32>,
    /// Whether the acknowledged state was observed after its job had ended.
    pub is_settled: bool,
    versions: u32,
    markers: u32,
}

impl Document {
    fn new(sub_tenant: u32, number: u32) -> Self {
        Self {
            number,
            sub_tenant,
            acknowledged: State::Absent,
            later: Vec::new(),
            visible: Vec::new(),
            dead: Vec::new(),
            is_settled: true,
            versions: 0,
            markers: 0,
        }
    }

    pub fn id(&self) -> String {
        format!("doc-{}", self.number)
    }

    /// The states in which the document may end up.
    pub fn possible(&self) -> impl Iterator<Item = &State> {
        [&self.acknowledged].into_iter().chain(&self.later)
    }

    fn is_known(&self) -> bool {
        self.later.is_empty()
    }

    /// Records the final state; all other versions are gone for good.
    pub fn settle(&mut self, state: State) {
        let keeps =
            |version: u32| matches!(state, State::Present { version: v, .. } if v == version);
        let (kept, gone): (Vec<u32>, Vec<u32>) =
            self.visible.iter().copied().partition(|version| keeps(*version));
        self.visible = kept;
        self.dead.extend(gone);
        self.acknowledged = state;
        self.later.clear();
        self.is_settled = true;
    }

    fn note(&mut self, state: State, written: &Written) {
        if let (State::Present { version, .. }, Written::Acknowledged | Written::Lost(_)) =
            (state, written)
            && !self.visible.contains(&version)
        {
            self.visible.push(version);
        }
        match written {
            Written::Refused => {}
            Written::Lost(_) => self.later.push(state),
            Written::Acknowledged if state == State::Absent => self.settle(state),
            Written::Acknowledged => {
                self.acknowledged = state;
                self.later.clear();
                self.is_settled = false;
            }
        }
    }
}

/// A tenant of documents.
pub struct DocumentTenant {
    pub number: u32,
    pub documents: Vec<Document>,
    pub counts: Counts,
}

impl DocumentTenant {
    pub fn new(number: u32) -> Self {
        let scopes =
            (0..SUB_TENANTS.len() as u32).flat_map(|sub| (0..DOCUMENTS).map(move |n| (sub, n)));
        let documents = scopes.map(|(sub, n)| Document::new(sub, n)).collect();
        Self { number, documents, counts: Counts::default() }
    }

    pub fn name(&self) -> String {
        format!("tenant-{}", self.number)
    }

    pub fn owner(&self, document: &Document, version: u32) -> Owner {
        let Document { number, sub_tenant, .. } = *document;
        Owner { tenant: self.number, sub_tenant, document: number, version }
    }

    /// Performs a random operation.
    pub fn step(&mut self, client: &Client, dice: &mut Dice) -> Step<()> {
        let at = dice.below(self.documents.len() as u64) as usize;
        let waiting = self.documents.iter().filter(|document| !document.is_settled).count();
        let choice = match waiting > WAITING_MAX {
            false => dice.below(100),
            true => 58 + dice.below(42),
        };
        match choice {
            0..28 => self.upload(client, at, Kind::Text),
            28..40 => self.update_text(client, at),
            40..50 => self.upload(client, at, Kind::Markdown),
            50..58 => self.upload(client, at, Kind::Table),
            58..70 => self.delete(client, at),
            70..80 => self.update_metadata(client, at),
            80..92 => self.observe(client, dice),
            _ => self.search(client, at),
        }
    }

    fn finish(&mut self, at: usize, state: State, written: Written) -> Step<()> {
        self.documents[at].note(state, &written);
        match written {
            Written::Acknowledged => self.counts.acknowledged += 1,
            Written::Refused => self.counts.refused += 1,
            Written::Lost(failure) => {
                self.counts.lost += 1;
                return Err(Stop::Gone(failure));
            }
        }
        Ok(())
    }

    fn upload(&mut self, client: &Client, at: usize, kind: Kind) -> Step<()> {
        let tenant = self.name();
        let document = &mut self.documents[at];
        document.versions += 1;
        document.markers += 1;
        let (version, marker) = (document.versions, document.markers);
        let (id, sub_tenant) = (document.id(), SUB_TENANTS[document.sub_tenant as usize]);
        let content = content(self.owner(&self.documents[at], version), kind);
        let metadata = json!({"marker": marker});
        let result = match kind {
            Kind::Text => {
                let path =
                    format!("/upload/upload_text?tenant_id={tenant}&sub_tenant_id={sub_tenant}");
                let body =
                    json!({"content": content, "file_id": id, "document_metadata": metadata});
                client.call("POST", &path, &body)
            }
            Kind::Markdown | Kind::Table => {
                let metadata = metadata.to_string();
                let ending = if kind == Kind::Table { "csv" } else { "md" };
                let parts = [
                    ("tenant_id", tenant.as_str()),
                    ("sub_tenant_id", sub_tenant),
                    ("file_id", id.as_str()),
                    ("document_metadata", metadata.as_str()),
                ];
                let name = format!("{id}.{ending}");
                client.file("/upload/upload_document", &name, content.as_bytes(), &parts)
            }
        };
        let state = State::Present { version, kind, marker: Some(marker) };
        self.finish(at, state, written("upload", result)?)
    }

    /// Replaces the text and keeps the metadata, even while jobs wait in the queue.
    fn update_text(&mut self, client: &Client, at: usize) -> Step<()> {
        if !self.documents[at].is_known() {
            return self.upload(client, at, Kind::Text);
        }
        let tenant = self.name();
        let document = &mut self.documents[at];
        document.versions += 1;
        let marker = match document.acknowledged {
            State::Present { marker, .. } => marker,
            State::Absent => None,
        };
        let version = document.versions;
        let (id, sub_tenant) = (document.id(), SUB_TENANTS[document.sub_tenant as usize]);
        let content = content(self.owner(&self.documents[at], version), Kind::Text);
        let path = format!(
            "/upload/update_text?source_id={id}&tenant_id={tenant}&sub_tenant_id={sub_tenant}"
        );
        let result = client.call("PATCH", &path, &json!({"content": content}));
        let state = State::Present { version, kind: Kind::Text, marker };
        self.finish(at, state, written("update_text", result)?)
    }

    fn delete(&mut self, client: &Client, at: usize) -> Step<()> {
        let document = &self.documents[at];
        let sub_tenant = SUB_TENANTS[document.sub_tenant as usize];
        let body = scoped(&self.name(), sub_tenant, json!({"source_ids": [document.id()]}));
        let result = client.call("DELETE", "/upload/delete_source", &body);
        // A deletion in a tenant that has never received an upload finds no tenant.
        if result.as_ref().is_ok_and(|reply| reply.status == 404) && self.is_untouched() {
            return Ok(());
        }
        self.finish(at, State::Absent, written("delete", result)?)
    }

    /// Whether the tenant may not exist yet.
    pub fn is_untouched(&self) -> bool {
        self.counts.acknowledged == 0
    }

    fn update_metadata(&mut self, client: &Client, at: usize) -> Step<()> {
        let tenant = self.name();
        let document = &mut self.documents[at];
        let State::Present { version, kind, .. } = document.acknowledged else { return Ok(()) };
        if !document.is_known() {
            return Ok(());
        }
        document.markers += 1;
        let marker = document.markers;
        let body = json!({"source_id": document.id(), "document_metadata": {"marker": marker}});
        let body = scoped(&tenant, SUB_TENANTS[document.sub_tenant as usize], body);
        let was_settled = document.is_settled;
        let result = client.call("PATCH", "/upload/update_metadata", &body);
        let state = State::Present { version, kind, marker: Some(marker) };
        let written = written("update_metadata", result)?;
        let is_acknowledged = matches!(written, Written::Acknowledged);
        self.finish(at, state, written)?;
        // The title is unchanged, so nothing is processed again.
        self.documents[at].is_settled = was_settled && is_acknowledged;
        Ok(())
    }

    /// Observes a job. If it has ended, its version must be found and older ones must not.
    fn observe(&mut self, client: &Client, dice: &mut Dice) -> Step<()> {
        let waits = |document: &&Document| !document.is_settled && document.is_known();
        let waiting: Vec<&Document> = self.documents.iter().filter(waits).collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let document = waiting[dice.below(waiting.len() as u64) as usize];
        let (sub, number) = (document.sub_tenant, document.number);
        let (tenant, id, name) = (self.name(), document.id(), SUB_TENANTS[sub as usize]);
        let path = format!(
            "/upload/verify_processing?file_id={id}&tenant_id={tenant}&sub_tenant_id={name}"
        );
        let status = ask(client, "POST", &path, &Value::Null)?;
        match status["status"].as_str() {
            Some("queued" | "in_progress") => {
                // Polling without a pause would take CPU time from the job.
                std::thread::sleep(OBSERVE_PAUSE);
                return Ok(());
            }
            Some("success") => {}
            _ => return broken(format!("{tenant}/{name}/{id}: {status}")),
        }
        let at = self.documents.iter().position(|d| d.sub_tenant == sub && d.number == number);
        let at = at.expect("it was just chosen");
        let state = self.documents[at].acknowledged;
        self.documents[at].settle(state);
        self.search(client, at)
    }

    /// Searches for the words of one document's versions.
    fn search(&mut self, client: &Client, at: usize) -> Step<()> {
        self.counts.searches += 1;
        let document = &self.documents[at];
        let recent = document.dead.iter().rev().take(20);
        for version in document.visible.iter().chain(recent) {
            let shown = self.shows(client, document, *version)?;
            let is_dead = document.dead.contains(version);
            let must_show = document.is_settled && document.is_known() && !is_dead;
            if (is_dead && shown) || (must_show && !shown) {
                return broken(format!(
                    "{} {:?}: version {version} {}",
                    self.name(),
                    document,
                    if shown { "is shown" } else { "is not found" }
                ));
            }
        }
        Ok(())
    }

    /// Whether full-text search shows a version of a document.
    pub fn shows(&self, client: &Client, document: &Document, version: u32) -> Step<bool> {
        if self.is_untouched() {
            return Ok(false);
        }
        let body = json!({"query": word(self.owner(document, version))});
        let body = scoped(&self.name(), SUB_TENANTS[document.sub_tenant as usize], body);
        let found = ask(client, "POST", "/search/full-text-search", &body)?;
        Ok(found.as_array().is_some_and(|chunks| !chunks.is_empty()))
    }
}
