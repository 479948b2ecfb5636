//! BM25, one term at a time into one sum a row.
//!
//! score(row) = sum over terms of weight x idf x tf / (tf + k1 (1 - b + b length / mean length)),
//! Robertson and Zaragoza 2009 in the form of Lucene 8 and later, which leaves out the constant
//! factor k1 + 1. Every row adds its terms in the order of the query, in f32, so the same row has
//! the same score, bit for bit, in whatever segment it lies.

use roaring::RoaringBitmap;
use tantivy::Term;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::BlockSegmentPostings;
use tantivy::schema::IndexRecordOption;

use crate::index::OpenField;
use crate::mask::{RowMask, has};
use crate::phrase::Phrase;
use crate::query::{Clause, Operator, TITLE_WEIGHT};
use crate::schema::Field;
use crate::stats::{CorpusStats, TermCounts};
use crate::{TextError, TextIndex, TextQuery};
use lodestone_types::{Hit, RowId, by_rank};

/// Saturation of the term frequency (RETRIEVAL.md: the reference runs).
const K1: f64 = 0.9;
/// Share of the length normalisation (RETRIEVAL.md: the reference runs).
const B: f64 = 0.4;

/// A row per this many postings or fewer is looked up by itself rather than scanned for.
const SEEK_RATIO: u64 = 32;

/// Scores of the rows of one segment.
#[derive(Debug, Clone, Default)]
pub struct RowScores {
    /// By row; 0 where nothing matches.
    scores: Vec<f32>,
}

impl RowScores {
    /// The best `k` rows, best first, equal scores by ascending row.
    pub fn top(&self, k: usize) -> Vec<Hit> {
        if k == 0 {
            return Vec::new();
        }
        let capacity = (2 * k).max(64);
        let mut hits: Vec<Hit> = Vec::with_capacity(capacity.min(self.scores.len()));
        // A row that only equals the last of the best comes after it.
        let mut bound = 0.0;
        for (row, &score) in self.scores.iter().enumerate() {
            if score <= bound {
                continue;
            }
            hits.push(Hit { row: RowId(row as u32), score });
            if hits.len() == capacity {
                hits.select_nth_unstable_by(k - 1, by_rank);
                hits.truncate(k);
                bound = hits[k - 1].score;
            }
        }
        hits.sort_unstable_by(by_rank);
        hits.truncate(k);
        hits
    }

    /// The score of a row; 0 if it does not match.
    pub fn get(&self, row: RowId) -> f32 {
        self.scores.get(row.0 as usize).copied().unwrap_or(0.0)
    }
}

impl TextIndex {
    /// For each term of the query the rows of `scope` (None: all rows) that hold it.
    ///
    /// # Errors
    /// [`TextError::Damaged`] if postings cannot be read.
    pub fn term_counts<Q: TextQuery>(
        &self,
        query: &Q,
        scope: Option<&RoaringBitmap>,
    ) -> Result<TermCounts, TextError> {
        let mask = RowMask::new(self.rows(), [scope, None]);
        let count = |clause: &Clause| match self.field(clause.field) {
            Some(field) if mask.count() > 0 => count(field, clause, &mask),
            _ => Ok(0),
        };
        query.clauses().iter().map(count).collect::<Result<_, _>>().map(TermCounts)
    }

    /// Scores the rows that are in both masks (None: all rows). `stats` cover every segment of
    /// the scope; `candidates` narrows what is scored without a change to any score.
    ///
    /// # Errors
    /// [`TextError::Damaged`] if postings cannot be read.
    pub fn score<Q: TextQuery>(
        &self,
        query: &Q,
        stats: &CorpusStats,
        scope: Option<&RoaringBitmap>,
        candidates: Option<&RoaringBitmap>,
    ) -> Result<RowScores, TextError> {
        let mask = RowMask::new(self.rows(), [scope, candidates]);
        let clauses = query.clauses();
        if mask.count() == 0 || clauses.is_empty() {
            return Ok(RowScores::default());
        }
        let needed = match query.operator() {
            Operator::And => clauses.len(),
            Operator::Or => 0,
        };
        let every = RowMask::new(self.rows(), [None, None]);
        let scanned = if mask.is_dense(self.rows()) { &every } else { &mask };
        let mut sums = Sums::new(self.rows() as usize, needed);
        let norms = Field::ALL.map(|field| norms(stats.mean_length(field)));
        for (at, clause) in clauses.iter().enumerate() {
            let weight = clause.weight * stats.idf(at);
            if weight == 0.0 {
                continue;
            }
            let field = (clause.field, clause.length, weight);
            let title = (Field::Title, Field::Title, weight * TITLE_WEIGHT);
            let looked_at = if clause.is_in_title { &[field, title][..] } else { &[field] };
            for &(field, length, weight) in looked_at {
                let (Some(postings), Some(lengths)) = (self.field(field), self.field(length))
                else {
                    continue;
                };
                let (lengths, norms) = (lengths.lengths.as_slice(), &norms[length.index()]);
                each_posting(postings, field, &clause.terms, scanned, |row, frequency| {
                    sums.add(row, frequency as f32, weight, lengths, norms);
                })?;
            }
        }
        Ok(sums.finish(&mask))
    }
}

