//! The lists of a segment on the device.

use crate::compute::cuda::live::ResidentRows;
use crate::compute::cuda::reach::Reach;
use crate::compute::cuda::workspace::Workspace;
use crate::compute::cuda::{Buffer, DeviceError};
use crate::compute::one_bit::{BLOCK_ROWS, block_bytes};

/// The lists of a segment, as its sections hold them.
#[derive(Debug, Clone, Copy)]
pub struct ListColumns<'a> {
    /// Components of a rotated vector.
    pub width: usize,
    /// Codes of each list's point, padded like the rows.
    pub codes: &'a [i8],
    /// Code times scale is a component of a point.
    pub scales: &'a [f32],
    /// Squared length of each point.
    pub squares: &'a [f32],
    /// Root mean square distance of each list's rows from its point.
    pub spreads: &'a [f32],
    /// Where the blocks of each list begin.
    pub first_blocks: &'a [u32],
    /// Rows of each list.
    pub sizes: &'a [u32],
    /// Row of each slot, `u32::MAX` where a block is only filled up.
    pub rows_of_slots: &'a [u32],
    /// T0, in blocks of 64 rows.
    pub one_bit: &'a [u8],
}

/// The lists of a segment on the device.
#[derive(Debug)]
pub struct ResidentLists {
    pub(super) width: usize,
    pub(super) sizes: Vec<u32>,
    pub(super) codes: Buffer,
    pub(super) scales: Buffer,
    pub(super) squares: Buffer,
    pub(super) spreads: Buffer,
    pub(super) first_blocks: Buffer,
    pub(super) sizes_here: Buffer,
    pub(super) rows_of_slots: Buffer,
    pub(super) one_bit: Buffer,
    pub(super) slots: usize,
}

impl ResidentLists {
    /// Copies lists over `rows` to the device.
    ///
    /// # Errors
    /// [`DeviceError::Shape`] for columns that contradict each other; as `Device::allocate` and
    /// `Queue::upload`.
    pub fn upload(
        lists: &ListColumns<'_>,
        rows: &ResidentRows,
        workspace: &mut Workspace,
    ) -> Result<Self, DeviceError> {
        let reach = Reach::new("one_bit_scan");
        let (count, slots) = (lists.sizes.len(), lists.rows_of_slots.len());
        let columns = [lists.scales.len(), lists.squares.len(), lists.spreads.len()];
        let is_even = columns.into_iter().chain([lists.first_blocks.len()]).all(|len| len == count);
        reach.check(is_even && count > 0, "as many values as lists")?;
        let is_wide = lists.codes.len() == count * rows.stride as usize;
        reach.check(is_wide && lists.width.is_multiple_of(64), "points as wide as the rows")?;
        let blocks = slots / BLOCK_ROWS;
        let is_whole = slots.is_multiple_of(BLOCK_ROWS) && u32::try_from(slots).is_ok();
        let is_coded = lists.one_bit.len() == blocks * block_bytes(lists.width);
        reach.check(is_whole && is_coded, "whole blocks of T0")?;
        let mut pairs = lists.first_blocks.iter().zip(lists.sizes);
        let is_inside = pairs
            .all(|(first, size)| *first as usize + (*size as usize).div_ceil(BLOCK_ROWS) <= blocks);
        let is_row = |row: &u32| *row == u32::MAX || *row < rows.rows;
        let is_there = is_inside && lists.rows_of_slots.iter().all(is_row);
        reach.check(is_there, "lists of rows that are there")?;
        let mut copy = |bytes: &[u8]| {
            let buffer = workspace.device().allocate(bytes.len())?;
            workspace.queue.upload(&buffer, 0, bytes)?;
            Ok(buffer)
        };
        let resident = Self {
            width: lists.width,
            sizes: lists.sizes.to_vec(),
            codes: copy(bytemuck::cast_slice(lists.codes))?,
            scales: copy(bytemuck::cast_slice(lists.scales))?,
            squares: copy(bytemuck::cast_slice(lists.squares))?,
            spreads: copy(bytemuck::cast_slice(lists.spreads))?,
            first_blocks: copy(bytemuck::cast_slice(lists.first_blocks))?,
            sizes_here: copy(bytemuck::cast_slice(lists.sizes))?,
            rows_of_slots: copy(bytemuck::cast_slice(lists.rows_of_slots))?,
            one_bit: copy(lists.one_bit)?,
            slots,
        };
        workspace.queue.synchronise()?;
        Ok(resident)
    }

    /// Slots that the largest `probes` lists take: no query needs more.
    pub(super) fn slots_of(&self, probes: usize) -> usize {
        let padded = |size: &u32| (*size as usize).next_multiple_of(BLOCK_ROWS);
        let mut slots: Vec<usize> = self.sizes.iter().map(padded).collect();
        slots.sort_unstable_by(|a, b| b.cmp(a));
        slots.into_iter().take(probes).sum()
    }
}
