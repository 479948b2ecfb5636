//! Islands: groups of cells that touch or lie within the frame of others.

use crate::sheet::Cell;

/// Above this many islands a sheet has scattered cells instead of tables, and is read as one table.
const ISLANDS_MAX: usize = 300;

/// The bounding box of cells: first and last row, first and last column.
#[derive(Debug, Clone, Copy)]
struct Frame {
    top: u32,
    bottom: u32,
    left: u32,
    right: u32,
}

impl Frame {
    fn of(cell: &Cell) -> Self {
        Self { top: cell.row, bottom: cell.row, left: cell.column, right: cell.column }
    }

    fn join(&mut self, other: Self) {
        self.top = self.top.min(other.top);
        self.bottom = self.bottom.max(other.bottom);
        self.left = self.left.min(other.left);
        self.right = self.right.max(other.right);
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.top <= other.bottom
            && other.top <= self.bottom
            && self.left <= other.right
            && other.left <= self.right
    }
}

/// The islands in cells sorted by row and column, each sorted the same way, from top to bottom and
/// left to right.
pub(super) fn found(cells: &[Cell]) -> Vec<Vec<Cell>> {
    let mut parents: Vec<u32> = (0..cells.len() as u32).collect();
    join_neighbours(cells, &mut parents);
    let mut frames: Vec<(u32, Frame)> = Vec::new();
    let mut slots: Vec<u32> = vec![u32::MAX; cells.len()];
    for (index, cell) in cells.iter().enumerate() {
        let root = root_of(&mut parents, index as u32);
        let slot = &mut slots[root as usize];
        if *slot == u32::MAX {
            *slot = frames.len() as u32;
            frames.push((*slot, Frame::of(cell)));
            if frames.len() > ISLANDS_MAX {
                return vec![cells.to_vec()];
            }
        }
        frames[*slot as usize].1.join(Frame::of(cell));
    }
    join_frames(&mut frames);
    let mut islands: Vec<Vec<Cell>> = frames.iter().map(|_| Vec::new()).collect();
    for (index, cell) in cells.iter().enumerate() {
        let root = root_of(&mut parents, index as u32);
        let slot = slots[root as usize] as usize;
        islands[frames[slot].0 as usize].push(*cell);
    }
    islands.retain(|island| !island.is_empty());
    islands.sort_by_key(|island| {
        (island[0].row, island.iter().map(|cell| cell.column).min().unwrap_or(0))
    });
    islands
}

/// Joins each cell with the one to its left and the one above it.
fn join_neighbours(cells: &[Cell], parents: &mut [u32]) {
    let mut above = 0;
    for index in 0..cells.len() {
        let cell = cells[index];
        if index > 0 {
            let before = cells[index - 1];
            if before.row == cell.row && before.column + 1 == cell.column {
                join(parents, index as u32 - 1, index as u32);
            }
        }
        let wanted = (cell.row.saturating_sub(1), cell.column);
        while (cells[above].row, cells[above].column) < wanted {
            above += 1;
        }
        if (cells[above].row, cells[above].column) == wanted && above < index {
            join(parents, above as u32, index as u32);
        }
    }
}

fn root_of(parents: &mut [u32], index: u32) -> u32 {
    let mut at = index;
    while parents[at as usize] != at {
        // Path halving keeps the cost almost constant.
        parents[at as usize] = parents[parents[at as usize] as usize];
        at = parents[at as usize];
    }
    at
}

fn join(parents: &mut [u32], one: u32, other: u32) {
    let (one, other) = (root_of(parents, one), root_of(parents, other));
    parents[one.max(other) as usize] = one.min(other);
}

/// Joins islands whose frames overlap until none do: holes do not split a table.
fn join_frames(frames: &mut [(u32, Frame)]) {
    loop {
        let mut is_changed = false;
        for one in 0..frames.len() {
            for other in one + 1..frames.len() {
                let (target, frame) = frames[one];
                let (source, others) = frames[other];
                if target == source || !frame.overlaps(&others) {
                    continue;
                }
                let mut joined = frame;
                joined.join(others);
                for (slot, frame) in frames.iter_mut() {
                    if *slot == target || *slot == source {
                        (*slot, *frame) = (target, joined);
                    }
                }
                is_changed = true;
            }
        }
        if !is_changed {
            return;
        }
    }
}
