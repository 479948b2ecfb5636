//! BM25, computed window by window over the rows, and term by term within a window.
//!
//! score(row) = sum over terms of weight x idf x tf / (tf + k1 (1 - b + b length / mean length)),
//! Robertson and Zaragoza 2009 in the variant of Lucene 8 and later, which drops the constant
//! factor k1 + 1. Every row sums its terms in query order, in f32, so a row has the same score, bit
//! for bit, in any segment. Only windows with rows in scope are visited, and only matching rows are
//! kept: the contents of other sub-tenants cost nothing.

use roaring::RoaringBitmap;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::{TERMINATED, Term};

use crate::blocks::{B, K1, Means};
use crate::error::caught;
use crate::mask::{RowMask, WINDOW_ROWS, WORDS, Window};
use crate::postings::Group;
use crate::query::{Operator, TITLE_WEIGHT};
use crate::schema::Field;
use crate::stats::{COMMON_ROWS, CorpusStats, KnownCounts, TermCounts};
use crate::{RowScores, TextError, TextIndex, TextQuery};
use lodestone_types::{Hit, RowId};

/// Factor applied to sums of bounds and partial scores before comparing them with a complete score;
/// exceeds the rounding error of the longest sum.
pub(super) const SLACK: f32 = 1.0001;

impl TextIndex {
    /// Counts, for each term of the query, the rows of `scope` (`None`: all rows) that contain it.
    ///
    /// # Errors
    /// [`TextError::Damaged`] if postings cannot be read.
    pub fn term_counts<Q: TextQuery>(
        &self,
        query: &Q,
        scope: Option<&RoaringBitmap>,
    ) -> Result<TermCounts, TextError> {
        self.term_counts_with(query, scope, &KnownCounts::default())
    }

    /// Like [`Self::term_counts`], but counts common words only once if the scope is a part of the
    /// rows: `known` caches the counts of the same scope.
    ///
    /// # Errors
    /// Those of [`Self::term_counts`].
    pub fn term_counts_with<Q: TextQuery>(
        &self,
        query: &Q,
        scope: Option<&RoaringBitmap>,
        known: &KnownCounts,
    ) -> Result<TermCounts, TextError> {
        caught(|| {
            let mask = RowMask::new(self.rows(), scope);
            let clauses = query.clauses();
            let mut counts = vec![0; clauses.len()];
            let (mut scanned, mut common) = (Vec::new(), Vec::new());
            for (at, clause) in clauses.iter().enumerate() {
                let plain = clause.plain_term();
                if let Some((term, field)) =
                    plain.filter(|_| mask.is_all()).zip(self.field(clause.field))
                {
                    let term = Term::from_field_text(clause.field.column(), term);
                    let rows = field.postings.doc_freq(&term).map_err(TextError::damaged)?;
                    counts[at] = u64::from(rows);
                    continue;
                }
                if let Some(count) = plain.and_then(|term| known.get(clause.field, term)) {
                    counts[at] = count;
                    continue;
                }
                let Some(group) = Group::open(self, clause, clause.field, &mask)? else { continue };
                common.extend(
                    plain.filter(|_| group.rows_max() >= COMMON_ROWS).map(|term| (at, term)),
                );
                scanned.push((group, at));
            }
            each_window(&mask, &mut scanned, |window, scanned| {
                for (group, at) in scanned {
                    group
                        .each_in(window, |place, _, _| counts[*at] += u64::from(window.has(place)));
                }
            });
            for (at, term) in common {
                known.put(clauses[at].field, term, counts[at]);
            }
            Ok(TermCounts(counts))
        })
    }

    /// Scores the rows of `among` (`None`: all rows), which must be within the scope. `stats` must
    /// cover every segment of the scope; the choice of `among` does not affect scores.
    ///
    /// # Errors
    /// [`TextError::Damaged`] if postings cannot be read.
    pub fn score<Q: TextQuery>(
        &self,
        query: &Q,
        stats: &CorpusStats,
        among: Option<&RoaringBitmap>,
    ) -> Result<RowScores, TextError> {
        caught(|| {
            let mask = RowMask::new(self.rows(), among);
            let clauses = query.clauses();
            if mask.count() == 0 || clauses.is_empty() {
                return Ok(RowScores::default());
            }
            let needed = match query.operator() {
                Operator::And => clauses.len(),
                Operator::Or => 0,
            };
            let norms = Norms::new(stats);
            Ok(all_of(self.scored(query, stats, &norms, &mask)?, &mask, needed))
        })
    }

