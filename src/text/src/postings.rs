//! Postings of terms and phrases, read window by window.

use tantivy::postings::BlockSegmentPostings;
use tantivy::schema::IndexRecordOption;
use tantivy::{TERMINATED, Term};

use crate::blocks::{Blocks, Means};
use crate::impact_postings::Impacts;
use crate::index::OpenField;
use crate::mask::{RowMask, WINDOW_ROWS, Window};
use crate::phrase::Phrase;
use crate::query::Clause;
use crate::schema::Field;
use crate::{TextError, TextIndex};

/// Number of postings of a window per row of its mask above which the rows are looked up one by one
/// instead of scanning the postings.
const SEEK_RATIO: u64 = 32;
/// A window is dense if its mask contains more than one row in this many. It is then cheaper to
/// visit every posting and to drop rows outside the mask at the end, since a test that is true
/// about half of the time costs a branch misprediction at every posting.
const DENSE_SHARE: usize = 4;

/// Maximum number of rows of a window for which the occurrences of several forms are kept in a
/// list.
const LISTED_ROWS: u32 = 64;

/// The occurrences of a clause in one field, in any of its forms.
#[derive(Clone)]
pub(super) enum Group {
    /// A single form, whose factor is 1.
    Single(Cursor),
    /// Several forms, summed row by row.
    Several(Box<Several>),
    /// A term of a sparse model; its weight in a row is the factor.
    Impacts(Box<Impacts>),
}

/// Forms that count as one term, and occurrences to subtract from their frequency.
#[derive(Clone)]
pub(super) struct Several {
    forms: Vec<(Cursor, f32)>,
    less: Option<Cursor>,
    /// Indexed by position in the window; empty until a window has more than [`LISTED_ROWS`] rows.
    frequencies: Vec<u32>,
    factors: Vec<f32>,
    touched: Vec<u32>,
    /// Position, frequency and factor, for windows with few rows.
    listed: Vec<(u32, u32, f32)>,
}

impl Group {
    /// Opens the postings of a clause in `field`, before the first row; `None` if it never occurs.
    pub(super) fn open(
        index: &TextIndex,
        clause: &Clause,
        field: Field,
        mask: &RowMask<'_>,
    ) -> Result<Option<Self>, TextError> {
        let Some(open) = index.field(field).filter(|_| mask.count() > 0) else { return Ok(None) };
        let mut forms = Vec::with_capacity(clause.forms.len());
        for form in &clause.forms {
            let cursor = Cursor::open(open, field, &form.terms, mask)?;
            forms.extend(cursor.map(|cursor| (cursor, form.factor)));
        }
        let less = match (clause.less, clause.forms.first()) {
            (Some(less), Some(form)) => {
                let open = index.field(less);
                let open = open.map(|open| Cursor::open(open, less, &form.terms, mask));
                open.transpose()?.flatten()
            }
            _ => None,
        };
        let is_plain = less.is_none() && clause.forms.len() == 1;
        if is_plain {
            return Ok(forms.pop().map(|(cursor, _)| Self::Single(cursor)));
        }
        let several = Several {
            forms,
            less,
            frequencies: Vec::new(),
            factors: Vec::new(),
            touched: Vec::new(),
            listed: Vec::new(),
        };
        Ok((!several.forms.is_empty()).then(|| Self::Several(Box::new(several))))
    }

    /// The next row in which the clause may occur; [`TERMINATED`] at the end.
    pub(super) fn row(&self) -> u32 {
        match self {
            Self::Single(cursor) => cursor.row(),
            Self::Several(several) => {
                several.forms.iter().map(|(cursor, _)| cursor.row()).min().unwrap_or(TERMINATED)
            }
            Self::Impacts(impacts) => impacts.row(),
        }
    }

    /// Upper bound of the number of rows in which one of the forms occurs.
    pub(super) fn rows_max(&self) -> u64 {
        match self {
            Self::Single(cursor) => cursor.rows_max(),
            Self::Several(several) => {
                several.forms.iter().map(|(cursor, _)| cursor.rows_max()).sum()
            }
            Self::Impacts(impacts) => impacts.rows(),
        }
    }