/// The sums of one search while its terms are added.
struct Sums {
    scores: Vec<f32>,
    /// Clauses that occur in each row; empty if one is enough.
    occurring: Vec<u16>,
    needed: u16,
}

impl Sums {
    fn new(rows: usize, needed: usize) -> Self {
        let needed = u16::try_from(needed).expect("a query has a bounded number of clauses");
        let occurring = vec![0; if needed > 1 { rows } else { 0 }];
        Self { scores: vec![0.0; rows], occurring, needed }
    }

    #[inline]
    fn add(&mut self, row: u32, tf: f32, weight: f32, lengths: &[u8], norms: &[f32; 256]) {
        let row = row as usize;
        // A row outside of the index comes from damage; it is left out.
        let (Some(score), Some(&length)) = (self.scores.get_mut(row), lengths.get(row)) else {
            return;
        };
        *score += weight * (tf / (tf + norms[usize::from(length)]));
        if let Some(occurring) = self.occurring.get_mut(row) {
            *occurring += 1;
        }
    }

    fn finish(mut self, mask: &RowMask) -> RowScores {
        for (scores, word) in self.scores.chunks_mut(64).zip(mask.bits().unwrap_or_default()) {
            for (at, score) in scores.iter_mut().enumerate() {
                *score = if word >> at & 1 == 1 { *score } else { 0.0 };
            }
        }
        for (score, occurring) in self.scores.iter_mut().zip(&self.occurring) {
            if *occurring < self.needed {
                *score = 0.0;
            }
        }
        RowScores { scores: self.scores }
    }
}

/// k1 (1 - b + b length / mean) for each of the 256 codes of a length.
fn norms(mean_length: f64) -> [f32; 256] {
    std::array::from_fn(|code| {
        let length = f64::from(FieldNormReader::id_to_fieldnorm(code as u8));
        (K1 * (1.0 - B + B * length / mean_length)) as f32
    })
}

fn count(field: &OpenField, clause: &Clause, mask: &RowMask) -> Result<u64, TextError> {
    if let ([term], None) = (clause.terms.as_slice(), mask.bits()) {
        let term = Term::from_field_text(clause.field.column(), term);
        return field.postings.doc_freq(&term).map(u64::from).map_err(TextError::damaged);
    }
    let mut rows = 0;
    match mask.bits() {
        Some(bits) if mask.is_dense(field.lengths.len() as u32) => {
            let every = RowMask::new(field.lengths.len() as u32, [None, None]);
            each_posting(field, clause.field, &clause.terms, &every, |row, _| {
                rows += u64::from(has(bits, row));
            })?;
        }
        _ => each_posting(field, clause.field, &clause.terms, mask, |_, _| rows += 1)?,
    }
    Ok(rows)
}

/// Calls `each` with every row of the mask that holds the term or phrase, and how often.
fn each_posting(
    field: &OpenField,
    name: Field,
    terms: &[String],
    mask: &RowMask,
    mut each: impl FnMut(u32, u32),
) -> Result<(), TextError> {
    let term = |text: &String| Term::from_field_text(name.column(), text);
    let [single] = terms else {
        if let Some(phrase) = Phrase::open(&field.postings, terms.iter().map(term))? {
            phrase.for_each(mask.bits(), each);
        }
        return Ok(());
    };
    let option = IndexRecordOption::WithFreqs;
    let found = field.postings.read_block_postings(&term(single), option);
    let Some(mut postings) = found.map_err(TextError::damaged)? else { return Ok(()) };
    match mask.bits() {
        None => scan(&mut postings, |_| true, each),
        Some(_) if mask.count() * SEEK_RATIO < u64::from(postings.doc_freq()) => {
            mask.for_each(field.lengths.len() as u32, |row| {
                let at = postings.seek(row);
                if postings.doc(at) == row {
                    each(row, postings.freq(at));
                }
            });
        }
        Some(bits) => scan(&mut postings, |row| has(bits, row), each),
    }
    Ok(())
}

fn scan(
    postings: &mut BlockSegmentPostings,
    is_in: impl Fn(u32) -> bool,
    mut each: impl FnMut(u32, u32),
) {
    while !postings.docs().is_empty() {
        for (&row, &frequency) in postings.docs().iter().zip(postings.freqs()) {
            if is_in(row) {
                each(row, frequency);
            }
        }
        postings.advance();
    }
}
