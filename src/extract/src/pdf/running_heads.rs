//! Running headers and footers: one copy of each is kept, page numbers are dropped.
//!
//! A running head is the same text at the same height on several pages, apart from page numbers:
//! `Invoice 001` and `Invoice 002` differ, so both are content. A table row that happens to share a
//! cell with a line at the same height on another page is kept whole.
//! share a cell with a line at the same height of another page stays whole.

use std::collections::HashMap;
use std::iter;

use crate::pdf::pieces::Piece;

/// Share of the page height, at top and bottom, in which running heads are found.
const ZONE: f32 = 0.12;
/// Share of the page height in which a number without words is a page number.
const NUMBER_ZONE: f32 = 0.2;
/// Minimum share of pages with the same text at the same height. Left and right pages differ.
const SHARE_MIN: f32 = 0.4;
/// Minimum pages with the same text, or with consecutive page numbers.
const PAGES_MIN: usize = 2;
/// Maximum variation of its height, in points.
const DRIFT_MAX: f32 = 6.0;
/// Maximum baseline difference within a line, in points.
const SAME_LINE: f32 = 3.0;
/// Maximum adjacent numbers that may be page number and page count; dates have three.
const NUMBERS_MAX: usize = 2;
/// Maximum characters of a running head; longer text is a paragraph.
const CHARS_MAX: usize = 300;

/// Minimum names in a line of column headers.
const NAMES_MIN: usize = 3;
/// Maximum misalignment of a column header and a cell below it, in points.
const ALIGNED: f32 = 3.0;
/// Rows below column headers of which one must be complete, and its maximum distance in em.
const ROWS_BELOW: usize = 3;
const ROW_EM_MAX: f32 = 8.0;

/// Words next to a page number.
const PAGE_WORDS: [&str; 30] = [
    "page", "pages", "p", "pp", "pg", "seite", "s", "página", "pagina", "pág", "pag", "strona",
    "str", "side", "sida", "sivu", "oldal", "strana", "stránka", "страница", "стр", "с",
    "сторінка", "σελίδα", "sayfa", "halaman", "trang", "页", "ページ", "페이지",
];
/// Words between the page number and the page count.
const OF_WORDS: [&str; 12] =
    ["of", "von", "de", "di", "z", "из", "av", "af", "van", "sur", "共", "第"];

/// The pieces of a page and its height.
#[derive(Debug)]
pub(super) struct PagePieces<'a> {
    pub height: f32,
    pub pieces: &'a mut Vec<Piece>,
}

/// A text without its page number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    text: String,
    /// The number in it minus the page index: the same on all pages if it is a page number.
    offset: Option<i64>,
    /// Whether it contains nothing but a page number.
    is_number: bool,
}

/// A piece in a margin.
#[derive(Debug)]
struct MarginPiece {
    page: usize,
    piece: usize,
    baseline: f32,
}

