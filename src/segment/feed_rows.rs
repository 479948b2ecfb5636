//! The rows of a new segment as lists are built from them.

use crate::compute::VectorRows;
use crate::compute::kmeans::CodeRows;
use crate::segment::SegmentError;
use crate::segment::feed::RowFeed;
use crate::segment::format::Header;
use crate::segment::lists::{ListSource, Older};

/// A feed whose parts are all at hand.
pub(super) struct FeedRows<'a> {
    parts: Vec<VectorRows<'a>>,
    origins: Vec<(u32, u32)>,
    dimension: usize,
    older: Option<Older>,
}

impl<'a> FeedRows<'a> {
    pub(super) fn new(feed: &'a dyn RowFeed, header: &Header) -> Result<Self, SegmentError> {
        let origin = |row| {
            let (part, row) = feed.origin(row);
            (part as u32, row)
        };
        let origins: Vec<(u32, u32)> = (0..header.rows).map(origin).collect();
        let older = feed.older_lists()?.map(|(part, lists)| {
            let list_of = lists.list_of_rows();
            let list =
                |(of, row): &(u32, u32)| (*of as usize == part).then(|| list_of[*row as usize]);
            Older { points: lists.decoded_points(), list_of: origins.iter().map(list).collect() }
        });
        Ok(Self { parts: feed.parts()?, origins, dimension: header.dimension as usize, older })
    }

    fn at(&self, row: u32) -> (&VectorRows<'a>, usize) {
        let (part, row) = self.origins[row as usize];
        (&self.parts[part as usize], row as usize)
    }
}

impl CodeRows for FeedRows<'_> {
    fn codes(&self, row: u32) -> &[i8] {
        let (rows, at) = self.at(row);
        rows.codes(at)
    }

    fn scale(&self, row: u32) -> f32 {
        let (rows, at) = self.at(row);
        rows.scale(at)
    }
}

impl ListSource for FeedRows<'_> {
    fn row_count(&self) -> usize {
        self.origins.len()
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn unit(&self, row: u32, unit: &mut [f32]) {
        let (rows, at) = self.at(row);
        rows.unit(at, unit);
    }

    fn older(&self) -> Option<&Older> {
        self.older.as_ref()
    }
}
