//! Tables whose rows are separated by rules.
//!
//! Cells of several lines belong to the row between two rules, wherever their lines are. Rules do
//! not always separate every row: if the lines between two of them look like separate rows, the
//! table is left to [`tables`].

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use crate::pdf::grids::Grid;
use crate::pdf::lines::{self, Line};
use crate::pdf::pieces::{GAP_EM, Piece};
use crate::pdf::{marks, tables};

/// Above this number of pieces a page is not searched for ruled tables.
const PIECES_MAX: usize = 10_000;
/// Minimum rows of a table with two columns; with more columns, one row less is enough.
const ROWS_MIN: usize = 3;
/// Average letters per cell above which boxes contain prose.
const CELL_LETTERS_MAX: usize = 200;
/// Average letters per cell above which bands between horizontal rules contain prose.
const OPEN_CELL_LETTERS_MAX: usize = 60;
/// Maximum lines of a row without vertical rules. A row with more is text.
const OPEN_ROW_LINES_MAX: usize = 6;
/// Maximum lines of a row across all columns that names a part of a table.
const TITLE_LINES_MAX: usize = 2;
/// Minimum ratio of the size of a heading to that of the next line.
const LARGER: f32 = 1.08;
/// Distance from the next line, in em, above which a line alone is a heading of any size.
const APART_EM: f32 = 1.8;
/// Points by which text may cross the edge of its cell.
const OUTSIDE_MAX: f32 = 3.0;
/// Maximum distance of a header above the grid, in em.
const HEADER_EM_MAX: f32 = 2.0;
/// Maximum baseline difference within a line, in em.
const SAME_LINE_EM: f32 = 0.35;
/// Lines above a line that it is compared with.
const LINES_BACK: usize = 3;
/// Maximum padding of a cell, in em.
const PADDING_EM_MAX: f32 = 0.8;
/// Width that a word needs besides its own, in em.
const SPACE_EM: f32 = 0.6;

/// A cell with text.
#[derive(Debug)]
struct Cell {
    lines: Vec<Line>,
    /// The rows and columns that it spans.
    span: (usize, usize),
    /// Left and right edge.
    edges: (f32, f32),
}

/// A row of the grid: its number, and its cells by column.
type Row = (usize, BTreeMap<usize, Cell>);

/// Replaces the pieces of each ruled table by one piece. `is_compound` recognises compounds written
/// with a hyphen.
pub(super) fn gathered(
    mut pieces: Vec<Piece>,
    grids: &[Grid],
    is_compound: &dyn Fn(&str) -> bool,
) -> Vec<Piece> {
    if pieces.len() > PIECES_MAX {
        return pieces;
    }
    for grid in grids {
        let is_inside = |piece: &Piece| place(grid, piece).is_some();
        let (inside, outside): (Vec<_>, Vec<_>) = pieces.into_iter().partition(is_inside);
        pieces = outside;
        let found = match grid.columns() {
            // The grid is a frame around a table.
            _ if inside.iter().any(|piece| piece.table.is_some()) => Vec::new(),
            1 => open_tables(grid, &inside),
            _ if has_header_above(grid, &pieces) => Vec::new(),
            _ => closed_tables(grid, &inside),
        };
        let key = |piece: &Piece| (piece.left.to_bits(), piece.baseline.to_bits());
        let cells = found.iter().flatten().flat_map(|(_, cells)| cells.values());
        let lines = cells.flat_map(|cell| &cell.lines);
        let taken: BTreeSet<_> = lines.flat_map(|line| &line.pieces).map(key).collect();
        pieces.extend(inside.into_iter().filter(|piece| !taken.contains(&key(piece))));
        pieces.extend(found.iter().filter_map(|rows| table(rows, is_compound)));
    }
    pieces
}

