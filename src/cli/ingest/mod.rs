//! `lodestone ingest`: uploads files, folders and web pages to a running server over its public
//! API.
//!
//! ```text
//! arguments -> plan -> what an earlier run had accepted? -> batches -> upload -> state file
//!                      (state file, then the server)        (jobs at a time)       |
//!                                          summary, exit code <- wait until processed
//! ```
//!
//! Interrupting it at any point loses nothing: items that the server accepted are in the state
//! file, and any others are sent again under the same id, which replaces and never duplicates.
//!
//! - `options`: the flags; `plan`: files and pages to send; `ids`: file ids derived from paths
//! - `state`: accepted items; `changes`: differences from earlier runs; `batch`: items of one
//!   request; `maps`: their metadata
//! - `form`: a request body read from disk; `call`: retries until there is an answer
//! - `server`: operations of the server; `send`: uploading; `wait`: waiting for processing
//! - `delete`: sources whose files are gone
//! - `stop`: Ctrl-C; `progress`: the bar or log lines; `summary`: the result; `failure`: an item
//!   that failed

mod batch;
pub mod call;
mod changes;
mod delete;
mod failure;
pub mod form;
mod ids;
mod maps;
mod options;
mod plan;
mod progress;
pub mod send;
pub mod server;
mod state;
pub mod stop;
pub mod summary;
#[cfg(test)]
mod tests;
mod wait;

pub use options::IngestOptions;
pub use wait::wait;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Instant;

use lodestone_types::limits;
use serde_json::{Map, Value, json};

use crate::cli::client::connection::Connection;
use call::{CallError, Caller, FIRST_ATTEMPTS_MAX, LOST_ATTEMPTS_MAX};
use changes::{Change, Changes, change};
use maps::Maps;
use plan::{Filters, Item, Plan};
use progress::Progress;
use send::{SendError, Sender, Tally};
use server::Server;
use state::State;
use stop::{EXIT_INTERRUPTED, HOW_TO_RESUME, Pause as _, Stop};
use summary::{Deleted, Summary};

/// Exit code if something failed, as listed in the summary.
const EXIT_FAILED: u8 = 1;
/// Exit code if the command is invalid or nothing could be done.
const EXIT_NOTHING_DONE: u8 = 2;

/// Id and name of a source.
type Named = (String, String);

/// Sends what the arguments name, and prints the summary.
pub fn run(options: &IngestOptions) -> ExitCode {
    match ingest(options) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("lodestone: {error}");
            ExitCode::from(EXIT_NOTHING_DONE)
        }
    }
}

fn ingest(options: &IngestOptions) -> Result<u8, Box<dyn Error>> {
    let begun = Instant::now();
    let connection = Connection::new(&options.server)?;
    let maps = maps(options)?;
    let state_path = state_path(options, &connection)?;
    let filters = Filters::new(&options.include, &options.exclude)?;
    let plan = plan::plan(&options.inputs, &filters, plan::FILES_MAX)?;
    // An empty folder may still have sources to delete; a missing folder is a failure.
    if plan.items.is_empty() && plan.failures.is_empty() && !options.delete {
        return Err("nothing to send: all files are hidden or excluded".into());
    }
    if options.dry_run {
        return dry_run(options, &plan, state_path.as_deref(), &maps);
    }
    let state = state_path.as_deref().map(State::open).transpose()?;
    let stop = stop::at_interrupt()?;
    let (state, maps, stop) = (state.as_ref(), &maps, &stop);
    let run = Run { options, connection: &connection, state, maps, stop };
    let mut summary = match run.send(plan) {
        Err(_) if stop.is_stopped() => {
            eprintln!("lodestone: {HOW_TO_RESUME}");
            return Ok(EXIT_INTERRUPTED);
        }
        summary => summary?,
    };
    summary.seconds = begun.elapsed().as_secs_f64();
    if connection.is_json {
        println!("{}", serde_json::to_string_pretty(&summary)?);
    } else {
        println!("{}", summary.to_string().trim_end());
    }
    if summary.interrupted {
        eprintln!("lodestone: {HOW_TO_RESUME}");
    } else if let Some(reason) = &summary.ended_by {
        eprintln!("lodestone: {reason}; run the same command again to send the rest");
    }
    Ok(exit_code(&summary))
}

fn exit_code(summary: &Summary) -> u8 {
    match (summary.interrupted, &summary.ended_by) {
        (true, _) => EXIT_INTERRUPTED,
        (false, Some(_)) if summary.sent == 0 => EXIT_NOTHING_DONE,
        (false, Some(_)) => EXIT_FAILED,
        (false, None) => u8::from(!summary.failed.is_empty()) * EXIT_FAILED,
    }
}

