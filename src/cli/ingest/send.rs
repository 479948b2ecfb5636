//! Sends batches to the server, several at a time, and records accepted items in the state file.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use lodestone_types::limits;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::batch::Batch;
use super::call::{BUSY_PATIENCE, CallError, ErrorBody, busy_pause};
use super::failure::Failure;
use super::form::{Form, OpenFile};
use super::maps::Maps;
use super::options::SourceTime;
use super::plan::{Item, Origin, Stamp};
use super::server::Server;
use super::state::{Entry, State, StateError};
use super::summary::{ReadInPart, Summary, sorted};

/// Errors that end a run before everything is sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The server will not accept the rest.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The state file cannot be written.
    #[error(transparent)]
    State(#[from] StateError),
}

/// Counts and results collected during a run, shared by its threads.
#[derive(Debug, Default)]
pub struct Tally {
    /// Id and name of items being processed, of this run and earlier ones.
    pub awaited: Mutex<Vec<(String, String)>>,
    /// Items that failed.
    pub failures: Mutex<Vec<Failure>>,
    /// Documents that were processed, but only in part.
    pub warnings: Mutex<Vec<ReadInPart>>,
    /// Number of items whose metadata alone was updated.
    pub retagged_count: AtomicUsize,
    /// Number of items of this run that were accepted.
    pub accepted_count: AtomicUsize,
    /// Total size of the accepted files in bytes.
    pub accepted_bytes: AtomicU64,
    /// Bytes sent, including those of lost requests.
    pub sent_bytes: AtomicU64,
    /// Number of awaited items known to have ended.
    pub processed: AtomicUsize,
    /// Number of items that were accepted or failed.
    pub decided: AtomicUsize,
    /// The first error, of any thread, that ended the sending early.
    pub ended_by: Mutex<Option<SendError>>,
}

impl Tally {
    /// Builds the summary of these counts, taking failures and warnings out of the tally.
    pub fn summary(&self) -> Summary {
        Summary {
            sent: self.accepted_count.load(Ordering::Relaxed),
            sent_bytes: self.accepted_bytes.load(Ordering::Relaxed),
            metadata_updated: self.retagged_count.load(Ordering::Relaxed),
            failed: sorted(&self.failures, |failure| &failure.name),
            warnings: sorted(&self.warnings, |warned| &warned.name),
            ..Summary::default()
        }
    }
}

/// Sends the batches of a run.
pub struct Sender<'a> {
    /// Destination scope.
    pub server: Server<'a>,
    /// Records the accepted items.
    pub state: Option<&'a State>,
    /// Metadata sent with every item.
    pub maps: &'a Maps,
    /// Stored metadata of pages, by id, because fetching a page again replaces it.
    pub stored: &'a HashMap<String, Map<String, Value>>,
    /// Counts of the run.
    pub tally: &'a Tally,
    /// Ends the pauses of all threads once one of them finds that the run is over.
    pub halt: &'a (dyn Fn() + Sync),
}