/// Drops page numbers and all but the first copy of each running head, unless no page has anything
/// else.
pub(super) fn drop(pages: &mut [PagePieces<'_>]) {
    let mut margins: HashMap<Key, Vec<MarginPiece>> = HashMap::new();
    for (number, page) in pages.iter().enumerate() {
        let margin = Margins::of(page);
        for (piece, own) in page.pieces.iter().enumerate().filter(|(_, own)| margin.hold(own)) {
            let whole = Key { text: own.text.clone(), offset: None, is_number: false };
            for key in iter::once(whole).chain(folded(&own.text, number)) {
                let found = MarginPiece { page: number, piece, baseline: own.baseline };
                margins.entry(key).or_default().push(found);
            }
        }
    }
    let share = (SHARE_MIN * pages.len() as f32).ceil() as usize;
    // The repeated pieces of each page, and whether they are kept.
    let mut repeated: Vec<Vec<Option<bool>>> =
        pages.iter().map(|page| vec![None; page.pieces.len()]).collect();
    for (key, mut found) in margins {
        let needed = if key.offset.is_some() { PAGES_MIN } else { PAGES_MIN.max(share) };
        found.sort_by(|a, b| a.baseline.total_cmp(&b.baseline));
        for same in by_height(&found) {
            let mut numbers: Vec<usize> = same.iter().map(|found| found.page).collect();
            numbers.sort_unstable();
            numbers.dedup();
            if numbers.len() < needed {
                continue;
            }
            for found in same {
                let is_first = !key.is_number && found.page == numbers[0];
                let stays = &mut repeated[found.page][found.piece];
                *stays = Some(is_first && stays.unwrap_or(true));
            }
        }
    }
    for (page, repeated) in pages.iter().zip(&mut repeated) {
        spare_mixed_lines(page.pieces, repeated);
    }
    if repeated.iter().flatten().all(Option::is_some) {
        return;
    }
    for (number, (page, repeated)) in pages.iter_mut().zip(repeated).enumerate() {
        let foot = page.height - ZONE * page.height;
        // At the top of the first page it may be the title.
        for (piece, stays) in page.pieces.iter_mut().zip(&repeated) {
            piece.is_running = stays.is_some() && (number > 0 || piece.top > foot);
        }
        let mut repeated = repeated.into_iter();
        page.pieces.retain(|_| repeated.next().flatten().unwrap_or(true));
    }
}

/// Keeps lines less than half of which is repeated, table rows that share a cell, and column
/// headers above table rows that are repeated on each page.
fn spare_mixed_lines(pieces: &[Piece], repeated: &mut [Option<bool>]) {
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by(|a, b| pieces[*a].baseline.total_cmp(&pieces[*b].baseline));
    let near = |a: &usize, b: &usize| pieces[*b].baseline - pieces[*a].baseline < SAME_LINE;
    let lines: Vec<&[usize]> = order.chunk_by(near).collect();
    for (number, line) in lines.iter().enumerate() {
        let letters = |is: &dyn Fn(usize) -> bool| -> usize {
            line.iter().filter(|at| is(**at)).map(|at| pieces[*at].letters).sum()
        };
        let below = lines[number + 1..].iter().take(ROWS_BELOW);
        let is_mixed = letters(&|at| repeated[at].is_some()) * 2 < letters(&|_| true);
        if is_mixed || { below }.any(|row| names_columns(line, row, pieces)) {
            line.iter().for_each(|at| repeated[*at] = None);
        }
    }
}

/// Whether each piece of a line is the header of a column with a piece in the row. Two pieces are
/// not enough: a running head has them at the edges of two columns of prose.
fn names_columns(line: &[usize], row: &[usize], pieces: &[Piece]) -> bool {
    let middle = |piece: &Piece| (piece.left + piece.right) / 2.0;
    let is_over = |name: &Piece, cell: &Piece| {
        let edges = [name.left - cell.left, name.right - cell.right, middle(name) - middle(cell)];
        cell.baseline - name.baseline < ROW_EM_MAX * name.size
            && edges.iter().any(|apart| apart.abs() < ALIGNED)
    };
    line.len() >= NAMES_MIN
        && line.len() == row.len()
        && line.iter().all(|name| row.iter().any(|cell| is_over(&pieces[*name], &pieces[*cell])))
}

/// The pieces at each height, sorted by height.
fn by_height(found: &[MarginPiece]) -> Vec<&[MarginPiece]> {
    let mut groups = Vec::new();
    let mut rest = found;
    while let Some(first) = rest.first() {
        let end = rest.partition_point(|found| found.baseline - first.baseline <= DRIFT_MAX);
        let (same, others) = rest.split_at(end);
        groups.push(same);
        rest = others;
    }
    groups
}

/// Top and bottom margin of a page.
#[derive(Debug)]
struct Margins {
    height: f32,
    first: f32,
    last: f32,
}

impl Margins {
    fn of(page: &PagePieces<'_>) -> Self {
        let baselines = || page.pieces.iter().map(|piece| piece.baseline);
        let (first, last) = (baselines().fold(f32::MAX, f32::min), baselines().fold(0.0, f32::max));
        Self { height: page.height, first, last }
    }

    /// Whether a piece is in a margin. A number without words must be outermost, since tables
    /// contain others.
    fn hold(&self, piece: &Piece) -> bool {
        if piece.letters > CHARS_MAX {
            return false;
        }
        let is_within = |zone: f32| piece.bottom < zone || piece.top > self.height - zone;
        if piece.text.contains(char::is_alphabetic) {
            return is_within(ZONE * self.height);
        }
        let is_outermost = piece.baseline < self.first + 1.0 || piece.baseline > self.last - 1.0;
        is_outermost && is_within(NUMBER_ZONE * self.height)
    }
}

/// The key of a text, with the number of the page at this position if it contains one.
fn folded(text: &str, page: usize) -> Option<Key> {
    let words = words(text);
    let is_among = |known: &[&str], word: &str| known.contains(&word.to_lowercase().as_str());
    let numbers = words.iter().filter(|(_, word)| number(word).is_some()).count();
    let is_number = numbers <= NUMBERS_MAX
        && words.iter().all(|(_, word)| {
            number(word).or_else(|| roman(word)).is_some()
                || is_among(&PAGE_WORDS, word)
                || is_among(&OF_WORDS, word)
        });
    let counts = |at: usize| {
        let own = number(words[at].1).or_else(|| roman(words[at].1).filter(|_| is_number))?;
        let beside = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
        let mut beside = beside.filter_map(|at| words.get(at));
        (is_number || beside.any(|(_, word)| is_among(&PAGE_WORDS, word))).then_some(own)
    };
    let (at, own) = (0..words.len()).find_map(|at| Some((at, counts(at)?)))?;
    let (start, word) = words[at];
    let text = format!("{}#{}", &text[..start], &text[start + word.len()..]);
    Some(Key { text, offset: Some(own - page as i64), is_number })
}

/// Runs of letters and of digits, with their start offsets.
fn words(text: &str) -> Vec<(usize, &str)> {
    let kind = |c: char| (c.is_alphabetic(), c.is_ascii_digit());
    let mut words = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        if chars.peek().is_some_and(|(_, next)| kind(*next) == kind(c)) {
            continue;
        }
        if kind(c) != (false, false) {
            words.push((start, &text[start..end]));
        }
        start = end;
    }
    words
}

