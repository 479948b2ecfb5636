//! Pages of the sources of a scope, and their number.
//!
//! ```text
//! catalog: newest jobs that are no success -> of sources without a visible version: waiting
//!                                          -> of the others: their state
//! snapshot: visible sources in order, from the cursor on ---+--- waiting, in the same order
//!                                                         page
//! ```
//! A page reads the records of its own sources. Beside them it costs a look at each source whose
//! newest job waits, runs or has failed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::query::SourceView;
use crate::{Engine, EngineError, TenantAccess};
use lodestone_catalog::OpenSource;
use lodestone_storage::collection::{FoundSource, Snapshot};
use lodestone_types::{JobStatus, SourceId, Timestamp};

/// The place of a source in a listing: newest upload first, then by id.
type Place = (Reverse<Timestamp>, SourceId);

/// A part of a listing.
#[derive(Debug, Clone, PartialEq)]
pub struct SourcePage {
    /// The sources: newest upload first, then by id.
    pub sources: Vec<SourceView>,
    /// Sources of the whole listing.
    pub total: u64,
    /// Whether there are more behind these.
    pub has_more: bool,
}

/// Sources whose newest job is no success.
struct Open {
    /// Those without a visible version.
    waiting: Vec<(Place, JobStatus)>,
    /// Those with one.
    visible: BTreeMap<SourceId, JobStatus>,
}

impl Engine {
    /// Sources of a scope, in any state or in one; those behind the place of `after`, `limit` at
    /// most.
    ///
    /// # Errors
    /// Errors of the catalog or the disk.
    pub fn list_sources(
        &self,
        access: &TenantAccess,
        status: Option<JobStatus>,
        after: Option<(Timestamp, SourceId)>,
        limit: Option<usize>,
    ) -> Result<SourcePage, EngineError> {
        let TenantAccess { sub_tenant, collection, .. } = access;
        let (open, snapshot) = (self.open_sources(access)?, collection.snapshot());
        let open = Open::of(open, access, &snapshot);
        let total = open.total(status, snapshot.source_count(sub_tenant));
        let behind = after.as_ref().map(|(at, id)| (*at, id));
        let after = after.clone().map(|(at, id)| (Reverse(at), id));
        let mut waiting = open.places(status, access, &snapshot);
        waiting.retain(|place| after.as_ref().is_none_or(|after| place > after));
        waiting.sort_unstable();
        let mut waiting = waiting.into_iter().peekable();
        let is_listed = |found: &FoundSource<'_>| match status {
            None => true,
            Some(JobStatus::Success) => !open.is_open(found.id()),
            Some(_) => false,
        };
        let mut visible = snapshot.newest_first(sub_tenant, behind).filter(is_listed).peekable();
        let mut sources = Vec::new();
        while limit.is_none_or(|limit| sources.len() < limit) {
            let is_visible_first = match (visible.peek(), waiting.peek()) {
                (None, None) => break,
                (found, None) => found.is_some(),
                (None, Some(_)) => false,
                (Some(found), Some((at, id))) => {
                    (Reverse(found.uploaded_at()), found.id()) < (*at, id.as_str())
                }
            };
            let view = match is_visible_first {
                true => {
                    let found = visible.next().expect("it was looked at");
                    match SourceId::parse(found.id()) {
                        Ok(id) if open.visible.contains_key(&id) => self.source(access, &id)?,
                        _ => SourceView::join(Some(found), None)?,
                    }
                }
                false => {
                    let (_, id) = waiting.next().expect("it was looked at");
                    self.source(access, &id)?
                }
            };
            // One that was deleted meanwhile is left out.
            sources.extend(view);
        }
        let has_more = visible.peek().is_some() || waiting.peek().is_some();
        self.sound(collection, &snapshot, SourcePage { sources, total, has_more })
    }

    /// Every source of a scope, in every state: newest upload first, then by id.
    ///
    /// # Errors
    /// Errors of the catalog or the disk.
    pub fn sources(&self, access: &TenantAccess) -> Result<Vec<SourceView>, EngineError> {
        Ok(self.list_sources(access, None, None, None)?.sources)
    }

    /// The number of sources of a scope, in every state.
    ///
    /// # Errors
    /// Errors of the catalog.
    pub fn source_count(&self, access: &TenantAccess) -> Result<u64, EngineError> {
        let (open, snapshot) = (self.open_sources(access)?, access.collection.snapshot());
        let visible = snapshot.source_count(&access.sub_tenant);
        Ok(Open::of(open, access, &snapshot).total(None, visible))
    }

    /// To be asked before the snapshot: a job that ends meanwhile is then seen as open and as
    /// visible. The other order could show neither.
    fn open_sources(&self, access: &TenantAccess) -> Result<Vec<OpenSource>, EngineError> {
        Ok(self.catalog.open_sources(access.tenant.collection, &access.sub_tenant)?)
    }
}

impl Open {
    fn of(open: Vec<OpenSource>, access: &TenantAccess, snapshot: &Snapshot) -> Self {
        let (mut waiting, mut visible) = (Vec::new(), BTreeMap::new());
        for OpenSource { source, status, uploaded_at } in open {
            match snapshot.find(&access.sub_tenant, &source) {
                None => waiting.push(((Reverse(uploaded_at), source), status)),
                Some(_) => {
                    visible.insert(source, status);
                }
            }
        }
        Self { waiting, visible }
    }

    fn is_open(&self, id: &str) -> bool {
        SourceId::parse(id).is_ok_and(|id| self.visible.contains_key(&id))
    }

    /// The number of sources in a state, of so many visible ones.
    fn total(&self, status: Option<JobStatus>, visible: u64) -> u64 {
        let waiting = self.waiting.iter().map(|(_, status)| status);
        match status {
            None => visible + self.waiting.len() as u64,
            Some(JobStatus::Success) => visible - self.visible.len() as u64,
            Some(wanted) => {
                waiting.chain(self.visible.values()).filter(|has| **has == wanted).count() as u64
            }
        }
    }

    /// The places of those that do not come with the visible ones of a listing.
    fn places(
        &self,
        status: Option<JobStatus>,
        access: &TenantAccess,
        snapshot: &Snapshot,
    ) -> Vec<Place> {
        let is_meant = |has: &JobStatus| status.is_none_or(|wanted| wanted == *has);
        let waiting = self.waiting.iter().filter(|(_, has)| is_meant(has));
        let mut places: Vec<Place> = waiting.map(|(place, _)| place.clone()).collect();
        if status.is_some() {
            let visible = self.visible.iter().filter(|(_, has)| is_meant(has));
            places.extend(visible.filter_map(|(id, _)| {
                let found = snapshot.find(&access.sub_tenant, id)?;
                Some((Reverse(found.uploaded_at()), id.clone()))
            }));
        }
        places
    }
}
