//! Compares a run with earlier ones: items to send, items whose metadata alone changed, and items
//! that the server has unchanged.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use serde_json::{Map, Value};

use super::Named;
use super::call::CallError;
use super::failure::Failure;
use super::maps::Maps;
use super::plan::{Item, Origin};
use super::send::{SendError, Tally};
use super::server::{Server, Status};
use super::state::{Entry, State};

/// Difference between an item and its state when it was last accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing changed.
    Nothing,
    /// Only the metadata changed.
    Metadata,
    /// The item is new, changed, or a page.
    Everything,
}

/// Compares an item with its entry. Metadata that is not given counts as unchanged, because the
/// stored metadata is kept.
pub fn change(entry: Option<&Entry>, item: &Item, maps: &Maps) -> Change {
    let (Some(entry), Origin::File(path)) = (entry, &item.origin) else {
        return Change::Everything;
    };
    let has_maps = maps.document.is_some() || maps.tenant.is_some();
    match entry.is_of(path, item.stamp, maps.source_time) {
        false => Change::Everything,
        true if has_maps && entry.metadata != maps.hash => Change::Metadata,
        true => Change::Nothing,
    }
}

/// Items of a run, sorted by what has to be done.
#[derive(Debug, Default)]
pub struct Changes {
    /// Items to send.
    pub sent: Vec<Item>,
    /// Items whose metadata has to be updated.
    pub retagged: Vec<Item>,
    /// Id and name of unchanged items still being processed, which this run waits for as well.
    pub running: Vec<Named>,
    /// Metadata stored on the server for pages, by id.
    pub stored: HashMap<String, Map<String, Value>>,
}

/// Sorts the items, updates those of which only the metadata changed, and fetches the stored
/// metadata of pages, which sending them again would replace.
///
/// # Errors
/// [`SendError`] if the server or the state file fails.
pub fn settled(
    server: &Server<'_>,
    state: Option<&State>,
    maps: &Maps,
    items: Vec<Item>,
    tally: &Tally,
) -> Result<Changes, SendError> {
    let mut changes = changes(server, state, maps, items)?;
    if let Some(state) = state {
        let anew = retag(server, state, maps, &changes.retagged, tally)?;
        changes.running.extend(anew);
    }
    let pages = changes.sent.iter().filter(|item| matches!(item.origin, Origin::Page(_)));
    let pages: Vec<&str> = pages.map(|item| item.id.as_str()).collect();
    if !pages.is_empty() {
        changes.stored = server.stored_maps(&pages)?;
    }
    Ok(changes)
}

/// Sorts items. An item is skipped if an earlier run sent it, it is unchanged, and the server still
/// has it without an error.
///
/// # Errors
/// [`CallError`] if the server fails.
pub fn changes(
    server: &Server<'_>,
    state: Option<&State>,
    maps: &Maps,
    items: Vec<Item>,
) -> Result<Changes, CallError> {
    let Some(state) = state else { return Ok(Changes { sent: items, ..Changes::default() }) };
    let of = |item: &Item| change(state.entry(&item.id), item, maps);
    let known = items.iter().filter(|item| of(item) != Change::Everything);
    let known: Vec<&str> = known.map(|item| item.id.as_str()).collect();
    if known.is_empty() {
        return Ok(Changes { sent: items, ..Changes::default() });
    }
    let kept = server.sources(&known)?;
    let mut changes = Changes::default();
    for item in items {
        match (kept.get(&item.id).map(|found| found.status), of(&item)) {
            (Some(Status::Success), Change::Nothing) => {}
            (Some(Status::Success), Change::Metadata) => changes.retagged.push(item),
            (Some(Status::Pending), Change::Nothing) => {
                changes.running.push((item.id.clone(), item.name()));
            }
            _ => changes.sent.push(item),
        }
    }
    Ok(changes)
}

/// Updates the metadata of items one by one; returns those that are processed again as a result.
///
/// # Errors
/// [`SendError`]; updates made before it are recorded.
pub fn retag(
    server: &Server<'_>,
    state: &State,
    maps: &Maps,
    items: &[Item],
    tally: &Tally,
) -> Result<Vec<Named>, SendError> {
    let (given, mut running) = (maps.given(), Vec::new());
    for item in items {
        match server.update_metadata(&item.id, &given) {
            Ok(status) => {
                if status == Status::Pending {
                    running.push((item.id.clone(), item.name()));
                }
                let entry = Entry::of(item, item.stamp, maps);
                state.append(entry.as_slice())?;
                tally.retagged_count.fetch_add(1, Ordering::Relaxed);
            }
            // Deleted in the meantime, or in conflict with the schema: a failure of this item only.
            Err(CallError::Refused(body))
                if !body.ends_the_run() || body.reason == "source_not_found" =>
            {
                let failure = Failure::of_request(item.name(), &item.id, &body);
                tally.failures.lock().push(failure);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(running)
}
