//! Grids: rules that cross and form cells, or that lie below each other and form rows.

use std::collections::BTreeMap;

use crate::pdf::rules::Rule;

/// Maximum horizontal or vertical rules of a page after merging; graph paper and plots have more.
const RULES_MAX: usize = 256;
/// Maximum grids of a page.
const GRIDS_MAX: usize = 64;
/// Maximum cells of a grid.
const CELLS_MAX: usize = 1 << 14;
/// Rules at a distance of up to this many points are one, if they also meet end to end: many
/// programs draw the rules of each cell separately.
const SAME: f32 = 1.5;
/// Gap that ends of rules may have where they meet, in points.
const MEET: f32 = 2.5;
/// Minimum distance of two rules with a row or column between them, in points.
const CELL_MIN: f32 = 3.5;
/// Minimum length of a rule, in points.
const LENGTH_MIN: f32 = 8.0;
/// Minimum rules without verticals that form rows.
const LEVELS_MIN: usize = 4;

/// Maximum height of a row that has a rule on one side only, in points.
const OPEN_ROW_MAX: f32 = 48.0;

/// A grid. Cells without a rule between them are one cell, which is named by its first.
#[derive(Debug)]
pub(super) struct Grid {
    /// Edges of columns and rows, ascending, in points from the top left corner.
    xs: Vec<f32>,
    ys: Vec<f32>,
    /// Whether there is a rule on the left edge of each cell and, last, on the right edge of the
    /// row.
    walls: Vec<bool>,
    /// The first cell of the cell that each is part of, by row and column.
    firsts: Vec<usize>,
}

impl Grid {
    fn new(levels: &[Rule], uprights: &[Rule]) -> Option<Self> {
        let ends = |rules: &[Rule]| {
            let from = rules.iter().map(|rule| rule.from).reduce(f32::min);
            let to = rules.iter().map(|rule| rule.to).reduce(f32::max);
            from.into_iter().chain(to).collect::<Vec<_>>()
        };
        let xs = edges(uprights.iter().map(|rule| rule.at).chain(ends(levels)));
        let ys = edges(levels.iter().map(|rule| rule.at).chain(ends(uprights)));
        let (columns, rows) = (xs.len().saturating_sub(1), ys.len().saturating_sub(1));
        if columns < 1 || rows < 2 || columns * rows > CELLS_MAX {
            return None;
        }
        let mut walls = vec![false; rows * xs.len()];
        for rule in uprights {
            let x = place(&xs, rule.at);
            for row in (0..rows).filter(|row| covers(rule, &ys[*row..row + 2])) {
                walls[row * xs.len() + x] = true;
            }
        }
        let mut ceilings = vec![false; columns * ys.len()];
        for rule in levels {
            let y = place(&ys, rule.at);
            for column in (0..columns).filter(|column| covers(rule, &xs[*column..column + 2])) {
                ceilings[y * columns + column] = true;
            }
        }
        let firsts = firsts(columns, rows, &walls, &ceilings);
        Some(Self { xs, ys, walls, firsts })
    }

    pub(super) fn columns(&self) -> usize {
        self.xs.len() - 1
    }

    pub(super) fn rows(&self) -> usize {
        self.ys.len() - 1
    }

    /// Left and right edge of a column.
    pub(super) fn column(&self, column: usize) -> (f32, f32) {
        (self.xs[column], self.xs[column + 1])
    }

    /// The upper edge of the first row.
    pub(super) fn top(&self) -> f32 {
        self.ys[0]
    }

    /// The row at a height.
    pub(super) fn row_at(&self, y: f32) -> Option<usize> {
        let row = self.ys.partition_point(|edge| *edge <= y).checked_sub(1)?;
        (row < self.rows()).then_some(row)
    }

    /// Row and column of the first part of the cell at a point.
    pub(super) fn cell_at(&self, x: f32, y: f32) -> Option<(usize, usize)> {
        let row = self.row_at(y)?;
        let column = self.xs.partition_point(|edge| *edge <= x).checked_sub(1)?;
        let first = *self.firsts[row * self.columns()..].get(column)?;
        let is_inside = column < self.columns();
        is_inside.then(|| (first / self.columns(), first % self.columns()))
    }

