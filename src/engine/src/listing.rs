//! Lists and counts the sources of a scope.
//!
//! ```text
//! catalog: newest jobs that are not successful -> of sources without a visible version: waiting
//!                                              -> of the others: their state
//! snapshot: visible sources in order, from the cursor on ---+--- waiting, in the same order
//!                                                         page
//! ```
//! A page reads only the records of its own sources. In addition it costs a lookup for each source
//! whose newest job is queued, in progress or failed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use crate::query::SourceView;
use crate::{Engine, EngineError, TenantAccess};
use lodestone_catalog::OpenSource;
use lodestone_storage::collection::{FoundSource, Snapshot};
use lodestone_types::{JobStatus, SourceId, Timestamp};

/// Sort key of a source in a listing: newest upload first, then by id.
type ListingKey = (Reverse<Timestamp>, SourceId);

/// One page of a listing.
#[derive(Debug, Clone, PartialEq)]
pub struct SourcePage {
    /// The sources: newest upload first, then by id.
    pub sources: Vec<SourceView>,
    /// Number of sources in the whole listing.
    pub total: u64,
    /// Whether more sources follow in the direction of the page.
    pub has_more: bool,
}

/// Sources whose newest job is not successful.
struct Open {
    /// Sources without a visible version.
    waiting: Vec<(ListingKey, JobStatus)>,
    /// Sources with a visible version.
    visible: BTreeMap<SourceId, JobStatus>,
}

/// Selects a page of a listing.
#[derive(Debug, Clone, PartialEq)]
pub enum Span {
    /// The sources after a position; `None` starts at the newest.
    After(Option<(Timestamp, SourceId)>),
    /// The last sources before a position; `None` ends at the oldest. Costs a step for every source
    /// that precedes them.
    Before(Option<(Timestamp, SourceId)>),
}

/// Numbers of sources by the state of their newest job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceCounts {
    /// Queued or in progress.
    pub waiting: u64,
    /// Processed successfully.
    pub success: u64,
    /// Failed.
    pub errored: u64,
}

/// A source of a listing whose record has not been read yet.
enum Listed<'a> {
    Visible(FoundSource<'a>),
    Waiting(ListingKey),
}

impl Listed<'_> {
    fn is_before(&self, (at, id): &ListingKey) -> bool {
        match self {
            Self::Visible(found) => (Reverse(found.uploaded_at()), found.id()) < (*at, id.as_str()),
            Self::Waiting(place) => *place < (*at, id.clone()),
        }
    }
}