fn told(address: &str, error: SendError) -> String {
    match error {
        SendError::Call(error) => explain(address, &error),
        SendError::State(error) => error.to_string(),
    }
}

/// One run against one server.
struct Run<'a> {
    options: &'a IngestOptions,
    connection: &'a Connection,
    state: Option<&'a State>,
    maps: &'a Maps,
    stop: &'a Stop,
}

impl Run<'_> {
    fn send(&self, plan: Plan) -> Result<Summary, Box<dyn Error>> {
        let address = self.connection.server();
        let Plan { items, left_out, failures } = plan;
        let found = items.len();
        let gone = match (self.options.delete, self.state) {
            (true, Some(state)) => delete::confirmed(state.entries(), self.options, &items)?,
            _ => Vec::new(),
        };
        let tally = Tally::default();
        let quiet = |_: &str| {};
        let mut caller = Caller {
            transport: self.connection.http(),
            pause: self.stop,
            lost_attempts_max: FIRST_ATTEMPTS_MAX,
            sent_bytes: &tally.sent_bytes,
            note: &quiet,
        };
        let (tenant, sub_tenant) = (self.connection.tenant()?, self.connection.sub_tenant());
        let server = |caller| Server { caller, tenant, sub_tenant };
        server(caller).sources(&[]).map_err(|error| explain(address, &error))?;
        caller.lost_attempts_max = LOST_ATTEMPTS_MAX;
        let changes = changes::settled(&server(caller), self.state, self.maps, items, &tally);
        let Changes { sent: items, retagged, running, stored } =
            changes.map_err(|error| told(address, error))?;
        tally.failures.lock().extend(failures);

        let (to_send, is_waiting) = (items.len(), !self.options.no_wait);
        let total = to_send + if is_waiting { running.len() } else { 0 };
        tally.awaited.lock().extend(running);
        let batches = batch::batches(items);
        let progress = Progress::new(to_send, total, is_waiting);
        let note = |text: &str| progress.note(text);
        caller.note = &note;
        let halt = || self.stop.throw();
        let sender = Sender {
            server: server(caller),
            state: self.state,
            maps: self.maps,
            stored: &stored,
            tally: &tally,
            halt: &halt,
        };
        let finished = Stop::default();
        let watcher = Caller { pause: &finished, lost_attempts_max: 1, note: &quiet, ..caller };
        let processed = std::thread::scope(|scope| {
            scope.spawn(|| watch(&server(watcher), &progress, &tally, &finished));
            sender.send_all(&batches, usize::from(self.options.jobs));
            let processed = self.wait(&sender.server, &tally, is_waiting);
            finished.throw();
            processed
        });
        progress.finish();
        let deleted_sources = self.delete(&sender.server, &tally, &gone);
        let decided = tally.decided.load(Ordering::Relaxed);
        let ended_by = tally.ended_by.lock().take();
        let interrupted = matches!(ended_by, Some(SendError::Call(CallError::Stopped)));
        Ok(Summary {
            found,
            skipped_unchanged: found - to_send - retagged.len(),
            left_out,
            processed,
            deleted: deleted_sources.len(),
            deleted_sources,
            not_sent: to_send.saturating_sub(decided),
            ended_by: ended_by.map(|error| told(address, error)),
            interrupted,
            ..tally.summary()
        })
    }

    /// Deletes sources whose files are gone and returns them; does nothing if the run has already
    /// ended with an error.
    fn delete(&self, server: &Server<'_>, tally: &Tally, gone: &[state::Entry]) -> Vec<Deleted> {
        let mut deleted = Vec::new();
        if let Some(state) = self.state.filter(|_| tally.ended_by.lock().is_none())
            && let Err(error) = delete::delete(server, state, gone, &mut deleted)
        {
            *tally.ended_by.lock() = Some(error);
        }
        deleted
    }

    /// Waits for processing and returns the number of successes; `None` if waiting was not
    /// requested or an error ended the run.
    fn wait(&self, server: &Server<'_>, tally: &Tally, is_waiting: bool) -> Option<usize> {
        if !is_waiting || tally.ended_by.lock().is_some() {
            return None;
        }
        let awaited = tally.awaited.lock().clone();
        match wait::wait(server, &awaited, tally) {
            Ok(succeeded) => Some(succeeded),
            Err(error) => {
                *tally.ended_by.lock() = Some(error.into());
                None
            }
        }
    }
}

