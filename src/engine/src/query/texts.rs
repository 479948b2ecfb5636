//! Texts of the rows of a search.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::query::QueryError;
use crate::query::legs::{RowAddress, SegmentScope};
use lodestone_storage::segment::TextReader;

/// Reads the texts of rows, with one reader per segment that is kept for further rows.
#[derive(Debug)]
pub(super) struct Texts<'a> {
    segments: &'a [SegmentScope],
    readers: RefCell<BTreeMap<usize, TextReader<'a>>>,
}

impl<'a> Texts<'a> {
    pub(super) fn of(segments: &'a [SegmentScope]) -> Self {
        Self { segments, readers: RefCell::default() }
    }

    pub(super) fn text(&self, address: RowAddress) -> Result<String, QueryError> {
        let mut readers = self.readers.borrow_mut();
        let reader = match readers.entry(address.segment) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(self.segments[address.segment].live.segment.texts()?),
        };
        Ok(reader.text(address.row)?)
    }
}
