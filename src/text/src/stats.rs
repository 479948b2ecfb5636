//! BM25 statistics over all rows visible to a query, summed over segments.

use std::collections::HashMap;
use std::ops::AddAssign;
use std::sync::{Mutex, PoisonError};

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use tantivy::fieldnorm::FieldNormReader;

use crate::TextIndex;
use crate::index::OpenField;
use crate::mask::RowMask;
use crate::query::TextQuery;
use crate::schema::Field;

/// Number of rows of a segment from which on a word is common, so that counting it in a scope costs
/// more than caching the count.
pub(super) const COMMON_ROWS: u64 = 1024;
/// Maximum number of counts cached per scope: some 100 KiB. Common words recur soon.
const KNOWN_MAX: usize = 1024;

/// Number and lengths of a set of rows, independent of the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ScopeStats {
    /// Number of rows in the set.
    pub rows: u64,
    /// For each field, the rows that have it and their total number of terms. Lengths are those of
    /// the index, rounded down to one byte as in Lucene, so that merging cannot change them.
    pub(super) fields: [FieldStats; 3],
}

/// One field in [`ScopeStats`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct FieldStats {
    /// Number of rows whose field is not empty.
    pub rows: u64,
    /// Total number of terms in them.
    pub terms: u64,
}

impl AddAssign for ScopeStats {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        for (sum, field) in self.fields.iter_mut().zip(other.fields) {
            sum.rows += field.rows;
            sum.terms += field.terms;
        }
    }
}

/// For each term of one query, the number of rows that contain it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TermCounts(pub(super) Vec<u64>);

impl AddAssign<&Self> for TermCounts {
    /// Adds the counts of the same query in another segment.
    fn add_assign(&mut self, other: &Self) {
        if self.0.is_empty() {
            self.0.resize(other.0.len(), 0);
        }
        assert_eq!(self.0.len(), other.0.len(), "counts of one query have one length");
        for (sum, count) in self.0.iter_mut().zip(&other.0) {
            *sum += count;
        }
    }
}

/// Counts of common words in one scope of one segment, cached across queries.
#[derive(Debug, Default)]
pub struct KnownCounts(Mutex<[HashMap<String, u64>; 3]>);

impl KnownCounts {
    pub(super) fn get(&self, field: Field, term: &str) -> Option<u64> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts[field.index()].get(term).copied()
    }

    /// Caches a count; clears the cache first if it is full.
    pub(super) fn put(&self, field: Field, term: &str, count: u64) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.iter().map(HashMap::len).sum::<usize>() >= KNOWN_MAX {
            counts.iter_mut().for_each(HashMap::clear);
        }
        counts[field.index()].insert(term.to_owned(), count);
    }
}

/// Statistics of one query over every segment that it searches. Scores of different segments are
/// comparable if and only if they were computed with the same statistics.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CorpusStats {
    /// The rows in scope.
    pub scope: ScopeStats,
    /// Number of those rows that contain each term.
    pub counts: TermCounts,
}

impl CorpusStats {
    /// Adds one segment.
    pub fn add(&mut self, scope: ScopeStats, counts: &TermCounts) {
        self.scope += scope;
        self.counts += counts;
    }

    /// Whether there is one count per term of this query; counts of another query are useless.
    pub fn is_of(&self, query: &impl TextQuery) -> bool {
        self.counts.0.len() == query.clauses().len()
    }

    /// Lucene's idf: ln(1 + (N - df + 0.5) / (df + 0.5)), always above zero; 0 if no row contains
    /// the term.
    pub(super) fn idf(&self, clause: usize) -> f32 {
        match self.counts.0.get(clause) {
            None | Some(0) => 0.0,
            Some(_) => self.rarity(clause),
        }
    }

    /// Like [`Self::idf`], but greatest if no row contains the term.
    pub(super) fn rarity(&self, clause: usize) -> f32 {
        let rows = self.scope.rows as f64;
        let count = self.counts.0.get(clause).copied().unwrap_or(0) as f64;
        (((rows - count).max(0.0) + 0.5) / (count + 0.5)).ln_1p() as f32
    }

    /// Mean length of a field over the rows that have it; at least 1.
    pub(super) fn mean_length(&self, field: Field) -> f64 {
        let field = self.scope.fields[field.index()];
        (field.terms as f64 / field.rows.max(1) as f64).max(1.0)
    }
}

impl TextIndex {
    /// Computes the number and lengths of the rows in `scope` (`None`: all rows).
    pub fn scope_stats(&self, scope: Option<&RoaringBitmap>) -> ScopeStats {
        let mask = RowMask::new(self.rows(), scope);
        let fields = Field::ALL.map(|field| {
            self.field(field).map_or_else(FieldStats::default, |field| field_stats(field, &mask))
        });
        ScopeStats { rows: mask.count(), fields }
    }
}

fn field_stats(field: &OpenField, mask: &RowMask<'_>) -> FieldStats {
    let lengths = field.lengths.as_slice();
    let mut histogram = [0_u64; 256];
    mask.for_each(|row| histogram[usize::from(lengths[row as usize])] += 1);
    let terms =
        |(code, &rows): (u8, &u64)| rows * u64::from(FieldNormReader::id_to_fieldnorm(code));
    FieldStats {
        rows: histogram[1..].iter().sum(),
        terms: (0..=u8::MAX).zip(&histogram).map(terms).sum(),
    }
}