/// Shows progress until the run has finished. How many accepted items are processed follows from
/// the server's queue; as jobs of others in the same scope are included, it is a lower bound.
fn watch(server: &Server<'_>, progress: &Progress, tally: &Tally, finished: &Stop) {
    while finished.pause(progress.tick()) {
        let awaited = tally.awaited.lock().len();
        if awaited > 0
            && let Ok(outstanding) = server.outstanding(&|reason| progress.note(reason))
        {
            let processed = awaited.saturating_sub(outstanding);
            tally.processed.fetch_max(processed, Ordering::Relaxed);
        }
        progress.show(tally);
    }
}

/// Formats an error as one line for the user.
fn explain(address: &str, error: &CallError) -> String {
    match error {
        CallError::Stopped => "stopped".to_owned(),
        CallError::Unreachable { .. } => {
            format!("{address}: {error}; is a server running there?")
        }
        CallError::Refused(body) => match body.status {
            401 => {
                format!("{body}; set a key with LODESTONE_API_KEY, --api-key-file or a profile")
            }
            403 => format!("{body}; the key needs the role write"),
            _ => format!("{address}: {body}"),
        },
    }
}

fn maps(options: &IngestOptions) -> Result<Maps, Box<dyn Error>> {
    let document = options.metadata.as_deref().map(|text| map("--metadata", text)).transpose()?;
    let tenant = options.tenant_metadata.as_deref();
    let tenant = tenant.map(|text| map("--tenant-metadata", text)).transpose()?;
    let hash = state::hash(&json!([document, tenant]).to_string());
    Ok(Maps { document, tenant, source_time: options.source_time, hash })
}

/// Parses a JSON object from a flag, or from the file that it names.
fn map(flag: &str, text: &str) -> Result<Map<String, Value>, Box<dyn Error>> {
    let text = match text.strip_prefix('@') {
        None => text.to_owned(),
        Some(path) => {
            std::fs::read_to_string(path).map_err(|error| format!("{flag} {path}: {error}"))?
        }
    };
    if text.len() > limits::METADATA_BYTES_MAX {
        let limit = limits::METADATA_BYTES_MAX;
        return Err(format!("{flag}: {} bytes; at most {limit} are allowed", text.len()).into());
    }
    let map = serde_json::from_str(&text)
        .map_err(|error| format!("{flag}: must be a JSON object: {error}"))?;
    Ok(map)
}

fn state_path(
    options: &IngestOptions,
    connection: &Connection,
) -> Result<Option<PathBuf>, Box<dyn Error>> {
    match (&options.state, options.no_state) {
        (_, true) => Ok(None),
        (Some(path), false) => Ok(Some(path.clone())),
        (None, false) => {
            // An absent sub-tenant means `default`.
            let named = Some(connection.sub_tenant()).filter(|name| !name.is_empty());
            let scope = [connection.server(), connection.tenant()?, named.unwrap_or("default")];
            let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
            Ok(Some(state::default_path(variable, scope)?))
        }
    }
}

/// Prints what would be sent, as far as the client can tell.
fn dry_run(
    options: &IngestOptions,
    plan: &Plan,
    state: Option<&Path>,
    maps: &Maps,
) -> Result<u8, Box<dyn Error>> {
    let known = state.map(state::peek).transpose()?.unwrap_or_default();
    let of = |wanted: Change| -> Vec<&Item> {
        let is_it = |item: &&Item| change(known.get(&item.id), item, maps) == wanted;
        plan.items.iter().filter(is_it).collect()
    };
    let (items, retagged) = (of(Change::Everything), of(Change::Metadata));
    let unchanged = plan.items.len() - items.len() - retagged.len();
    let gone = match options.delete {
        true => delete::gone(&known, &options.inputs, &plan.items),
        false => Vec::new(),
    };
    if options.server.json {
        let entry = |item: &&Item| {
            let (id, bytes) = (&item.id, item.stamp.bytes);
            json!({"name": item.name(), "file_id": id, "bytes": bytes})
        };
        let entries: Vec<Value> = items.iter().map(entry).collect();
        let report = json!({
            "would_send": entries, "skipped_unchanged": unchanged,
            "would_update_metadata": retagged.iter().map(|item| &item.id).collect::<Vec<_>>(),
            "would_delete": gone.iter().map(|entry| &entry.file_id).collect::<Vec<_>>(),
            "left_out": plan.left_out, "failed": plan.failures,
        });
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        for item in &items {
            println!("{}  as  {}", item.name(), item.id);
        }
        for entry in &gone {
            println!("{}  no longer exists: would delete {}", entry.path, entry.file_id);
        }
        for failure in &plan.failures {
            println!("failed  {failure}");
        }
        let (sent, updated) = (items.len(), retagged.len());
        println!("would send {sent}, metadata only of {updated}, unchanged {unchanged}");
    }
    Ok(u8::from(!plan.failures.is_empty()) * EXIT_FAILED)
}