/// The first row and column of the cell that a piece is in.
fn place(grid: &Grid, piece: &Piece) -> Option<(usize, usize)> {
    let inset = (0.5 * piece.size).min((piece.right - piece.left) / 2.0);
    grid.cell_at(piece.left + inset, piece.baseline - 0.3 * piece.size)
}

/// Whether the header of a table stands above its grid.
fn has_header_above(grid: &Grid, outside: &[Piece]) -> bool {
    let (left, right) = (grid.column(0).0, grid.column(grid.columns() - 1).1);
    let above = outside.iter().filter(|piece| {
        (0.0..HEADER_EM_MAX * piece.size).contains(&(grid.top() - piece.baseline))
            && piece.right > left
            && piece.left < right
    });
    let columns = above
        .map(|piece| (0..grid.columns()).find(|column| is_within(piece, grid.column(*column))));
    columns.collect::<Option<BTreeSet<usize>>>().is_some_and(|columns| columns.len() > 1)
}

fn is_within(piece: &Piece, (left, right): (f32, f32)) -> bool {
    piece.left >= left - OUTSIDE_MAX && piece.right <= right + OUTSIDE_MAX
}

/// The tables in a grid with vertical rules: a box around a page may join those above and below
/// its text.
fn closed_tables(grid: &Grid, inside: &[Piece]) -> Vec<Vec<Row>> {
    let is_long = |Cell { lines, .. }: &Cell| {
        lines.len() > OPEN_ROW_LINES_MAX || lines.len() > TITLE_LINES_MAX && has_heading(lines)
    };
    let is_text = |row: &Row| is_across(grid, row) && row.1.values().any(is_long);
    let mut parts: Vec<Vec<Row>> = vec![Vec::new()];
    for row in closed_rows(grid, inside).unwrap_or_default() {
        match parts.last_mut() {
            Some(part) if !is_text(&row) => part.push(row),
            _ => parts.push(Vec::new()),
        }
    }
    parts.into_iter().filter_map(|rows| closed_table(grid, rows)).collect()
}

/// Whether the only cell of a row spans all columns.
fn is_across(grid: &Grid, (_, cells): &Row) -> bool {
    cells.values().all(|cell| cell.span.1 == grid.columns())
}

/// The rows of a grid with vertical rules, unless text crosses these.
fn closed_rows(grid: &Grid, inside: &[Piece]) -> Option<Vec<Row>> {
    let mut cells: BTreeMap<(usize, usize), Vec<Piece>> = BTreeMap::new();
    for piece in inside {
        cells.entry(place(grid, piece)?).or_default().push(piece.clone());
    }
    let spans = grid.spans();
    let mut rows: BTreeMap<usize, BTreeMap<usize, Cell>> = BTreeMap::new();
    for ((row, column), pieces) in cells {
        let span = *spans.get(&(row, column))?;
        let edges = (grid.column(column).0, grid.column(column + span.1 - 1).1);
        if !pieces.iter().all(|piece| is_within(piece, edges)) {
            return None;
        }
        let cell = Cell { lines: lines_of(pieces), span, edges };
        rows.entry(row).or_default().insert(column, cell);
    }
    Some(rows.into_iter().collect())
}

/// The table formed by rows of a grid with vertical rules, unless they form none.
fn closed_table(grid: &Grid, rows: Vec<Row>) -> Option<Vec<Row>> {
    // Titles above and notes below are often part of the grid.
    let mut rows: Vec<Row> = rows.into_iter().skip_while(|row| is_across(grid, row)).collect();
    while rows.pop_if(|row| is_across(grid, row)).is_some() {}
    let below_header = rows.get(1..)?;
    let several = below_header.iter().filter(|row| lines_across(row).len() > 1).count();
    let records = below_header.iter().filter(|row| has_records(row, false)).count();
    let is_divided = header_rows(&rows) < rows.len() && !is_undivided(&rows);
    let is_ruled = is_divided && (records == 0 || records * 2 < several);
    (is_ruled && is_table(&rows, CELL_LETTERS_MAX)).then_some(rows)
}