/// A request and the items in it.
enum Cargo<'a> {
    Files { form: Form, items: Vec<(&'a Item, Stamp)> },
    Pages { body: Value, items: Vec<(&'a Item, Stamp)> },
}

impl Sender<'_> {
    /// Sends everything with `jobs` concurrent requests. An error that ends it early is in the
    /// tally.
    pub fn send_all(&self, batches: &[Batch], jobs: usize) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..jobs.min(batches.len()) {
                scope.spawn(|| {
                    while self.tally.ended_by.lock().is_none() {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some(batch) = batches.get(number) else { return };
                        if let Err(error) = self.send(batch, number as u64) {
                            self.tally.ended_by.lock().get_or_insert(error);
                            (self.halt)();
                        }
                    }
                });
            }
        });
    }

    /// Sends one batch until each of its items has been accepted or has failed.
    fn send(&self, batch: &Batch, number: u64) -> Result<(), SendError> {
        let mut rest: Vec<&Item> = batch.iter().collect();
        let mut waited = Duration::ZERO;
        loop {
            let cargo = self.cargo(&rest, number);
            let (answer, items, unreadable) = match &cargo {
                Cargo::Files { items, .. } | Cargo::Pages { items, .. } if items.is_empty() => {
                    return Ok(());
                }
                Cargo::Files { form, items } => {
                    (self.server.upload(form), items, form.take_error())
                }
                Cargo::Pages { body, items } => (self.server.scrape(body), items, None),
            };
            if let (Err(_), Some(unreadable)) = (&answer, unreadable) {
                let item = items[unreadable.index].0;
                self.fail(Failure::local(
                    item.name(),
                    &item.id,
                    "UNREADABLE_FILE",
                    &unreadable.problem,
                ));
                rest = items.iter().map(|(item, _)| *item).collect();
                rest.remove(unreadable.index);
                continue;
            }
            let (answer, refusal) = match answer {
                Ok(answer) => (answer, None),
                Err(CallError::Refused(refusal)) if !refusal.ends_the_run() => {
                    (json!({"failed": refusal.failed}), Some(refusal))
                }
                Err(error) => return Err(error.into()),
            };
            rest = self.settle(items, &answer, refusal.as_ref())?;
            if rest.is_empty() {
                return Ok(());
            }
            let pause = busy_pause(None);
            waited += pause;
            if waited > BUSY_PATIENCE {
                let message = "the server did not accept it for half an hour";
                for item in rest {
                    let (name, code) = (item.name(), "SERVICE_UNAVAILABLE");
                    self.fail(Failure::local(name, &item.id, code, message));
                }
                return Ok(());
            }
            if !self.server.caller.pause.pause(pause) {
                return Err(CallError::Stopped.into());
            }
        }
    }

    /// Opens the files or lists the pages of a request. Files that cannot be opened count as
    /// failed.
    fn cargo<'a>(&self, rest: &[&'a Item], number: u64) -> Cargo<'a> {
        let (mut items, mut files, mut pages) = (Vec::new(), Vec::new(), Vec::new());
        for item in rest {
            match &item.origin {
                Origin::Page(url) => {
                    pages.push(self.page(url, &item.id));
                    items.push((*item, Stamp::default()));
                }
                Origin::File(path) => match open(path) {
                    Ok(file) => {
                        items.push((*item, file.stamp));
                        files.push(file);
                    }
                    Err((code, message)) => {
                        self.fail(Failure::local(item.name(), &item.id, code, &message));
                    }
                },
            }
        }
        if files.is_empty() {
            return Cargo::Pages { body: json!({"items": pages}), items };
        }
        let ids: Vec<&str> = items.iter().map(|(item, _)| item.id.as_str()).collect();
        let given = self.maps.given();
        let mut texts = vec![("source_ids", json!(ids).to_string())];
        texts.extend(given.iter().map(|(name, map)| (name.as_str(), map.to_string())));
        if self.maps.source_time == Some(SourceTime::Mtime) {
            let seconds = |(_, stamp): &(_, Stamp)| match stamp.mtime_ns {
                0 => None,
                nanoseconds => Some(nanoseconds as f64 / 1e9),
            };
            let times: Vec<Option<f64>> = items.iter().map(seconds).collect();
            texts.push(("source_time", json!(times).to_string()));
        }
        Cargo::Files { form: Form::new(&texts, files, number), items }
    }

    fn page(&self, url: &str, id: &str) -> Value {
        let mut page = self.stored.get(id).cloned().unwrap_or_default();
        page.extend(self.maps.given());
        page.extend([("web_url".to_owned(), url.into()), ("file_id".to_owned(), id.into())]);
        page.into()
    }

    /// Processes a response and returns the items to send again. `refusal` is the error of the
    /// whole batch.
    fn settle<'a>(
        &self,
        items: &[(&'a Item, Stamp)],
        answer: &Value,
        refusal: Option<&ErrorBody>,
    ) -> Result<Vec<&'a Item>, SendError> {
        let list = |name: &str| answer[name].as_array().map_or(&[][..], Vec::as_slice).iter();
        let uploaded: Vec<&str> =
            list("uploaded").filter_map(|entry| entry["file_id"].as_str()).collect();
        let (mut again, mut accepted) = (Vec::new(), Vec::new());
        for (index, (item, stamp)) in items.iter().enumerate() {
            if uploaded.contains(&item.id.as_str()) {
                accepted.push((*item, *stamp));
                continue;
            }
            let entry = list("failed").find(|entry| entry["index"].as_u64() == Some(index as u64));
            match (entry, refusal) {
                (Some(entry), _) if is_passing(entry) => again.push(*item),
                (Some(entry), _) => self.fail(Failure::of_entry(item.name(), &item.id, entry)),
                (None, Some(refusal)) => {
                    self.fail(Failure::of_request(item.name(), &item.id, refusal));
                }
                (None, None) => {
                    let message = "the server's response does not list it";
                    self.fail(Failure::local(item.name(), &item.id, "NO_ANSWER", message));
                }
            }
        }
        self.accept(&accepted)?;
        Ok(again)
    }

    fn accept(&self, accepted: &[(&Item, Stamp)]) -> Result<(), SendError> {
        let names = accepted.iter().map(|(item, _)| (item.id.clone(), item.name()));
        self.tally.awaited.lock().extend(names);
        let bytes = accepted.iter().map(|(_, stamp)| stamp.bytes).sum();
        self.tally.accepted_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.tally.accepted_count.fetch_add(accepted.len(), Ordering::Relaxed);
        self.tally.decided.fetch_add(accepted.len(), Ordering::Relaxed);
        let Some(state) = self.state else { return Ok(()) };
        let entry = |(item, stamp): &(&Item, Stamp)| Entry::of(item, *stamp, self.maps);
        let entries: Vec<Entry> = accepted.iter().filter_map(entry).collect();
        Ok(state.append(&entries)?)
    }

    fn fail(&self, failure: Failure) {
        self.tally.failures.lock().push(failure);
        self.tally.decided.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether the error of an item is temporary, so that retrying may succeed.
fn is_passing(entry: &Value) -> bool {
    let code = entry["error_code"].as_str();
    matches!(code, Some("SERVICE_UNAVAILABLE" | "INTERNAL_SERVER_ERROR" | "RATE_LIMITED"))
}

fn open(path: &Path) -> Result<OpenFile, (&'static str, String)> {
    let unreadable = |error: std::io::Error| ("UNREADABLE_FILE", error.to_string());
    let file = File::open(path).map_err(unreadable)?;
    let stamp = Stamp::of(&file.metadata().map_err(unreadable)?);
    let limit = limits::FILE_BYTES_MAX;
    if stamp.bytes > limit as u64 {
        let mebibytes = limit >> 20;
        let message = format!(
            "{} bytes; a file must be at most {mebibytes} MiB ({limit} bytes)",
            stamp.bytes
        );
        return Err(("FILE_TOO_LARGE", message));
    }
    let filename = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    Ok(OpenFile { file, filename, stamp })
}
