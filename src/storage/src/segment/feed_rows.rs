//! The rows of a new segment as the input of building lists.

use crate::segment::SegmentError;
use crate::segment::format::Header;
use crate::segment::lists::{ListSource, Older};
use crate::segment::row_feed::RowFeed;
use lodestone_compute::kmeans::{Centroids, CodeRows, HeldRows, TakeNearest};
use lodestone_compute::one_bit::ListUnits;
use lodestone_compute::rotation::Rotation;
use lodestone_compute::{ComputeBackend, VectorRows};

/// A feed with its vectors opened.
pub(super) struct FeedRows<'a> {
    backend: &'a dyn ComputeBackend,
    /// The rows on a device that finds the points near them in less time, if there is one.
    held: Option<Box<dyn HeldRows>>,
    parts: Vec<VectorRows<'a>>,
    origins: Vec<(u32, u32)>,
    dimension: usize,
    older: Option<Older>,
}

impl<'a> FeedRows<'a> {
    pub(super) fn new(
        feed: &'a dyn RowFeed,
        header: &Header,
        backend: &'a dyn ComputeBackend,
    ) -> Result<Self, SegmentError> {
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
        let (parts, dimension) = (feed.parts()?, header.dimension as usize);
        let mut rows = Self { backend, held: None, parts, origins, dimension, older };
        rows.held = backend.hold_rows(&rows, rows.origins.len());
        Ok(rows)
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

    fn assign(
        &self,
        points: &Centroids,
        listed: &[u32],
        nearest: usize,
        take: &mut TakeNearest<'_>,
    ) {
        match self.held.as_ref().and_then(|held| held.nearest(points, listed, nearest)) {
            Some(found) => found.rows().enumerate().for_each(|(at, best)| take(at, best)),
            None => points.assign(self, listed, nearest, take),
        }
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

    fn encode_one_bit(&self, rotation: &Rotation, lists: &[ListUnits<'_>]) -> Vec<u8> {
        self.backend.encode_one_bit(rotation, lists)
    }
}