    /// Mean number of postings per window.
    pub(super) fn in_window(&self) -> u64 {
        match self {
            Self::Single(cursor) => cursor.in_window(),
            Self::Several(several) => {
                several.forms.iter().map(|(cursor, _)| cursor.in_window()).sum()
            }
            Self::Impacts(impacts) => impacts.in_window(),
        }
    }

    /// Maximum factor in any row.
    pub(super) fn factor_max(&self) -> f32 {
        match self {
            Self::Single(_) | Self::Several(_) => 1.0,
            Self::Impacts(impacts) => impacts.most(),
        }
    }

    /// Upper bounds over the rows of the window: of frequency / norm, and of the factor of a form.
    /// Windows must be requested in ascending order.
    pub(super) fn ratio_max(&mut self, window: &Window, means: Means) -> (f32, f32) {
        let of = |cursor: &mut Cursor| match cursor.row() >= window.end() {
            true => 0.0,
            false => cursor.ratio_max(window, means),
        };
        match self {
            Self::Single(cursor) => (of(cursor), 1.0),
            Self::Several(several) => {
                let forms = several.forms.iter_mut().map(|(cursor, factor)| (of(cursor), *factor));
                let here = forms.filter(|(ratio, _)| *ratio > 0.0);
                here.fold((0.0, 0.0), |(sum, most), (ratio, factor)| {
                    (sum + ratio, f32::max(most, factor))
                })
            }
            Self::Impacts(impacts) => (f32::INFINITY, impacts.bound(window)),
        }
    }

    /// Calls `each` with the position in the window, the frequency and the greatest factor of the
    /// forms for every row in which the clause occurs, and advances past the window. Reports all
    /// matching rows of the window's mask, and possibly others.
    pub(super) fn each_in(&mut self, window: &Window, mut each: impl FnMut(u32, u32, f32)) {
        match self {
            Self::Single(cursor) => cursor.each_in(window, |place, count| each(place, count, 1.0)),
            Self::Several(several) => several.each_in(window, each),
            Self::Impacts(impacts) => {
                impacts.each_in(window, |place, weight| each(place, 1, weight))
            }
        }
    }
}

impl Several {
    fn each_in(&mut self, window: &Window, mut each: impl FnMut(u32, u32, f32)) {
        if window.count() <= LISTED_ROWS {
            return self.each_of_few(window, each);
        }
        let Self { forms, less, frequencies, factors, touched, .. } = self;
        frequencies.resize(WINDOW_ROWS, 0);
        factors.resize(WINDOW_ROWS, 0.0);
        for (cursor, form) in forms {
            cursor.each_in(window, |place, count| {
                let at = place as usize;
                // A row outside the window means damage; skip it.
                let Some(frequency) = frequencies.get_mut(at) else { return };
                if *frequency == 0 {
                    touched.push(place);
                }
                *frequency += count;
                factors[at] = factors[at].max(*form);
            });
        }
        if let Some(less) = less {
            less.each_in(window, |place, count| {
                if let Some(frequency) = frequencies.get_mut(place as usize) {
                    *frequency = frequency.saturating_sub(count);
                }
            });
        }
        for place in touched.drain(..) {
            let at = place as usize;
            let frequency = std::mem::take(&mut frequencies[at]);
            let factor = std::mem::take(&mut factors[at]);
            if frequency > 0 {
                each(place, frequency, factor);
            }
        }
    }
}

impl Several {
    /// Like [`Self::each_in`], for a window with few rows, where clearing an entry for each
    /// position would cost more than everything else.
    fn each_of_few(&mut self, window: &Window, mut each: impl FnMut(u32, u32, f32)) {
        let Self { forms, less, listed, .. } = self;
        for (cursor, form) in forms {
            cursor.each_in(window, |place, count| {
                if !window.has(place) {
                    return;
                }
                match listed.iter_mut().find(|(known, ..)| *known == place) {
                    Some((_, frequency, factor)) => {
                        (*frequency, *factor) = (*frequency + count, factor.max(*form));
                    }
                    None => listed.push((place, count, *form)),
                }
            });
        }
        if let Some(less) = less {
            less.each_in(window, |place, count| {
                if let Some((_, frequency, _)) = listed.iter_mut().find(|row| row.0 == place) {
                    *frequency = frequency.saturating_sub(count);
                }
            });
        }
        for (place, frequency, factor) in listed.drain(..) {
            if frequency > 0 {
                each(place, frequency, factor);
            }
        }
    }
}