/// The tables in a grid without vertical rules, whose columns are separated by gutters.
fn open_tables(grid: &Grid, inside: &[Piece]) -> Vec<Vec<Row>> {
    let mut bands: BTreeMap<usize, Vec<Piece>> = BTreeMap::new();
    for piece in inside {
        if let Some((row, _)) = place(grid, piece) {
            bands.entry(row).or_default().push(piece.clone());
        }
    }
    let mut runs: Vec<Vec<(usize, Vec<Line>)>> = vec![Vec::new()];
    for (row, pieces) in bands {
        let mut lines = lines_of(pieces);
        // The first and last row, which may be open, reach into the text around the table.
        if row + 1 == grid.rows() {
            let end = lines.windows(2).position(|pair| is_heading(&pair[1], &pair[0]));
            lines.truncate(end.map_or(lines.len(), |at| at + 1));
        }
        if row == 0 {
            let start = lines.windows(2).rposition(|pair| is_heading(&pair[0], &pair[1]));
            lines.drain(..start.map_or(0, |at| at + 1));
        }
        let is_row =
            lines.len() <= OPEN_ROW_LINES_MAX && lines.iter().any(|line| line.pieces.len() > 1);
        match runs.last_mut() {
            Some(run) if is_row => run.push((row, lines)),
            _ => runs.push(Vec::new()),
        }
    }
    let right = grid.column(0).1;
    runs.into_iter().filter_map(|run| open_table(run, right)).collect()
}

/// The table formed by bands between horizontal rules, unless they form none.
fn open_table(bands: Vec<(usize, Vec<Line>)>, right: f32) -> Option<Vec<Row>> {
    let size = bands.first()?.1.first()?.size;
    let mut columns = Vec::new();
    for line in bands.iter().flat_map(|(_, lines)| lines) {
        columns = tables::spans(&line.pieces, &columns, line.size);
    }
    if columns.len() < 2 {
        return None;
    }
    // Rules below the headings of sections separate these, not the rows of a table.
    if bands.iter().filter(|(_, lines)| has_heading(lines)).count() * 2 >= bands.len() {
        return None;
    }
    let edges = |column: usize| {
        let next = columns.get(column + 1).map(|next| next.0 - GAP_EM * size);
        (columns[column].0, next.unwrap_or(right))
    };
    let mut rows: Vec<Row> = Vec::new();
    for (row, lines) in bands {
        let mut cells: BTreeMap<usize, Vec<Piece>> = BTreeMap::new();
        for piece in lines.into_iter().flat_map(|line| line.pieces) {
            let column = columns.partition_point(|(left, _)| *left <= piece.left);
            cells.entry(column.saturating_sub(1)).or_default().push(piece);
        }
        let cell = |(column, pieces)| {
            let lines = lines_of(pieces);
            (column, Cell { lines, span: (1, 1), edges: edges(column) })
        };
        rows.push((row, cells.into_iter().map(cell).collect()));
    }
    let is_marked = |(_, cells): &&Row| {
        cells.values().next().is_some_and(|cell| marks::is_only_mark(&cell.lines[0].text()))
    };
    let is_list = rows.iter().filter(is_marked).count() * 2 >= rows.len();
    let is_ruled = !is_list && !rows[1..].iter().any(|row| has_records(row, true));
    (is_ruled && is_table(&rows, OPEN_CELL_LETTERS_MAX)).then_some(rows)
}

/// Whether the first or the last of several lines looks like the heading of a section.
fn has_heading(lines: &[Line]) -> bool {
    let ([first, second, ..], [.., before, last]) = (lines, lines) else { return false };
    is_heading(first, second) || is_heading(last, before)
}