    /// The terms of a row's score, in order: each clause in its field, and also in the title if it
    /// is to be looked up there.
    pub(super) fn scored<'a, Q: TextQuery>(
        &'a self,
        query: &Q,
        stats: &CorpusStats,
        norms: &'a Norms,
        mask: &RowMask<'_>,
    ) -> Result<Vec<(Group, Worth<'a>)>, TextError> {
        let clauses = query.clauses();
        let mut scored = Vec::with_capacity(2 * clauses.len());
        for (at, clause) in clauses.iter().enumerate() {
            let weight = clause.weight * stats.idf(at);
            if weight == 0.0 {
                continue;
            }
            let field = (clause.field, clause.length, weight);
            let title = (Field::Title, Field::Title, weight * TITLE_WEIGHT);
            let looked_at = if clause.is_in_title { &[field, title][..] } else { &[field] };
            for &(field, length, weight) in looked_at {
                let Some(open) = self.field(length) else { continue };
                let group = Group::open(self, clause, field, mask)?;
                let (lengths, norms) = (open.lengths.as_slice(), &norms.0[length.index()]);
                // Blocks only know the lengths of their own field.
                let means = (field == length).then(|| Means {
                    theirs: open.postings.total_num_tokens() as f32 / self.rows() as f32,
                    ours: stats.mean_length(length) as f32,
                });
                scored.extend(group.map(|group| (group, Worth { weight, lengths, norms, means })));
            }
        }
        Ok(scored)
    }
}

impl TextIndex {
    /// Returns, for each row of `rows` in ascending order, the fraction of the query that occurs in
    /// it: its clauses weighted by idf and repetition, relative to all clauses. A word that occurs
    /// in no row of the scope weighs most.
    ///
    /// # Errors
    /// [`TextError::Damaged`] if postings cannot be read.
    pub fn coverage<Q: TextQuery>(
        &self,
        query: &Q,
        stats: &CorpusStats,
        rows: &RoaringBitmap,
    ) -> Result<Vec<f32>, TextError> {
        caught(|| {
            let mask = RowMask::new(self.rows(), Some(rows));
            let mut listed = Vec::with_capacity(mask.count() as usize);
            mask.for_each(|row| listed.push(row));
            let mut shares = vec![0.0; listed.len()];
            let (mut groups, mut whole) = (Vec::new(), 0.0);
            for (at, clause) in query.clauses().iter().enumerate() {
                let weight = clause.weight * stats.rarity(at);
                whole += weight;
                let group = Group::open(self, clause, clause.field, &mask)?;
                groups.extend(group.map(|group| (group, weight)));
            }
            each_window(&mask, &mut groups, |window, groups| {
                for (group, weight) in groups {
                    group.each_in(window, |place, _, _| {
                        if let Ok(at) = listed.binary_search(&window.start().saturating_add(place))
                        {
                            shares[at] += *weight;
                        }
                    });
                }
            });
            shares.iter_mut().for_each(|share| *share /= f32::max(whole, f32::MIN_POSITIVE));
            Ok(shares)
        })
    }
}

/// Length norms of each field, indexed by length code.
pub(super) struct Norms([[f32; 256]; 3]);

impl Norms {
    pub(super) fn new(stats: &CorpusStats) -> Self {
        Self(Field::ALL.map(|field| norms(stats.mean_length(field))))
    }
}

/// The score contribution of a term's occurrences in a field.
#[derive(Clone, Copy)]
pub(super) struct Worth<'a> {
    pub weight: f32,
    lengths: &'a [u8],
    norms: &'a [f32; 256],
    /// Mean lengths of the field whose postings are read; `None` if another field's lengths apply.
    pub means: Option<Means>,
}

impl Worth<'_> {
    /// The contribution of a term of a sparse model, whose rows have no lengths.
    pub(super) fn of_impacts(weight: f32) -> Self {
        Self { weight, lengths: &[], norms: &[0.0; 256], means: None }
    }
}