/// A cursor over the postings of one term or phrase.
#[derive(Clone)]
pub(super) struct Cursor(Kind);

#[derive(Clone)]
enum Kind {
    Term {
        postings: Box<BlockSegmentPostings>,
        /// Index of the next posting in the block.
        at: usize,
        /// Mean number of postings per window.
        in_window: u64,
        blocks: Option<Blocks>,
    },
    Phrase(Box<Phrase>),
}

impl Cursor {
    /// Opens the postings of a term or phrase, before the first row; `None` if no row contains it.
    pub(super) fn open(
        open: &OpenField,
        field: Field,
        terms: &[String],
        mask: &RowMask<'_>,
    ) -> Result<Option<Self>, TextError> {
        let term = |text: &String| Term::from_field_text(field.column(), text);
        let [single] = terms else {
            let phrase = Phrase::open(&open.postings, terms.iter().map(term))?;
            return Ok(phrase.map(|phrase| Self(Kind::Phrase(Box::new(phrase)))));
        };
        let info = open.postings.get_term_info(&term(single)).map_err(TextError::damaged)?;
        let Some(info) = info else { return Ok(None) };
        let option = IndexRecordOption::WithFreqs;
        let postings = open.postings.read_block_postings_from_terminfo(&info, option);
        let postings = Box::new(postings.map_err(TextError::damaged)?);
        let blocks = Blocks::open(open, field, &info).map_err(TextError::damaged)?;
        let in_window = u64::from(info.doc_freq) * WINDOW_ROWS as u64 / mask.index_rows().max(1);
        Ok(Some(Self(Kind::Term { postings, at: 0, in_window, blocks })))
    }

    fn rows_max(&self) -> u64 {
        match &self.0 {
            Kind::Term { postings, .. } => u64::from(postings.doc_freq()),
            Kind::Phrase(phrase) => u64::from(phrase.rows_max()),
        }
    }

    fn in_window(&self) -> u64 {
        match &self.0 {
            Kind::Term { in_window, .. } => *in_window,
            Kind::Phrase(_) => 0,
        }
    }

    fn ratio_max(&mut self, window: &Window, means: Means) -> f32 {
        match &mut self.0 {
            Kind::Term { blocks: Some(blocks), .. } => blocks.ratio_max(window, means),
            Kind::Term { blocks: None, .. } | Kind::Phrase(_) => f32::INFINITY,
        }
    }

    /// Counts the rows of the mask that contain the term or phrase, at least the first `enough`.
    pub(super) fn count(mut self, mask: &RowMask<'_>, enough: u64) -> u64 {
        let (mut windows, mut next, mut count) = (mask.windows(), 0, 0);
        while count < enough && self.row() != TERMINATED {
            let Some(window) = windows.next_from(self.row().max(next)) else { break };
            self.each_in(&window, |place, _| count += u64::from(window.has(place)));
            next = window.end();
        }
        count
    }

    /// The next row that may contain it; [`TERMINATED`] at the end.
    pub(super) fn row(&self) -> u32 {
        match &self.0 {
            Kind::Term { postings, at, .. } => postings.doc(*at),
            Kind::Phrase(phrase) => phrase.row(),
        }
    }

    /// Calls `each` with the position in the window and the frequency for every row that contains
    /// the term or phrase, and advances past the window. Reports all matching rows of the window's
    /// mask, and possibly others.
    pub(super) fn each_in(&mut self, window: &Window, mut each: impl FnMut(u32, u32)) {
        let (postings, at, in_window) = match &mut self.0 {
            Kind::Phrase(phrase) => return phrase.each_in(window, each),
            Kind::Term { postings, at, in_window, .. } => (postings, at, *in_window),
        };
        if u64::from(window.count()) * SEEK_RATIO < in_window {
            window.for_each(|row| {
                *at = postings.seek(row);
                if postings.doc(*at) == row {
                    each(row - window.start(), postings.freq(*at));
                }
            });
            return;
        }
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
            // A row before the window means damage; its position wraps around and is out of range.
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
