//! Checks of a document tenant after a start.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::dice::Dice;
use super::documents::{Document, DocumentTenant, SUB_TENANTS, State};
use super::text::{EVERYWHERE, content, owners, word};
use super::{Step, ask, broken, scoped};
use crate::process::http::Client;
use crate::process::patience::Patience;

/// Pause between two polls of unfinished jobs.
const POLL: Duration = Duration::from_millis(50);
/// Words of dead versions per query; a query may have 64 terms.
const WORDS_A_QUERY: usize = 30;
/// Dead versions searched for by one check: all recent ones, and some older ones.
const RECENT_DEAD: usize = 60;

/// The results of searches and listings in one sub-tenant.
struct Seen {
    /// The listing, by source id.
    listed: BTreeMap<String, Value>,
    /// The versions shown, by document number.
    shown: BTreeMap<u32, BTreeSet<u32>>,
    chunks: u64,
}

impl DocumentTenant {
    /// Runs the checks that hold at any time, even with jobs in the queue.
    pub fn check_running(&mut self, client: &Client) -> Step<()> {
        if self.is_untouched() {
            return Ok(());
        }
        for sub in 0..SUB_TENANTS.len() as u32 {
            self.clear_given_up(client, sub)?;
            let seen = self.look(client, sub)?;
            for document in self.documents.iter().filter(|d| d.sub_tenant == sub) {
                let is_listed = seen.listed.contains_key(&document.id());
                let may =
                    |absent: bool| document.possible().any(|s| absent == (*s == State::Absent));
                if (is_listed && !may(false)) || (!is_listed && !may(true)) {
                    return self.wrong(document, &format!("listed: {is_listed}"));
                }
                let shown = seen.shown.get(&document.number).cloned().unwrap_or_default();
                if shown.len() > 1 || shown.iter().any(|v| !document.visible.contains(v)) {
                    return self.wrong(document, &format!("shown: {shown:?}"));
                }
                // A replacement leaves no gap: a searchable version remains so until it is
                // replaced.
                if document.is_settled && !may(true) && shown.is_empty() {
                    return self.wrong(document, "nothing is shown");
                }
            }
            self.check_dead(client, sub, &mut Vec::new())?;
        }
        Ok(())
    }

    /// Waits until all jobs have ended, then compares everything with the journal.
    pub fn check_settled(&mut self, client: &Client, dice: &mut Dice) -> Step<()> {
        if self.is_untouched() {
            return Ok(());
        }
        for sub in 0..SUB_TENANTS.len() as u32 {
            self.wait_for_jobs(client, sub)?;
            self.clear_given_up(client, sub)?;
            let seen = self.look(client, sub)?;
            self.check_counts(client, sub, &seen)?;
            for at in 0..self.documents.len() {
                if self.documents[at].sub_tenant == sub {
                    let state = self.observed(client, &self.documents[at], &seen)?;
                    if !self.documents[at].possible().any(|possible| *possible == state) {
                        return self.wrong(&self.documents[at], &format!("found {state:?}"));
                    }
                    self.documents[at].settle(state);
                }
            }
            self.check_words(client, sub)?;
            let dead = self.documents.iter().filter(|d| d.sub_tenant == sub);
            let dead = dead.flat_map(|d| d.dead.iter().map(|v| word(self.owner(d, *v))));
            let mut sample: Vec<String> = dead.collect();
            while sample.len() > RECENT_DEAD {
                let at = dice.below(sample.len() as u64) as usize;
                sample.swap_remove(at);
            }
            self.check_dead(client, sub, &mut sample)?;
        }
        Ok(())
    }

    fn wrong<T>(&self, document: &Document, what: &str) -> Step<T> {
        broken(format!("{} {document:?}: {what}", self.name()))
    }

    fn listing(&self, client: &Client, sub: u32) -> Step<Vec<Value>> {
        let (tenant, name) = (self.name(), SUB_TENANTS[sub as usize]);
        let path = format!("/list/sources?tenant_id={tenant}&sub_tenant_id={name}");
        let listed = ask(client, "GET", &path, &Value::Null)?;
        Ok(listed["sources"].as_array().cloned().unwrap_or_default())
    }

