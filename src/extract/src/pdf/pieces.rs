//! Assembles glyphs into pieces: parts of a line without a gap that could separate columns.

use crate::clean::clean;
use crate::pdf::fonts::Fonts;
use crate::pdf::glyphs::Glyph;
use crate::pdf::grids::Grid;
use crate::pdf::page_block::PageBlock;
use crate::pdf::{accents, direction};
use lodestone_types::PageArea;

/// Maximum difference of baselines that count as one, in em.
const SAME_BASELINE_EM: f32 = 0.12;
/// Maximum size of a raised or lowered glyph, relative to its neighbour.
const RAISED_SIZE_MAX: f32 = 0.88;
/// Maximum distance of its baseline, in em of its neighbour.
const RAISED_EM: f32 = 0.6;
/// Maximum gap to its neighbour, in em of the neighbour.
const RAISED_GAP_EM: f32 = 0.35;
/// Maximum overlap with its neighbour.
const RAISED_OVERLAP_EM: f32 = 0.25;
/// Gap that could separate columns, in em. Justified lines rarely have wider word spaces.
pub(super) const GAP_EM: f32 = 0.9;
/// Gap between words, in em, on top of the usual letter spacing.
const SPACE_EM: f32 = 0.13;
/// Maximum letter spacing used for looks, in em.
const TRACKING_EM_MAX: f32 = 0.35;
/// Minimum glyphs of a piece to measure letter spacing.
const TRACKING_GLYPHS_MIN: usize = 8;

/// A part of a line.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// Cleaned text in reading order.
    pub text: String,
    pub left: f32,
    pub right: f32,
    pub top: f32,
    pub bottom: f32,
    pub baseline: f32,
    /// Size of most of its letters, in points.
    pub size: f32,
    /// The number of letters, without spaces.
    pub letters: usize,
    pub is_bold: bool,
    pub is_mono: bool,
    /// Average width of a letter.
    pub advance: f32,
    /// Whether it is the retained copy of a running head.
    pub is_running: bool,
    /// The ruled table that the piece stands for; it has no text of its own.
    pub table: Option<Box<PageBlock>>,
}

impl Piece {
    /// The area of the page covered by the piece.
    pub(super) fn area(&self) -> PageArea {
        let (width, height) = (self.right - self.left, self.bottom - self.top);
        PageArea { x: self.left, y: self.top, width, height }
    }
}

/// Assembles glyphs into pieces. The vertical rules of `grids` separate them too.
pub(super) fn of_glyphs(mut glyphs: Vec<Glyph>, grids: &[Grid], fonts: &Fonts<'_>) -> Vec<Piece> {
    accents::set(&mut glyphs);
    let mut rows = rows(glyphs);
    lower_raised(&mut rows);
    let mut pieces = Vec::new();
    for mut row in rows {
        row.sort_by(|a, b| a.left.total_cmp(&b.left));
        split(&row, grids, fonts, &mut pieces);
    }
    pieces
}

/// Glyphs grouped by baseline, from the top.
fn rows(mut glyphs: Vec<Glyph>) -> Vec<Vec<Glyph>> {
    glyphs.sort_by(|a, b| a.baseline.total_cmp(&b.baseline));
    let mut rows: Vec<Vec<Glyph>> = Vec::new();
    for glyph in glyphs {
        match rows.last_mut() {
            Some(row)
                if glyph.baseline - row[0].baseline
                    <= SAME_BASELINE_EM * glyph.size.min(row[0].size) =>
            {
                row.push(glyph);
            }
            _ => rows.push(vec![glyph]),
        }
    }
    rows
}

/// Moves raised and lowered glyphs (footnote marks, exponents, indexes) to their line.
fn lower_raised(rows: &mut Vec<Vec<Glyph>>) {
    for row in rows.iter_mut() {
        row.sort_by(|a, b| a.left.total_cmp(&b.left));
    }
    for at in 0..rows.len() {
        let runs = runs(&rows[at]);
        let mut kept = Vec::with_capacity(rows[at].len());
        for run in runs {
            match host(rows, at, &run) {
                Some(host) => {
                    let place = rows[host].partition_point(|glyph| glyph.left <= run[0].left);
                    rows[host].splice(place..place, run);
                }
                None => kept.extend(run),
            }
        }
        rows[at] = kept;
    }
    rows.retain(|row| !row.is_empty());
}

/// Glyphs of a row that follow each other closely.
fn runs(row: &[Glyph]) -> Vec<Vec<Glyph>> {
    let mut runs: Vec<Vec<Glyph>> = Vec::new();
    for glyph in row {
        let last = runs.last_mut().filter(|run| {
            run.last().is_some_and(|last| {
                glyph.left - last.right < RAISED_GAP_EM * glyph.size
                    && (glyph.size - last.size).abs() < 0.1 * glyph.size
            })
        });
        match last {
            Some(run) => run.push(*glyph),
            None => runs.push(vec![*glyph]),
        }
    }
    runs
}

/// The row that `run`, from the row at `at`, is a superscript or subscript of.
fn host(rows: &[Vec<Glyph>], at: usize, run: &[Glyph]) -> Option<usize> {
    /// Rows searched on either side: superscripts and subscripts can share a line.
    const ROWS: usize = 6;
    let first = run.iter().find(|glyph| !glyph.c.is_whitespace())?;
    let last = run.last()?;
    let near = at.saturating_sub(ROWS)..(at + ROWS + 1).min(rows.len());
    let mut best: Option<(f32, usize)> = None;
    for row in near.filter(|row| *row != at) {
        let Some(distance) = distance(&rows[row], first, last) else { continue };
        if best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, row));
        }
    }
    best.map(|(_, row)| row)
}

