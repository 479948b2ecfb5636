//! Postings of terms and phrases, read one window of rows after the other.

use tantivy::postings::BlockSegmentPostings;
use tantivy::schema::IndexRecordOption;
use tantivy::{InvertedIndexReader, Term};

use crate::TextError;
use crate::mask::{RowMask, WINDOW_ROWS, Window};
use crate::phrase::Phrase;
use crate::schema::Field;

/// A row per this many postings or fewer is looked up by itself rather than scanned for.
const SEEK_RATIO: u64 = 32;
/// A window is dense if its mask holds more than one row in this many. It is cheaper to look at
/// every posting then and to drop the rows outside at the end: a test that comes out either way
/// half of the time stalls the processor at every posting.
const DENSE_SHARE: usize = 4;

/// A place in the postings of one term or phrase.
pub(super) struct Cursor(Kind);

enum Kind {
    Term {
        postings: Box<BlockSegmentPostings>,
        /// Position of the next posting in the block.
        at: usize,
        /// Whether rows of the mask are looked up one by one.
        is_by_row: bool,
    },
    Phrase(Box<Phrase>),
}

impl Cursor {
    /// Before the first row that holds the term or phrase; None if no row does.
    pub(super) fn open(
        index: &InvertedIndexReader,
        field: Field,
        terms: &[String],
        mask: &RowMask<'_>,
    ) -> Result<Option<Self>, TextError> {
        let term = |text: &String| Term::from_field_text(field.column(), text);
        let [single] = terms else {
            let phrase = Phrase::open(index, terms.iter().map(term))?;
            return Ok(phrase.map(|phrase| Self(Kind::Phrase(Box::new(phrase)))));
        };
        let found = index.read_block_postings(&term(single), IndexRecordOption::WithFreqs);
        let of_term = |postings: BlockSegmentPostings| {
            let is_by_row = mask.count() * SEEK_RATIO < u64::from(postings.doc_freq());
            Self(Kind::Term { postings: Box::new(postings), at: 0, is_by_row })
        };
        Ok(found.map_err(TextError::damaged)?.map(of_term))
    }

    /// The next row that may hold it; [`tantivy::TERMINATED`] at the end.
    pub(super) fn row(&self) -> u32 {
        match &self.0 {
            Kind::Term { postings, at, .. } => postings.doc(*at),
            Kind::Phrase(phrase) => phrase.row(),
        }
    }

    /// Calls `each` with the place in the window of every row that holds it, and how often, and
    /// goes on behind the window. All rows of the window's mask are among them; others may be.
    pub(super) fn each_in(&mut self, window: &Window, mut each: impl FnMut(u32, u32)) {
        let (postings, at) = match &mut self.0 {
            Kind::Phrase(phrase) => return phrase.each_in(window, each),
            Kind::Term { postings, at, is_by_row: false } => (postings, at),
            Kind::Term { postings, at, is_by_row: true } => {
                window.for_each(|row| {
                    *at = postings.seek(row);
                    if postings.doc(*at) == row {
                        each(row - window.start(), postings.freq(*at));
                    }
                });
                return;
            }
        };
        if postings.doc(*at) < window.start() {
            *at = postings.seek(window.start());
        }
        match window.count() as usize * DENSE_SHARE > WINDOW_ROWS {
            true => scan(postings, at, window, each),
            false => scan(postings, at, window, |place, frequency| {
                if window.has(place) {
                    each(place, frequency);
                }
            }),
        }
    }
}

fn scan(
    postings: &mut BlockSegmentPostings,
    at: &mut usize,
    window: &Window,
    mut each: impl FnMut(u32, u32),
) {
    loop {
        let rows = postings.docs().get(*at..).unwrap_or_default();
        let inside = rows.partition_point(|row| *row < window.end());
        let frequencies = postings.freqs().get(*at..).unwrap_or_default();
        for (&row, &frequency) in rows[..inside].iter().zip(frequencies) {
            // A row before the window comes from damage; its place is outside.
            each(row.wrapping_sub(window.start()), frequency);
        }
        *at += inside;
        if inside < rows.len() || rows.is_empty() {
            return;
        }
        postings.advance();
        *at = 0;
    }
}