    /// A job that was running during nine kills is given up; no other job may fail. The text of its
    /// version must not appear; the document is deleted so that the journal can continue.
    fn clear_given_up(&mut self, client: &Client, sub: u32) -> Step<()> {
        let (tenant, name) = (self.name(), SUB_TENANTS[sub as usize]);
        for source in self.listing(client, sub)? {
            if source["status"] != "errored" {
                continue;
            }
            let is_it = |d: &Document| d.sub_tenant == sub && source["id"] == d.id();
            let Some(at) = self.documents.iter().position(is_it) else {
                return broken(format!("{tenant}/{name}: nobody uploaded {source}"));
            };
            let document = &self.documents[at];
            let id = document.id();
            let scope = format!("tenant_id={tenant}&sub_tenant_id={name}");
            let path = format!("/upload/verify_processing?file_id={id}&{scope}");
            let status = ask(client, "POST", &path, &Value::Null)?;
            let message = status["message"].as_str().unwrap_or_default();
            if !message.contains("the server stopped several times") {
                return self.wrong(document, &format!("{status}"));
            }
            if let (State::Present { version, .. }, []) =
                (document.acknowledged, &document.later[..])
                && self.shows(client, document, version)?
            {
                return self.wrong(document, &format!("shown although {status}"));
            }
            let body = scoped(&tenant, name, json!({"source_ids": [id]}));
            ask(client, "DELETE", "/upload/delete_source", &body)?;
            self.documents[at].settle(State::Absent);
            self.counts.given_up += 1;
        }
        Ok(())
    }

    fn wait_for_jobs(&self, client: &Client, sub: u32) -> Step<()> {
        let mut patience = Patience::new();
        loop {
            let sources = self.listing(client, sub)?;
            let waits = |s: &&Value| s["status"] == "queued" || s["status"] == "in_progress";
            let Some(waiting) = sources.iter().find(waits) else { return Ok(()) };
            let waiting = format!("{} is stuck: {waiting}", self.name());
            if patience.is_over(sources) {
                return broken(waiting);
            }
            std::thread::sleep(POLL);
        }
    }

    fn look(&self, client: &Client, sub: u32) -> Step<Seen> {
        let mut listed = BTreeMap::new();
        for source in self.listing(client, sub)? {
            let id = source["id"].as_str().expect("ids are texts").to_owned();
            if let Some(twice) = listed.insert(id, source) {
                return broken(format!("{} lists twice: {twice}", self.name()));
            }
        }
        let body = json!({"query": EVERYWHERE, "max_chunks": 1001});
        let body = scoped(&self.name(), SUB_TENANTS[sub as usize], body);
        let found = ask(client, "POST", "/search/full-text-search", &body)?;
        let chunks = found.as_array().cloned().unwrap_or_default();
        let mut shown: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let mut ids = BTreeSet::new();
        for chunk in &chunks {
            if !ids.insert(chunk["chunk_uuid"].as_str().unwrap_or_default().to_owned()) {
                return broken(format!("{}: twice in one answer: {chunk}", self.name()));
            }
            let owners = owners(chunk["chunk_content"].as_str().unwrap_or_default());
            for owner in &owners {
                let is_own = owner.tenant == self.number
                    && owner.sub_tenant == sub
                    && chunk["source_id"] == format!("doc-{}", owner.document);
                if !is_own {
                    return broken(format!("{}/{sub} shows {owner:?}: {chunk}", self.name()));
                }
                shown.entry(owner.document).or_default().insert(owner.version);
            }
            if owners.is_empty() {
                return broken(format!("{}: a chunk without a word: {chunk}", self.name()));
            }
        }
        Ok(Seen { listed, shown, chunks: chunks.len() as u64 })
    }

    fn check_counts(&self, client: &Client, sub: u32, seen: &Seen) -> Step<()> {
        let (tenant, name) = (self.name(), SUB_TENANTS[sub as usize]);
        let path = format!("/tenant/stats?tenant_id={tenant}&sub_tenant_id={name}");
        let stats = ask(client, "GET", &path, &Value::Null)?;
        let listed: u64 = seen.listed.values().filter_map(|s| s["chunk_count"].as_u64()).sum();
        if stats["object_count"].as_u64() != Some(seen.chunks) || listed != seen.chunks {
            let found = seen.chunks;
            return broken(format!("{tenant}/{name}: {found} chunks, listing {listed}: {stats}"));
        }
        Ok(())
    }