    /// Whether a vertical rule at this height is between two points.
    pub(super) fn separates(&self, left: f32, right: f32, y: f32) -> bool {
        let first = self.xs.partition_point(|edge| *edge < left);
        let end = self.xs.partition_point(|edge| *edge <= right);
        first < end
            && self
                .row_at(y)
                .is_some_and(|row| self.walls[row * self.xs.len()..][first..end].contains(&true))
    }

    /// The rows and columns that a cell consists of, by its first part.
    pub(super) fn spans(&self) -> BTreeMap<(usize, usize), (usize, usize)> {
        let mut spans: BTreeMap<(usize, usize), (usize, usize)> = BTreeMap::new();
        for (at, first) in self.firsts.iter().enumerate() {
            let (row, column) = (first / self.columns(), first % self.columns());
            let (rows, columns) = spans.entry((row, column)).or_default();
            *rows = (*rows).max(at / self.columns() - row + 1);
            *columns = (*columns).max((at % self.columns() + 1).saturating_sub(column));
        }
        spans
    }

    fn area(&self) -> f32 {
        (self.xs[self.columns()] - self.xs[0]) * (self.ys[self.rows()] - self.ys[0])
    }
}

/// The grids of a page, the smallest first.
pub(super) fn of_rules(rules: Vec<Rule>) -> Vec<Grid> {
    let (levels, uprights) = rules.into_iter().partition(|rule| rule.is_level);
    let (mut levels, mut uprights) = (merged(levels), merged(uprights));
    if levels.len() > RULES_MAX || uprights.len() > RULES_MAX {
        return Vec::new();
    }
    // An underline or a tick that begins at a rule is not part of the grid.
    let (all_levels, all_uprights) = (levels.clone(), uprights.clone());
    levels.retain(|rule| !is_loose(rule, &all_uprights));
    uprights.retain(|rule| !is_loose(rule, &all_levels));
    let (mut groups, alone) = connected(levels, &uprights);
    groups.extend(stacks(alone).into_iter().map(|levels| (levels, Vec::new())));
    groups.truncate(GRIDS_MAX);
    let grids = groups.iter().filter_map(|(levels, uprights)| Grid::new(levels, uprights));
    let mut grids: Vec<Grid> = grids.collect();
    grids.sort_by(|a, b| a.area().total_cmp(&b.area()));
    grids
}

/// Rules of one direction, with those that continue each other joined.
fn merged(mut rules: Vec<Rule>) -> Vec<Rule> {
    rules.sort_by(|a, b| a.at.total_cmp(&b.at));
    let mut whole: Vec<Rule> = Vec::new();
    let mut first = 0;
    while first < rules.len() {
        let near = rules[first..].partition_point(|rule| rule.at - rules[first].at <= SAME);
        let line = &mut rules[first..first + near];
        line.sort_by(|a, b| a.from.total_cmp(&b.from));
        let begin = whole.len();
        for rule in line {
            match whole[begin..].last_mut() {
                Some(last) if rule.from - last.to <= MEET => last.to = last.to.max(rule.to),
                _ => whole.push(*rule),
            }
        }
        first += near;
    }
    whole.retain(|rule| rule.to - rule.from >= LENGTH_MIN);
    whole
}

/// Whether two rules of different directions cross or meet.
fn cross(one: &Rule, other: &Rule) -> bool {
    let holds = |rule: &Rule, at: f32| at >= rule.from - MEET && at <= rule.to + MEET;
    holds(one, other.at) && holds(other, one.at)
}

/// Whether a rule meets only one of the others, with an end.
fn is_loose(rule: &Rule, others: &[Rule]) -> bool {
    let mut met = others.iter().filter(|other| cross(rule, other));
    let is_end = |at: f32| (at - rule.from).abs() <= MEET || (at - rule.to).abs() <= MEET;
    met.next().is_some_and(|other| is_end(other.at)) && met.next().is_none()
}

/// Horizontal and vertical rules.
type Group = (Vec<Rule>, Vec<Rule>);