/// Whether a line stands alone, and apart from the next one or larger or bold unlike that.
fn is_heading(line: &Line, next: &Line) -> bool {
    let step = (line.baseline - next.baseline).abs();
    let is_bold = line.is_bold() && !next.pieces.iter().any(|piece| piece.is_bold);
    let is_unlike = is_bold || line.size > LARGER * next.size;
    line.pieces.len() == 1 && (step > APART_EM * next.size || is_unlike && step > next.size)
}

fn lines_of(mut pieces: Vec<Piece>) -> Vec<Line> {
    pieces.sort_by(|a, b| a.baseline.total_cmp(&b.baseline).then(a.left.total_cmp(&b.left)));
    lines::of_pieces(pieces)
}

/// Whether rows are enough for a table, and filled with cells rather than with prose.
fn is_table(rows: &[Row], letters_max: usize) -> bool {
    let columns = columns(rows).len();
    let count = rows.iter().filter(|(_, cells)| cells.len() > 1).count();
    let is_large = count >= ROWS_MIN || (columns >= ROWS_MIN && count + 1 >= ROWS_MIN);
    let cells = || rows.iter().flat_map(|(_, cells)| cells.values());
    let letters: usize = cells().flat_map(|cell| &cell.lines).map(Line::letters).sum();
    let covered: usize = cells().map(|cell| cell.span.0 * cell.span.1).sum();
    columns > 1
        && is_large
        && letters <= letters_max * cells().count()
        && covered * 5 >= rows.len() * columns * 2
}

/// The columns with any text.
fn columns(rows: &[Row]) -> BTreeSet<usize> {
    rows.iter().flat_map(|(_, cells)| cells.keys().copied()).collect()
}

/// The lines of a row across its cells, each with the columns that it has text in. Cells that span
/// several rows are left out.
fn lines_across((_, cells): &Row) -> Vec<Vec<(usize, &Line)>> {
    let cells = cells.iter().filter(|(_, cell)| cell.span.0 == 1);
    let mut all: Vec<(usize, &Line)> =
        cells.flat_map(|(column, cell)| cell.lines.iter().map(|line| (*column, line))).collect();
    all.sort_by(|a, b| a.1.baseline.total_cmp(&b.1.baseline));
    let mut across: Vec<Vec<(usize, &Line)>> = Vec::new();
    for (column, line) in all {
        match across.last_mut() {
            Some(last) if line.baseline - last[0].1.baseline <= SAME_LINE_EM * line.size => {
                last.push((column, line));
            }
            _ => across.push(vec![(column, line)]),
        }
    }
    for line in &mut across {
        line.sort_by_key(|(column, _)| *column);
    }
    across
}

/// Whether rules are missing between the rows of a column: most of the rows that a cell spans have
/// one of its lines beside their first line.
fn is_undivided(rows: &[Row]) -> bool {
    let first = |row: &Row| lines_across(row).first().map(|line| line[0].1.baseline);
    let mut firsts: Vec<f32> = rows.iter().filter_map(first).collect();
    firsts.sort_by(f32::total_cmp);
    let is_beside = |line: &&Line| {
        let reach = SAME_LINE_EM * line.size;
        let next = firsts.partition_point(|first| *first < line.baseline - reach);
        firsts.get(next).is_some_and(|first| *first <= line.baseline + reach)
    };
    rows.iter().flat_map(|(_, cells)| cells.values()).any(|cell| {
        let beside = cell.lines.iter().filter(is_beside).count();
        cell.span.0 >= ROWS_MIN && beside >= ROWS_MIN && beside * 2 > cell.span.0
    })
}

/// Whether the lines of a row look like separate rows: they fill all cells, or several cells of
/// two lines hold numbers, begin anew, or would have fitted on one line.
fn has_records(row: &Row, is_open: bool) -> bool {
    let across = lines_across(row);
    let filled = row.1.values().filter(|cell| cell.span.0 == 1).count();
    let mut full = across.iter().filter(|line| line.len() == filled).skip(1);
    if filled > 1 && full.any(|line| !is_low(line[0].1)) {
        return true;
    }
    // Between two lines of a row there may be one of a cell that is aligned otherwise.
    (0..across.len()).any(|at| {
        let near = &across[at.saturating_sub(LINES_BACK)..at];
        near.iter().any(|above| is_record(above, &across[at], &row.1, is_open))
    })
}