impl Engine {
    /// Lists at most `limit` sources of a scope, in any state or in one, that follow the position
    /// `after`.
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
        let states = status.as_ref().map(std::slice::from_ref);
        self.source_page(access, states, &Span::After(after), limit.unwrap_or(usize::MAX))
    }

    /// Lists a page of the sources of a scope, in any state or in some of them.
    ///
    /// # Errors
    /// Errors of the catalog or the disk.
    pub fn source_page(
        &self,
        access: &TenantAccess,
        states: Option<&[JobStatus]>,
        span: &Span,
        limit: usize,
    ) -> Result<SourcePage, EngineError> {
        let TenantAccess { sub_tenant, collection, .. } = access;
        let (open, snapshot) = (self.open_sources(access)?, collection.snapshot());
        let open = Open::of(open, access, &snapshot);
        let total = open.total(states, snapshot.source_count(sub_tenant));
        let from = match span {
            Span::After(after) => after.as_ref(),
            Span::Before(_) => None,
        };
        let after = from.cloned().map(|(at, id)| (Reverse(at), id));
        let mut waiting = open.places(states, access, &snapshot);
        waiting.retain(|place| after.as_ref().is_none_or(|after| place > after));
        waiting.sort_unstable();
        let is_listed = |found: &FoundSource<'_>| {
            let is_success = || !open.is_open(found.id());
            states.is_none_or(|states| states.contains(&JobStatus::Success) && is_success())
        };
        let visible = snapshot.newest_first(sub_tenant, from.map(|(at, id)| (*at, id)));
        let visible = visible.filter(is_listed);
        let mut listed = merged(visible, waiting);
        let mut sources = Vec::new();
        let has_more = match span {
            Span::After(_) => {
                while sources.len() < limit
                    && let Some(one) = listed.next()
                {
                    // A source that was deleted in the meantime is left out.
                    sources.extend(self.view_of(access, &open, one)?);
                }
                listed.next().is_some()
            }
            Span::Before(end) => {
                let end = end.clone().map(|(at, id)| (Reverse(at), id));
                let (mut last, mut has_more) = (VecDeque::new(), false);
                for one in
                    listed.take_while(|one| end.as_ref().is_none_or(|end| one.is_before(end)))
                {
                    last.push_back(one);
                    if last.len() > limit {
                        last.pop_front();
                        has_more = true;
                    }
                }
                for one in last {
                    sources.extend(self.view_of(access, &open, one)?);
                }
                has_more
            }
        };
        self.sound(collection, &snapshot, SourcePage { sources, total, has_more })
    }

    fn view_of(
        &self,
        access: &TenantAccess,
        open: &Open,
        listed: Listed<'_>,
    ) -> Result<Option<SourceView>, EngineError> {
        match listed {
            Listed::Waiting((_, id)) => self.source(access, &id),
            Listed::Visible(found) => match SourceId::parse(found.id()) {
                Ok(id) if open.visible.contains_key(&id) => self.source(access, &id),
                _ => Ok(SourceView::join(&access.context, Some(found), None)?),
            },
        }
    }

    /// Counts the sources of a scope by their states.
    ///
    /// # Errors
    /// Errors of the catalog.
    pub fn source_counts(&self, access: &TenantAccess) -> Result<SourceCounts, EngineError> {
        let (open, snapshot) = (self.open_sources(access)?, access.collection.snapshot());
        let open = Open::of(open, access, &snapshot);
        let visible = snapshot.source_count(&access.sub_tenant);
        let of = |states: &[JobStatus]| open.total(Some(states), visible);
        Ok(SourceCounts {
            waiting: of(&[JobStatus::Queued, JobStatus::InProgress]),
            success: of(&[JobStatus::Success]),
            errored: of(&[JobStatus::Errored]),
        })
    }

    /// Counts the sources of a scope, in any state.
    ///
    /// # Errors
    /// Errors of the catalog.
    pub fn source_count(&self, access: &TenantAccess) -> Result<u64, EngineError> {
        let (open, snapshot) = (self.open_sources(access)?, access.collection.snapshot());
        let visible = snapshot.source_count(&access.sub_tenant);
        Ok(Open::of(open, access, &snapshot).total(None, visible))
    }

    /// Reads the open jobs. Must be called before the snapshot is taken: a job that ends in between
    /// then shows up both here and in the snapshot, while in the other order it might be in
    /// neither.
    fn open_sources(&self, access: &TenantAccess) -> Result<Vec<OpenSource>, EngineError> {
        Ok(self.catalog.open_sources(access.tenant.collection, &access.sub_tenant)?)
    }
}

/// Merges both kinds of sources, each sorted, into the order of listings.
fn merged<'a>(
    visible: impl Iterator<Item = FoundSource<'a>>,
    waiting: Vec<ListingKey>,
) -> impl Iterator<Item = Listed<'a>> {
    let (mut visible, mut waiting) = (visible.peekable(), waiting.into_iter().peekable());
    std::iter::from_fn(move || {
        let is_visible_first = match (visible.peek(), waiting.peek()) {
            (None, None) => return None,
            (found, None) => found.is_some(),
            (None, Some(_)) => false,
            (Some(found), Some((at, id))) => {
                (Reverse(found.uploaded_at()), found.id()) < (*at, id.as_str())
            }
        };
        match is_visible_first {
            true => visible.next().map(Listed::Visible),
            false => waiting.next().map(Listed::Waiting),
        }
    })
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

    /// The number of sources in any of these states, given the number of visible sources.
    fn total(&self, states: Option<&[JobStatus]>, visible: u64) -> u64 {
        let Some(states) = states else { return visible + self.waiting.len() as u64 };
        let waiting = self.waiting.iter().map(|(_, status)| status);
        let open = waiting.chain(self.visible.values()).filter(|has| states.contains(has));
        let success = match states.contains(&JobStatus::Success) {
            true => visible - self.visible.len() as u64,
            false => 0,
        };
        success + open.count() as u64
    }

    /// Sort keys of the sources that the snapshot's own listing does not provide for these states.
    fn places(
        &self,
        states: Option<&[JobStatus]>,
        access: &TenantAccess,
        snapshot: &Snapshot,
    ) -> Vec<ListingKey> {
        let is_meant = |has: &JobStatus| states.is_none_or(|states| states.contains(has));
        let waiting = self.waiting.iter().filter(|(_, has)| is_meant(has));
        let mut places: Vec<ListingKey> = waiting.map(|(place, _)| place.clone()).collect();
        if states.is_some() {
            let visible = self.visible.iter().filter(|(_, has)| is_meant(has));
            places.extend(visible.filter_map(|(id, _)| {
                let found = snapshot.find(&access.sub_tenant, id)?;
                Some((Reverse(found.uploaded_at()), id.clone()))
            }));
        }
        places
    }
}