/// Groups of horizontal and vertical rules that cross each other, and the horizontal rules that
/// cross none.
fn connected(levels: Vec<Rule>, uprights: &[Rule]) -> (Vec<Group>, Vec<Rule>) {
    let (mut groups, mut alone) = (Vec::new(), Vec::new());
    let mut levels: Vec<Option<Rule>> = levels.into_iter().map(Some).collect();
    let mut uprights: Vec<Option<Rule>> = uprights.iter().copied().map(Some).collect();
    for at in 0..levels.len() {
        let Some(first) = levels[at].take() else { continue };
        let (mut own_levels, mut own_uprights) = (Vec::new(), Vec::new());
        let mut open = vec![first];
        while let Some(rule) = open.pop() {
            let others = if rule.is_level { &mut uprights } else { &mut levels };
            let met = others.iter_mut().filter(|o| o.is_some_and(|o| cross(&rule, &o)));
            open.extend(met.filter_map(Option::take));
            if rule.is_level { &mut own_levels } else { &mut own_uprights }.push(rule);
        }
        if own_uprights.is_empty() {
            alone.extend(own_levels);
        } else {
            groups.push((own_levels, own_uprights));
        }
    }
    (groups, alone)
}

/// Groups of horizontal rules with the same ends. `alone` is sorted from the top.
fn stacks(alone: Vec<Rule>) -> Vec<Vec<Rule>> {
    let mut stacks: Vec<Vec<Rule>> = Vec::new();
    for rule in alone {
        let is_alike = |other: &Rule| {
            (rule.from - other.from).abs() <= MEET && (rule.to - other.to).abs() <= MEET
        };
        match stacks.iter_mut().find(|stack| is_alike(&stack[0])) {
            Some(stack) => stack.push(rule),
            None => stacks.push(vec![rule]),
        }
    }
    stacks.retain(|stack| stack.len() >= LEVELS_MIN);
    for stack in &mut stacks {
        // Above the first and below the last rule there may be a row that is as high as others.
        let heights = stack.windows(2).map(|pair| pair[1].at - pair[0].at);
        let height = heights.fold(0.0, f32::max).min(OPEN_ROW_MAX);
        let (first, last) = (stack[0], stack[stack.len() - 1]);
        stack.push(Rule { at: first.at - height, ..first });
        stack.push(Rule { at: last.at + height, ..last });
    }
    stacks
}

/// Positions of rules, ascending, with those of double rules joined.
fn edges(positions: impl Iterator<Item = f32>) -> Vec<f32> {
    let mut edges: Vec<f32> = positions.collect();
    edges.sort_by(f32::total_cmp);
    edges.dedup_by(|next, last| *next - *last < CELL_MIN);
    edges
}

/// The edge that a rule is at.
fn place(edges: &[f32], at: f32) -> usize {
    edges.partition_point(|edge| *edge <= at).saturating_sub(1)
}

/// Whether a rule covers the middle between two edges.
fn covers(rule: &Rule, edges: &[f32]) -> bool {
    let middle = (edges[0] + edges[1]) / 2.0;
    rule.from <= middle && rule.to >= middle
}

/// For each cell the first of those that no rule separates from it.
fn firsts(columns: usize, rows: usize, walls: &[bool], ceilings: &[bool]) -> Vec<usize> {
    let mut firsts = vec![usize::MAX; columns * rows];
    for first in 0..firsts.len() {
        let mut open = vec![first];
        while let Some(cell) = open.pop() {
            if firsts[cell] != usize::MAX {
                continue;
            }
            firsts[cell] = first;
            let (row, column) = (cell / columns, cell % columns);
            let wall = row * (columns + 1) + column;
            let has_left = column > 0 && !walls[wall];
            let has_right = column + 1 < columns && !walls[wall + 1];
            let has_above = row > 0 && !ceilings[cell];
            let has_below = row + 1 < rows && !ceilings[cell + columns];
            open.extend(has_left.then(|| cell - 1));
            open.extend(has_right.then(|| cell + 1));
            open.extend(has_above.then(|| cell - columns));
            open.extend(has_below.then(|| cell + columns));
        }
    }
    firsts
}