/// Whether a line of a row looks like a separate row below another.
fn is_record(
    above: &[(usize, &Line)],
    below: &[(usize, &Line)],
    cells: &BTreeMap<usize, Cell>,
    is_open: bool,
) -> bool {
    let above: BTreeMap<usize, &Line> = above.iter().copied().collect();
    let both = below.iter().filter_map(|(column, below)| {
        let (cell, above) = (cells.get(column)?, *above.get(column)?);
        Some((cell, above, *below))
    });
    let both: Vec<(&Cell, &Line, &Line)> = both.collect();
    let is_number = |line: &Line| !line.text().contains(char::is_alphabetic);
    let has_numbers = both.iter().any(|(_, above, below)| is_number(above) && is_number(below));
    let begins = (is_open || both.len() > 2) && !both.iter().any(|(_, _, below)| is_low(below));
    let fitting = both.iter().filter(|(cell, above, below)| would_fit(cell, above, below));
    both.len() > 1 && (has_numbers || begins || fitting.count() > 1)
}

fn is_low(line: &Line) -> bool {
    line.text().starts_with(char::is_lowercase)
}

/// Whether the first word of a line would have fitted on the line above it.
fn would_fit(cell: &Cell, above: &Line, below: &Line) -> bool {
    let (left, right) = cell.edges;
    let margins = cell.lines.iter().map(|line| (line.left - left).min(right - line.right));
    let padding = margins.fold(PADDING_EM_MAX * above.size, f32::min).max(0.0);
    let text = below.text();
    let word = text.split(' ').next().unwrap_or("").chars().count() as f32;
    let word = (below.right - below.left) * word / text.chars().count().max(1) as f32;
    above.right - above.left + word + SPACE_EM * above.size < right - left - 2.0 * padding
}

/// The pieces of a cell in reading order.
fn in_order(cell: &Cell) -> Vec<&Piece> {
    cell.lines.iter().flat_map(Line::in_order).collect()
}

/// The number of rows that the header consists of: several if a name stands above those of several
/// columns, beside others that are as high as both.
fn header_rows(rows: &[Row]) -> usize {
    let Some((first, cells)) = rows.first() else { return 0 };
    let is_divided = cells.values().any(|cell| cell.span.1 > 1);
    let height = cells.values().map(|cell| cell.span.0).max().filter(|_| is_divided).unwrap_or(1);
    rows.iter().take_while(|(row, _)| *row < first + height).count()
}

/// The piece that stands for a table.
fn table(rows: &[Row], is_compound: &dyn Fn(&str) -> bool) -> Option<Piece> {
    let columns = columns(rows);
    let (header, body) = rows.split_at(header_rows(rows));
    let texts = iter::once(header).chain(body.chunks(1)).map(|rows| {
        let cell = |column: &usize| -> Vec<&Piece> {
            rows.iter().filter_map(|(_, cells)| cells.get(column)).flat_map(in_order).collect()
        };
        columns.iter().map(cell).collect()
    });
    let texts: Vec<Vec<Vec<&Piece>>> = texts.collect();
    let mut pieces = texts.iter().flatten().flatten().copied();
    let mut whole = pieces.next()?.clone();
    for piece in pieces {
        whole.left = whole.left.min(piece.left);
        whole.right = whole.right.max(piece.right);
        whole.top = whole.top.min(piece.top);
        whole.bottom = whole.bottom.max(piece.bottom);
        whole.baseline = whole.baseline.min(piece.baseline);
    }
    let block = tables::markdown(&texts, whole.size, is_compound);
    Some(Piece { text: String::new(), letters: 0, table: Some(Box::new(block)), ..whole })
}