    /// Determines the state of a document whose jobs have ended; all ways of querying it must
    /// agree.
    fn observed(&self, client: &Client, document: &Document, seen: &Seen) -> Step<State> {
        let shown = seen.shown.get(&document.number).cloned().unwrap_or_default();
        let shown: Vec<u32> = shown.into_iter().collect();
        let name = SUB_TENANTS[document.sub_tenant as usize];
        let (tenant, id) = (self.name(), document.id());
        let path = format!(
            "/upload/verify_processing?file_id={id}&tenant_id={tenant}&sub_tenant_id={name}"
        );
        let Some(source) = seen.listed.get(&id) else {
            let status = client.call("POST", &path, &Value::Null).map_err(super::Stop::Gone)?;
            return match shown.is_empty() && status.status == 404 {
                true => Ok(State::Absent),
                false => self.wrong(document, &format!("not listed; {} {shown:?}", status.json())),
            };
        };
        let status = ask(client, "POST", &path, &Value::Null)?;
        let marker = source["document_metadata"]["marker"].as_u64().map(|n| n as u32);
        let is_success = status["status"] == "success" && source["status"] == "success";
        let [version] = shown[..] else {
            return self.wrong(document, &format!("shows {shown:?}, listed {source}"));
        };
        let body = scoped(&tenant, name, json!({"file_id": id}));
        let fetched = ask(client, "POST", "/fetch/fetch_content", &body)?;
        // The journal knows the kind of each version; an unknown version matches nothing.
        let possible = document.possible().find_map(|state| match state {
            State::Present { version: v, kind, .. } if *v == version => Some(*kind),
            _ => None,
        });
        let Some(kind) = possible else {
            return self.wrong(document, &format!("shows {shown:?}, listed {source}"));
        };
        let is_original = fetched["file_content"] == content(self.owner(document, version), kind);
        if !is_success || !is_original {
            return self.wrong(document, &format!("{status} {source} original {is_original}"));
        }
        Ok(State::Present { version, kind, marker })
    }

    /// Checks that each live word finds its document and nothing else.
    fn check_words(&self, client: &Client, sub: u32) -> Step<()> {
        let mut words = Vec::new();
        let mut expected = BTreeSet::new();
        for document in self.documents.iter().filter(|d| d.sub_tenant == sub) {
            if let State::Present { version, .. } = document.acknowledged {
                words.push(word(self.owner(document, version)));
                expected.insert(document.id());
            }
        }
        if words.is_empty() {
            return Ok(());
        }
        let found = self.find(client, sub, &words)?;
        match found == expected {
            true => Ok(()),
            false => broken(format!("{}: {words:?} find {found:?}", self.name())),
        }
    }

    /// Checks that words of dead versions find nothing.
    fn check_dead(&self, client: &Client, sub: u32, more: &mut Vec<String>) -> Step<()> {
        for document in self.documents.iter().filter(|d| d.sub_tenant == sub) {
            let recent = document.dead.iter().rev().take(3);
            more.extend(recent.map(|version| word(self.owner(document, *version))));
        }
        for words in more.chunks(WORDS_A_QUERY) {
            let found = self.find(client, sub, words)?;
            if !found.is_empty() {
                return broken(format!("{}: dead {words:?} find {found:?}", self.name()));
            }
        }
        Ok(())
    }

    fn find(&self, client: &Client, sub: u32, words: &[String]) -> Step<BTreeSet<String>> {
        let body = json!({"query": words.join(" "), "max_chunks": 1001});
        let body = scoped(&self.name(), SUB_TENANTS[sub as usize], body);
        let found = ask(client, "POST", "/search/full-text-search", &body)?;
        let chunks = found.as_array().cloned().unwrap_or_default();
        let id = |chunk: &Value| chunk["source_id"].as_str().unwrap_or_default().to_owned();
        Ok(chunks.iter().map(id).collect())
    }
}