/// Scores the rows of the mask that contain at least `needed` of the terms.
pub(super) fn all_of(
    mut scored: Vec<(Group, Worth<'_>)>,
    mask: &RowMask<'_>,
    needed: usize,
) -> RowScores {
    let (mut scores, mut sums) = (RowScores::default(), Sums::new(needed));
    each_window(mask, &mut scored, |window, scored| {
        scored.iter_mut().for_each(|(group, worth)| sums.add_group(window, group, worth));
        sums.take(window, 0.0, &mut scores.hits);
    });
    scores
}

/// Calls `visit` with every window of the mask in which one of the terms may occur; it must advance
/// all of them past the window.
fn each_window<T>(
    mask: &RowMask<'_>,
    terms: &mut [(Group, T)],
    mut visit: impl FnMut(&Window, &mut [(Group, T)]),
) {
    let (mut windows, mut next) = (mask.windows(), 0);
    while let Some(row) = terms.iter().map(|(group, _)| group.row()).min() {
        if row == TERMINATED {
            return;
        }
        let Some(window) = windows.next_from(row.max(next)) else { return };
        visit(&window, terms);
        next = window.end();
    }
}

/// Partial scores of one window while terms are being added.
pub(super) struct Sums {
    scores: Vec<f32>,
    /// Number of clauses that occur in each row; empty if one is enough.
    occurring: Vec<u16>,
    needed: u16,
    /// One bit per row that something was added to.
    matching: [u64; WORDS],
}

impl Sums {
    pub(super) fn new(needed: usize) -> Self {
        let needed = u16::try_from(needed).expect("a query has a bounded number of clauses");
        let occurring = vec![0; if needed > 1 { WINDOW_ROWS } else { 0 }];
        let matching = [0; WORDS];
        Self { scores: vec![0.0; WINDOW_ROWS], occurring, needed, matching }
    }

    /// Adds the occurrences of a group in the window.
    pub(super) fn add_group(&mut self, window: &Window, group: &mut Group, worth: &Worth<'_>) {
        let Worth { weight, lengths, norms, .. } = *worth;
        if let Group::Impacts(impacts) = group {
            impacts.each_in(window, |place, factor| self.add_part(place as usize, weight * factor));
            return;
        }
        let lengths = lengths.get(window.start() as usize..).unwrap_or_default();
        group.each_in(window, |place, frequency, factor| {
            self.add(place, frequency as f32, weight * factor, lengths, norms);
        });
    }

    #[inline]
    fn add(&mut self, place: u32, tf: f32, weight: f32, lengths: &[u8], norms: &[f32; 256]) {
        let place = place as usize;
        // A row outside the index means damage; skip it.
        let Some(&length) = lengths.get(place) else { return };
        self.add_part(place, weight * (tf / (tf + norms[usize::from(length)])));
    }

    #[inline]
    fn add_part(&mut self, place: usize, part: f32) {
        // A row outside the window means damage; skip it.
        let Some(score) = self.scores.get_mut(place) else { return };
        *score += part;
        self.matching[place / 64] |= 1 << (place % 64);
        if let Some(occurring) = self.occurring.get_mut(place) {
            *occurring += 1;
        }
    }

    /// The rows with a partial score that can still reach `least` when `rest` is added.
    pub(super) fn reaching(&self, window: &Window, rest: f32, least: f32) -> Option<Window> {
        let mut bits = self.matching;
        for (at, word) in bits.iter_mut().enumerate() {
            let mut left = *word;
            while left != 0 {
                let place = left.trailing_zeros() as usize;
                left &= left - 1;
                if (self.scores[at * 64 + place] + rest) * SLACK < least {
                    *word &= !(1 << place);
                }
            }
        }
        window.among(&bits)
    }

    /// Resets all sums.
    pub(super) fn clear(&mut self) {
        for (at, word) in self.matching.iter_mut().enumerate() {
            if std::mem::take(word) != 0 {
                self.scores[at * 64..at * 64 + 64].fill(0.0);
            }
        }
    }

    /// Moves the sums of rows in the mask that reach `least` to `hits`, and resets all sums.
    pub(super) fn take(&mut self, window: &Window, least: f32, hits: &mut Vec<Hit>) {
        for (at, word) in self.matching.iter_mut().enumerate() {
            let mut rest = std::mem::take(word);
            while rest != 0 {
                let place = at * 64 + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                let score = std::mem::take(&mut self.scores[place]);
                let occurring = self.occurring.get_mut(place).map(std::mem::take);
                let is_enough = occurring.is_none_or(|occurring| occurring >= self.needed);
                if is_enough && score >= least && window.has(place as u32) {
                    hits.push(Hit { row: RowId(window.start() + place as u32), score });
                }
            }
        }
    }
}

/// Computes k1 (1 - b + b length / mean) for each of the 256 length codes.
pub(super) fn norms(mean_length: f64) -> [f32; 256] {
    std::array::from_fn(|code| {
        let length = f64::from(FieldNormReader::id_to_fieldnorm(code as u8));
        (K1 * (1.0 - B + B * length / mean_length)) as f32
    })
}