/// Baseline distance of a run to the larger letters next to it in `row`.
fn distance(row: &[Glyph], first: &Glyph, last: &Glyph) -> Option<f32> {
    let before = row.partition_point(|glyph| glyph.left <= first.left);
    let neighbours = [before.checked_sub(1), Some(before)];
    let mut best: Option<f32> = None;
    for glyph in neighbours.into_iter().flatten().filter_map(|at| row.get(at)) {
        let gap = (first.left - glyph.right).max(glyph.left - last.right);
        // Lines drawn over each other are separate lines.
        if gap < -RAISED_OVERLAP_EM * glyph.size && !glyph.c.is_whitespace() {
            return None;
        }
        let distance = (glyph.baseline - first.baseline).abs();
        let is_host = !glyph.c.is_whitespace()
            && first.size <= RAISED_SIZE_MAX * glyph.size
            && distance <= RAISED_EM * glyph.size
            && gap <= RAISED_GAP_EM * glyph.size;
        if is_host && best.is_none_or(|least| distance < least) {
            best = Some(distance);
        }
    }
    best
}

/// Splits a row, sorted from left to right, at wide gaps and at vertical rules.
fn split(row: &[Glyph], grids: &[Grid], fonts: &Fonts<'_>, pieces: &mut Vec<Piece>) {
    let is_cut = |end: f32, glyph: &Glyph| {
        let middle = glyph.baseline - 0.3 * glyph.size;
        grids.iter().any(|grid| grid.separates(end, glyph.left, middle))
    };
    let mut part: Vec<(Glyph, bool)> = Vec::new();
    let mut has_space = false;
    let mut end = f32::MIN;
    for glyph in row {
        if glyph.c.is_whitespace() {
            has_space = true;
            continue;
        }
        if let Some((last, _)) = part.last()
            && (glyph.left - end > GAP_EM * glyph.size.max(last.size) || is_cut(end, glyph))
        {
            pieces.extend(piece(&part, fonts));
            part.clear();
            end = f32::MIN;
        }
        part.push((*glyph, has_space && !part.is_empty()));
        has_space = false;
        end = end.max(glyph.right);
    }
    pieces.extend(piece(&part, fonts));
}

/// Builds a piece from glyphs, each with whether a space was drawn before it.
fn piece(part: &[(Glyph, bool)], fonts: &Fonts<'_>) -> Option<Piece> {
    let (first, _) = part.first()?;
    let tracking = tracking(part);
    let mut visual: Vec<char> = Vec::with_capacity(part.len() + part.len() / 5);
    let mut last: Option<&Glyph> = None;
    for (glyph, has_space) in part {
        if let Some(last) = last {
            let size = glyph.size.min(last.size);
            let gap = glyph.left - last.right;
            if (*has_space && gap > 0.03 * size) || gap > tracking + SPACE_EM * size {
                visual.push(' ');
            }
        }
        visual.push(glyph.c);
        last = Some(glyph);
    }
    let text = direction::logical(&visual);
    let text = clean(&text);
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let glyphs = || part.iter().map(|(glyph, _)| glyph);
    let share = |is: &dyn Fn(&Glyph) -> bool| glyphs().filter(|glyph| is(glyph)).count() * 2;
    let size = usual_size(part);
    let right = glyphs().map(|glyph| glyph.right).fold(first.right, f32::max);
    let main: Vec<&Glyph> = glyphs().filter(|g| (g.size - size).abs() < 0.05 * size).collect();
    let baseline = main.first().map_or(first.baseline, |glyph| glyph.baseline);
    Some(Piece {
        text: text.to_owned(),
        left: first.left,
        right,
        top: glyphs().map(|g| g.baseline - g.ascent).fold(f32::MAX, f32::min),
        bottom: glyphs().map(|g| g.baseline + g.descent).fold(f32::MIN, f32::max),
        baseline,
        size,
        letters: part.len(),
        is_bold: share(&|glyph| fonts.face(glyph.face).is_bold) > part.len(),
        is_mono: share(&|glyph| fonts.face(glyph.face).is_mono()) > part.len(),
        advance: glyphs().map(|g| g.right - g.left).sum::<f32>() / part.len() as f32,
        is_running: false,
        table: None,
    })
}

/// The size that most glyphs have.
fn usual_size(part: &[(Glyph, bool)]) -> f32 {
    let mut sizes: Vec<f32> = part.iter().map(|(glyph, _)| glyph.size).collect();
    sizes.sort_by(f32::total_cmp);
    sizes[sizes.len() / 2]
}

/// The usual gap between letters, if the text is letter-spaced.
fn tracking(part: &[(Glyph, bool)]) -> f32 {
    if part.len() < TRACKING_GLYPHS_MIN {
        return 0.0;
    }
    let pairs = part.windows(2).map(|pair| pair[1].0.left - pair[0].0.right);
    let mut gaps: Vec<f32> = pairs.collect();
    gaps.sort_by(f32::total_cmp);
    let median = gaps[gaps.len() / 2];
    if median < TRACKING_EM_MAX * part[0].0.size { median.max(0.0) } else { 0.0 }
}