/// A page number: without leading zeros.
fn number(word: &str) -> Option<i64> {
    let is_page = word.len() <= 5 && !word.starts_with('0');
    if is_page { word.parse().ok() } else { None }
}

/// A lowercase or uppercase Roman numeral up to 399.
fn roman(word: &str) -> Option<i64> {
    if word.len() > 12 || (word != word.to_lowercase() && word != word.to_uppercase()) {
        return None;
    }
    let value = |c: char| match c.to_ascii_lowercase() {
        'i' => Some(1),
        'v' => Some(5),
        'x' => Some(10),
        'l' => Some(50),
        'c' => Some(100),
        _ => None,
    };
    let values: Vec<i64> = word.chars().map(value).collect::<Option<_>>()?;
    let signed = values.iter().enumerate().map(|(at, value)| match values.get(at + 1) {
        Some(next) if next > value => -value,
        _ => *value,
    });
    Some(signed.sum()).filter(|sum| *sum > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_of_pages_are_folded() {
        let folded = |text: &str, page: usize| {
            folded(text, page).map(|key| (key.text, key.offset.unwrap(), key.is_number))
        };
        assert_eq!(folded("Page 3 of 12", 2), Some(("Page # of 12".into(), 1, true)));
        assert_eq!(folded("- 3 -", 2), Some(("- # -".into(), 1, true)));
        assert_eq!(folded("iv", 3), Some(("#".into(), 1, true)));
        assert_eq!(folded("第3页", 2), Some(("第#页".into(), 1, true)));
        let header = "RFC 9110 Semantics [Page 7]";
        assert_eq!(folded(header, 6), Some(("RFC 9110 Semantics [Page #]".into(), 1, false)));
        let kept =
            ["Invoice 001", "Invoice 2", "Chapter I", "Q3 2024", "007", "Total", "2026-11-22"];
        for kept in kept {
            assert_eq!(folded(kept, 0), None, "{kept}");
        }
    }
}
